# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a move goes on in each combination of states, and what is no one set of hosts, servers and connect string."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import (
    CUT,
    HEALED,
    PROMOTED,
    PROMOTING,
    SUSPENDED,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_move import BACK, FORWARD
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort, ZkConnect

STATES = ("none", CUT, HEALED, PROMOTING, PROMOTED, SUSPENDED)
SERVERS = {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
CONNECT = [HostPort(host, 2181) for host in ("z4", "z5", "z6")]
KAFKA = ZkConnect(tuple(CONNECT), "/kafka")


def read(state, rules=0, works=False, verified=True):
    return {"state": state, "rules": rules, "works": works, "verified": verified}


@pytest.mark.parametrize("states", list(itertools.combinations_with_replacement(STATES, 3)))
def test_each_combination_of_states_goes_on_forward_or_back(states):
    hosts = {f"z{number}": read(state) for number, state in enumerate(states)}
    forward, back = (ensemble_move.decide(hosts, direction) for direction in (FORWARD, BACK))
    accepted = [state for state in states if state in ensemble_cut.ACCEPTED]
    if forward.standing == ensemble_move.STRAY:
        assert PROMOTED in states and len(accepted) < 3
        return
    assert not (forward.findings and back.findings)
    if forward.findings:  # then the message names the other way
        assert ensemble_move.ROLL_BACK in forward.findings[0].do.lower()
    if PROMOTED in states:  # Kafka may have written to it
        assert back.findings and not forward.findings
        assert ensemble_move.MIGRATE_AGAIN in back.findings[0].do
    if not accepted:
        assert forward.standing == ensemble_move.JOIN
    # nothing goes on where a host never accepted, or was suspended while none was promoted
    if forward.resume and not forward.findings:
        assert len(accepted) == 3 and (PROMOTED in states or set(states) == {PROMOTING})


def test_a_host_that_was_not_read_ends_the_run():
    hosts = {"z4": read(PROMOTED), "z5": {}, "z6": read(PROMOTED)}
    for direction in (FORWARD, BACK):
        (finding,) = ensemble_move.decide(hosts, direction).findings
        assert "z5" in finding.seen


def test_what_was_left_is_named():
    hosts = {"z4": read(PROMOTED, rules=2), "z5": read(PROMOTED), "z6": read(PROMOTED, verified=False)}
    assert ensemble_move.decide(hosts, FORWARD).resume == ["z4"]
    decision = ensemble_move.decide({**hosts, "z4": read(PROMOTED)}, FORWARD)
    assert (decision.standing, decision.resume, decision.verify) == (ensemble_move.SERVED, [], True)
    left = {"z4": read(CUT, 2), "z5": read(HEALED), "z6": read(CUT, 2, works=True)}
    assert ensemble_move.decide(left, FORWARD).heal == ["z4"]


@pytest.mark.parametrize("returned", ["z4", "z5", "z6"])
def test_a_host_joins_the_promotion_of_the_others_and_not_the_cut_that_it_died_in(returned):
    old = {**read(HEALED, verified=False), "id": "died", "last": 99}
    hosts = {host: {**read(PROMOTED), "id": "cut", "last": 7, "dead": [returned]} for host in ("z4", "z5", "z6")}
    decision = ensemble_move.decide({**hosts, returned: old}, FORWARD, cleaned=[returned])
    assert (decision.clean, decision.add) == ([returned], [returned])
    assert decision.promotion == {"id": "cut", "last": 7}
    joined = {**read(PROMOTED, verified=False), "id": decision.promotion["id"], "last": 7}
    after = ensemble_move.decide({**hosts, returned: joined}, FORWARD)
    assert after.verify and not after.findings


# --- hosts that are dead ----------------------------------------------------------------------------------------


def of(state, **more):
    return {**read(state), "id": "cut1", "dead": [], **more}


FLAGS = [
    {},
    {"opens": True},
    *[
        {"started": started, "written": written}
        for started in (True, False)
        for written in ("", "a", "unknown, since b")
    ],
]


@pytest.mark.parametrize("states", list(itertools.product(STATES, repeat=2)))
def test_what_two_of_three_hosts_show_while_the_third_is_dead(states):
    """Kafka must not be served without proof that the dead host accepted too, nor taken back without proof that it
    served nothing."""
    for flags in itertools.product(FLAGS, repeat=2):
        for dead in ([], ["z6"]):
            found = {
                f"z{number}": of(state, **more, dead=dead if state in ensemble_cut.ACCEPTED else [])
                for number, (state, more) in enumerate(zip(states, flags), 4)
            }
            forward, back = (ensemble_move.decide(found, direction, ["z6"]) for direction in (FORWARD, BACK))
            accepted = [state for state in states if state in ensemble_cut.ACCEPTED]
            shows = any(cut.get("opens") or (cut.get("written") or "").startswith("a") for cut in found.values())
            if forward.resume and not forward.findings:
                assert len(accepted) == 2
                assert PROMOTED in states or dead or shows
            if back.take_back and not back.findings:
                assert PROMOTED not in states
                assert dead or not any(cut.get("written") for cut in found.values() if cut["state"] == SUSPENDED)
            if forward.findings and back.findings and forward.standing != ensemble_move.STRAY:
                assert {finding.do.split()[0] for finding in (*forward.findings, *back.findings)} == {"start"}
            assert any("named dead: z6" in note for note in forward.notes)


def test_a_dead_host_of_a_promotion_that_is_under_way():
    both = {"z4": of(PROMOTING), "z5": of(PROMOTING)}
    assert ensemble_move.decide(both, FORWARD, ["z6"]).standing == ensemble_move.ROLLBACK
    assert "whether z6 did is unknown" in ensemble_move.decide(both, FORWARD, ["z6"]).findings[0].seen
    opens = {**both, "z5": of(PROMOTING, opens=True)}  # the order to open is given only once all accepted
    decision = ensemble_move.decide(opens, FORWARD, ["z6"])
    assert (decision.standing, decision.resume, decision.findings) == (ensemble_move.FINISH, ["z4", "z5"], [])
    assert "may have served" in ensemble_move.decide(opens, BACK, ["z6"]).findings[0].seen
    # the log of a server that a client used shows that another one was open
    written = {"z4": of(SUSPENDED, started=True, written="/kafka/brokers"), "z5": of(SUSPENDED, started=True)}
    assert ensemble_move.decide(written, FORWARD, ["z6"]).resume == ["z4", "z5"]
    unknown = {"z4": of(SUSPENDED, started=True, written="unknown, since x"), "z5": of(SUSPENDED)}
    for direction in (FORWARD, BACK):
        assert ensemble_move.decide(unknown, direction, ["z6"]).findings[0].do.startswith("start z6")


def test_a_host_that_was_left_out_returns():
    served = {"z4": of(PROMOTED, dead=["z6"]), "z5": of(PROMOTED, dead=["z6"])}
    assert ensemble_move.decide(served, FORWARD, ["z6"]).standing == ensemble_move.SERVED
    (unread,) = ensemble_move.decide({**served, "z6": {}}, FORWARD).findings
    assert "-e zk_migrate_dead_hosts=z6" in unread.do
    for state, its_id in (("none", None), (HEALED, "cut0"), (PROMOTING, "cut0"), (PROMOTED, "cut0")):
        back = {**served, "z6": of(state, id=its_id)}
        decision = ensemble_move.decide(back, FORWARD)
        assert decision.standing == ensemble_move.SERVED and decision.add == []
        assert "-e zk_migrate_clean_hosts=z6" in decision.findings[0].do
        cleaned = ensemble_move.decide(back, FORWARD, cleaned=["z6"])
        assert (cleaned.clean, cleaned.add, cleaned.findings) == (["z6"], ["z6"], [])
    empty = ensemble_move.decide({**served, "z6": of("none", id=None, clean=True)}, FORWARD)
    assert (empty.clean, empty.add, empty.findings) == ([], ["z6"], [])
    assert ensemble_move.decide({**served, "z6": of(PROMOTED)}, FORWARD).findings == []  # it was added
    # the operator's word counts for hosts that were left out alone
    assert ensemble_move.decide({"z4": of(PROMOTED), "z5": of(PROMOTED)}, FORWARD, cleaned=["z4"]).clean == []


def test_a_host_that_outlived_the_end_of_its_promotion():
    """Its data may be of the promotion's ensemble, and newer than what the others have of the source by now."""
    left = {host: of(HEALED, taken_back_without=["z6"]) for host in ("z4", "z5")}
    assert ensemble_move.decide(left, BACK, ["z6"]).findings == []
    (refused,) = ensemble_move.decide(left, FORWARD, ["z6"]).findings
    assert "z6 was dead when a promotion was taken back" in refused.seen
    for state in ensemble_cut.ACCEPTED:
        decision = ensemble_move.decide({**left, "z6": of(state)}, FORWARD)
        assert decision.standing == ensemble_move.JOIN and "clean_hosts=z6" in decision.findings[0].do
        assert ensemble_move.decide({**left, "z6": of(state)}, FORWARD, cleaned=["z6"]).clean == ["z6"]
    assert ensemble_move.decide({**left, "z6": of("none")}, FORWARD).findings == []


def test_a_promotion_whose_majority_is_gone_is_not_finished():
    found = {"z4": of("none", id=None), "z5": of(PROMOTING, dead=["z4"], opens=True)}
    (finding,) = ensemble_move.decide(found, FORWARD, ["z6"]).findings
    assert "which is no majority" in finding.seen and finding.do.startswith("start z6")


@pytest.mark.parametrize(
    ("connect", "direction", "answers", "text"),
    [
        (CONNECT[:2], FORWARD, (), ""),
        (CONNECT, FORWARD, (), "set zk_migrate_destination_connect=z4:2181,z5:2181/kafka"),
        (CONNECT, BACK, (), ""),  # the run writes the source's
        (CONNECT[:2], FORWARD, ("z6:3888",), "z6:3888 from z4"),
        (CONNECT[:2], BACK, ("z6:2888",), "z6:2888 from z4"),
        ([*CONNECT[:2], HostPort("s1", 2181)], FORWARD, (), "s1:2181"),
    ],
)
def test_a_dead_host_is_silent_and_no_broker_gets_its_name(connect, direction, answers, text):
    found = hosts(without=["z6"])
    found["z4"]["answering"] = list(answers)
    findings = list(
        ensemble_move.check_inventory(found, SERVERS, ZkConnect(tuple(connect), "/kafka"), {"z6": 46}, direction)
    )
    assert (text in f"{findings[0].seen} {findings[0].do}") if text else findings == []


def test_a_minority_goes_on_without_no_host():
    found = list(
        ensemble_move.check_inventory(
            hosts(without=["z5", "z6"]), SERVERS, ZkConnect(tuple(CONNECT[:1]), ""), {"z5": 45, "z6": 46}
        )
    )
    assert "2 of 3 destination servers are named dead" in found[0].seen


def test_all_addresses_of_a_dead_server_are_tried():
    servers = {46: "z6:2888:3888|[fd00::6]:2889:3889;2181"}
    assert ensemble_move.addresses_of({"z6": 46}, servers, ["2181"]) == [
        *("z6:2888", "z6:3888", "z6:2181"),
        *("[fd00::6]:2889", "[fd00::6]:3889", "[fd00::6]:2181"),
    ]


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ({"z4": HEALED, "z5": HEALED}, "Fix the cause and run again."),
        ({"z4": PROMOTING, "z5": PROMOTING}, "Run quorumshift.kafka.zk_migrate again"),
        (
            {"z4": PROMOTING, "z5": HEALED},
            "z4 accepted their promotion and stay fenced. Kafka uses the other servers.",
        ),
        (
            {"z4": PROMOTING, "z5": PROMOTING, "z6": "unknown"},
            "z4, z5 accepted their promotion and stay fenced, and whether z6 did is unknown. Kafka uses no destination "
            "server that answers. Run quorumshift.kafka.zk_rollback: it takes these promotions back. If z6 is dead: "
            "with -e zk_migrate_dead_hosts=z6.",
        ),
        ({"z4": PROMOTING, "z5": HEALED, "z6": "unknown"}, "z6 did is unknown. Kafka uses the other servers."),
        ({"z4": HEALED, "z5": HEALED, "z6": "unknown"}, "run again. If z6 is dead: -e zk_migrate_dead_hosts=z6."),
        ({"z4": HEALED, "z5": "unknown"}, "Fix the cause and run again."),  # no majority is left
        ({"z4": PROMOTING, "z5": SUSPENDED}, "The promotion of z4, z5 was suspended"),
        ({"z4": PROMOTED, "z5": PROMOTING}, "Run quorumshift.kafka.zk_migrate again"),
    ],
)
def test_the_next_step_after_a_failure(states, text):
    assert text in ensemble_move.next_step(states)


# --- one set ---------------------------------------------------------------------------------------------------


def hosts(*, without=(), **changes):
    found = {}
    for number, host in ((44, "z4"), (45, "z5"), (46, "z6")):
        if host not in without:
            found[host] = {"myid": number, "ids": [number], "entries": [f"{host}:2181"], **changes.get(host, {})}
    return found


def test_hosts_servers_and_connect_string_are_one_set():
    assert list(ensemble_move.check_inventory(hosts(), SERVERS, KAFKA)) == []


@pytest.mark.parametrize(
    ("found", "servers", "connect", "text"),
    [
        # the host that "could not be read" is commented out, and stays in every broker's string
        (hosts(without=["z6"]), SERVERS, CONNECT, "z6:2181 of zk_migrate_destination_connect is no server of a host"),
        (hosts(without=["z6"]), SERVERS, CONNECT[:2], "has server 46, and no host"),
        (hosts(without=["z6"]), {44: SERVERS[44], 45: SERVERS[45]}, CONNECT, "z6:2181"),
        (hosts(z6={"entries": []}), SERVERS, CONNECT[:2], "the one on z6"),
        (hosts(), {44: SERVERS[44], 45: SERVERS[45]}, CONNECT, "has no server 46"),
        (hosts(), SERVERS, [*CONNECT, HostPort("s1", 2181)], "s1:2181"),
        (hosts(z6={"myid": 45}), SERVERS, CONNECT, "zk_migrate_myid is 45 on z5, z6"),
        (hosts(z4={"ids": [45]}), SERVERS, CONNECT, "server 44 at z4:2888:3888, which is no address of z4"),
    ],
)
def test_what_is_not_one_set_is_named(found, servers, connect, text):
    findings = list(ensemble_move.check_inventory(found, servers, ZkConnect(tuple(connect), "/kafka")))
    assert any(text in finding.seen for finding in findings)
    assert all(finding.do for finding in findings)


def test_each_server_of_the_connect_string_has_an_id_of_the_destination():
    creators = {"z4:2181": 44, "z5:2181": 45, "z6:2181": 46}
    assert list(ensemble_move.foreign_servers(creators, set(SERVERS))) == []
    (foreign, lacking) = ensemble_move.foreign_servers({**creators, "z6:2181": 3}, set(SERVERS))
    assert "has the id 3" in foreign.seen and "the id 46" in lacking.seen
    (silent, _lacking) = ensemble_move.foreign_servers({**creators, "z6:2181": None}, set(SERVERS))
    assert "gives no session" in silent.seen
