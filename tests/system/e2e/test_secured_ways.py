# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward, back, and to the end on a cluster whose listeners are secured (variants of layout.SCHEMES).

The comparison runs before each gate, and verification clients run throughout. The runs are at -vvv:
test_no_secrets.py searches what they leave.
"""

from __future__ import annotations

import fnmatch
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire

from tests.system.e2e.clients import assert_nothing_lost, lasting_znodes, running_clients
from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase
from tests.system.testbed import least_rights, security
from tests.system.testbed.layout import LEAST_RIGHTS, LOGIN, SCHEME
from tests.system.testbed.running import LOG

# a reading logs in at each node, and takes more than a second on a loaded machine
PACE = {"quorumshift_stable_s": 5, "quorumshift_gate_timeout_s": 300, "quorumshift_roll_timeout_s": 600}
VERIFIED = {"quorumshift_verify": True, **PACE}


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """Verification clients; a function that stops them and returns their verdict."""
    LOG.unlink(missing_ok=True)  # what is searched for secrets is of this run
    with running_clients(tmp_path_factory.mktemp("clients")) as stop:
        yield stop


def migrate(testbed, expected, **extra):
    ran = testbed.play("migrate", "-vvv", extra={**VERIFIED, **extra}, timeout=3000)
    assert ran.code == 0 and phase(ran) == expected, ran.text[-8000:]
    return ran


def test_forward_to_dual_write_and_back(fresh, clients):
    before, plain = lasting_znodes(fresh), files(fresh)
    migrate(fresh, "dual_write")
    ran = back(fresh, "zk", **VERIFIED)
    print(f"rolled back in {ran.seconds:.0f} s")
    assert ran.code == 0 and phase(ran) == "zk", ran.text[-8000:]
    assert files(fresh) == plain
    no_trace(fresh)
    after = lasting_znodes(fresh)
    assert {path: value for path, value in before.items() if after.get(path) != value} == {}
    again = back(fresh, "zk", **VERIFIED)
    assert again.code == 0 and changed(again, fresh) == [], again.text[-8000:]


def test_forward_again_to_the_end(fresh, clients):
    stopped = migrate(fresh, "dual_write")
    token = re.search(r"quorumshift_finalize_token=(\S+:[0-9a-f]{6})", stopped.text).group(1)
    migrate(fresh, "finalized", quorumshift_finalize_token=token, quorumshift_soak="0s")
    again = fresh.play(extra=VERIFIED)
    assert again.code == 0 and changed(again, fresh) == [], again.text[-8000:]
    assert_nothing_lost(clients(), 30_000)


def test_the_tool_and_no_stranger_may_ask_the_controllers(fresh):
    """What the controllers' listener admits after the migration."""
    addresses = [HostPort(fresh.addresses[host], 9093) for host in fresh.controllers]
    if SCHEME.controllers == "SSL":
        pytest.skip("test_secure.py")
    client = fresh.connections().controller_client
    found = kafka_wire.describe_quorum_any(addresses, client, 10)
    assert found.quorum is not None, found.explain()
    assert sorted(broker.id for broker in found.quorum.observers) == [1, 2, 5]
    without = {**fresh.variables["quorumshift_controller_client"]}
    if SCHEME.has_kerberos:
        without.update(security.stranger())
    for key in ("sasl_password", "sasl_oauthbearer_client_secret"):
        if key in without:
            without[key] = "another"
    for address in addresses:
        with pytest.raises((kafka_wire.AuthenticationFailed, kafka_wire.KafkaError)) as caught:
            kafka_wire.describe_quorum(address, type(client).from_options(without), 10)
        if SCHEME.has_kerberos:  # the realm knows it, and no ACL does
            assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"
        else:
            assert isinstance(caught.value, kafka_wire.AuthenticationFailed)


def test_controllers_have_the_mechanism_that_was_asked_for(fresh):
    for host in fresh.controllers:
        values = properties.parse(fresh.run(host, "cat /etc/kafka/controller.properties").encode())
        if SCHEME.controllers != "SSL":
            assert values["sasl.mechanism.controller.protocol"] == SCHEME.controllers
        assert not [key for key in values if key.startswith("zookeeper.")], "final controllers read no ZooKeeper"
        assert fresh.run(host, "stat -c '%U %a' /etc/kafka/controller.properties") == "kafka 640"


@pytest.mark.skipif(not LEAST_RIGHTS, reason="this variant's login is root")
def test_the_runs_used_each_right_of_sudo_and_had_no_other(fresh):
    """The runs above logged in as a user with the file of docs/least-rights.md alone."""
    granted = [line for line in least_rights.sudoers().splitlines() if not line.startswith("#")]
    patterns = [line.partition("NOPASSWD: ")[2].replace("\\", "") for line in granted]
    assert len(patterns) == 2 and all(pattern.startswith("/bin/sh -c ") for pattern in patterns)
    used, others = set(), []
    for host in [*fresh.brokers, *fresh.controllers]:
        fresh.run(host, "visudo -c")
        for command in fresh.run(
            host, "journalctl -o cat _COMM=sudo | sed -n 's/.* COMMAND=//p' | sort -u"
        ).splitlines():
            given = command.replace("-c '", "-c ").removesuffix("'")  # the journal has the argument in quotes
            matching = [pattern for pattern in patterns if fnmatch.fnmatchcase(given, pattern)]
            used.update(matching)
            others += [] if matching else [(host, command)]
        refused = fresh.run(host, f"runuser -u {LOGIN} -- sudo -n /usr/bin/id 2>&1; true")
        assert "password is required" in refused and "uid=0" not in refused, refused
    assert (used, others) == (set(patterns), [])
