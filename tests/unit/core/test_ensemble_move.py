# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a move goes on in each combination of states, and what is no one set of hosts, servers and connect string."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import ensemble_cut, ensemble_move
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble_cut import (
    CUT,
    HEALED,
    PROMOTED,
    PROMOTING,
    SUSPENDED,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble_move import BACK, FORWARD

STATES = ("none", CUT, HEALED, PROMOTING, PROMOTED, SUSPENDED)
SERVERS = {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
CONNECT = [HostPort(host, 2181) for host in ("z4", "z5", "z6")]


def read(state, rules=0, works=False, verified=True):
    return {"state": state, "rules": rules, "works": works, "verified": verified}


@pytest.mark.parametrize("states", list(itertools.combinations_with_replacement(STATES, 3)))
def test_each_combination_of_states_goes_on_forward_or_back(states):
    hosts = {f"z{number}": read(state) for number, state in enumerate(states)}
    forward, back = (ensemble_move.decide(hosts, one) for one in (FORWARD, BACK))
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


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ({"z4": HEALED, "z5": HEALED}, "Fix the cause and run again."),
        ({"z4": PROMOTING, "z5": PROMOTING}, "Run quorumshift.kafka.zk_migrate again"),
        (
            {"z4": PROMOTING, "z5": HEALED},
            "z4 accepted their promotion and stay fenced. Kafka uses the other servers.",
        ),
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
    assert list(ensemble_move.unlike(hosts(), SERVERS, CONNECT)) == []


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
    findings = list(ensemble_move.unlike(found, servers, connect))
    assert any(text in finding.seen for finding in findings)
    assert all(finding.do for finding in findings)


def test_each_server_of_the_connect_string_has_an_id_of_the_destination():
    creators = {"z4:2181": 44, "z5:2181": 45, "z6:2181": 46}
    assert list(ensemble_move.foreign_servers(creators, set(SERVERS))) == []
    (foreign, lacking) = ensemble_move.foreign_servers({**creators, "z6:2181": 3}, set(SERVERS))
    assert "has the id 3" in foreign.seen and "the id 46" in lacking.seen
    (silent, _lacking) = ensemble_move.foreign_servers({**creators, "z6:2181": None}, set(SERVERS))
    assert "gives no session" in silent.seen
