# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which snapshot is exact at a zxid, and what the log adds to one that was written meanwhile."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files as files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import Change

COMPLETE = b"." * 40 + b"\0\0\0\1/"
OWN = ((31, "sasl", "kafka"),)


@pytest.fixture
def directory(tmp_path):
    for zxid in (0x10, 0x20, 0x30):
        (tmp_path / f"snapshot.{zxid:x}").write_bytes(COMPLETE)
    (tmp_path / "snapshot.40").write_bytes(b"." * 60)  # not complete yet
    return str(tmp_path)


@pytest.mark.parametrize(
    ("at", "processed", "chosen"),
    [
        (0x35, {0x30: 0x34}, 0x30),
        (0x34, {0x30: 0x34}, 0x30),
        (0x33, {0x30: 0x34}, 0x20),  # it may have 0x34, and the one before it has nothing after 0x30
        (0x99, {}, 0x20),
        (0x2F, {}, 0x10),
    ],
)
def test_the_newest_snapshot_without_a_later_transaction(directory, at, processed, chosen):
    assert files.snapshot_up_to(directory, at, processed).zxid == chosen


def test_no_snapshot_is_known_to_be_exact(directory):
    with pytest.raises(
        files.ZooKeeperFileError, match=r"4 snapshots, and none is known to be without .* after zxid 0x1f"
    ):
        files.snapshot_up_to(directory, 0x1F, {})


def test_an_acl_that_the_snapshots_table_lacks_is_that_of_the_log():
    """The table of ACLs is written before the znodes, so a znode that is created meanwhile has none there."""
    node = files.Node(b"data", (5, 5, 1, 1, 0, 0, 0, 0, 5), None)
    create = Change("create", 5, 1, b"data", acl=OWN)
    assert files._applied(node, [create]) == node._replace(acl=OWN)
    changed = files._applied(node, [create, Change("acl", 6, 2, number=1, acl=files.OPEN_ACL)])
    assert changed.acl == files.OPEN_ACL and changed.stat[6] == 1
