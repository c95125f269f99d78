# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight's findings about hosts, networks and rights, many in one run, since it lists all of them."""

from __future__ import annotations

import contextlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.system.e2e.test_refusals import assert_refused

FILE = "/etc/kafka/server.properties"
ZOO_CFG = "/etc/zookeeper/zoo.cfg"
DROP_IN = "/etc/systemd/system/kafka.service.d/test.conf"


@contextlib.contextmanager
def caused(testbed, *faults):
    """Cause faults, each (host, command, command that undoes it); undo them at the end."""
    with contextlib.ExitStack() as stack:
        for host, command, undo in faults:
            stack.callback(testbed.run, host, undo)
            testbed.run(host, command)
        yield


def drop_in(host, *lines):
    text = "\\n".join(("[Service]", *lines))
    return (
        host,
        f"mkdir -p {DROP_IN.rpartition('/')[0]}; printf '{text}\\n' > {DROP_IN}; systemctl daemon-reload",
        f"rm {DROP_IN}; systemctl daemon-reload",
    )


def firewall(host, port, target, source=None):
    rule = f"INPUT -p tcp --dport {port} {f'-s {source}' if source else ''} -j {target}"
    return host, f"iptables -I {rule}", f"iptables -D {rule}"


def findings(directory):
    """Return the run's findings, {check: [(severity, seen)]}."""
    (path,) = directory.glob("*/*/preflight.json")
    found = {}
    for finding in json.loads(path.read_text())["findings"]:
        found.setdefault(finding["id"], []).append((finding["severity"], finding["seen"]))
    return found


@pytest.mark.provokes(
    "controller_ports",
    "reachability",
    "config_files",
    "stop_timeouts",
    "restarts",
    "enabled",
    "reached",
    "space",
    "overrides",
    "zookeeper_space",
)
def test_all_faults_of_hosts_are_found(fresh, tmp_path):
    b2, c3 = fresh.addresses["b2"], fresh.addresses["c3"]
    c1, c2 = (f"{fresh.addresses[host]}:9093" for host in ("c1", "c2"))
    wrong = (
        ("c1", "systemd-run --unit=squatter python3 -m http.server 9093", "systemctl stop squatter"),
        firewall("c2", 9093, "DROP"),
        firewall("b2", 9092, "DROP", c3),
        drop_in("b1", "ExecStart=", "ExecStart=/opt/kafka/bin/kafka-server-start.sh /etc/kafka/other.properties"),
        drop_in("b2", "TimeoutStopSec=10s", "Restart=on-failure"),
        ("b2", "systemctl disable kafka", "systemctl enable kafka"),
        ("b2", f"sed -i.test 's|^dataDir=.*|dataDir=/dev/shm|' {ZOO_CFG}", f"mv {ZOO_CFG}.test {ZOO_CFG}"),  # 64 MiB
        ("b3", f"cp -a {FILE} {FILE}.test; echo 'bad=\\u00zz' >> {FILE}", f"mv {FILE}.test {FILE}"),
    )
    extra = {
        "quorumshift_artifacts_dir": str(tmp_path),
        "quorumshift_state_dir": "/dev/shm/quorumshift",  # 64 MiB
        "quorumshift_controller_config": {"min.insync.replicas": 1, "password.encoder.secret": "another"},
    }
    with caused(fresh, *wrong):
        assert_refused(fresh, "Blocking findings: ", extra=extra)
    found = findings(tmp_path)
    shown = json.dumps(found, indent=1)
    assert found["controller_ports"][0][1].startswith(f"{c1} on c1 is in use by python3 (pid "), shown
    timeout = "timed out after 5 s waiting for a TCP connection"
    assert found["reachability"] == [
        ("blocks", f"b1, b2, b3, c1, c3 cannot connect to the controllers' port of c2 ({c2}): {timeout}"),
        ("blocks", f"c3 cannot connect to the inter-broker listener of b2 ({b2}:9092): {timeout}"),
        ("blocks", f"the probe host cannot query c2: {c2}: {timeout}"),
    ], shown
    assert [seen for _severity, seen in found["config_files"]] == [
        f"kafka.service of b1 will start with /etc/kafka/other.properties, quorumshift_broker_config_file is {FILE}"
    ], shown
    assert found["stop_timeouts"][0][1].startswith("systemd kills kafka.service of b2 10 s after"), shown
    assert found["restarts"] == [("warns", "kafka.service of b2 has Restart=on-failure")], shown
    assert ("warns", "kafka.service of b2 is not enabled: after a reboot it stays down") in found["enabled"], shown
    assert any(seen.startswith(f"b3: {FILE}: ") for _severity, seen in found["reached"]), shown
    assert len(found["space"]) == 6 and "c1: /dev/shm, for old properties files" in shown, shown
    ((severity, seen),) = found["zookeeper_space"]
    assert severity == "blocks" and seen.startswith("b2: /dev/shm, for ZooKeeper's data, has "), shown
    assert found["overrides"] == [
        ("warns", "min.insync.replicas of quorumshift_controller_config is 1, the brokers have 2"),
        ("blocks", "password.encoder.secret of quorumshift_controller_config differs from the brokers'"),
    ], shown
    assert "clocks" not in found, shown


@pytest.mark.provokes("tool_acls")
def test_missing_rights_of_the_tools_principal_are_found(fresh, tmp_path):
    connections = fresh.connections()
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion("norights", credential, b"norights-password")
    admin = topics.admin(connections.bootstrap, connections.client, 5)
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result()
    client = {
        **fresh.variables["quorumshift_client"],
        "sasl_username": "norights",
        "sasl_password": "norights-password",
    }
    extra = {"quorumshift_artifacts_dir": str(tmp_path), "quorumshift_client": client}
    assert_refused(fresh, "--allow-principal User:norights --operation DescribeConfigs --cluster", extra=extra)
    found = findings(tmp_path)
    lacking = [seen.partition(", which")[0] for _severity, seen in found.pop("tool_acls")]
    assert lacking[0] == "the tool's principal has no DescribeConfigs on the cluster", lacking
    assert lacking[1].startswith("the tool's principal has no Describe on "), lacking
    assert lacking[2].startswith("the tool's principal has no DescribeConfigs on "), lacking
    assert all(seen.endswith(f" of {count_topics(fresh)} topics") for seen in lacking[1:]), lacking
    assert set(found) <= {"enabled"}, "one cause gives one finding"


def count_topics(testbed):
    with testbed.zookeeper() as client:
        return len(client.get_children("/brokers/topics"))


def test_systemd_does_not_restart_a_stopped_service(fresh):
    """`systemctl stop` ends a unit that Restart=always restarts: one that cannot start, since c3 has no properties."""
    path = "/etc/systemd/system/kafka-controller.service.d/test.conf"
    make = f"mkdir -p {path.rpartition('/')[0]}; printf '[Service]\\nRestart=always\\nRestartSec=1\\n' > {path}"
    with caused(fresh, ("c3", f"{make}; systemctl daemon-reload", f"rm {path}; systemctl daemon-reload")):
        fresh.run("c3", "systemctl start kafka-controller; sleep 6; systemctl stop kafka-controller; sleep 2")
        shown = fresh.run("c3", "systemctl show kafka-controller -p ActiveState,NRestarts").splitlines()
        assert "ActiveState=active" not in shown and "ActiveState=activating" not in shown
        log = fresh.run(
            "c3", "journalctl -u kafka-controller --no-pager | grep -c 'Scheduled restart job'", check=False
        )
        assert int(log) >= 1
        fresh.run("c3", "systemctl reset-failed kafka-controller", check=False)


@pytest.mark.provokes("reachability")
def test_a_rejecting_firewall_is_found_before_any_broker_is_restarted(fresh):
    """A reset looks like a port without a listener, so it shows only once the controllers run."""
    source = fresh.addresses["b1"]
    with caused(fresh, firewall("c2", 9093, "REJECT --reject-with tcp-reset", source)):
        ran = assert_refused(
            fresh,
            "This run has restarted no broker.",
            f"b1 cannot connect to the controllers' port of c2 ({fresh.addresses['c2']}:9093): connection refused",
            untouched=False,
            changed=fresh.controllers,
        )
    assert "Restart brokers in migration mode" not in ran.text
