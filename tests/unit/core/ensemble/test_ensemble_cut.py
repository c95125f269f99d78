# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules and verdicts of a cut."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.zk_observer import Member

DESTINATION = {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
OBSERVER = {
    "dataDir": "/data",
    **zk_observer.OF_OBSERVERS,
    "dynamicConfigFile": "/etc/zoo.cfg.dynamic.100000000",
    "server.1": "z1:2888:3888:participant",
    "server.44": "z4:2888:3888:observer",
}
CONS = """ /10.0.0.11:52934[1](queued=0,recved=5,sent=5,sid=0xb00000f0b2a0000,lop=PING,est=17,to=18000,lcxid=0x3)
 /fd00:0:0:0:0:0:0:b:41000[1](queued=0,recved=5,sent=5,sid=0xb00000f0b2a0001,lop=PING,est=1,to=6000,lcxid=0x3)
 /127.0.0.1:47000[0](queued=0,recved=1,sent=0)
"""


def test_the_promoted_configuration_names_the_destination_alone():
    changes = ensemble_cut.promotion_changes(OBSERVER, DESTINATION)
    after = {key: value for key, value in {**OBSERVER, **changes}.items() if value is not None}
    assert after == {
        "dataDir": "/data",
        "reconfigEnabled": "false",
        **{f"server.{number}": f"{address}:participant" for number, address in DESTINATION.items()},
    }


def test_the_cut_rejects_only_the_sources_quorum_and_election_ports_in_both_families():
    members = ensemble_cut.source_members(
        {1: Member("z1:2888:3888"), 2: Member("z2:2889:3889|[fd00::2]:2889:3889"), 44: Member("z4:1:2", True)},
        DESTINATION,
    )
    assert ensemble_cut.ports_of(members) == ["2888", "2889", "3888", "3889"]
    assert ensemble_cut.hosts_of(members) == ["fd00::2", "z1", "z2"]
    rules = ensemble_cut.cut(["10.0.0.1", "fd00::2"], ensemble_cut.ports_of(members))
    assert [rule.command for rule in rules] == ["iptables", "ip6tables"]
    for rule in rules:
        text = " ".join(rule.rule)
        assert text.startswith("OUTPUT -p tcp -d ") and "--ports 2888,2889,3888,3889" in text
        assert text.endswith("--comment quorumshift-cut -j REJECT --reject-with tcp-reset")


def test_the_fence_lets_only_the_hosts_own_question_pass():
    for rule in ensemble_cut.fence(["2181"]):
        if rule.command == "iptables":
            assert rule.rule[:6] == ["INPUT", "-p", "tcp", "!", "-s", ensemble_cut.PROBE_ADDRESS]
        else:
            assert rule.command == "ip6tables" and "!" not in rule.rule


@pytest.mark.parametrize(
    ("timeouts", "znodes", "answer_s", "refused"),
    [
        ([18000, 18000], 1000, 0.5, False),
        ([18000, 6000], 1000, 0.5, True),
        ([18000], 1_200_000, 0.5, True),
        ([40000], 1_020_000, 1.0, False),
        ([18000], 1000, 4.0, True),
    ],
)
def test_a_cut_after_which_the_shortest_session_would_not_be_kept_is_refused(timeouts, znodes, answer_s, refused):
    planned = ensemble_cut.plan(timeouts, znodes, answer_s)
    assert planned.budget_s == round(min(timeouts) / 1500, 1)
    found = list(ensemble_cut.check_length(planned))
    assert bool(found) == refused
    orders_s = planned.estimate_s - ensemble_cut.START_S
    assert refused or planned.deadline_s - orders_s >= ensemble_cut.LEAST_LEFT_S - 0.1
    if found:
        needed = int(found[0].do.partition("timeout.ms=")[2].partition(" ")[0])
        assert not list(ensemble_cut.check_length(ensemble_cut.plan([needed], znodes, answer_s)))


def test_sessions_are_read_from_cons():
    found = ensemble_cut.parse_clients(CONS)
    assert [(client["address"], client["timeout_ms"]) for client in found] == [
        ("10.0.0.11", 18000),
        ("fd00::b", 6000),
    ]
    assert found[0]["session"] >> 56 == 0xB
    newer_java = CONS.replace("/fd00:0:0:0:0:0:0:b:", "/[fd00:0:0:0:0:0:0:b%eth0]:")
    assert ensemble_cut.parse_clients(newer_java) == found
    for cons in (CONS, newer_java):
        (finding,) = ensemble_cut.source_clients({"s1:2181": cons}, ["fd00::b"])
        assert "fd00::b" in finding.seen
    (finding,) = ensemble_cut.source_clients({"s1:2181": CONS}, ["10.0.0.11", "10.0.0.12"])
    assert "10.0.0.11" in finding.seen and "s1:2181" in finding.seen


def test_a_bare_majority_with_the_most_advanced_starts_first():
    last = {"z4": 7, "z5": 9, "z6": 8}
    assert ensemble_cut.choose_first(["z5", "z6", "z4"], last, 3) == ["z5", "z6"]
    assert ensemble_cut.choose_first(["z4", "z5", "z6"], dict.fromkeys(last, 9), 3) == ["z4", "z5", "z6"]
    five = {f"z{n}": n for n in range(5)}
    assert ensemble_cut.choose_first(sorted(five, reverse=True), five, 5) == ["z4", "z3", "z2"]
    four = {host: zxid for host, zxid in five.items() if host != "z3"}  # it is dead, and stays a voter
    assert ensemble_cut.choose_first(sorted(four, reverse=True), four, 5) == ["z4", "z2", "z1"]


def test_one_host_that_is_not_cut_off_prevents_every_promotion():
    hosts = {"z4": {"state": "cut"}, "z5": {"state": "healed", "reason": "the deadline passed without an order"}}
    assert ensemble_cut.check_promotable(hosts, ["z4", "z5", "z6"]) == [
        "z5 is healed: the deadline passed without an order",
        "z6 is unknown: it did not answer",
    ]
    assert ensemble_cut.check_promotable({"z4": {"state": "cut"}}, ["z4"]) == []


def test_a_session_of_another_ensembles_server_is_named():
    owners = {"/brokers/ids/1": 44 << 56 | 5, "/controller": 3 << 56 | 5, "/brokers/ids/2": 254 << 56}
    found = list(ensemble_cut.foreign_sessions(owners, [44, 254]))
    assert len(found) == 1 and "/controller" in found[0].seen and "myid 3" in found[0].seen


def test_only_an_observer_that_has_caught_up_is_ready():
    source = {"s1": {"mode": "leader", "zxid": 0x200002000}, "s2": {"mode": "follower", "zxid": 0x200002000}}

    def host(mode="observer", observes=True, problems=()):
        return {"problems": list(problems), "server": {"mode": mode, "observes": observes}}

    def not_ready(other, behind):
        return ensemble_cut.check_ready({"z4": host(), "z5": other}, source, behind)

    assert ensemble_cut.leader_zxid(source) == 0x200002000
    assert not_ready(host(), {}) == []
    for bad in (host(mode=""), host(observes=False), host(problems=[["z5 has rules", "remove them"]])):
        assert len(not_ready(bad, {})) == 1
    (behind,) = not_ready(host(), {"z4:2181": 0x200001FFF})
    assert "z4:2181 is at zxid 0x200001fff" in behind.seen
    assert "leader" in ensemble_cut.check_ready({"z4": host()}, {"s2": source["s2"]}, {})[0].seen


@pytest.mark.parametrize("chroot", ["", "/kafka", "/prod/kafka-eu"])
def test_a_session_has_one_name_in_files_and_for_clients(chroot):
    named = {"/brokers/ids/1": 7, "/controller": 9}
    assert ensemble_cut.name_below(chroot, {f"{chroot}{path}": session for path, session in named.items()}) == named
