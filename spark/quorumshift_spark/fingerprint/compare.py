# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the fingerprints of two runs: partitions, keys and coordinators. Pure."""

from __future__ import annotations

import fnmatch
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates.gates import DATA_GATES

from quorumshift_spark.fingerprint import chunks, coordinators, keys
from quorumshift_spark.fingerprint.coordinators import Coordinators, Missing, Newest
from quorumshift_spark.fingerprint.findings import Findings
from quorumshift_spark.fingerprint.keys import Tally
from quorumshift_spark.fingerprint.plan import Chunk, PartitionState, Place, Sample, TopicPartition

LOG = "log"
"""The kind for a partition: its existence, its topic id, its leader epoch, its first and last offset."""
SAMPLED_LOG = "log_of_a_sample"
"""The same for a partition of which the baseline has only a sample of the records."""
FIRST = "no baseline yet: this run creates it"
NEW = "new since the baseline"


class Data(NamedTuple):
    """Where the rows of a fingerprint are (data.Data): a directory of the store, and its files, {name: bytes}."""

    directory: str
    files: Mapping[str, int]


class Fingerprint(NamedTuple):
    """The fingerprint of one run, the baseline of the next one.

    `taken_ms`: when reading began, epoch ms. `topics`: {name: id} of all topics of the cluster, also those that were
    not read. `partitions`: those that were read and those of the coordinators' topics. `chunks`: which chunks were
    read; what they contain is in `data`. `samples`: of topics that are not read as a whole; `shares`: of these, the
    share of the offsets that was read. `sizes`: how many entries there are, by kind.
    """

    cluster_id: str
    taken_ms: int
    topics: Mapping[str, str]
    partitions: Mapping[TopicPartition, PartitionState]
    chunks: Mapping[TopicPartition, Sequence[Place]]
    data: Data
    coordinators: Coordinators
    samples: Mapping[str, Sample] = {}
    shares: Mapping[str, float] = {}
    sizes: Mapping[str, int] = {}


class Context(NamedTuple):
    """What else a comparison needs. `log_ends`: high watermarks of all partitions of the cluster, read after the
    groups; `unread`: why partitions could not be read to their end; `gone`, `newest`: see coordinators.compare.
    `contents`: of partitions that have chunks; `tallies`: of the keys of compacted partitions. `read_ms`: when reading
    ended, epoch ms: until then retention and the cleaner were at work."""

    log_ends: Mapping[TopicPartition, int] = {}
    purged_topics: Sequence[str] = ()
    unread: Mapping[TopicPartition, str] = {}
    gone: Sequence[Missing] = ()
    newest: Mapping[bytes, Sequence[Newest]] = {}
    contents: Mapping[TopicPartition, Content] = {}
    tallies: Mapping[TopicPartition, Mapping[str, Tally]] = {}
    read_ms: int = 0


class Content(NamedTuple):
    """What the chunks of a partition add up to: the number of plain chunks now, their offsets; records of now; rows of
    keys, now and in the baseline; and of now's keyed chunks the bytes, and the records of batches above the baseline's
    end. `findings`: of the plain chunks and the log, where both are to be compared."""

    chunks: int = 0
    offsets: int = 0
    records: int = 0
    keys: int = 0
    old_keys: int = 0
    kept_bytes: int = 0
    written: int = 0
    findings: Findings | None = None


class Both(NamedTuple):
    """A partition at the baseline and now, and `more` that its comparison needs, in the order of chunks.compare. On
    executors."""

    was: PartitionState | None
    now: PartitionState | None
    more: Sequence[Any]

    def content(self, then: Sequence[Chunk], here: Sequence[Chunk]) -> Content:
        """Return what the chunks add up to. `then`: of the baseline; `here`: of now; in the order of offsets."""
        was, now = self.was, self.now
        here = [chunk for chunk in here if now and chunk.end > now.log_start]
        plain, keyed = ([chunk for chunk in here if (chunk.keys is None) == is_plain] for is_plain in (True, False))
        findings = None
        if was and not was.compacted and now and chunks.compare_state(was, now, chunks.KIND, 0) is None:
            findings = chunks.compare(was, [chunk for chunk in then if chunk.keys is None], now, plain, *self.more)
        return Content(
            len(plain),
            sum(chunk.end - max(chunk.begin, now.log_start) for chunk in plain) if now else 0,
            sum(chunk.records for chunk in here),
            sum(chunk.keys or 0 for chunk in keyed),
            sum(chunk.keys or 0 for chunk in then),
            sum(chunk.bytes for chunk in keyed),
            sum(chunk.records for chunk in keyed if was and chunk.begin >= was.end),
            findings,
        )


def both(
    was: Fingerprint | None, now: Fingerprint, context: Context, sizes: Mapping[TopicPartition, int]
) -> Dict[TopicPartition, Both]:
    """Return what executors need of each partition. `sizes`: bytes of the logs of which a sample was read."""
    before: Mapping[TopicPartition, PartitionState] = was.partitions if was else {}
    common = (max(now.taken_ms, context.read_ms), context.purged_topics)
    return {
        tp: Both(
            before.get(tp),
            now.partitions.get(tp),
            (*common, context.unread.get(tp), sizes.get(tp), tp[0] in now.samples),
        )
        for tp in {**before, **now.partitions}
    }


def coverage(
    gate: str | None,
    was: Fingerprint | None,
    topics: Mapping[str, str],
    read: Iterable[str],
    patterns: Sequence[str],
    exclude: Sequence[str] = (),
    hidden: Iterable[str] = (),
) -> Findings:
    """Return what the comparison does not cover though it should.

    :arg was: the complete baseline.
    :arg topics: {name: id} of the cluster; `read`: names of those that are read; `patterns`, `exclude`: choose them.
    :arg hidden: topics of the cluster on which the principal has no DESCRIBE.
    """
    findings = Findings()
    if was is None and gate == DATA_GATES[-1]:
        why = (
            f"no baseline: the records were not read at {DATA_GATES[0]}, or the run artifacts of then (directory "
            "<cluster id>/baseline) are on another control node. Copy the directory from there and run the playbook "
            "again. If it does not exist, the records cannot be compared. Continue with: "
            "-e '{\"quorumshift_fingerprint_topics\": []}'"
        )
        findings.skip(LOG, [], why)
    known = {*topics, *(was.topics if was else ())} - set(coordinators.INTERNAL)
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            why = (
                f"the pattern {pattern!r} of quorumshift_fingerprint_topics matches no topic; Kafka's internal ones "
                "are never read. Correct or remove it and run the playbook again"
            )
            findings.skip(LOG, [pattern], why)
    for topic in sorted(topic for topic in hidden if not _matches(topic, exclude)):
        why = (
            f"topic {topic} exists, but the principal of quorumshift_client has no DESCRIBE on it: neither its records "
            "nor the offsets committed in it are compared. Run kafka-acls.sh --bootstrap-server … --add "
            f"--allow-principal User:… --operation Read --topic '{topic}', or exclude the topic "
            "(quorumshift_fingerprint_exclude). Then run the playbook again"
        )
        findings.skip(LOG, [topic], why)
    compared = {topic for topic, _partition in was.partitions} - set(coordinators.INTERNAL) if was else set()
    for topic in sorted(compared):
        if _matches(topic, exclude):
            findings.excuse(LOG, [topic], f"topic {topic} was read at the baseline and is excluded now")
        elif not _matches(topic, patterns):
            why = (
                f"topic {topic} was read at the baseline, and no pattern of quorumshift_fingerprint_topics matches it "
                "now. Use the patterns of the baseline, or exclude it (quorumshift_fingerprint_exclude). Then run the "
                "gate again"
            )
            findings.skip(LOG, [topic], why)
    for topic in sorted(set(read) - compared) if was else ():
        if was.topics.get(topic) == topics[topic]:
            why = (
                f"topic {topic} existed at the baseline and was not read then. Choose the topics of the baseline "
                "(quorumshift_fingerprint_topics, quorumshift_fingerprint_exclude) and run the playbook again"
            )
            findings.skip(LOG, [topic], why)
    return findings


def part(was: Fingerprint, patterns: Sequence[str], exclude: Sequence[str]) -> Fingerprint:
    """Return the baseline's part of the topics that are compared, and of the coordinators' topics."""
    kept = {topic for topic, _partition in was.partitions if _matches(topic, patterns) and not _matches(topic, exclude)}
    kept.update(coordinators.INTERNAL)
    return was._replace(
        partitions={tp: state for tp, state in was.partitions.items() if tp[0] in kept},
        chunks={tp: places for tp, places in was.chunks.items() if tp[0] in kept},
    )


def _matches(topic: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(topic, pattern) for pattern in patterns)


def compare(was: Fingerprint | None, now: Fingerprint, context: Context) -> Findings:
    """Compare a fingerprint with the baseline, None for the first run, where everything is new."""
    findings, new = Findings(), NEW if was else FIRST
    old_partitions: Mapping[TopicPartition, PartitionState] = was.partitions if was else {}
    read_ms = max(now.taken_ms, context.read_ms)
    for tp, before in sorted(old_partitions.items()):
        after, content = now.partitions.get(tp), context.contents[tp]
        tallies = context.tallies.get(tp, {})
        then = sum(1 for place in was.chunks.get(tp, ()) if not place.keyed) if was else 0
        kind, number = (keys.KIND, _keys_of_baseline(tallies)) if before.compacted else (chunks.KIND, then)
        of_partition = chunks.compare_state(before, after, kind, number)
        more = (read_ms, context.purged_topics, context.unread.get(tp))
        if of_partition is None and before.compacted:
            summed = (tallies, content.kept_bytes, content.written, read_ms - was.taken_ms)
            of_partition = keys.compare(before, after, *summed, *more)
        elif of_partition is None:
            of_partition = content.findings
        findings.add(of_partition)
        differs = any(difference.kind == LOG for difference in of_partition.differences)
        whole = before.compacted or tp[0] not in (was.samples if was else ())
        findings.count(
            LOG if whole else SAMPLED_LOG, "left_only" if after is None else "differ" if differs else "match"
        )
    for tp in now.partitions:
        if tp not in old_partitions:
            findings.explain(LOG, new)
            findings.explain(keys.KIND, new, sum(tally.now for tally in context.tallies.get(tp, {}).values()))
            findings.explain(chunks.KIND, new, context.contents[tp].chunks)
            if tp in context.unread:
                findings.skip(LOG, [*tp], f"{tp[0]}-{tp[1]} could not be read to its end: {context.unread[tp]}")
    findings.add(
        coordinators.compare(
            was.coordinators if was else Coordinators({}, {}, {}),
            now.coordinators,
            context.log_ends,
            read_ms,
            context.gone,
            context.newest,
            {
                name
                for name, topic_id in (was.topics if was else {}).items()
                if now.topics.get(name, topic_id) != topic_id
            },
            {tp: state.end for tp, state in old_partitions.items()},
        )
    )
    return findings


def _keys_of_baseline(tallies: Mapping[str, Tally]) -> int:
    return sum(tally.number for name, tally in tallies.items() if name not in (keys.NEW, keys.APPEARED))


def shares(of: Fingerprint, contents: Mapping[TopicPartition, Content]) -> Dict[str, float]:
    """Return {topic: the share of its offsets that were read}, of topics of which a sample was read."""
    sums: Dict[str, List[int]] = {}
    for tp, state in of.partitions.items():
        if tp[0] in of.samples and state.end > state.log_start:
            of_topic = sums.setdefault(tp[0], [0, 0])
            of_topic[0] += contents[tp].offsets
            of_topic[1] += state.end - state.log_start
    return {topic: read / offsets for topic, (read, offsets) in sums.items()}


def verdict(findings: Findings) -> str:
    """Return `differ`, `incomplete` if something could not be compared, else `pass`."""
    if findings.differences:
        return "differ"
    return "incomplete" if findings.skipped else "pass"


def states(partitions: Sequence[PartitionState]) -> Dict[TopicPartition, PartitionState]:
    """Return the states by topic and partition."""
    return {state.tp: state for state in partitions}


def sizes(of: Fingerprint, contents: Mapping[TopicPartition, Content]) -> Dict[str, int]:
    """Return how many entries a fingerprint has, by kind."""
    return {
        LOG: len(of.partitions),
        chunks.KIND: sum(content.chunks for content in contents.values()),
        keys.KIND: sum(content.keys for tp, content in contents.items() if tp[0] not in coordinators.INTERNAL),
        coordinators.OFFSET: sum(len(group.offsets) for group in of.coordinators.groups.values()),
        coordinators.TRANSACTION: len(of.coordinators.transactions),
    }
