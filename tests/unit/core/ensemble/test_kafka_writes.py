# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's writes are found in each kind of transaction, and each destination node is compared by itself."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import kafka_writes
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_log as log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.znodes import Stat

CHROOT = "/prod/kafka"
KAFKA, OTHER = 0x2C00000000000001, 0x0B00000000000002
INT = struct.Struct(">i").pack
ACL = INT(1) + INT(31) + INT(5) + b"world" + INT(6) + b"anyone"
DIGEST = struct.pack(">iq", 2, 12345)


def text(value):
    return INT(len(value)) + value.encode()


def create(path, ephemeral=False):
    return text(path) + INT(1) + b"x" + ACL + (b"\1" if ephemeral else b"\0") + INT(1)


def delete(path):
    return text(path)


def set_data(path):
    return text(path) + INT(1) + b"x" + INT(1)


def set_acl(path):
    return text(path) + ACL + INT(1)


def multi(*parts):
    return INT(len(parts)) + b"".join(INT(kind) + INT(len(body)) + body for kind, body in parts)


def ended(*paths):
    return INT(len(paths)) + b"".join(map(text, paths))


def transaction(kind, body, zxid=10, session=OTHER, digest=DIGEST):
    return log.Transaction(zxid, 0, kind, session, body + digest, ("log.1", 16))


def found(kind, body, owners=None, chroot=CHROOT, **more):
    """Return {path: what} of one transaction's write, None if it is none of Kafka's."""
    writes_found = list(kafka_writes.writes([transaction(kind, body, **more)], chroot, owners))
    return writes_found[0].paths if writes_found else None


@pytest.mark.parametrize("digest", [b"", DIGEST], ids=["3.5", "3.6"])
@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (1, create(f"{CHROOT}/a"), {f"{CHROOT}/a": ("create",), CHROOT: ("child",)}),
        (15, create(CHROOT), {CHROOT: ("create",)}),
        (19, create(f"{CHROOT}/c")[:-5] + INT(1), {f"{CHROOT}/c": ("create",), CHROOT: ("child",)}),
        (2, delete(f"{CHROOT}/a"), {f"{CHROOT}/a": ("delete",), CHROOT: ("child_gone",)}),
        (2, delete(CHROOT), {CHROOT: ("delete",)}),
        (5, set_data(f"{CHROOT}/controller_epoch"), {f"{CHROOT}/controller_epoch": ("data",)}),
        (7, set_acl(f"{CHROOT}/config/users"), {f"{CHROOT}/config/users": ("acl",)}),
        (14, multi((5, set_data("/other")), (7, set_acl(f"{CHROOT}/b"))), {f"{CHROOT}/b": ("acl",)}),
        (14, multi((13, text(f"{CHROOT}/b") + INT(1)), (5, set_data("/other"))), None),
        (14, multi((5, set_data(f"{CHROOT}/b")), (-1, INT(-101))), None),
        (-1, INT(-101), None),
        (-10, INT(18000), None),
        (1, create("/prod/other"), None),
        (1, create("/prod/kafka2"), None),
        (5, set_data("/prod"), None),
        (7, set_acl("/"), None),
    ],
)
def test_each_kind_of_transaction(kind, body, expected, digest):
    assert found(kind, body, digest=digest) == expected


def test_the_end_of_a_session():
    broker = f"{CHROOT}/brokers/ids/1"
    gone = {broker: ("delete",), f"{CHROOT}/brokers/ids": ("child_gone",)}
    assert found(-11, ended(broker, "/other/lock")) == gone
    assert found(-11, ended("/other/lock")) is None
    assert found(-11, ended()) is None
    # before 3.6 the log does not list the paths
    with pytest.raises(log.EphemeralsNeeded):
        found(-11, b"")
    assert found(-11, b"", {broker: KAFKA}, session=KAFKA) == gone
    assert found(-11, b"", {broker: KAFKA}, session=OTHER) is None
    made = [
        transaction(1, create(broker, ephemeral=True), 11, KAFKA),
        transaction(-11, b"", 12, KAFKA),
    ]
    assert [seen_write.zxid for seen_write in kafka_writes.writes(made, CHROOT, {})] == [11, 12]


def test_without_chroot_all_is_kafkas_but_zookeepers_own():
    assert found(5, set_data("/controller_epoch"), chroot="") == {"/controller_epoch": ("data",)}
    assert found(5, set_data("/zookeeper/quota/x"), chroot="") is None
    assert found(1, create("/a"), chroot="") == {"/a": ("create",), "/": ("child",)}


def write(zxid, ends_session=False):
    return kafka_writes.Write(zxid, 0, KAFKA, {CHROOT: ("data",)}, ends_session)


def test_each_node_is_compared_by_itself():
    last = {"z4": 12, "z5": 10, "z6": 15}
    of_source = [write(11), write(12), write(14)]
    found = kafka_writes.find_lacking(of_source, last, cut=15, logged=15)
    assert {host: [seen_write.zxid for seen_write in lacking.writes] for host, lacking in found.items()} == {
        "z4": [14],
        "z5": [11, 12, 14],
        "z6": [],
    }
    assert [host for host in last if found[host].is_complete] == ["z6"]
    assert kafka_writes.sort_by_progress(last) == ["z6", "z4", "z5"]


def test_only_the_ends_of_sessions_may_follow_the_cut():
    of_source = [write(12, True), write(14, True), write(15)]
    found = kafka_writes.find_lacking(of_source[:2], {"z4": 12, "z5": 11}, cut=13, logged=14)
    assert found["z4"].is_complete and [seen_write.zxid for seen_write in found["z4"].expired] == [14]
    assert [seen_write.zxid for seen_write in found["z5"].writes] == [12] and not found["z5"].is_complete
    late = kafka_writes.find_lacking(of_source, {"z4": 12}, cut=13, logged=15)["z4"]
    assert [seen_write.zxid for seen_write in late.late] == [15] and not late.is_complete


def test_a_log_that_does_not_reach_the_cut_proves_nothing():
    """A follower that lags has not logged what the others have committed."""
    assert not kafka_writes.find_lacking([], {"z4": 12}, cut=14, logged=13)["z4"].is_complete
    assert kafka_writes.find_lacking([], {"z4": 12}, cut=14, logged=14)["z4"].is_complete


def stat(czxid, mzxid, pzxid):
    return Stat(czxid, mzxid, 0, 0, 0, 0, 0, 0, 0, 0, pzxid)


def test_the_bound_by_stats_says_what_it_cannot_see():
    newest = kafka_writes.find_newest([("/a", stat(1, 9, 3)), ("/b", stat(2, 2, 11)), ("/c", stat(10, 4, 4))])
    assert newest == (11, "/b") and kafka_writes.find_newest([]) == (0, "")
    found = kafka_writes.compare_bounds({"all": 20, "kafka": 11, "behind": 10}, 11, 20)
    assert found["all"] == (True, True)
    assert found["kafka"] == (True, False)  # an ACL may have changed since
    assert found["behind"] == (False, True)
    assert kafka_writes.compare_bounds({"z4": 30}, 11, None)["z4"] == (True, False)


def test_the_session_that_marks_the_source_is_no_client_of_kafka():
    def write(zxid, session, path):
        return kafka_writes.Write(zxid, 0, session, {path: ("data",)}, False)

    mark = "/kafka/quorumshift-moved"
    of = [write(1, 7, mark), write(2, 7, "/kafka/cluster/id"), write(3, 8, "/kafka/cluster/id"), write(4, 7, mark)]
    assert kafka_writes.without_mark(of, mark) == [of[2]]
    assert kafka_writes.without_mark(of[1:3], mark) == of[1:3]
