# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An observer's configuration, and each precondition by itself: found where it does not hold, silent where it does."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_observer as observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

CONFIG = """server.11=z1:2888:3888:participant;0.0.0.0:2181
server.12=z2:2888:3888:participant
server.13=z3:2888:3888|y3:2888:3888:participant;2181
server.14=z9:2888:3888:observer
version={version}"""
DESTINATION = {44: "z4:2888:3888", 45: "z5:2888:3888"}
ZOO = "# kept\ntickTime=2000\ndataDir=/data\nclientPort=2181\nserver.44=z4:2888:3888\nserver.45=z5:2888:3888\n"
STATUS = {"version": [3, 8, 4], "mode": "follower", "zxid": 100, "error": None}
OURS = {44: observer.Member("z4:2888:3888", True), 11: observer.Member("z1:2888:3888")}


STATIC = CONFIG.format(version="0")


def ensemble(text):
    return observer.parse_ensemble(properties.parse(text.encode()))


def source(config=STATIC, settings=None, **changed):
    status = {"z1:2181": {**STATUS, "mode": "leader"}, "z2:2181": {**STATUS, **changed}}
    return observer.Source(ensemble(config), status, settings or {})


def host(**changed):
    observer_host = observer.Host("/etc/zoo.cfg", properties.parse(ZOO.encode()), {}, [], 0, {}, None, [])
    return observer_host._replace(**changed)


def seen(host_=None, source_=None, myid=44, destination=None):
    """Return the findings' texts."""
    found = list(observer.findings(host_ or host(), source_ or source(), myid, destination or DESTINATION))
    assert all(finding.do for finding in found)
    return [finding.seen for finding in found]


def test_nothing_is_found_where_all_holds():
    assert seen() == []


def test_members_of_any_form():
    found = ensemble(CONFIG.format(version="10000000a"))
    assert found.version == 0x10000000A
    assert found.members[13] == observer.Member("z3:2888:3888|y3:2888:3888")
    assert found.members[14] == observer.Member("z9:2888:3888", True)
    assert observer.election_address(found.members[13]) == "z3:3888"
    assert observer.quorum_address(found.members[13]) == "z3:2888"
    assert observer.parse_member("[::1]:2888:3888").address == "[::1]:2888:3888"
    assert ensemble("") == ({}, 0)


def edited(version):
    values = properties.parse(ZOO.encode())
    changes, path, dynamic = observer.plan_changes(
        values, "/etc/zoo.cfg", ensemble(CONFIG.format(version=version)), DESTINATION
    )
    return properties.edit(ZOO.encode(), changes).decode(), path, dynamic


def test_static_configuration():
    text, _path, dynamic = edited("0")
    values = properties.parse(text.encode())
    assert dynamic is None and text.startswith("# kept\n") and "dynamicConfigFile" not in values
    assert values["peerType"] == "observer" and values["reconfigEnabled"] == "false"
    assert {key: value for key, value in values.items() if key.startswith("server.")} == {
        "server.11": "z1:2888:3888:participant",
        "server.12": "z2:2888:3888:participant",
        "server.13": "z3:2888:3888|y3:2888:3888:participant",
        "server.14": "z9:2888:3888:observer",
        "server.44": "z4:2888:3888:observer",
        "server.45": "z5:2888:3888:observer",
    }
    again, _path, _dynamic = observer.plan_changes(values, "/etc/zoo.cfg", source().ensemble, DESTINATION)
    assert properties.edit(text.encode(), again).decode() == text


def test_dynamic_configuration_has_the_version_of_the_source():
    text, path, dynamic = edited("10000000a")
    values = properties.parse(text.encode())
    assert path == values["dynamicConfigFile"] == "/etc/zoo.cfg.dynamic.10000000a"
    assert not any(key.startswith("server.") for key in values)  # ZooKeeper rejects both
    assert values["reconfigEnabled"] == "false" and b"version" not in dynamic
    assert ensemble(dynamic.decode()).members[44] == observer.Member("z4:2888:3888", True)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"error": "refused", "mode": None}, "source servers z2:2181 do not answer: refused"),
        ({"mode": None}, "source servers z2:2181 forbid srvr"),
        ({"mode": "standalone"}, "the source z2:2181 is standalone"),
        ({"version": [3, 4, 12]}, "source server z2:2181 is ZooKeeper 3.4.12"),
        ({"version": [3, 5, 3]}, "source server z2:2181 is ZooKeeper 3.5.3"),
    ],
)
def test_the_source(changed, text):
    (found,) = seen(source_=source(**changed))
    assert found.startswith(text)


@pytest.mark.parametrize("version", [[3, 4, 13], [3, 4, 14], [3, 5, 4], [3, 9, 5]])
def test_releases_that_have_the_fix(version):
    assert seen(source_=source(version=version)) == []


def test_the_source_without_leader_or_addresses():
    without = source()
    without = without._replace(status={"z2:2181": STATUS})
    assert seen(source_=without) == ["none of z2:2181 is the source's leader (QS-ZKMOVE-001)"]
    assert seen(source_=source("")) == ["the source's /zookeeper/config names no servers (QS-ZKMOVE-001)"]
    (wild,) = seen(source_=source("server.1=0.0.0.0:2888:3888:participant"))
    assert "server 1 at 0.0.0.0:2888:3888, which is no address" in wild


@pytest.mark.parametrize(
    ("destination", "text"),
    [
        ({45: "z5:2888:3888"}, "destination_servers has no server 44"),
        ({44: "0.0.0.0:2888:3888"}, "destination_servers has server 44 at 0.0.0.0:2888:3888"),
        ({**DESTINATION, 11: "z6:2888:3888"}, "the id 11 is of a source server as well (z1:2888:3888)"),
        ({**DESTINATION, 3: "z6:2888:3888"}, "the destination id 3 is lower than the largest source id 14"),
        ({**DESTINATION, 255: "z6:2888:3888"}, "the destination id 255 is larger than 254"),
        ({**DESTINATION, 46: "z4:2888:3888"}, "the address z4:2888:3888 is of two servers"),
        ({**DESTINATION, 46: "z1:2888:3888"}, "the address z1:2888:3888 is of two servers"),
    ],
)
def test_ids_and_addresses(destination, text):
    (found,) = seen(destination=destination)
    assert found.startswith(text)


def test_observers_that_the_source_lists_are_no_others():
    config = CONFIG.format(version="5") + "\nserver.44=z4:2888:3888:observer;2181"
    assert seen(source_=source(config)) == []


def test_data_of_another_ensemble():
    files = ["/data/version-2/log.1"]
    (found,) = seen(host(files=files))
    assert found.startswith("/data/version-2/log.1 exists, but this host is no observer of the source")
    joined = {"files": files, "configured": OURS, "myid": 44, "values": {"peerType": "observer"}}
    assert seen(host(**joined, last=100)) == []
    (ahead,) = seen(host(**joined, last=101))
    assert "0x65, beyond 0x64" in ahead
    for changed in ({"myid": 45}, {"values": {}}, {"configured": {44: OURS[44]}}):
        assert len(seen(host(**{**joined, **changed}))) == 1, changed


@pytest.mark.parametrize(
    ("own", "theirs", "text"),
    [
        ({"syncEnabled": "false"}, None, "syncEnabled is false"),
        ({"observer.syncEnabled": "false"}, None, "syncEnabled is false"),
        ({"localSessionsEnabled": "TRUE"}, None, "localSessionsEnabled is true"),
        (
            {"quorum.auth.enableSasl": "true", "quorum.auth.kerberos.servicePrincipal": "zk/_HOST"},
            None,
            "this host auth",
        ),
        ({}, {"jute.maxbuffer": "0x400000"}, "jute.maxbuffer is 1048575 on this host and 4194304"),
        ({}, {"authProvider.sasl": "X"}, "authProvider.sasl differs"),
        ({}, {"skipACL": "yes"}, "skipACL differs"),
        ({}, {"DigestAuthenticationProvider.superDigest": "hash"}, "DigestAuthenticationProvider.superDigest differs"),
        ({"tickTime": "2000"}, {"tickTime": "2000", "maxSessionTimeout": "60000"}, "maxSessionTimeout is 40000 ms"),
    ],
)
def test_settings(own, theirs, text):
    (found,) = seen(host(settings=own), source(settings={"z1": theirs} if theirs is not None else {}))
    assert found.startswith(text)


def test_settings_that_agree():
    both = {"jute.maxbuffer": "4194304", "authProvider.sasl": "X", "tickTime": "2000", "minSessionTimeout": "-1"}
    assert seen(host(settings={**both, "authProvider.more": "Y"}), source(settings={"z1": both})) == []


def test_ports():
    connection = {"kind": "source", "to": "12", "address": "z2:3888", "reason": "refused", "error": "refused"}
    assert seen(host(unreachable=[connection, {**connection, "kind": "destination"}])) == []  # a server that is down
    assert len(seen(host(unreachable=[{**connection, "reason": "timeout"}, {**connection, "kind": "leader"}]))) == 2


def test_joined_is_an_observer_that_has_caught_up():
    status = {**STATUS, "mode": "observer"}
    assert observer.explain_unjoined(status, 100) == ""
    assert "was at 0x65" in observer.explain_unjoined(status, 101)
    for changed in ({"error": "no quorum"}, {"mode": "follower"}, {"mode": None}, {"zxid": None}):
        assert observer.explain_unjoined({**status, **changed}, 100), changed
    assert "newer version" in observer.find_hints(["WARN restarting leader election"]) and not observer.find_hints(
        ["INFO"]
    )


def test_the_zxid_of_a_new_epoch_is_no_transaction():
    followers = {
        "a": {"mode": "follower", "zxid": 0x100000007},
        "b": {"mode": "follower", "zxid": 0x100000009},
        "c": {"mode": None, "zxid": None},
        "d": {"mode": "leader", "zxid": 0x200000000},
    }
    assert observer.required_zxid(0x200000000, followers) == 0x100000009
    assert observer.required_zxid(0x200000001, followers) == 0x200000001
