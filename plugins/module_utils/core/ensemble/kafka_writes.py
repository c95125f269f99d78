# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the source's transactions change Kafka's subtree, and which destination nodes lack one of them. Pure.

With the source's transaction log the answer is exact. Without it, the zxids in the subtree's Stats bound it: a change
of an ACL is not in them, and a deletion is in the Stat of the parent only (DataTree).
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import (
    CLOSE_SESSION,
    Changes,
    Transaction,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.znodes import Stat


class Write(NamedTuple):
    """A transaction that changes znodes at or below the chroot. `paths`: {path: what was done, as in Change.what};
    `time`: ms since 1970 by the source leader's clock; `ends_session`: it is the end of `session`."""

    zxid: int
    time: int
    session: int
    paths: Mapping[str, Tuple[str, ...]]
    ends_session: bool


class Lacking(NamedTuple):
    """What a destination node lacks. `writes`: of Kafka, until the cut. `late`: made on the source after the cut, so by
    a client that still uses it. `expired`: sessions that the source ended after the cut, as it must. `is_read`: whether
    the log that was read reaches the cut; a follower's may lag."""

    writes: List[Write]
    late: List[Write]
    expired: List[Write]
    is_read: bool

    @property
    def is_complete(self) -> bool:
        return self.is_read and not self.writes and not self.late


def writes(transactions: Iterable[Transaction], chroot: str, owners: Dict[str, int] | None = None) -> Iterator[Write]:
    """Yield the transactions that change the subtree of `chroot` ('' for the root, without /zookeeper), in order.

    Operations of a multi, changes of ACLs and the ends of sessions are included. `owners`: {path: session} of the
    ephemeral znodes before the first transaction; a source before 3.6 needs it, and it is kept current. Raises
    ZooKeeperFileError, EphemeralsNeeded.
    """
    for transaction in transactions:
        changes: Changes = {}
        transaction.collect(changes, owners)
        paths = {
            path or "/": tuple(change.what for change in of) for path, of in changes.items() if is_below(path, chroot)
        }
        if paths:
            yield Write(
                transaction.zxid, transaction.time, transaction.session, paths, transaction.kind == CLOSE_SESSION
            )


def without_mark(of_source: Iterable[Write], mark: str) -> List[Write]:
    """Return the writes but those of sessions that wrote the znode `mark`: a run that marks Kafka's old data on the
    source writes it in the session that does the rest."""
    found = list(of_source)
    of_mark = {write.session for write in found if mark in write.paths}
    return [write for write in found if write.session not in of_mark]


def format_write(write: Write) -> str:
    """Return a write as text."""
    path, what = next(iter(write.paths.items()))
    return f"0x{write.zxid:x} ({', '.join(what)} of {path}, session 0x{write.session & (1 << 64) - 1:x})"


def is_below(path: str, chroot: str) -> bool:
    """Return whether a path is the chroot or below it; ZooKeeper's own znodes are of no application."""
    if not chroot:
        return path != "/zookeeper" and not path.startswith("/zookeeper/")
    return path == chroot or path.startswith(f"{chroot}/")


def find_lacking(of_source: Iterable[Write], last: Mapping[str, int], cut: int, logged: int) -> Dict[str, Lacking]:
    """Return what each destination node lacks, given the zxid to which its files lead, by host.

    `of_source`: the writes since the lowest of these zxids, in the log of one source server. `logged`: the zxid to
    which that server's files led before its log was read. `cut`: the source leader's zxid, read after all destination
    nodes had stopped serving, so that later transactions come from the source alone.
    """
    found = {host: Lacking([], [], [], logged >= cut) for host in last}
    for write in of_source:
        for host, zxid in last.items():
            if write.zxid > zxid:
                of = found[host]
                (of.writes if write.zxid <= cut else of.expired if write.ends_session else of.late).append(write)
    return found


def find_newest(stats: Iterable[Tuple[str, Stat]]) -> Tuple[int, str]:
    """Return the highest czxid, mzxid or pzxid of a subtree, and its path; (0, '') of none.

    Include the chroot's parent where its other children may be ignored: only its pzxid shows a deleted chroot.
    """
    return max(((max(stat.czxid, stat.mzxid, stat.pzxid), path) for path, stat in stats), default=(0, ""))


class Bound(NamedTuple):
    """Without the source's log: whether a destination node has all of Kafka's writes. `is_exact` is false where a
    change of an ACL cannot be excluded."""

    is_complete: bool
    is_exact: bool


def compare_bounds(last: Mapping[str, int], subtree: int, leader: int | None) -> Dict[str, Bound]:
    """Return for each destination node what two zxids of the source show, by host.

    `subtree`: `find_newest` of Kafka's subtree on the source; `leader`: the source leader's last zxid, None if unknown.
    Both are read after the cut.
    """
    found = {}
    for host, zxid in last.items():
        has_all = leader is not None and zxid >= leader
        found[host] = Bound(has_all or zxid >= subtree, has_all or zxid < subtree)
    return found


def sort_by_progress(last: Mapping[str, int]) -> List[str]:
    """Return the hosts, the most advanced first: it must win the election, so that no transaction is lost."""
    return sorted(last, key=lambda host: (-last[host], host))
