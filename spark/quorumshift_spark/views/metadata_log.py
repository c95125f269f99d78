# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller's metadata log as a view: checkpoint and segments below an end offset, replayed as Kafka replays them.

A record that Kafka would reject is an error. `at` of an entity is the offset of the last record that changed it; of an
absent one, of the record that removed it, or unknown. For what a checkpoint holds it is the checkpoint's last offset.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import enums, metadata_image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_image import TYPES, Image
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_log import (
    LogMissing,
    log_records,
    open_log,
    scan_log,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.record_batch import LogError

from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Digests, Entity
from quorumshift_spark.views import Absent, Key, Statement, View, ViewError

_FIELD_NAMES = {
    "replicas": "replicas",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "isr": "isr",
    "leaderRecoveryState": "recovery_state",
    "partitionEpoch": "partition_epoch",
}


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


class MetadataLogView(View):
    """The log of one controller. `name`: `metadata_log`, or `metadata_log:<controller id>` for a further one.

    :arg ship: whether tasks get the archive's bytes instead of its path.
    """

    kinds = form.KINDS

    def __init__(self, source: LogSource, digests: Digests, name: str = "metadata_log", ship: bool = False) -> None:
        self.name = name
        self.source = source
        self._digests = digests
        self._ship = ship

    def parts(self) -> List[LogSource]:
        """Return one part: records of a log depend on those before them."""
        if not (self._ship and self.source.archive):
            return [self.source]
        with open(self.source.archive, "rb") as file:
            return [self.source._replace(content=file.read())]

    def read(self, part: LogSource) -> Iterator[Entity | Statement]:
        image, statement = self._replay(part)
        yield from entities(image, self._digests)
        yield statement

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """Return these keys at the end of `source`, a newer snapshot where the job got one since `read`."""
        wanted = set(keys)
        image, statement = self._replay(self.source)
        found: Dict[Key, Entity | Absent] = {
            (entity.kind, entity.key): entity
            for entity in entities(image, self._digests)
            if (entity.kind, entity.key) in wanted
        }
        removals = removed(image)
        for key in wanted.difference(found):
            at = removals.get(key)
            found[key] = Absent({} if at is None else {"offset": at})
        return found, statement

    def _replay(self, source) -> Tuple[Image, Statement]:
        with _directory(source) as directory:
            try:
                with open_log(directory, source.end_offset) as log:
                    extent = scan_log(log, source.end_offset)
                    image = Image.of(log_records(log, extent, TYPES))
            except LogMissing as error:
                raise ViewError(f"{self.name}: {error}") from None
            except LogError as error:
                raise ViewError(f"{self.name}: {error}. Take the snapshot of the log again") from error
        if extent.end_offset < source.end_offset:
            raise ViewError(
                f"{self.name}: the log ends at offset {extent.end_offset} (epoch {extent.last_epoch}), "
                f"{source.end_offset - extent.end_offset} short of the high watermark {source.end_offset}. The "
                "controller lags or the snapshot is incomplete. Take the snapshot again, on the quorum's leader"
            )
        return image, Statement({"offset": extent.end_offset, "epoch": extent.last_epoch}, [])


@contextlib.contextmanager
def _directory(source: LogSource) -> Iterator[str]:
    """Yield the log's directory. An archive, which holds secrets, is unpacked privately and removed afterwards."""
    if source.directory:
        yield source.directory
        return
    with tempfile.TemporaryDirectory(prefix="quorumshift-log-") as scratch:  # made 0700
        archive = source.archive
        try:
            if source.content is not None:
                archive = os.path.join(scratch, "log.tar.gz")
                with open(os.open(archive, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                    file.write(source.content)
            directory = os.path.join(scratch, "log")
            metadata_snapshot.unpack(archive, source.sha256, directory)
        except (metadata_snapshot.SnapshotError, OSError, EOFError) as error:
            raise ViewError(f"metadata log: {error}") from error
        yield directory


def entities(image: Image, digests: Digests) -> Iterator[Entity]:
    """Yield every entity of an image in the normal form."""
    for topic_id, (name, at) in image.topics.items():
        yield form.topic(name, topic_id, {"offset": at})
    for topic_id, partitions in image.partitions.items():
        name = image.topics[topic_id][0]
        for number, values in partitions.items():
            fields = {"topic_id": topic_id, **dict(zip(_FIELDS, values))}
            yield form.partition(name, number, fields, {"offset": values[-1]})
    for (code, resource), configs in image.configs.items():
        for name, (value, at) in configs.items():
            yield form.config(*_resource(code, resource), name, value, digests, {"offset": at})
    for (entity, key), (value, at) in image.quotas.items():
        yield form.quota(dict(entity), key, value, {"offset": at})
    for (user, code), (fields, at) in image.scram.items():
        mechanism = enums.of_code(enums.SCRAM_MECHANISMS, code)
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
    for broker_id, broker in image.brokers.items():
        fields = {"fenced": broker["fenced"], "epoch": broker["epoch"]}
        yield form.broker(broker_id, fields, {"offset": broker["changed_offset"]})


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


_FIELDS = tuple(_FIELD_NAMES[name] for name in metadata_image.PARTITION_FIELDS)


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
    "scram": lambda key: _key("scram", key[0], enums.of_code(enums.SCRAM_MECHANISMS, key[1])),
    "acls": lambda content: _acl(dict(zip(metadata_image.ACL_FIELDS, content)))[:2],
    "delegation_tokens": lambda token_id: _key("delegation_token", token_id),
    "features": lambda name: _key("feature", name),
    "brokers": lambda broker_id: _key("broker", broker_id),
}
