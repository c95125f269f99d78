# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller's metadata log as a view: checkpoint and segments below an end offset, replayed as Kafka replays them.

A record that Kafka would reject is an error. `at` of an entity is the offset of the last record that changed it; of an
absent one, of the record that removed it, or unknown. For what a checkpoint holds it is the checkpoint's last offset.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import shutil
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, NamedTuple, Tuple

import pyarrow as pa
import pyarrow.compute as pc
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    PARTITION_FIELDS,
    PARTITION_TYPES,
    TYPES,
    Image,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import (
    Extent,
    LogMissing,
    OpenLog,
    Record,
    Unread,
    cut_log,
    log_records,
    open_log,
    scan_log,
    segment_batches,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_records import UnknownRecord
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot

from quorumshift_spark import normal_form as form
from quorumshift_spark import replay
from quorumshift_spark.columns import log as columns
from quorumshift_spark.excuses import Copied
from quorumshift_spark.normal_form import Digests, Entity
from quorumshift_spark.views import NOT_COMPARED, Absent, Key, LiveView, Statement, ViewError, partition


class LogSource(NamedTuple):
    """Where a log is: a node's `directory`, or an `archive` of the module metadata_snapshot with its `sha256`.

    `end_offset`: exclusive, the high watermark; a log that ends before it is an error. `content`: the archive's bytes,
    for executors that do not share the driver's files.
    """

    end_offset: int
    directory: str | None = None
    archive: str | None = None
    sha256: str | None = None
    content: bytes | None = None


class Piece(NamedTuple):
    """A piece of a log that one task reads: the partitions of the topics of `share`. The first piece has all else as
    well. `extent`: of the log, None where the task scans it. `copy_of`: the view with the same bytes, which are not
    read again."""

    source: LogSource
    extent: Extent | None = None
    share: columns.Share = columns.WHOLE
    copy_of: str | None = None


class History:
    """When metadata changed.

    :arg begin: the first offset whose records are known; of what follows only offsets from there on.
    :arg changed: {key: offset of the last record} of what these records left, `removed`: of what they removed; both
        without partitions.
    :arg partitions: the offset of the last record of each, with columns topic_id, partition and offset.
    :arg removed_topics: {topic id: offset}.
    """

    def __init__(
        self,
        begin: int,
        changed: Dict[Key, int],
        removed: Dict[Key, int],
        partitions: pa.Table,
        removed_topics: Dict[str, int],
    ) -> None:
        self.begin = begin
        self._changed, self._removed = changed, removed
        self._removed_topics = removed_topics
        self._partitions = partitions.sort_by("topic_id").combine_chunks()
        counts = self._partitions["topic_id"].value_counts().to_pylist()
        starts = itertools.accumulate((count["counts"] for count in counts), initial=0)
        self._rows = {count["values"]: (start, count["counts"]) for count, start in zip(counts, starts)}

    def last(self, key: Key, topic_ids: Collection[str], is_there: bool) -> int | None:
        """Return the offset of the last record of an entity; `topic_ids`: of its topic, now and before. None as well
        where that record contradicts the newest checkpoint, by which it is there or not."""
        kind, text = key
        offsets = [self._changed.get(key) if is_there else None if key in self._changed else self._removed.get(key)]
        if kind == "partition" and is_there:
            number = form.key_of(text)[1]
            for topic_id in topic_ids:
                rows = self._partitions.slice(*self._rows.get(topic_id, (0, 0)))
                offsets += [row["offset"] for row in rows.to_pylist() if row["partition"] == number]
        elif kind == "partition":
            offsets += map(self._removed_topics.get, topic_ids)
        return max((offset for offset in offsets if offset is not None and offset >= self.begin), default=None)


def _of_snapshot(read: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of MetadataLogView read once what it returns of the same snapshot."""

    @functools.wraps(read)
    def kept(view: MetadataLogView, *given: Any) -> Any:
        past, what = view._past, (view.source, read.__name__, given)
        if what not in past:
            view._past = {place: found for place, found in past.items() if place[0] == view.source}
            view._past[what] = read(view, *given)
        return view._past[what]

    return kept


class MetadataLogView(LiveView):
    """The log of one controller. `name`: `metadata_log`, or `metadata_log:<controller id>` for a further one.

    :arg leader: the leader's view. A log with the same bytes up to the same offset has the same metadata: its rows are
        not read, and its Statement says `copy_of`.
    """

    kinds = form.STORED
    has_buckets = True

    def __init__(
        self,
        source: LogSource,
        digests: Digests,
        name: str = "metadata_log",
        leader: MetadataLogView | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self._digests = digests
        self._carries = False
        self._leader = leader
        self._unpacked_to: Tuple[LogSource, str] | None = None
        self._reread: Tuple[LogSource, Dict[Key, Entity | Absent], Statement] | None = None
        self._last = source
        self.not_compared: List[not_compared.Found] = []
        """What the readings of keys again found in newer snapshots, and no comparison sees."""
        self.between: Dict[Key, List[Entity | Absent]] = {}
        """Of the keys that were read again: what they were after records above the end of the snapshot before."""
        self._past: Dict[Tuple[LogSource, str, tuple], Any] = {}

    def carry_files(self) -> None:
        """Tasks get the archive's bytes. One task then reads all."""
        self._carries = True

    def parts(self, at_once: int = 0) -> List[Piece]:
        """Return the pieces: one, or for a large log as many as bound a task's memory. Each reads the files to their
        end, and decodes the partition records of its own topics."""
        leader, self._leader = self._leader, None  # tasks do not need it
        if leader and leader.content_digest() == self.content_digest():
            with self._open(self._here) as (_log, extent):
                return [Piece(self.source, extent, copy_of=leader.name)]
        if self._carries and self.source.archive:
            with open(self.source.archive, "rb") as file:
                return [Piece(self.source._replace(content=file.read()))]
        with self._open(self._here) as (log, extent):
            count = sum(part.end - part.start for part in columns.parts(log, extent)) // _PIECE + 1
            return [Piece(self._here, extent, columns.Share(number, count)) for number in range(count)]

    def content_digest(self) -> bytes:
        """Return a hash of the records below the end offset: checkpoint and batches, byte for byte."""
        with self._named_errors(), open_log(self._unpacked(), self.source.end_offset) as log:
            cut = cut_log(log, self.source.end_offset)
            place = log.checkpoint and (log.checkpoint.offset, log.checkpoint.epoch, cut.pieces[0].end)
            digest = hashlib.sha256(repr((place, cut.end_offset, cut.last_epoch)).encode())
            for piece in cut.pieces:
                piece.file.seek(piece.start)
                for start in range(piece.start, piece.end, _READ):
                    digest.update(piece.file.read(min(_READ, piece.end - start)))
        return digest.digest()

    def close(self) -> None:
        """Remove what was unpacked. It holds secrets."""
        if self._unpacked_to:
            shutil.rmtree(self._unpacked_to[0].archive + _UNPACKED, ignore_errors=True)
            self._unpacked_to = None

    def _unpacked(self) -> str:
        """Return the directory of `source`: of an archive, where it is unpacked until `close` or a newer source."""
        if self.source.directory:
            return self.source.directory
        if self._unpacked_to is None or self._unpacked_to[0] != self.source:
            self.close()
            directory = f"{self.source.archive}{_UNPACKED}"
            shutil.rmtree(directory, ignore_errors=True)  # of a job that was killed
            with contextlib.ExitStack() as failed:
                os.mkdir(directory, 0o700)
                failed.callback(shutil.rmtree, directory, ignore_errors=True)
                self._unpacked_to = self.source, _unpack(self.source.archive, self.source.sha256, directory)
                failed.pop_all()
        return self._unpacked_to[1]

    def read(self, part: Piece) -> Iterator[Entity | pa.RecordBatch | Statement]:
        """See View.read."""
        if part.copy_of is not None:
            yield Statement({**_statement(part.extent).state, "copy_of": part.copy_of}, [])
            return
        with contextlib.ExitStack() as stack:
            source = part.source
            if part.extent is None:
                source = source._replace(directory=stack.enter_context(_directory(source)))
            log, extent = stack.enter_context(self._open(source, extent=part.extent))
            is_first = not part.share.number
            types, unread = TYPES - PARTITION_TYPES if is_first else _TOPICS, Unread()
            # The first piece alone notes what is in no partition record
            image = Image.from_records(log_records(log, extent, types, unread=unread if is_first else Unread()))
            if is_first:
                yield from entities(image, self._digests)
            records = [
                batch
                for of_file in columns.parts(log, extent)
                for batch in columns.read_part(of_file, part.share, unread)
            ]
            yield from replay.replay(records, image.topics, image.removed_topics)
            yield _statement(extent, unread)

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """Return these keys at the end of `source`, a newer snapshot where the job got one since `read`."""
        wanted = set(keys)
        if self._reread is not None and self._reread[0] == self.source and wanted <= self._reread[1].keys():
            return {key: self._reread[1][key] for key in wanted}, self._reread[2]
        topics = {form.key_of(key)[0] for kind, key in wanted if kind == "partition"}
        begin, self._last = self._last.end_offset, self.source
        newer: List[Record] = []
        with self._open(self._here) as (log, extent):
            unread = Unread()
            records = log_records(log, extent, TYPES - PARTITION_TYPES, unread=unread)
            image = Image.from_records(_noted(records, begin, newer))
            of_topics = _add_partitions(image, log, extent, topics, begin, unread) if topics else []
            self.not_compared.append(_found(unread))
        found, between = sides(self.name, image, newer, of_topics, begin, wanted, self._digests)
        self.between.clear()
        self.between.update(between)
        if self.source.archive:  # a log that is read in place goes on
            self._reread = (self.source, found, _statement(extent))
        return found, _statement(extent)

    @_of_snapshot
    def history(self, since: int) -> History | None:
        """Return when metadata changed since an offset, from older segments; None where no checkpoint is newer, so that
        each entity has it. Runs on the driver."""
        with self._open(self._here) as (log, _extent):
            if log.checkpoint is None or log.checkpoint.offset <= since:
                return None
        with self._open(self._here, since) as (log, extent):
            image = Image.from_records(log_records(log, extent, TYPES - PARTITION_TYPES, unread=Unread()))
            parts = columns.parts(log, extent)
            rows = [batch.select(_CHANGES) for part in parts for batch in columns.read_part(part, unread=Unread())]
            begin = log.start_offset
        partitions = pa.Table.from_batches(
            rows, pa.schema([columns.PARTITION_RECORDS.field(name) for name in _CHANGES])
        )
        partitions = partitions.filter(pc.greater_equal(partitions["offset"], begin))
        partitions = partitions.group_by(_CHANGES[:2]).aggregate([("offset", "max")])
        changed = {(entity.kind, entity.key): entity.at["offset"] for entity in entities(image, self._digests)}
        partitions = partitions.select(["topic_id", "partition", "offset_max"]).rename_columns(_CHANGES)
        return History(begin, changed, removed(image), partitions, image.removed_topics)

    @_of_snapshot
    def removed_topics(self, since: int) -> Dict[str, int]:
        """Return {topic id: offset of the record that removed it} from an offset on, as far as records are known."""
        with self._open(self._here, since) as (log, extent):
            return Image.from_records(log_records(log, extent, _TOPICS, unread=Unread())).removed_topics

    @_of_snapshot
    def copied(self) -> Copied | None:
        """Return the end of the initial copy, None where its records are not there any more. Runs on the driver."""
        with self._open(self._here, 0) as (log, extent):
            states = log_records(log, extent, {_MIGRATION_STATE}, unread=Unread())
            ends = [state for state in states if state.fields["zkMigrationState"] == 1 and not state.from_checkpoint]
        return Copied(ends[-1].offset, ends[-1].epoch) if ends else None

    @_of_snapshot
    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the record at an offset, None where it is not there any more, or not yet."""
        with self._open(self._here, offset) as (log, extent):
            batches = segment_batches(log, extent.end_offset, check_crc=False)
            found = (batch.epoch for batch, _path in batches if batch.base_offset <= offset <= batch.last_offset)
            return next(found, None)

    @property
    def _here(self) -> LogSource:
        return self.source._replace(directory=self._unpacked())

    @contextlib.contextmanager
    def _open(self, source, since=None, extent=None) -> Iterator[Tuple[OpenLog, Extent]]:
        """Yield the open log and its extent, which reaches the high watermark."""
        with self._named_errors(), open_log(source.directory, source.end_offset, since=since) as log:
            extent = extent or scan_log(log, source.end_offset, counts=False, later=True)
            if extent.end_offset < source.end_offset:
                raise ViewError(
                    f"{self.name}: the log ends at offset {extent.end_offset} (epoch {extent.last_epoch}), "
                    f"{source.end_offset - extent.end_offset} short of the high watermark {source.end_offset}. The "
                    "controller lags or the snapshot is incomplete. Take the snapshot again, on the quorum's "
                    "leader (QS-VERIFY-003)"
                )
            yield log, extent

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except LogMissing as error:
            raise ViewError(f"{self.name}: {error}") from None
        except UnknownRecord as error:
            raise ViewError(
                f"{self.name}: {error}. It may change what is compared, so nothing accepts it. Keep the cluster as it "
                "is, and report the type and version (QS-VERIFY-009)"
            ) from error
        except LogError as error:
            raise ViewError(f"{self.name}: {error}. Take the snapshot of the log again (QS-VERIFY-003)") from error


_PIECE = 128 << 20  # bytes of a log: about a million partition records, which take 500 MB of a task's memory
_MIGRATION_STATE = "ZK_MIGRATION_STATE_RECORD"
_TOPICS = frozenset(("TOPIC_RECORD", "REMOVE_TOPIC_RECORD"))
_UNPACKED = ".unpacked"
_READ = 1 << 20  # bytes
_CHANGES = ["topic_id", "partition", "offset"]


def sides(
    name: str,
    image: Image,
    newer: Iterable[Record],
    of_topics: Iterable[Dict[str, Any]],
    begin: int,
    wanted: Collection[Key],
    digests: Digests,
) -> Tuple[Dict[Key, Entity | Absent], Dict[Key, List[Entity | Absent]]]:
    """Return these keys in an image, and what they were after records from offset `begin` on.

    :arg newer: these records, without those of partitions; `of_topics`: the partitions after theirs, see _partition.
    """

    def of(rows):
        return (partition(name, row, row["at"]) for row in rows)

    found: Dict[Key, Entity | Absent] = {
        (entity.kind, entity.key): entity
        for entity in itertools.chain(entities(image, digests), of(_partitions(image)))
        if (entity.kind, entity.key) in wanted
    }
    between: Dict[Key, List[Entity | Absent]] = {}
    for entity in itertools.chain(_set_by(newer, digests), of(of_topics)):
        if (entity.kind, entity.key) in wanted:
            between.setdefault((entity.kind, entity.key), []).append(entity)
    removals = removed(image)
    for kind, key in wanted:
        # A partition goes with its topic, and a recreated topic may have fewer
        at = removals.get(("topic", form.canonical(form.key_of(key)[:1])) if kind == "partition" else (kind, key))
        absent = Absent({} if at is None else {"offset": at})
        found.setdefault((kind, key), absent)
        if at is not None and at >= begin:
            between.setdefault((kind, key), []).append(absent)
    return found, between


def _statement(extent: Extent, unread: Unread | None = None) -> Statement:
    state = {"offset": extent.end_offset, "epoch": extent.last_epoch}
    found = _found(unread) if unread else {}
    return Statement({**state, NOT_COMPARED: found} if found else state, [])


_NAMES: Dict[str, Callable[..., str]] = {
    "record": not_compared.record,
    "control": not_compared.control,
    "field": not_compared.field,
}


def _found(unread: Unread) -> not_compared.Found:
    found = {}
    for (what, *place), (count, first) in unread.found.items():
        name = _NAMES[what](*place)
        found[name] = {"count": count, "first": f"offset {first}"}
    return found


def _noted(records: Iterable[Record], begin: int, newer: List[Record]) -> Iterator[Record]:
    """Yield the records, and add those from an offset on to `newer`."""
    for record in records:
        if record.offset >= begin:
            newer.append(record)
        yield record


def _set_by(records: Iterable[Record], digests: Digests) -> Iterator[Entity]:
    """Yield what each record sets, but for what depends on the records before it."""
    for record in records:
        with contextlib.suppress(metadata_image.InconsistentLog):
            yield from entities(Image.from_records([record]), digests)


def _add_partitions(
    image: Image, log: OpenLog, extent: Extent, topics: Collection[str], begin: int, unread: Unread
) -> List[Dict[str, Any]]:
    """Replay the partition records of the topics that exist and have one of these names. Return the partitions as they
    were after each record from offset `begin` on. `unread`: notes what all partition records have."""
    ids = pa.array([topic_id for topic_id, (name, _at) in image.topics.items() if name in topics], pa.string())
    rows = [
        row
        for part in columns.parts(log, extent)
        for batch in columns.read_part(part, unread=unread)
        for row in batch.filter(pc.is_in(batch["topic_id"], ids)).to_pylist()
    ]
    after = []
    for row in sorted(rows, key=lambda row: row["offset"]):
        image.apply(columns.record(row))
        if row["offset"] >= begin:
            after.append(_partition(image, row["topic_id"], row["partition"]))
    return after


@contextlib.contextmanager
def _directory(source: LogSource) -> Iterator[str]:
    """Yield the log's directory. An archive, which holds secrets, is unpacked privately and removed afterwards."""
    if source.directory:
        yield source.directory
        return
    given = source.archive, source.sha256, metadata_snapshot.NAMES, source.content
    with contextlib.ExitStack() as stack:
        with _named_archive():
            directory = stack.enter_context(archives.unpack_privately(*given))
        yield directory


def _unpack(archive: str, sha256: str, directory: str) -> str:
    """Unpack an archive below a directory; return where. Raises ViewError."""
    target = os.path.join(directory, "log")
    with _named_archive():
        metadata_snapshot.unpack(archive, sha256, target)
    return target


@contextlib.contextmanager
def _named_archive() -> Iterator[None]:
    try:
        yield
    except (metadata_snapshot.SnapshotError, OSError, EOFError) as error:
        raise ViewError(f"metadata log: {error} (QS-VERIFY-003)") from error


def entities(image: Image, digests: Digests) -> Iterator[Entity]:
    """Yield every entity of an image in the normal form, but for partitions."""
    for topic_id, (name, at) in image.topics.items():
        yield form.topic(name, topic_id, {"offset": at})
    for (code, resource), configs in image.configs.items():
        for name, (value, at) in configs.items():
            yield form.config(*_resource(code, resource), name, value, digests, {"offset": at})
    for (entity, key), (value, at) in image.quotas.items():
        yield form.quota(dict(entity), key, value, {"offset": at})
    for (user, code), (fields, at) in image.scram.items():
        mechanism = enums.name_from_code(enums.SCRAM_MECHANISMS, code)
        keys = (fields["salt"], fields["storedKey"], fields["serverKey"])
        digest = digests.scram(user, mechanism, *keys, fields["iterations"])
        yield form.scram(user, mechanism, fields["iterations"], digest, {"offset": at})
    yield from _acls(image)
    for fields, at in image.delegation_tokens.values():
        yield form.delegation_token(
            fields["tokenId"],
            fields["owner"],
            fields["requester"],
            fields["renewers"],
            fields["issueTimestamp"],
            fields["expirationTimestamp"],
            fields["maxTimestamp"],
            {"offset": at},
        )
    if image.producer_ids is not None:
        yield form.producer_ids(image.producer_ids[0], at={"offset": image.producer_ids[1]})
    for name, (level, at) in image.features.items():
        yield form.feature(name, level, {"offset": at})
    if image.zk_migration_state is not None:
        yield form.migration(image.zk_migration_state[0], {"offset": image.zk_migration_state[1]})
    for broker_id, broker in image.brokers.items():
        fields = {name: broker[name] for name in ("fenced", "epoch", "rack", "log_dirs")}
        fields["endpoints"] = [
            [
                end_point["name"],
                end_point["host"],
                end_point["port"],
                enums.name_from_code(enums.SECURITY_PROTOCOLS, end_point["securityProtocol"]),
            ]
            for end_point in broker["end_points"]
        ]
        yield form.broker(broker_id, fields, {"offset": broker["changed_offset"]})


def _partitions(image: Image) -> Iterator[Dict[str, Any]]:
    """Yield the partitions of an image as rows of columns.PARTITIONS."""
    for topic_id, partitions in image.partitions.items():
        for number in partitions:
            yield _partition(image, topic_id, number)


def _partition(image: Image, topic_id: str, number: int) -> Dict[str, Any]:
    values = image.partitions[topic_id][number]
    of_kafka = dict(zip(PARTITION_FIELDS, values))
    fields = {ours: of_kafka[theirs] for ours, theirs in columns.COLUMNS.items() if theirs in of_kafka}
    fields.update({name: sorted(fields[name]) for name in columns.SORTED})
    return {"topic": image.topics[topic_id][0], "topic_id": topic_id, "partition": number, **fields, "at": values[-1]}


def _acls(image: Image) -> Iterable[Entity]:
    """Return ACLs by content: to an authorizer, two ids with the same content are one ACL."""
    newest: Dict[tuple, Tuple[Dict[str, Any], int]] = {}
    for fields, at in image.acls.values():
        content = metadata_image.acl_content(fields)
        if content not in newest or newest[content][1] < at:
            newest[content] = (fields, at)
    return [_acl(fields, at) for fields, at in newest.values()]


def _acl(fields: Dict[str, Any], at: int = 0) -> Entity:
    return form.acl_of_codes(fields, {"offset": at})


def _resource(code, name):
    """Return type and entity of a config's key; KRaft's default broker entity is ""."""
    kind = form.CONFIG_RESOURCES.get(code, f"resource type {code}")
    return kind, None if code == metadata_image.BROKER_RESOURCE and name == "" else name


def removed(image: Image) -> Dict[Key, int]:
    """Return {key in the normal form: offset of the record that removed it last}."""
    return {_REMOVED[part](key): offset for (part, key), offset in image.removed.items()}


def _key(kind: str, *parts: Any) -> Key:
    return kind, form.canonical(list(parts))


_REMOVED: Dict[str, Callable[[Any], Key]] = {
    "topics": lambda name: _key("topic", name),
    "partitions": lambda key: _key("partition", *key),
    "configs": lambda key: _key("config", *_resource(*key[:2]), key[2]),
    "quotas": lambda key: _key("quota", [list(part) for part in key[0]], key[1]),
    "scram": lambda key: _key("scram", key[0], enums.name_from_code(enums.SCRAM_MECHANISMS, key[1])),
    "acls": lambda content: _acl(dict(zip(metadata_image.ACL_FIELDS, content)))[:2],
    "delegation_tokens": lambda token_id: _key("delegation_token", token_id),
    "features": lambda name: _key("feature", name),
    "brokers": lambda broker_id: _key("broker", broker_id),
}
