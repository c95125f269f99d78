# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restore znodes of a backup that the live tree lacks, with all brokers and controllers stopped.

core.rollback.restore_plan decides which. Every write can be repeated, so an interrupted restore can be run again.
"""

from __future__ import annotations

import contextlib
from collections import Counter

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import restore_plan as rules
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import comparing, live_tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.backup_file import Backup
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError, Writer, writing

try:
    from kazoo import exceptions as kazoo_exceptions
    from kazoo.security import ACL, Id
except ImportError:  # probes.zookeeper.zookeeper.connect reports it
    kazoo_exceptions = ACL = Id = None

WINDOW = 200


class Restore:
    """A restore: ``missing`` are its Writes except those of partition states, see ``counts()``. ``later``: the paths of
    metadata that ZooKeeper has and the backup lacks, each with its subtree."""

    def __init__(self, client, path, cluster_id, window=500, timeout=30.0):
        """Read the backup and compare it. Raises BackupError, znodes.ZnodeError, zookeeper.ZooKeeperError.

        Both the backup and ZooKeeper must be of the cluster with this id.
        """
        self.client = client
        self.backup = Backup(path).check()
        self.reader = zookeeper.Reader(client, window, None, timeout)
        comparing.require_cluster(self.backup, self.reader, cluster_id)
        self.cluster_id = cluster_id
        self.missing = []
        self.topics, self.saved_states, self.live_states = {}, {}, {}
        self.epochs = []
        self.revived = []  # credentials and permissions that ZooKeeper lacks, by name
        self._inner = {}  # live znodes with children
        for saved, live in live_tree.pair_with_answers(self.backup.znodes(), self.reader.read_many):
            self._compare(saved, live)
            if live is not None and live.stat.numChildren:
                self._inner[live.path] = set()
        self.revived.sort()
        self._live_only()
        lacking = live_tree.find_new_children(self.reader, self.backup.znodes, self._inner)
        self.later = sorted(path for path in lacking if rules.is_metadata(path))

    def _compare(self, saved, live):
        kind = znodes.kind(saved.path)
        if kind == "partition_state":
            self.saved_states[saved.path] = saved
            if live is not None:
                self.live_states[live.path] = live
            return
        if kind == "controller_epoch":
            self.epochs.append(znodes.controller_epoch(saved.data))
        write = rules.plan_write(saved, live)
        if write is not None:
            self.missing.append(write)
        self.revived += rules.find_revived(saved, live)
        if kind == "topic":
            self.topics[saved.path] = znodes.topic((write or live).data, saved.path)

    def _live_only(self):
        """Read the topics that were created after the backup, and the partition states that the backup lacks."""
        ((_path, names),) = self.reader.children_many([znodes.TOPICS])
        for node in self.reader.get_many([znodes.topic_path(name) for name in names or ()]):
            self.topics.setdefault(node.path, znodes.topic(node.data, node.path))
        unread = [path for path, _topic, _partition in self.partitions() if path not in self.live_states]
        self.live_states.update({path: node for path, node in self.reader.read_many(unread) if node is not None})
        for node in (*self.saved_states.values(), *self.live_states.values()):
            self.epochs.append(znodes.partition_state(node.data, node.path)["controller_epoch"])

    def partitions(self):
        """Yield (path of its state, topic name, partition as int) of every partition, restored ones included."""
        for path, topic in self.topics.items():
            name = path[len(znodes.TOPICS) + 1 :]
            for partition in topic["partitions"]:
                yield znodes.partition_state_path(name, partition), name, int(partition)

    def counts(self):
        """Return ``{"missing": {kind: to create}, "completed": {kind: to complete}, "partitions": all}``."""
        created = Counter(write.kind for write in self.missing if write.acl is not None)
        completed = Counter(write.kind for write in self.missing if write.acl is None)
        return {
            "missing": dict(sorted(created.items())),
            "completed": dict(sorted(completed.items())),
            "partitions": sum(len(topic["partitions"]) for topic in self.topics.values()),
        }

    def diff(self):
        """What the restore changes in ZooKeeper, by path, as Ansible shows a diff: data may hold secrets."""
        before = [f"{znode.path} (incomplete)\n" for znode in self.missing if znode.acl is None]
        after = [f"{znode.path} ({znode.kind})\n" for znode in self.missing]
        return {
            "before_header": "ZooKeeper",
            "after_header": "ZooKeeper",
            "before": "".join(before),
            "after": "".join(after),
        }

    def unread(self, known):
        """Return ``{broker: partitions}`` of the brokers that have replicas and are not in ``known``."""
        assigned = (entry["replicas"] for topic in self.topics.values() for entry in topic["partitions"].values())
        return rules.count_unread(assigned, known)

    def pending_deletions(self):
        """Return the topics that ZooKeeper's controller would delete once it is elected."""
        ((_path, names),) = self.reader.children_many([znodes.DELETE_TOPICS])
        return list(names or ())

    def alive(self):
        """Return the paths of ephemeral znodes: a process that is not stopped holds them."""
        stats = self.reader.stat_many([znodes.CONTROLLER, *self.later])
        return [path for path, stat in stats if stat is not None and stat.ephemeralOwner]

    def write(self, replicas, raft_epochs):
        """Write the missing znodes, every partition's state and the controller epoch, then delete /migration and a
        /controller that is KRaft's.

        Raises znodes.ZnodeError before the first write, zookeeper.ZooKeeperError and WriteError also later.

        :arg replicas: ``{(topic, partition): [core.rollback.restore_plan.Replica]}`` from the disks of all brokers.
        :arg raft_epochs: epochs of the quorum that wrote to ZooKeeper.
        :returns: ``{"written", "states", "controller_epoch", "from_disks": [topics that were created, or got
            partitions, from the disks alone], "without_data": [partitions without data on any disk]}``.
        """
        # Everything is read and checked before the first write.
        self.writer = Writer(self.client, self.cluster_id, self.reader.timeout)
        acl = self._acl_of_topics()
        found = self._found_on_disks(replicas, acl)
        above = self._epoch_above(raft_epochs)
        states, without = [], []
        for path, name, partition in self.partitions():
            topic = self.topics[znodes.topic_path(name)]
            logs = replicas.get((name, partition), ())
            assigned = topic["partitions"][str(partition)]["replicas"]
            saved, live = self.saved_states.get(path), self.live_states.get(path)
            state = rules.plan_state(path, assigned, topic["topic_id"], saved, live, logs, above)
            if not logs:
                without.append(f"{name}-{partition}")
            states.append(state._replace(acl=acl) if live is None and state.acl is None else state)
        self._put(self.missing + found + _parents(states, self.reader, acl) + states)
        self._raise_epoch(above)
        self._delete(znodes.MIGRATION)
        ((_path, stat),) = self.reader.stat_many([znodes.CONTROLLER])
        if stat is not None and not stat.ephemeralOwner:
            self._delete(znodes.CONTROLLER)
        return {
            "written": len(self.missing) + len(found),
            "from_disks": [write.path[len(znodes.TOPICS) + 1 :] for write in found],
            "states": len(states),
            "controller_epoch": above,
            "without_data": sorted(without),
        }

    def _acl_of_topics(self):
        """Return the live or restored ACL of the topics' directory, which znodes without a backup get."""
        ((_path, live),) = self.reader.read_many([znodes.TOPICS])
        return live.acl if live else next(write.acl for write in self.missing if write.path == znodes.TOPICS)

    def _found_on_disks(self, replicas, acl):
        """Return the Writes of topics and partitions that exist only on the brokers' disks."""
        topics = {}
        for (name, partition), logs in replicas.items():
            topics.setdefault(name, {})[partition] = logs
        writes = []
        for name, logs in sorted(topics.items()):
            path = znodes.topic_path(name)
            topic = self.topics.get(path) or {"topic_id": None, "partitions": {}}
            known = {partition: entry["replicas"] for partition, entry in topic["partitions"].items()}
            assigned = rules.partitions_from_disks(topic["topic_id"], known, logs)
            if assigned == known:
                continue
            value = znodes.topic_value(assigned, topic["topic_id"] or next(iter(logs.values()))[0].topic_id)
            acl_of_new = None if path in self.topics else acl
            self.topics[path] = znodes.topic(value, path)
            writes.append(rules.Write(path, value, acl_of_new, "topic"))
        return writes

    def _epoch_above(self, raft_epochs):
        now = [znodes.controller_epoch(node.data) for node in self.reader.get_many([znodes.CONTROLLER_EPOCH])]
        return rules.choose_epoch([*self.epochs, *now, *raft_epochs])

    def _raise_epoch(self, epoch):
        data = str(epoch).encode()
        ((_path, stat),) = self.reader.stat_many([znodes.CONTROLLER_EPOCH])
        acl = None
        if stat is None:
            acl = next(node.acl for node in self.backup.znodes() if node.path == znodes.CONTROLLER_EPOCH)
        version = -1 if stat is None else stat.version
        self._put([rules.Write(znodes.CONTROLLER_EPOCH, data, acl, "controller_epoch", version)])

    def _delete(self, path):
        with writing(f"{path} was not deleted"), contextlib.suppress(kazoo_exceptions.NoNodeError):
            self.writer.delete(path).get(timeout=self.reader.timeout)

    def _put(self, writes):
        """Send the writes, parents before children, pipelined on each level of the tree."""
        for level in sorted({write.path.count("/") for write in writes}):
            pending = []
            for write in (each for each in writes if each.path.count("/") == level):
                pending.append((write, self._send(write)))
                if len(pending) >= WINDOW:
                    self._confirm(*pending.pop(0))
            for write, request in pending:
                self._confirm(write, request)

    def _send(self, write):
        if write.acl is None:
            return self.writer.set(write.path, write.data, write.version)
        return self.writer.create(write.path, write.data, _acls(write.acl))

    def _confirm(self, write, request):
        with writing(f"{write.path} was not written"):
            try:
                request.get(timeout=self.reader.timeout)
            except (kazoo_exceptions.NodeExistsError, kazoo_exceptions.BadVersionError):
                ((_path, now),) = self.reader.read_many([write.path])
                if now is None or now.stat.ephemeralOwner or (write.data is not None and now.data != write.data):
                    raise WriteError(
                        f"{write.path} changed while ZooKeeper was restored: another process writes there. Find it and "
                        "stop it. Then run quorumshift.kafka.restore_zookeeper without quorumshift_restore_token: it "
                        "shows what is left to restore (QS-COPY-004)"
                    ) from None


def _parents(states, reader, acl):
    """Return the Writes of missing directories between topics and their states."""
    wanted = {}
    for state in states:
        partition = state.path.rpartition("/")[0]
        for path in (partition.rpartition("/")[0], partition):
            wanted[path] = state.acl or acl
    absent = [path for path, stat in reader.stat_many(sorted(wanted)) if stat is None]
    return [rules.Write(path, None, wanted[path], "partition") for path in absent]


def _acls(entries):
    return [ACL(entry["perms"], Id(entry["scheme"], entry["id"])) for entry in entries]
