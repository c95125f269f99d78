# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate on the model's cluster: the views are read one after the other while it changes, and the comparison's own
functions decide (rules.plan, checking, excuses, recheck). Only what reads servers and files is replaced."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Set, Tuple

import pyarrow as pa
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    PARTITION_TYPES,
    Image,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import Record
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znode_items, znodes
from quorumshift_spark import checking, rules
from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import MATCH, compare
from quorumshift_spark.excuses import Copied, Evidence, next_id
from quorumshift_spark.normal_form import Entity
from quorumshift_spark.recheck import Fence
from quorumshift_spark.views import Absent, Key, Statement, entities, metadata_log, partition
from quorumshift_spark.views.zookeeper import Znodes, ZooKeeperView, controller, deletions

from tests.unit.spark.model.cluster import KRAFT, ZK, Cluster, State, Tree, records

DIGESTS = form.Digests(b"a key of the cluster, 32 bytes..")
PASS, DIFFER, INCOMPLETE = "pass", "differ", "incomplete"
ROUNDS = 6
_OF_BROKERS = ("topic", "partition", "config", "quota", "scram", "acl", "delegation_token")
_FROM_LOG = ("topic", "partition")
_NOT_SERVED = {
    "partition": {"topic_id", "adding", "removing", "recovery_state", "partition_epoch", "elr", "last_known_elr"},
    "scram": {"digest"},
}
_NOT_SERVED["partition"].add("directories")


class Baseline(NamedTuple):
    """What a passed gate leaves: {view: state}, {view: {key: entity}}."""

    states: Dict[str, Dict[str, Any]]
    rows: Dict[str, Dict[Key, Entity]]


class Verdict(NamedTuple):
    """`verdict`, and why: texts; `agreed`: the keys that were read again, and of which ZooKeeper and the log had the
    same at the last reading; `stayed`: those that differed in truth before each of the last three.
    """

    verdict: str
    why: List[str]
    baseline: Baseline
    agreed: Set[Key]
    stayed: Set[Key]
    excused: List[str]


class _Znodes(Znodes):
    """Decodes the partitions of topics one by one: the columns of a few take longer than the rest of a gate."""

    def read(self, nodes, problems, _notes=None):
        reader = znode_items.Reader()
        for node in sorted(nodes, key=lambda node: node.path.count("/")):  # a topic before its states
            for item in reader.items(node):
                yield from self._item(item, problems)
        for item in reader.rest():
            yield from self._item(item, problems)
        problems += reader.problems

    def _item(self, item, problems):
        at = {"zxid": item.zxid}
        if item.kind == "topic":
            yield form.topic(*item.key, item.value["topic_id"], at)
        elif item.kind == "partition":
            names = {"recovery_state": "leader_recovery_state", "partition_epoch": "version"}
            fields = {name: item.value[names.get(name, name)] for name in _OF_ZOOKEEPER}
            yield form.partition(*item.key, fields, at)
        else:
            yield from self._entities(item, problems)


_OF_ZOOKEEPER = ("topic_id", "replicas", "adding", "removing", "leader", "leader_epoch", "isr", "recovery_state")
_OF_ZOOKEEPER += ("partition_epoch",)


class _Found(ZooKeeperView):
    """The tree as the copy found it: what quorumshift_spark.views.copy_source reads of files."""

    why = record = ""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = _Znodes(DIGESTS, ())

    def sides(self, key: Key, _copied: Copied) -> List[Any]:
        """See excuses.CopySource."""
        found, _statement = self.reread([key])
        return [found[key]]

    def _nodes(self, paths: Iterable[str]) -> Tuple[int, Dict[str, znodes.Znode]]:
        return self._tree.zxid, {path: self._tree.znode(path) for path in paths if path in self._tree.nodes}


class ZooKeeper(ZooKeeperView):
    """The tree as a view: znodes are decoded, and absences explained, as of a live ensemble."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._znodes = _Znodes(DIGESTS, ())

    def state(self) -> Dict[str, Any]:
        """Return the state as of the first part."""
        nodes = self._cluster.tree.nodes
        parents = [
            znodes.TOPICS,
            znodes.DELEGATION_TOKENS,
            *(f"{znodes.CONFIG}/{config_type}" for config_type in znodes.CONFIG_TYPES),
        ]
        parents += [path for path in nodes if path.startswith("/kafka-acl") and nodes[path].children]
        parents += [path for path in nodes if path.startswith(f"{znodes.CONFIG}/users/") and path.endswith("/clients")]
        owner = controller(
            self._cluster.tree.znode(path) for path in (znodes.CONTROLLER, znodes.MIGRATION) if path in nodes
        )
        counts = {path: deletions(self._cluster.tree.znode(path).stat) for path in parents}
        return {"zxid": self._cluster.tree.zxid, "deletions": counts, "controller": owner}

    def part(self, of_topics: bool) -> Dict[Key, Entity]:
        """Return the entities of a part of the tree."""
        tree = self._cluster.tree
        paths = [path for path in sorted(tree.nodes) if path.startswith(znodes.TOPICS) == of_topics]
        found = self._znodes.read([tree.znode(path) for path in paths if tree.nodes[path].data is not None], [])
        return {(entity.kind, entity.key): entity for item in found for entity in entities(self.name, item)}

    def _nodes(self, paths: Iterable[str]) -> Tuple[int, Dict[str, znodes.Znode]]:
        tree = self._cluster.tree
        return tree.zxid, {path: tree.znode(path) for path in paths if path in tree.nodes}


class Log:
    """The log as a view, cut at a high watermark: what quorumshift_spark.views.metadata_log reads of files."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.end_offset = self._last = cluster.end
        self.between: Dict[Key, List[Any]] = {}
        self._past: Tuple[int, metadata_log.History] | None = None

    def cut(self) -> None:
        """Cut the log at its end."""
        self.end_offset = self._cluster.end

    def _records(self, begin: int = 0) -> List[Record]:
        every = [
            record
            for entry in self._cluster.log
            for record in entry.records
            if begin <= record.offset < self.end_offset
        ]
        return every

    def _summed_up(self, at: int) -> List[Record]:
        """Return the records of a checkpoint, all at its last offset."""
        if not at:
            return []
        bounds = self._cluster.bounds
        after = next(entry.after for entry, end in zip(self._cluster.log, bounds[1:]) if end == at)
        made = [*records({}, after), ("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": 1})]
        return [Record(at - 1, 0, 0, kind, 0, fields, True) for kind, fields in made]

    def _all(self) -> List[Record]:
        return [*self._summed_up(self._cluster.checkpoint), *self._records(self._cluster.checkpoint)]

    def entities(self) -> Dict[Key, Entity]:
        """Return the entities at the end."""
        return {(entity.kind, entity.key): entity for entity in of_image(Image.from_records(self._all()))}

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Entity | Absent], Statement]:
        """See MetadataLogView.reread."""
        wanted, every = set(keys), self._all()
        begin, self._last = self._last, self.end_offset
        image, after = Image.from_records(every), []
        again = Image()
        for record in every:
            again.apply(record)
            if record.offset >= begin and record.type in PARTITION_TYPES and record.fields["topicId"] in image.topics:
                row = metadata_log._partition(again, record.fields["topicId"], record.fields["partitionId"])
                after.append(row)
        newer = [record for record in every if record.offset >= begin and record.type not in PARTITION_TYPES]
        found, between = metadata_log.sides(rules.LOG, image, newer, after, begin, wanted, DIGESTS)
        self.between.clear()
        self.between.update(between)
        return found, Statement({"offset": self.end_offset}, [])

    def history(self, since: int) -> metadata_log.History | None:
        """See MetadataLogView.history."""
        if self._cluster.checkpoint <= since:
            return None
        if self._past is None or self._past[0] != self.end_offset:  # the records are the same for each `since`
            self._past = self.end_offset, self._history()
        return self._past[1]

    def _history(self) -> metadata_log.History:
        begin = self._cluster.begin
        image = Image.from_records([*self._summed_up(begin), *self._records(begin)])
        changed = {(entity.kind, entity.key): entity.at["offset"] for entity in of_image(image)}
        partitions = []
        for record in self._records(begin):
            if record.type in PARTITION_TYPES:
                partitions.append((record.fields["topicId"], record.fields["partitionId"], record.offset))
        ids, numbers, offsets = zip(*partitions) if partitions else ((), (), ())
        names = ["topic_id", "partition", "offset"]
        columns = [pa.array(ids, pa.string()), pa.array(numbers, pa.int32()), pa.array(offsets, pa.int64())]
        table = pa.table(columns, names=names).group_by(names[:2]).aggregate([("offset", "max")])
        table = table.select([*names[:2], "offset_max"]).rename_columns(names)
        return metadata_log.History(begin, changed, metadata_log.removed(image), table, image.removed_topics)

    def removed_topics(self, _since: int) -> Dict[str, int]:
        """See MetadataLogView.removed_topics."""
        begin = self._cluster.begin
        every = [*self._summed_up(begin), *self._records(begin)]
        return {record.fields["topicId"]: record.offset for record in every if record.type == "REMOVE_TOPIC_RECORD"}

    def epoch_at(self, offset: int) -> int | None:
        """See MetadataLogView.epoch_at."""
        bounds = self._cluster.bounds
        if not self._cluster.begin <= offset < self.end_offset:
            return None
        ends = zip(bounds, bounds[1:], self._cluster.log)
        return next((entry.epoch for begin, end, entry in ends if begin <= offset < end), None)

    def copied(self) -> Copied | None:
        """See MetadataLogView.copied."""
        ends = [record for record in self._records(self._cluster.begin) if record.type == "ZK_MIGRATION_STATE_RECORD"]
        return Copied(ends[-1].offset, ends[-1].epoch) if ends else None


def of_image(image: Image) -> List[Entity]:
    """Return the entities of an image."""
    rows = (partition(rules.LOG, row, row["at"]) for row in metadata_log._partitions(image))
    return [*metadata_log.entities(image, DIGESTS), *rows]


def of_state(state: State) -> Dict[Key, Entity]:
    """Return the entities of metadata."""
    made = [Record(0, 0, 0, kind, 0, fields, False) for kind, fields in records({}, state)]
    return {(entity.kind, entity.key): entity for entity in of_image(Image.from_records(made))}


def served(cluster: Cluster, number: int, zookeeper: ZooKeeper) -> Dict[Key, Entity]:
    """Return what a broker serves."""
    broker = cluster.brokers[number]
    found: List[Entity] = [*of_state(broker["state"]).values()]
    if broker["mode"] == ZK and cluster.mode == KRAFT:
        tree = {**zookeeper.part(True), **zookeeper.part(False)}
        found = [entity for entity in found if entity.kind in _FROM_LOG]
        found += [entity for entity in tree.values() if entity.kind not in _FROM_LOG]
    entries = {}
    for entity in found:
        if entity.kind in _OF_BROKERS:
            fields = {
                name: value for name, value in entity.fields.items() if name not in _NOT_SERVED.get(entity.kind, ())
            }
            entries[entity.kind, entity.key] = Entity(entity.kind, entity.key, fields, {})
    return entries


def run(cluster: Cluster, gate: str, baseline: Baseline | None, tick: Callable[[], None]) -> Verdict:
    """Open a gate; `tick` lets the cluster go on between two readings."""
    zookeeper, with_log = ZooKeeper(cluster), cluster.mode == KRAFT
    with_zookeeper = rules.ZOOKEEPER in rules.GATES[gate].needs
    fence = _migration(cluster)
    log = Log(cluster) if with_log else None
    tick()
    rows: Dict[str, Dict[Key, Entity]] = {}
    states: Dict[str, Dict[str, Any]] = {}
    if log:
        state = {"offset": log.end_offset, "epoch": log.epoch_at(log.end_offset - 1)}
        rows[rules.LOG], states[rules.LOG] = log.entities(), state
    if with_zookeeper:
        states[rules.ZOOKEEPER] = zookeeper.state()
        rows[rules.ZOOKEEPER] = zookeeper.part(False)
        tick()
        rows[rules.ZOOKEEPER].update(zookeeper.part(True))
    for number in cluster.brokers:
        tick()
        rows[f"broker:{number}"] = served(cluster, number, zookeeper)
    kept = Baseline(dict(states), {name: dict(rows[name]) for name in states})
    behind = _behind(cluster, log)
    kinds: Dict[str, Tuple[str, ...]] = dict.fromkeys(rows, form.STORED)
    kinds.update({name: _OF_BROKERS for name in rows if name.startswith("broker")})
    kinds[rules.ZOOKEEPER] = ZooKeeperView.kinds
    kinds = {name: kinds[name] for name in rows}
    for name, of_view in (baseline.rows if baseline else {}).items():
        rows[f"{rules.BASELINE}:{name}"], kinds[f"{rules.BASELINE}:{name}"] = of_view, form.STORED
    modes = [f"broker:{number}" for number, broker in cluster.brokers.items() if broker["mode"] == ZK]
    comparisons = rules.plan(gate, kinds, modes)
    keys = {
        key: {name: of[key] for name, of in rows.items() if key in of}
        for key in {name for of in rows.values() for name in of}
    }
    baselines = {f"{rules.BASELINE}:{name}": state for name, state in (baseline.states if baseline else {}).items()}
    owner = states[rules.ZOOKEEPER]["controller"] if with_zookeeper else None
    evidence = Evidence(baselines, owner, log, copy_source=_Found(cluster.found) if cluster.found else None)
    reread_keys: Set[Key] = set()
    in_truth: List[Set[Key]] = []  # what differs in truth, each round

    def advance() -> Fence:
        nonlocal fence
        tick()
        if not log:
            return Fence(None, False)
        newest = _migration(cluster) if with_zookeeper else {}
        log.cut()
        if not with_zookeeper:
            return Fence(None, True)
        fence = newest
        tick()
        cluster.mirror(10**6)  # the job waits for it
        in_truth.append(unequal(cluster) if cluster.faults else set())
        is_older = fence["offset"] < log.end_offset
        return Fence(fence["zxid"] if is_older else None, True, "")

    def reading(of: Callable[[Set[Key]], Tuple[Dict[Key, Any], Statement]]):
        def read(wanted: Iterable[Key]) -> Tuple[Dict[Key, Any], Statement]:
            tick()
            reread_keys.update(wanted)
            return of(set(wanted))

        return read

    def of_broker(number: int):
        def read(wanted):
            cluster.catch_up(number)  # the job waits for it
            found = served(cluster, number, zookeeper)
            return {key: found.get(key, Absent({})) for key in wanted}, Statement({}, [])

        return read

    reread = {f"broker:{number}": reading(of_broker(number)) for number in cluster.brokers}
    if with_zookeeper:
        reread[rules.ZOOKEEPER] = reading(zookeeper.reread)
    if log:
        reread[rules.LOG] = reading(log.reread)
    given = reread, evidence, advance, ROUNDS, 0.0, log.between if log else {}
    checked = checking.check(keys, comparisons, *given, sleep=lambda _seconds: tick())
    checking.count_removals(checked, evidence)
    found = checking.in_order(checked)
    why = [
        f"{entry.comparison.left} and {entry.comparison.right}: {difference.text()}"
        for entry in found.differing
        for difference in entry.outcome.differences
    ]
    unknown = [
        f"{entry.comparison.left} and {entry.comparison.right}: {entry.key}: {entry.why}" for entry in found.undecided
    ]
    unknown += filter(None, [evidence.discontinued(log.end_offset) if log else None])
    unknown += _uncovered(cluster, gate, rows, comparisons, behind, log)
    verdict = DIFFER if why else INCOMPLETE if unknown else PASS
    excused = sorted({entry.outcome.excuse or "?" for entry in found.changed})
    stores = rules.Comparison(rules.ZOOKEEPER, rules.LOG, rules.ZOOKEEPER_LOG, form.STORED)
    absent = Absent({})
    agreed = {
        key
        for key in reread_keys
        if compare(stores, *key, *(checked.last[key].get(name, absent) for name in (stores.left, stores.right))).outcome
        in (MATCH, None)
    }
    stayed = reread_keys.intersection(*in_truth[-3:]) if in_truth[2:] else set()
    return Verdict(verdict, why or unknown, kept, agreed, stayed, excused)


def unequal(cluster: Cluster) -> Set[Key]:
    """Return the entities of which ZooKeeper and the log differ once all that is due was written."""
    if cluster.mode != KRAFT:
        return set()
    later = cluster.with_all_written()
    tree = ZooKeeper(later)
    ours, theirs = {**tree.part(True), **tree.part(False)}, of_state(cluster.of_log)
    for of in (ours, theirs):  # a block of dual-write begins at the next id
        for key in [name for name in of if name[0] == "producer_ids"]:
            of[key] = form.producer_ids(next_id(of[key]))
    keys = {key for key in {*ours, *theirs} if key[0] != "migration"}
    return {key for key in keys if plain(ours, key) != plain(theirs, key)}


def plain(entities: Mapping[Key, Entity], key: Key) -> Any:
    """Return the fields of an entity that ZooKeeper and the log both have, None where it is absent."""
    if key not in entities:
        return None
    names = [name for name, _how in rules.compared_fields(key[0], rules.ZOOKEEPER_LOG)]
    return {name: entities[key].fields.get(name) for name in names}


def _migration(cluster: Cluster) -> Mapping[str, Any]:
    node = cluster.tree.nodes.get(znodes.MIGRATION)
    if node is None:
        return {"offset": -1, "zxid": 0}
    return {"offset": znodes.migration(node.data)["kraft_metadata_offset"], "zxid": node.mzxid}


def _behind(cluster: Cluster, log: Log | None) -> Dict[str, int]:
    """Return {view: end of the log that it serves} of the brokers that do not reach the end that was compared."""
    if log is None:
        return {}
    cluster.follow(10**6)
    of_kraft = {f"broker:{number}": broker for number, broker in cluster.brokers.items() if broker["mode"] == KRAFT}
    ends = {name: cluster.bounds[broker["at"]] for name, broker in of_kraft.items()}
    return {name: end for name, end in ends.items() if end < log.end_offset}


def _uncovered(cluster, gate, rows, comparisons, behind, log) -> List[str]:
    decides = rules.deciding(gate, rows)
    held = collections.Counter(kind for kind, _key in rows[decides])
    not_served: Dict[str, Dict[str, str]] = {f"broker:{number}": {} for number in cluster.brokers}
    baselines = rules.baselines_compared(comparisons)
    end = log.end_offset if log else 0
    return rules.uncovered(gate, decides, held, list(cluster.brokers), not_served, baselines, behind, end, {})
