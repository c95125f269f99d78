# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules, scripts and verdicts of a cut; heal.sh and fence.sh run in a real shell with an iptables that records."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import ensemble_cut, zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.zk_observer import Member

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
    changes = ensemble_cut.promotion(OBSERVER, DESTINATION)
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
    assert [one.command for one in rules] == ["iptables", "ip6tables"]
    for rule in rules:
        text = " ".join(rule.rule)
        assert text.startswith("OUTPUT -p tcp -d ") and "--ports 2888,2889,3888,3889" in text
        assert text.endswith("--comment quorumshift-cut -j REJECT --reject-with tcp-reset")


def test_the_fence_lets_only_the_hosts_own_question_pass():
    v4, v6 = ensemble_cut.fence(["2181"])
    assert v4.rule[:6] == ["INPUT", "-p", "tcp", "!", "-s", ensemble_cut.PROBE_ADDRESS]
    assert v6.command == "ip6tables" and "!" not in v6.rule


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
    found = list(ensemble_cut.too_long(planned))
    assert bool(found) == refused
    orders_s = planned.estimate_s - ensemble_cut.START_S
    assert refused or planned.deadline_s - orders_s >= ensemble_cut.LEAST_LEFT_S - 0.1
    if found:
        needed = int(found[0].do.partition("timeout.ms=")[2].partition(" ")[0])
        assert not list(ensemble_cut.too_long(ensemble_cut.plan([needed], znodes, answer_s)))


def test_sessions_are_read_from_cons():
    found = ensemble_cut.clients(CONS)
    assert [(one["address"], one["timeout_ms"]) for one in found] == [
        ("10.0.0.11", 18000),
        ("fd00:0:0:0:0:0:0:b", 6000),
    ]
    assert found[0]["session"] >> 56 == 0xB
    (finding,) = ensemble_cut.source_clients({"s1:2181": CONS}, ["10.0.0.11", "10.0.0.12"])
    assert "10.0.0.11" in finding.seen and "s1:2181" in finding.seen


def test_a_bare_majority_with_the_most_advanced_starts_first():
    last = {"z4": 7, "z5": 9, "z6": 8}
    assert ensemble_cut.first_to_start(["z5", "z6", "z4"], last) == ["z5", "z6"]
    assert ensemble_cut.first_to_start(["z4", "z5", "z6"], dict.fromkeys(last, 9)) == ["z4", "z5", "z6"]
    five = {f"z{n}": n for n in range(5)}
    assert ensemble_cut.first_to_start(sorted(five, reverse=True), five) == ["z4", "z3", "z2"]


def test_one_host_that_is_not_cut_off_prevents_every_promotion():
    hosts = {"z4": {"state": "cut"}, "z5": {"state": "healed", "reason": "the deadline passed without an order"}}
    assert ensemble_cut.not_promotable(hosts, ["z4", "z5", "z6"]) == [
        "z5 is healed: the deadline passed without an order",
        "z6 is unknown: it did not answer",
    ]
    assert ensemble_cut.not_promotable({"z4": {"state": "cut"}}, ["z4"]) == []


def test_a_session_of_another_ensembles_server_is_named():
    owners = {"/brokers/ids/1": 44 << 56 | 5, "/controller": 3 << 56 | 5, "/brokers/ids/2": 254 << 56}
    found = list(ensemble_cut.foreign_sessions(owners, [44, 254]))
    assert len(found) == 1 and "/controller" in found[0].seen and "myid 3" in found[0].seen


def test_only_an_observer_that_has_caught_up_is_ready():
    source = {"s1": {"mode": "leader", "zxid": 0x200002000}, "s2": {"mode": "follower", "zxid": 0x200002000}}

    def host(mode="observer", observes=True, problems=()):
        return {"problems": list(problems), "server": {"mode": mode, "observes": observes}}

    def not_ready(other, behind):
        return ensemble_cut.not_ready({"z4": host(), "z5": other}, source, behind)

    assert ensemble_cut.leader_zxid(source) == 0x200002000
    assert not_ready(host(), {}) == []
    for bad in (host(mode=""), host(observes=False), host(problems=[["z5 has rules", "remove them"]])):
        assert len(not_ready(bad, {})) == 1
    (behind,) = not_ready(host(), {"z4:2181": 0x200001FFF})
    assert "z4:2181 is at zxid 0x200001fff" in behind.seen
    assert "leader" in ensemble_cut.not_ready({"z4": host()}, {"s2": source["s2"]}, {})[0].seen


# --- scripts ------------------------------------------------------------------------------------------------

IPTABLES = """#!/bin/sh
# keeps its rules, one a line, in a file
rules={home}/$(basename $0).rules
touch $rules
[ "$1" = -w ] && shift
case $1 in
  -S) cat $rules ;;
  -D) shift; grep -vxF -- "-A $*" $rules > $rules.new; mv $rules.new $rules ;;
  -C) shift; grep -qxF -- "-A $*" $rules ;;
  -I) shift; {{ echo "-A $*"; cat $rules; }} > $rules.new; mv $rules.new $rules ;;
esac
"""
OWN = "-A INPUT -p tcp --dport 22 -m comment --comment ssh -j ACCEPT"


@pytest.fixture
def shell(tmp_path):
    """A function that runs a script; with `iptables` and `ip6tables` that record, each with a rule of the operator."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ensemble_cut.IPTABLES:
        (tools / name).write_text(IPTABLES.format(home=tmp_path))
        (tools / name).chmod(0o755)
        (tmp_path / f"{name}.rules").write_text(f"{OWN}\n")

    def run(text):
        script = tmp_path / "script.sh"
        script.write_text(text.replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin"))
        path = f"{tools}:{os.environ['PATH']}"
        return subprocess.run(["/bin/sh", script], check=False, env={"PATH": path}).returncode

    run.rules = lambda: [(tmp_path / f"{name}.rules").read_text().splitlines() for name in ensemble_cut.IPTABLES]
    return run


def made(shell):
    rules = [*ensemble_cut.fence(["2181"]), *ensemble_cut.cut(["10.0.0.1", "fd00::1"], ["2888"])]
    assert shell("PATH=/usr/sbin:/bin\n" + "\n".join(" ".join(ensemble_cut.inserted(one)) for one in rules)) == 0
    assert [len(one) for one in shell.rules()] == [3, 3]


@pytest.mark.parametrize("state", ensemble_cut.UNDONE_BY_ITSELF)
def test_the_dead_mans_switch_removes_its_own_rules_alone(shell, tmp_path, state):
    made(shell)
    (tmp_path / "state").write_text(f"{state}\n")
    assert shell(ensemble_cut.heal_script(str(tmp_path))) == 0
    assert shell.rules() == [[OWN], [OWN]] and (tmp_path / "state").read_text() == "healed\n"
    assert shell(ensemble_cut.heal_script(str(tmp_path))) == 0


def test_the_dead_mans_switch_ends_a_worker_that_hangs_with_the_lock(shell, tmp_path):
    made(shell)
    (tmp_path / "state").write_text(f"{ensemble_cut.FENCED}\n")
    with subprocess.Popen(["flock", tmp_path / "lock", "sleep", "60"], start_new_session=True) as worker:
        while subprocess.run(["flock", "-n", tmp_path / "lock", "true"], check=False).returncode == 0:
            pass
        systemctl = tmp_path / "bin" / "systemctl"
        systemctl.write_text(f"#!/bin/sh\necho $* > {tmp_path}/asked\nkill -KILL -{worker.pid}\n")
        systemctl.chmod(0o755)
        assert shell(ensemble_cut.heal_script(str(tmp_path))) == 0
    assert (tmp_path / "asked").read_text() == "kill --signal=KILL quorumshift-zk-cut.service\n"
    assert shell.rules() == [[OWN], [OWN]] and (tmp_path / "state").read_text() == "healed\n"


@pytest.mark.parametrize("state", [ensemble_cut.PROMOTING, ensemble_cut.PROMOTED])
def test_the_dead_mans_switch_leaves_a_promoted_host_fenced(shell, tmp_path, state):
    made(shell)
    (tmp_path / "state").write_text(f"{state}\n")
    before = shell.rules()
    assert shell(ensemble_cut.heal_script(str(tmp_path))) == 0
    assert shell.rules() == before and (tmp_path / "state").read_text() == f"{state}\n"


@pytest.mark.parametrize(
    ("state", "fenced"), [("promoting", True), ("cut", False), ("healed", False), ("promoted", False)]
)
def test_a_reboot_fences_again_only_while_a_promotion_is_under_way(shell, tmp_path, state, fenced):
    (tmp_path / "state").write_text(f"{state}\n")
    script = ensemble_cut.fence_script(str(tmp_path), ensemble_cut.fence(["2181"]))
    assert shell(script) == 0 and shell(script) == 0  # the second start adds none
    assert [len(one) - 1 for one in shell.rules()] == [int(fenced)] * 2
