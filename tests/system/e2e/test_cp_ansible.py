# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in the layout of Confluent's packages, with an inventory of cp-ansible and the second file of the docs.

From controller hosts that have packages alone to a clean preflight, forward, back, to the end (variant `confluent`).
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.system.e2e.rollbacks import changed, files, no_trace, phase
from tests.system.testbed.layout import CONTROLLERS, LAYOUT, ROOT

UNIT = f"/etc/systemd/system/{LAYOUT.controller}.service"
UNHURRIED = {"quorumshift_stable_s": 5, "quorumshift_gate_timeout_s": 300, "quorumshift_roll_timeout_s": 600}
RELOAD = "systemctl daemon-reload"
LOOK = (
    f"stat -c '%n %U:%G %a' /etc/controller /var/log/controller /var/lib/controller /var/lib/controller/data {UNIT}; "
    f"systemctl is-enabled {LAYOUT.controller}; systemctl is-active {LAYOUT.controller}; true"
)


@pytest.fixture(scope="module")
def inventories(fresh, tmp_path_factory):
    """The two files: cp-ansible's groups and variables, and the file of the docs with its lines changed."""
    directory = tmp_path_factory.mktemp("inventories")
    given = fresh.inventory.vars
    theirs = {
        "all": {"vars": {"ansible_become": True, "confluent_server_enabled": False, "sasl_protocol": "scram"}},
        "zookeeper": {"hosts": {host: {} for host in fresh.groups["zookeeper"]}},
        "kafka_broker": {
            "hosts": {host: {"ansible_host": fresh.addresses[host]} for host in fresh.brokers},
            "vars": {
                "kafka_broker_custom_properties": {
                    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                    "zookeeper.session.timeout.ms": 18000,
                }
            },
        },
    }
    theirs["all"]["vars"].update({name: value for name, value in given.items() if name.startswith("ansible_")})
    ours = yaml.safe_load((ROOT / "docs" / "cp-ansible-inventory.yml").read_text(encoding="utf-8"))
    # the control node does not resolve the hosts' names, and the testbed's clients log in
    for name in ("bootstrap_servers", "zookeeper_connect", "client", "artifacts_dir", "spark_submit"):
        ours["all"]["vars"][f"quorumshift_{name}"] = given[f"quorumshift_{name}"]
    controllers = ours["all"]["children"]["quorumshift_controllers"]
    controllers["vars"]["quorumshift_controller_host"] = "{{ ansible_host }}"
    for host in CONTROLLERS:
        assert controllers["hosts"][host.name] == {"quorumshift_node_id": host.node_id}
        controllers["hosts"][host.name]["ansible_host"] = fresh.addresses[host.name]
    for name, tree in (("hosts.yml", theirs), ("quorumshift.yml", ours)):
        (directory / name).touch(mode=0o600)
        (directory / name).write_text(yaml.safe_dump(tree, sort_keys=False))
    return {"inventory": directory / "hosts.yml", "second": ("-i", str(directory / "quorumshift.yml"))}


@pytest.fixture
def play(fresh, inventories):
    """A function that runs a playbook with both files."""

    def run(name, *options, extra=None, **more):
        given = {**UNHURRIED, **(extra or {})}
        return fresh.play(
            name, *inventories["second"], *options, inventory=inventories["inventory"], extra=given, **more
        )

    return run


def on_controllers(testbed, command):
    return dict(zip(testbed.controllers, testbed.on_each(testbed.controllers, command)))


def test_cp_ansibles_inventory_alone_has_no_controllers(fresh, inventories):
    ran = fresh.play("migrate", inventory=inventories["inventory"])
    assert ran.code != 0 and "QS-RUN-009" in ran.text, ran.text


@pytest.mark.parametrize(
    ("cause", "undo", "says"),
    [
        (
            "install -d -o daemon -m 700 /var/lib/controller /var/lib/controller/data",
            "rm -r /var/lib/controller",
            "may not write to the directory /var/lib/controller/data, which belongs to daemon",
        ),
        (
            f"printf '[Service]\\nExecStart=/bin/true /etc/kafka/other.properties\\n' > {UNIT}; {RELOAD}",
            f"rm {UNIT}; {RELOAD}",
            "starts /etc/kafka/other.properties as root",
        ),
        (
            "mv /usr/bin/kafka-server-start /root",
            "mv /root/kafka-server-start /usr/bin",
            "does not exist. Install Kafka",
        ),
    ],
)
def test_what_is_on_a_host_already_is_not_replaced(fresh, play, cause, undo, says):
    fresh.run("c2", cause)
    before = fresh.run("c2", LOOK)
    try:
        ran = play("prepare_controllers", "--check")
        assert ran.code != 0 and says in ran.text and "QS-HOST-004" in ran.text, ran.text
        assert fresh.run("c2", LOOK) == before
    finally:
        fresh.run("c2", undo)


def test_a_missing_keystore_is_named(play):
    missing = {"ssl.keystore.location": "/var/ssl/private/kafka_controller.keystore.jks"}
    ran = play("prepare_controllers", "--check", extra={"quorumshift_controller_config": missing})
    assert ran.code != 0 and "kafka_controller.keystore.jks, which a setting names" in ran.text, ran.text


def test_hosts_are_prepared_once_and_nothing_starts(fresh, play):
    before = on_controllers(fresh, LOOK)
    shown = play("prepare_controllers", "--check", "--diff")
    assert shown.code == 0 and "+ExecStart=/usr/bin/kafka-server-start /etc/controller/server.properties" in shown.text
    assert changed(shown, fresh) == fresh.controllers and on_controllers(fresh, LOOK) == before
    ran = play("prepare_controllers")
    assert ran.code == 0 and changed(ran, fresh) == fresh.controllers, ran.text
    user = f"{LAYOUT.user}:{LAYOUT.group}"
    names = ("/etc/controller", "/var/log/controller", "/var/lib/controller", "/var/lib/controller/data")
    lines = [*(f"{name} {user} 750" for name in names), f"{UNIT} root:root 644", "enabled", "inactive"]
    assert {text.strip() for text in on_controllers(fresh, LOOK).values()} == {"\n".join(lines)}
    for again in (play("prepare_controllers"), play("prepare_controllers", "--check")):
        assert again.code == 0 and changed(again, fresh) == [], again.text


def test_a_user_that_is_missing_is_created(fresh, play):
    """On one host, which has the user of the packages otherwise."""
    extra = {"quorumshift_kafka_user": "qs-new", "quorumshift_controller_service": "qs-new"}
    extra.update({"controller_hosts_group": "", "quorumshift_controller_log_dir": "/var/lib/qs-new/data"})
    extra.update({"quorumshift_controller_config_file": "/etc/qs-new/x.properties"})
    extra.update({"quorumshift_controller_log_file": "/var/log/qs-new/server.log"})
    try:
        ran = play("prepare_controllers", extra=extra)
        assert ran.code == 0 and "created group qs-new, user qs-new" in ran.text, ran.text
        found = fresh.run("c1", "getent passwd qs-new; id -gn qs-new; stat -c %U /var/lib/qs-new/data")
        assert re.match(r"qs-new:x:\d+:\d+::/var/lib/qs-new:/usr/sbin/nologin\nqs-new\nqs-new", found), found
        assert changed(play("prepare_controllers", extra=extra), fresh) == []
    finally:
        remove = "systemctl disable qs-new; rm -r /etc/systemd/system/qs-new.service /var/lib/qs-new /etc/qs-new "
        on_controllers(fresh, f"{remove} /var/log/qs-new; userdel qs-new; systemctl daemon-reload; true")


def test_the_preflight_is_clean(play):
    ran = play("preflight")
    assert ran.code == 0 and "Findings: blocking 0, warnings 0" in ran.text, ran.text


def test_forward_to_dual_write_and_back(fresh, play, inventories):
    plain = files(fresh)
    ran = play("migrate", timeout=1800)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    again = play("prepare_controllers")  # on controllers that run
    assert again.code == 0 and changed(again, fresh) == [], again.text
    ran = play("rollback", extra={"quorumshift_rollback_to": "zk"}, timeout=1800)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert {host: files(fresh)[host] for host in fresh.brokers} == {host: plain[host] for host in fresh.brokers}
    no_trace(fresh)


def test_to_the_end_and_what_cp_ansible_gets(fresh, play):
    stopped = play("migrate", timeout=1800)
    assert stopped.code == 0 and phase(stopped) == "dual_write", stopped.text
    token = re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)
    ran = play("migrate", extra={"quorumshift_finalize_token": token, "quorumshift_soak": "0s"}, timeout=1800)
    assert ran.code == 0 and phase(ran) == "finalized", ran.text
    (path,) = re.findall(r"as they are now: (\S+handover\.json)", ran.text)
    with open(path, encoding="utf-8") as stream:
        given = json.load(stream)["cp_ansible"]
    assert given["group"] == {"c1": {}, "c2": {}, "c3": {}}
    new = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert given["kafka_broker_custom_properties"] == {"authorizer.class.name": new}
    assert given["remove"]["kafka_broker_custom_properties"] == ["zookeeper.session.timeout.ms"]
    assert "    - the group zookeeper" in ran.text and "log.dirs" not in given["kafka_controller_custom_properties"]
    again = play("migrate")
    assert again.code == 0 and changed(again, fresh) == [], again.text


def test_a_broker_that_cp_ansible_has_given_broker_id_back_starts(fresh):
    """cp-ansible writes broker.id in KRaft mode too, and no node.id."""
    file = fresh.variable("broker_config_file", "b2")
    fresh.run("b2", f"sed -i 's/^node\\.id=/broker.id=/' {file} && systemctl restart {LAYOUT.broker}", timeout=300)
    fresh.wait_in_sync()
    assert fresh.run("b2", f"grep -E '^(broker|node).id' {file}").strip() == "broker.id=2"
