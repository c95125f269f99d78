# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZooKeeper as the initial copy found it, from a snapshot of before the copy and the transactions that a server logged.

The leader of the copy takes /controller over in a transaction with its epoch (KafkaZkClient.
tryRegisterKRaftControllerAsActiveController). From then on no controller in ZooKeeper mode changes metadata. Once it
has copied, it writes the log's offset to /migration (KRaftMigrationDriver.MigrateMetadataEvent), and only then deletes
what its image lacks. So the trees at these two transactions have what the copy must have.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence, Set

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log, znodes

from quorumshift_spark import normal_form as form
from quorumshift_spark.compare import Side
from quorumshift_spark.excuses import Copied
from quorumshift_spark.normal_form import Digests
from quorumshift_spark.views import Absent, Key, ViewError, trees
from quorumshift_spark.views.zookeeper import ZooKeeperFilesView

_ERRORS = (zk_log.ZooKeeperFileError, znodes.ZnodeError)


class CopySource:
    """What ZooKeeper had, of the keys that are expected. Nothing is read before the first of them is asked for.

    :arg files: of a server, with a snapshot of before the copy; None where there are none.
    :arg before: a zxid of before the copy, at or after which that snapshot was complete.
    :arg why: why there are no files, for the operator: the end of a sentence.
    """

    def __init__(
        self,
        files: trees.Files | None,
        before: int,
        why: str,
        chroot: str,
        cluster_id: str,
        digests: Digests,
        secrets: Sequence[str],
    ) -> None:
        self._files, self._before, self.why = files, before, why
        self._given: Any = (chroot, cluster_id, digests, secrets)
        self._chroot = chroot
        self._expected: Set[Key] = set()
        self._read: Dict[Key, List[Side]] = {}
        self.record = ""

    def expect(self, keys: Iterable[Key]) -> None:
        """Read these keys together, once one of them is asked for."""
        self._expected.update(keys)

    def sides(self, key: Key, copied: Copied) -> Sequence[Side]:
        """See excuses.CopySource."""
        if key not in self._read and self._files:
            try:
                self._read_expected({*self._expected, key}.difference(self._read), copied)
            except (*_ERRORS, archives.SnapshotError, ViewError, OSError, EOFError) as error:
                self.why = f"that of {self._files.name} does not: {error}"
                self._files = None
        return self._read.get(key, ())

    def _read_expected(self, keys: Set[Key], copied: Copied) -> None:
        assert self._files
        with self._files.opened() as files:
            base = zk_files.snapshot_up_to(files.snapshots, self._before, files.processed)
            whole = zk_log.Span(files.logs, None, files.snapshots)
            _zxid, changes, _nodes = zk_files.replay(base, [whole], self._chroot, lambda _path: None)
            moments = self._moments(changes, copied)
            self.record = f"zxid 0x{moments[0]:x} in the log of {files.name}"
            for zxid in moments:
                view = _TreeView(files, base, zxid, *self._given)
                view.probe()
                wanted = [key for key in keys if key[0] != "broker"]
                found, statement = view.reread(wanted)
                broken = {problem.where for problem in statement.problems}
                if broken:
                    raise ViewError(f"{sorted(broken)[0]}: {statement.problems[0].reason}")
                pending = view.pending(filter(None, (_topic(*key) for key in wanted)))
                for key, side in found.items():
                    self._read.setdefault(key, []).append(Absent({}) if _topic(*key) in pending else side)

    def _moments(self, changes: zk_log.Changes, copied: Copied) -> List[int]:
        """Return the zxid at which KRaft took over, and that of the end of the copy if it is logged."""
        taken = None
        for change in changes.get(f"{self._chroot}{znodes.CONTROLLER}", ()):
            epoch = (znodes.controller(change.data)["kraft_controller_epoch"] or 0) if change.data else None
            if epoch is not None and epoch <= 0:
                taken = None  # ZooKeeper's controller again: what was before is of a migration that was rolled back
            elif epoch == copied.epoch and taken is None and change.zxid > self._before:
                taken = change.zxid
        if taken is None:
            raise ViewError(f"no transaction gives /controller to KRaft's epoch {copied.epoch} (QS-VERIFY-001)")
        ended = next(
            (
                change.zxid
                for change in changes.get(f"{self._chroot}{znodes.MIGRATION}", ())
                if change.zxid > taken
                and change.data
                and (znodes.migration(change.data)["kraft_metadata_offset"] or -1) >= copied.offset
            ),
            None,
        )
        return [taken] if ended is None else [taken, ended]


def _topic(kind: str, key: str) -> str | None:
    """Return the topic of an entity: the copy leaves out topics whose deletion is pending."""
    parts = form.key_of(key)
    if kind in ("topic", "partition"):
        return parts[0]
    return parts[1] if kind == "config" and parts[0] == "topic" else None


class _TreeView(ZooKeeperFilesView):
    """The tree at a zxid."""

    def __init__(
        self,
        files: trees.Files,
        base: zk_files.Snapshot,
        zxid: int,
        chroot: str,
        cluster_id: str,
        digests: Digests,
        secrets: Sequence[str],
    ) -> None:
        super().__init__(files.name, chroot, digests, secrets, cluster_id)
        self._files, self._base, self._zxid = files, base, zxid

    def pending(self, topics: Iterable[str]) -> Set[str]:
        """Return those of the topics whose deletion was requested."""
        paths = {f"{znodes.DELETE_TOPICS}/{topic}": topic for topic in topics}
        _zxid, found = self._nodes(paths)
        return {paths[path] for path in found}

    def _version(self):
        return self._zxid  # the files do not change

    def _tree(self, wanted=None):
        span = zk_log.Span(self._files.logs, self._zxid, self._files.snapshots)
        zxid, _changes, nodes = zk_files.replay(self._base, [span], self._chroot, wanted)
        return zxid, nodes
