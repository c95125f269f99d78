# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the quorum may change, and what stands out of it: one fact is changed in a healthy cluster, and decides."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum_change
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import quorum_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError

CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
NOW = 1_790_000_000_000
AT = {101: "c1:9093", 102: "c2:9093", 103: "c3:9093", 104: "c4:9093"}
STATIC = ",".join(f"{number}@{AT[number]}" for number in (101, 102, 103))
DYNAMIC = {"kraft.version": 1, "metadata.version": 33}
ELDER = {"kraft.version": 1, "metadata.version": 27}
OF_4_1 = {name: Range(*levels[:2]) for name, levels in table.RELEASES[(4, 1)]["features"].items()}
OF_4_0 = {name: Range(*levels[:2]) for name, levels in table.RELEASES[(4, 0)]["features"].items()}


def replica(number, directory=None, late_ms=100, end=1000, endpoint=True):
    return {
        "id": number,
        "directory_id": directory,
        "log_end_offset": end,
        "fetched_ms": NOW - late_ms,
        "caught_up_ms": NOW - late_ms,
        "endpoint": AT.get(number) if endpoint else None,
    }


def quorum(dynamic=True, voters=(101, 102, 103), observers=()):
    found = [replica(number, f"dir{number}" if dynamic else None, 0 if number == 101 else 100) for number in voters]
    return {
        "leader_id": 101,
        "leader_epoch": 4,
        "high_watermark": 1000,
        "voters": found,
        "observers": [replica(number, f"dir{number}", endpoint=False) for number in observers],
    }


def node(role, number, values, registered=(101, 102, 103, 104)):
    ends = {
        str(each): {
            "end_points": [{"name": "CONTROLLER", "host": AT[each].split(":")[0], "port": 9093}],
            "features": {"metadata.version": [7, 33]},
            "registered_offset": each,
        }
        for each in registered
    }
    return {
        "role": role,
        "reached": True,
        "node_id": number,
        "file": {"path": "/etc/kafka.properties", "properties": {"log.dirs": "/data", **values}},
        "log_dirs": [{"path": "/data", "meta": {"directory.id": f"dir{number}"}}],
        "metadata_log": {"log_end_offset": 1000, "controllers": ends, "brokers": {}},
        "service": {"active": True},
    }


def nodes(values=None, controllers=(101, 102, 103), registered=(101, 102, 103)):
    values = {kraft_config.QUORUM_VOTERS: STATIC} if values is None else values
    found = {f"c{number - 100}": node("controller", number, values, registered) for number in controllers}
    return {"b1": node("broker", 1, values, registered), **found}


BOOTSTRAP = {kraft_config.QUORUM_BOOTSTRAP: "c1:9093,c2:9093,c3:9093"}


def refused(work, *words):
    with pytest.raises(quorum_change.QuorumError) as error:
        work()
    for word in words:
        assert word in str(error.value), str(error.value)


# Files ----------------------------------------------------------------------------------------------------------------


def test_bootstrap_servers_are_the_addresses_of_the_voters_and_those_that_are_set_stay():
    assert kraft_config.to_dynamic_quorum({kraft_config.QUORUM_VOTERS: STATIC}) == {
        kraft_config.QUORUM_VOTERS: None,
        kraft_config.QUORUM_BOOTSTRAP: "c1:9093,c2:9093,c3:9093",
    }
    both = {kraft_config.QUORUM_VOTERS: STATIC, kraft_config.QUORUM_BOOTSTRAP: "controllers.example:9093"}
    assert kraft_config.to_dynamic_quorum(both) == {kraft_config.QUORUM_VOTERS: None}
    assert kraft_config.to_dynamic_quorum(BOOTSTRAP) == {}


@pytest.mark.parametrize("value", ["c1:9093", "x@c1:9093", "101@c1", "${env:VOTERS}"])
def test_voters_that_cannot_be_read_are_an_error(value):
    with pytest.raises(AddressError):
        kraft_config.to_dynamic_quorum({kraft_config.QUORUM_VOTERS: value})
    refused(
        lambda: to_dynamic(quorum(False), nodes({kraft_config.QUORUM_VOTERS: value})),
        "/etc/kafka.properties on b1",
        "QS-QUORUM-004",
    )


# Static to dynamic ----------------------------------------------------------------------------------------------------


def to_dynamic(found, hosts, finalized=None, supported=OF_4_1):
    servers = {f"{host}": supported for host in hosts}
    return quorum_change.plan_dynamic(found, hosts, {} if finalized is None else finalized, servers, CLUSTER)


def test_a_static_quorum_becomes_dynamic():
    change = to_dynamic(quorum(False), nodes())
    assert change.levels and change.files == ("b1", "c1", "c2", "c3") and change.token.startswith(f"{CLUSTER}:")


def test_the_token_is_of_the_cluster_the_change_and_the_voters():
    mine = to_dynamic(quorum(False), nodes()).token
    fewer = quorum(False, (101, 102))
    two = nodes({kraft_config.QUORUM_VOTERS: "101@c1:9093,102@c2:9093"})
    assert to_dynamic(fewer, two).token != mine
    assert quorum_change.plan_dynamic(quorum(False), nodes(), {}, {"b": OF_4_1}, "other").token != mine


def test_files_alone_need_no_token_once_the_level_is_raised():
    change = to_dynamic(quorum(), nodes(), DYNAMIC)
    assert not change.levels and change.files == ("b1", "c1", "c2", "c3") and change.token == ""
    assert to_dynamic(quorum(), nodes(BOOTSTRAP), DYNAMIC).is_empty


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda found, hosts: hosts["b1"].update(reached=False, error="no route"), "b1: no route"),
        (lambda found, hosts: hosts["b1"]["file"].update(properties={}), "b1"),
        (lambda found, hosts: hosts["b1"]["file"].update(properties={"a": "b"}), "neither"),
        (lambda found, hosts: hosts.pop("c3"), "no hosts of the group kafka_controller: 103"),
        (lambda found, hosts: found["voters"][2].update(caught_up_ms=NOW - 6000), "controller 103: it is 0 records"),
        (lambda found, hosts: found["voters"][2].update(caught_up_ms=-1), "at an unknown time"),
        (
            lambda found, hosts: hosts["c2"]["file"]["properties"].update({core.VOTERS: "101@c1:9093"}),
            "of c2 names [101]",
        ),
        (lambda found, hosts: found["voters"][1].update(endpoint="10.0.0.2:9093"), "is reached at 10.0.0.2:9093 now"),
    ],
)
def test_a_static_quorum_stays_where_one_fact_is_missing(spoil, word):
    found, hosts = quorum(False), nodes()
    spoil(found, hosts)
    refused(lambda: to_dynamic(found, hosts), word)


def test_a_release_that_moves_no_voters_raises_nothing():
    refused(lambda: to_dynamic(quorum(False), nodes(), supported=OF_4_0), "from 4.1 on", "QS-QUORUM-002")
    refused(lambda: to_dynamic(quorum(False), nodes(), DYNAMIC), "moves no voters")


def test_a_controller_without_a_registration_has_no_known_address():
    refused(lambda: to_dynamic(quorum(False), nodes(registered=(101, 102))), "controller 103 has no registration")


# Add and replace ------------------------------------------------------------------------------------------------------


def adding():
    hosts = nodes(BOOTSTRAP, (101, 102, 103, 104), (101, 102, 103, 104))
    return quorum(observers=(104, 1)), hosts


def test_an_observer_that_has_caught_up_is_added_at_the_address_that_it_registered():
    change = quorum_change.plan_add(*adding(), DYNAMIC, "c4", True)
    assert change.joins == quorum_change.Joining(104, "dir104", (("CONTROLLER", "c4", 9093),)) and change.token == ""


def test_a_voter_is_not_added_again():
    found, hosts = adding()
    assert quorum_change.plan_add(found, hosts, DYNAMIC, "c1", True).is_empty


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda found, hosts: found["observers"].pop(0), "no observer with this id and directory"),
        (lambda found, hosts: found["observers"][0].update(directory_id="elder"), "no observer with this id and dir"),
        (lambda found, hosts: found["observers"][0].update(caught_up_ms=NOW - 6000), "has not caught up"),
        (lambda found, hosts: hosts["c4"]["log_dirs"].clear(), "directory of c4 is unknown"),
        (lambda found, hosts: hosts["c4"]["file"]["properties"].update({core.VOTERS: STATIC}), "c4 does not have"),
        (lambda found, hosts: hosts["c4"].update(reached=False, error="no route"), "no route"),
        (lambda found, hosts: [each["metadata_log"]["controllers"].pop("104") for each in hosts.values()], "unknown"),
        (
            lambda found, hosts: [each.update(caught_up_ms=NOW - 9000) for each in found["voters"][1:]],
            "2 of 4 voters have caught up, and a majority is 3",
        ),
    ],
)
def test_a_controller_is_not_added_where_one_fact_is_missing(spoil, word):
    found, hosts = adding()
    hosts = copy.deepcopy(hosts)
    spoil(found, hosts)
    refused(lambda: quorum_change.plan_add(found, hosts, DYNAMIC, "c4", True), word)


def test_nothing_is_added_to_a_static_quorum_nor_a_host_without_an_answer():
    found, hosts = adding()
    refused(lambda: quorum_change.plan_add(found, hosts, {}, "c4", True), "static", "quorum_to=dynamic")
    refused(lambda: quorum_change.plan_add(found, hosts, DYNAMIC, "c4", False), "does not answer")
    refused(lambda: quorum_change.plan_add(found, hosts, DYNAMIC, "b1", True), "no host of the group", "c1, c2, c3, c4")


def test_a_lost_disk_is_replaced_by_removal_then_addition():
    found = quorum(observers=())
    found["voters"][2].update(directory_id="elder", caught_up_ms=NOW - 600_000)
    found["observers"] = [replica(103, "dir103", endpoint=False)]
    hosts = nodes(BOOTSTRAP)
    refused(lambda: quorum_change.plan_add(found, hosts, DYNAMIC, "c3", True), "quorum_replace=c3", "QS-QUORUM-006")
    change = quorum_change.plan_replace(found, hosts, DYNAMIC, "c3", True, CLUSTER)
    assert change.voter == (103, "elder") and change.joins.directory_id == "dir103" and change.token
    found["voters"].pop(2)  # killed after the removal
    again = quorum_change.plan_replace(found, hosts, DYNAMIC, "c3", True, CLUSTER)
    assert again.voter is None and again.joins and again.token == ""
    found["voters"][1].update(caught_up_ms=NOW - 9000)  # the leader and the new one are a majority of three
    assert quorum_change.plan_replace(found, hosts, DYNAMIC, "c3", True, CLUSTER).joins


# Remove ---------------------------------------------------------------------------------------------------------------


def test_a_voter_is_removed_with_its_token_and_only_once():
    change = quorum_change.plan_remove(quorum(), nodes(BOOTSTRAP), DYNAMIC, "c3", CLUSTER)
    assert change.voter == (103, "dir103") and change.token
    assert "bears the loss of none" in change.lines[-1]
    assert quorum_change.plan_remove(quorum(), nodes(BOOTSTRAP), DYNAMIC, "103", CLUSTER) == change
    assert quorum_change.plan_remove(quorum(voters=(101, 102)), nodes(BOOTSTRAP), DYNAMIC, "103", CLUSTER).is_empty
    refused(lambda: quorum_change.plan_remove(quorum(), nodes(BOOTSTRAP), DYNAMIC, "c9", CLUSTER), "c1, c2, c3")


@pytest.mark.parametrize(("late", "gone", "allowed"), [(102, 102, True), (102, 103, False), (103, 101, False)])
def test_a_majority_of_the_others_must_have_caught_up(late, gone, allowed):
    found = quorum()
    next(each for each in found["voters"] if each["id"] == late).update(caught_up_ms=NOW - 60_000)

    def work():
        return quorum_change.plan_remove(found, nodes(BOOTSTRAP), DYNAMIC, str(gone), CLUSTER)

    if allowed:
        assert work().voter == (gone, f"dir{gone}")
    else:
        refused(work, "QS-QUORUM-007", f"controller {late}")


def test_the_leader_resigns_and_the_last_voter_stays():
    change = quorum_change.plan_remove(quorum(), nodes(BOOTSTRAP), DYNAMIC, "101", CLUSTER)
    assert "resigns" in change.lines[1]
    refused(
        lambda: quorum_change.plan_remove(quorum(voters=(101,)), nodes(BOOTSTRAP), DYNAMIC, "101", CLUSTER),
        "only voter",
    )


def test_a_controller_that_joins_by_itself_is_stopped_first():
    hosts = copy.deepcopy(nodes(BOOTSTRAP))
    hosts["c3"]["file"]["properties"][quorum_change.AUTO_JOIN] = "true"
    refused(lambda: quorum_change.plan_remove(quorum(), hosts, DYNAMIC, "c3", CLUSTER), "join again", "QS-QUORUM-007")
    hosts["c3"]["service"]["active"] = False
    assert quorum_change.plan_remove(quorum(), hosts, DYNAMIC, "c3", CLUSTER).voter


# Who is gone ----------------------------------------------------------------------------------------------------------


def test_ghosts_are_named_with_what_removes_them():
    hosts = nodes(BOOTSTRAP, registered=(101, 102, 103, 104))
    assert core.find_ghosts(quorum(), nodes(BOOTSTRAP), DYNAMIC) == []
    (ghost,) = core.find_ghosts(quorum(), hosts, DYNAMIC)
    assert (ghost.what, ghost.node_id) == ("controller", 104) and "quorum_unregister=104" in ghost.do
    (ghost,) = core.find_ghosts(quorum(), hosts, ELDER)
    assert "no release before 4.4 can unregister" in ghost.do
    other = quorum()
    other["voters"][2]["directory_id"] = "elder"
    (ghost,) = core.find_ghosts(other, nodes(BOOTSTRAP), DYNAMIC)
    assert (ghost.what, ghost.node_id) == ("voter", 103) and "quorum_replace=c3" in ghost.do
    del hosts["c3"]
    found = core.find_ghosts(quorum(), hosts, DYNAMIC)
    assert [(ghost.what, ghost.node_id) for ghost in found] == [("voter", 103), ("controller", 104)]
    assert not core.are_registrations_unknown(hosts)
    for host in hosts.values():
        host["metadata_log"] = {"error": "no directory"}
    assert core.are_registrations_unknown(hosts)


def test_a_controller_that_is_gone_is_unregistered():
    hosts = nodes(BOOTSTRAP, registered=(101, 102, 103, 104))

    def work(found=None, finalized=None, at="", which="104"):
        return quorum_change.plan_unregister(found or quorum(), hosts, finalized or DYNAMIC, which, at, CLUSTER)

    assert work().unregisters == 104 and work().token
    assert work(which="105").is_empty
    refused(lambda: work(which="c1"), "is c1 of the inventory")
    refused(lambda: work(at="c4:9093"), "answers at c4:9093")
    refused(lambda: work(finalized=ELDER), "no release before 4.4")
    refused(lambda: work(quorum(voters=(101, 102, 103, 104))), "quorum_remove=104")
    seen = quorum(observers=(104,))
    refused(lambda: work(seen), "may run")
    seen["observers"][0]["fetched_ms"] = -1
    refused(lambda: work(seen), "at an unknown time")
    seen["observers"][0]["fetched_ms"] = NOW - 61_000
    assert work(seen).unregisters == 104
    for host in hosts.values():
        host["metadata_log"] = None
    refused(work, "no metadata log could be read")


def test_no_time_is_known_without_the_leaders_clock():
    found = quorum()
    found["leader_id"] = 105
    assert not core.has_caught_up(found["voters"][0], found) and core.lag(found["voters"][0], found) is None


def test_the_screen_has_the_command_that_makes_the_change():
    found = {"change": ["controller 103 is removed"], "token": f"{CLUSTER}:abcdef"}
    given = {"quorum_remove": "103", "quorum_add": ""}
    lines = quorum_screen.render_change(found, given, False)
    assert lines[-1].endswith(
        f"quorumshift.kafka.quorum -e quorum_remove=103 -e quorum_apply=true -e quorum_confirm={CLUSTER}:abcdef"
    )
    assert "To make it" not in " ".join(quorum_screen.render_change(found, given, True))
    assert quorum_screen.render_change({"change": [], "token": ""}, given, False) == ["nothing would change"]


# What check mode shows ------------------------------------------------------------------------------------------------


def voters_after(change, before, hosts, finalized):
    found, after = quorum_change.expect(change, before, finalized, hosts)
    return [(voter["id"], voter["directory_id"]) for voter in found["voters"]], after["finalized"]["kraft.version"]


def test_what_a_change_leads_to():
    every = [(number, f"dir{number}") for number in (101, 102, 103)]
    change = quorum_change.plan_dynamic(quorum(False), nodes(), {"kraft.version": 0}, {"b": OF_4_1}, CLUSTER)
    assert voters_after(change, quorum(False), nodes(), {"kraft.version": 0}) == (every, 1)
    hosts = nodes(BOOTSTRAP, (101, 102, 103, 104), (101, 102, 103, 104))
    change = quorum_change.plan_remove(quorum(), hosts, DYNAMIC, "103", CLUSTER)
    assert voters_after(change, quorum(), hosts, DYNAMIC) == (every[:2], 1)
    change = quorum_change.plan_add(quorum(observers=(104,)), hosts, DYNAMIC, "c4", True)
    assert voters_after(change, quorum(), hosts, DYNAMIC) == ([*every, (104, "dir104")], 1)
    lost = quorum(observers=(103,))
    lost["voters"][2] = replica(103, "old", 10**6)
    change = quorum_change.plan_replace(lost, hosts, DYNAMIC, "c3", True, CLUSTER)
    assert voters_after(change, lost, hosts, DYNAMIC) == (every, 1)
    assert voters_after(quorum_change.Change(), quorum(), hosts, DYNAMIC) == (every, 1)
