# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every outcome of a restart, on a simulated host: the final properties file, the running mode, the message.

The same on real hosts: tests/system/e2e/test_auto_revert.py, tests/system/e2e/test_lost_worker.py.
"""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import own_node
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import home_link, restart_record, restart_worker

PLAIN = "broker.id=2\nzookeeper.connect=z:2181\n"
HYBRID = PLAIN + "zookeeper.metadata.migration.enable=true\n"
KRAFT = "node.id=2\nprocess.roles=broker\n"
FINAL = "node.id=101\nprocess.roles=controller\n"
CONTROLLER = FINAL + "zookeeper.metadata.migration.enable=true\n"
TO_HYBRID = {"zookeeper.metadata.migration.enable": "true"}
TO_KRAFT = {**dict.fromkeys(properties.parse(HYBRID.encode())), **properties.parse(KRAFT.encode())}
MIGRATION = {"kraft_metadata_offset": -1, "malformed": None}
COPIED = {"kraft_metadata_offset": 71, "malformed": None}


class Host:
    """A service that starts in the mode of its file, unless `broken` holds that mode."""

    def __init__(self, directory, text):
        self.directory = directory
        self.file = directory / "server.properties"
        self.file.write_text(text)
        self.log_dir = directory / "data"
        (self.log_dir / "__cluster_metadata-0").mkdir(parents=True)
        os.utime(self.log_dir / "__cluster_metadata-0", (1, 1))
        (self.log_dir / "meta.properties").write_text("version=0\ncluster.id=cluster\nbroker.id=2\n")
        self.active, self.invocation, self.running = True, 1, self.mode
        self.broken, self.registers, self.log_state = set(), False, "MIGRATION"
        self.zookeeper = {"migration": MIGRATION, "controller": {"broker_id": 5, "ephemeral": True}, "brokers": []}
        self.zookeeper["brokers"] = ["1", "2", "5"]
        self.on_start = lambda: None

    @property
    def mode(self):
        return kraft_config.mode_at_next_start(properties.parse(self.file.read_bytes()))

    def state(self, _name):
        state = {"manager": "systemd", "sub_state": "", "result": "exit-code", "started_at": 1.0, "main_pid": 0}
        shown = "active" if self.active else "failed"
        return {**state, "active": self.active, "active_state": shown, "invocation": str(self.invocation)}

    def begin(self, action, _name):
        self.active = action == "start"
        self.zookeeper["brokers"] = [broker for broker in self.zookeeper["brokers"] if broker != "2"]
        if action == "stop":
            return
        self.invocation += 1
        with open(self.directory / "server.log", "a", encoding="utf-8") as log:
            log.write(f"[t] {'ERROR cannot' if self.mode in self.broken else 'INFO does'} start as {self.mode}\n")
        if self.mode == "zk_migration" and self.registers:
            os.utime(self.log_dir / "__cluster_metadata-0")
        self.active = self.mode not in self.broken
        self.zookeeper["brokers"] += ["2"] if self.active and self.mode != "kraft" else []
        self.on_start()

    def ends_unless(self, starts):
        """End a process that cannot start; its session ends too."""
        self.active = self.active and starts
        if not self.active:
            self.zookeeper["brokers"] = [broker for broker in self.zookeeper["brokers"] if broker != "2"]

    def registration(self, _values, _node_id, mode):
        registration = {
            "incarnation_id": self.invocation,
            "fenced": False,
            "zk_migration_ready": mode != "controller_final",
        }
        return {**registration, "is_migrating_zk_broker": mode == "zk_migration"} if self.active else {}

    def restart(self, kind, changes, **more):
        """Restart the node, wait for the outcome and return the record."""
        return self._ended(
            restart_worker.begin, {"kind": kind, "mode": restart_modes(kind), "changes": changes, **more}
        )

    def finish(self, **more):
        """Complete the restart of a lost worker and return the record."""
        return self._ended(restart_worker.finish, {"changes": {}, **more})

    def _ended(self, begin, more):
        spec = {
            "id": "r/x/b2",
            "run": "r",
            "role": "broker",
            "node_id": 2,
            "cluster_id": "cluster",
            "state_dir": str(self.directory / "state"),
            "service": "kafka",
            "config_file": str(self.file),
            "owner": None,
            "format": None,
            "log_file": str(self.directory / "server.log"),
            "stop_timeout_s": 1,
            "start_timeout_s": 1,
            "registered": [],
            "run_key": "k",
            **more,
        }
        directory = host_state.make_node_directory(spec)
        host_state.write_json(os.path.join(directory, host_state.RUN_LOCK), {"number": 1, "run": "r", "closed": False})
        begin(spec)
        return json.loads((self.directory / "state" / "cluster" / "broker-2" / "restart.json").read_text())

    def steps(self, record):
        return [step["name"] for step in record["steps"]]


def restart_modes(kind):
    return {"controller": "controller_migration"}.get(kind, kind)


def in_this_process(record, work, spec):
    record.step("begun")
    work(spec, record, record.directory)


@pytest.fixture
def host(tmp_path, monkeypatch):
    def made(text):
        node = Host(tmp_path, text + f"log.dirs={tmp_path}/data\n")
        monkeypatch.setattr(service, "read_state", node.state)
        monkeypatch.setattr(service, "begin", node.begin)
        monkeypatch.setattr(own_node, "read_registration", node.registration)
        monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: node.mode if node.active else None)
        monkeypatch.setattr(
            own_zookeeper, "collect", lambda _values, timeout=10: json.loads(json.dumps(node.zookeeper))
        )
        monkeypatch.setattr(metadata_summary, "summarise", lambda _dir: {"zk_migration_state": node.log_state})
        monkeypatch.setattr(restart_worker, "_detach", in_this_process)
        return node

    return made


def test_restart_succeeds(host):
    node = host(PLAIN)
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "done" and node.active and node.mode == "zk_migration"
    assert node.steps(record) == ["begun", "keep the old file", "stop", "write the file", "start", "register"]
    assert {"stop_s", "start_s", "register_s"} <= set(record["times"])


def test_journal_records_the_outcome_of_each_restart(host):
    node = host(PLAIN)
    node.restart("zk_migration", TO_HYBRID)
    node.broken = {"kraft"}
    node.restart("kraft", TO_KRAFT)
    journal = host_state.read_journal(str(node.directory / "state" / "cluster" / "broker-2"), 10)
    events = journal["events"]
    assert [(event["name"], event["run"], event["kind"], event["outcome"]) for event in events] == [
        ("node_restart", "r", "zk_migration", "done"),
        ("node_restart", "r", "kraft", "reverted"),
    ]
    assert journal["torn"] == 0 and "it is up in mode zk_migration again" in events[1]["message"]


def test_restart_succeeds_though_the_journal_cannot_be_written(host, monkeypatch):
    def full(*_given, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host_state, "note", full)
    assert host(PLAIN).restart("zk_migration", TO_HYBRID)["outcome"] == "done"


def test_failed_broker_is_reverted_to_plain_mode(host):
    node = host(PLAIN)
    before = node.file.read_text()
    node.broken = {"zk_migration"}
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "reverted" and node.active and node.file.read_text() == before
    assert record["message"].splitlines() == [
        "kafka did not come up in mode zk_migration: kafka ended while it started (systemd: exit-code). "
        "Its properties file was reverted and it is up in mode zk again. Fix the cause and run again. "
        "(QS-RESTART-012 QS-RESTART-013)",
        f"{node.directory}/server.log says:",
        "[t] ERROR cannot start as zk_migration",
    ]


def test_registered_broker_is_reverted_while_another_broker_is_not_registered(host):
    node = host(PLAIN)
    node.broken, node.registers = {"zk_migration"}, True
    assert node.restart("zk_migration", TO_HYBRID, registered=["1"])["outcome"] == "reverted"


def test_last_broker_is_not_reverted_if_it_may_have_registered(host):
    node = host(PLAIN)
    node.broken, node.registers = {"zk_migration"}, True
    record = node.restart("zk_migration", TO_HYBRID, registered=["1", "5"])
    assert record["outcome"] == "failed" and node.mode == "zk_migration" and not node.active
    assert "broker 2 and all other live brokers are registered in the quorum" in record["message"]
    assert "Fix the cause, then start kafka on this host or run again" in record["message"]


def test_last_broker_is_reverted_if_it_cannot_have_registered(host):
    node = host(PLAIN)
    node.broken = {"zk_migration"}
    assert node.restart("zk_migration", TO_HYBRID, registered=["1", "5"])["outcome"] == "reverted"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"migration": COPIED}, "/migration has kraft_metadata_offset 71"),
        ({"controller": {"broker_id": 101, "ephemeral": False}}, "/controller is owned by KRaft controller 101"),
    ],
)
def test_broker_is_not_reverted_once_the_initial_copy_has_begun(host, changed, why):
    node = host(PLAIN)
    node.broken = {"zk_migration"}
    node.on_start = lambda: node.zookeeper.update(changed)
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "failed" and node.mode == "zk_migration" and "stop again" not in node.steps(record)
    assert f"Its properties file was not reverted: {why}" in record["message"]


def test_broker_is_not_reverted_if_zookeeper_cannot_be_read(host, monkeypatch):
    node = host(PLAIN)
    node.broken = {"zk_migration"}

    def unread(_values, timeout=10):
        raise own_zookeeper.SecurityError("zookeeper.ssl.truststore.location: t.jks: No such file or directory")

    monkeypatch.setattr(own_zookeeper, "collect", unread)
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "failed" and node.mode == "zk_migration"
    assert "could not be read from this host: zookeeper.ssl.truststore.location" in record["message"]


def test_revert_is_undone_if_the_initial_copy_begins_meanwhile(host):
    node = host(PLAIN)
    node.broken = {"zk_migration"}

    def trigger():
        if node.mode == "zk":
            node.zookeeper["migration"] = COPIED

    node.on_start = trigger
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "failed" and node.mode == "zk_migration" and not node.active
    assert "while it was reverted: /migration has kraft_metadata_offset 71" in record["message"]


def test_failed_revert_reports_both_errors(host):
    node = host(PLAIN)
    node.broken = {"zk_migration", "zk"}
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "failed" and node.mode == "zk" and not node.active
    assert "Reverting to mode zk failed too: kafka ended while it started" in record["message"]
    assert "Its file starts it in mode zk." in record["message"]
    assert (
        "ERROR cannot start as zk_migration" in record["message"]
        and "ERROR cannot start as zk\n" in record["message"] + "\n"
    )


def test_broker_is_reverted_if_the_new_file_cannot_be_written(host, monkeypatch):
    node = host(PLAIN)
    replaced = restart_worker.restart_files.replace

    def full(path, data, owner, mode=0o640):
        if path == str(node.file) and b"migration.enable=true" in data:
            raise OSError(28, "No space left on device", path)
        replaced(path, data, owner, mode)

    monkeypatch.setattr(restart_worker.restart_files, "replace", full)
    record = node.restart("zk_migration", TO_HYBRID)
    assert record["outcome"] == "reverted" and node.active and node.mode == "zk"
    assert "No space left on device" in record["message"]


def test_failed_broker_is_reverted_to_migration_mode(host):
    node = host(HYBRID)
    before = node.file.read_text()
    node.broken = {"kraft"}
    record = node.restart("kraft", TO_KRAFT)
    assert record["outcome"] == "reverted" and node.active and node.file.read_text() == before
    assert "it is up in mode zk_migration again" in record["message"]


def test_broker_is_not_reverted_to_migration_mode_after_finalization(host):
    node = host(HYBRID)
    node.broken, node.log_state = {"kraft"}, "POST_MIGRATION"
    record = node.restart("kraft", TO_KRAFT)
    assert record["outcome"] == "failed" and node.mode == "kraft"
    assert "the migration state in this host's metadata log is POST_MIGRATION, not MIGRATION" in record["message"]


def test_controller_is_not_reverted(host):
    node = host(CONTROLLER)
    node.broken = {"controller_final"}
    record = node.restart("controller_final", {"zookeeper.metadata.migration.enable": None})
    assert record["outcome"] == "failed" and node.mode == "controller_final"
    assert "was not reverted: finalization cannot be undone" in record["message"]


# A token that only permits a start -----------------------------------------------------------------------------------


def test_a_node_that_runs_is_not_stopped_with_a_token_that_only_permits_its_start(host):
    node = host(PLAIN)
    before = node.file.read_text()
    record = node.restart("zk_migration", TO_HYBRID, only_start=True)
    assert record["outcome"] == "failed" and node.active and node.invocation == 1 and node.file.read_text() == before
    assert "kafka runs, and this restart may only start it" in record["message"] and "stop" not in node.steps(record)


def down(node):
    node.active = False
    node.zookeeper["brokers"].remove("2")


def test_a_node_that_is_down_is_started_with_such_a_token(host):
    node = host(PLAIN)
    down(node)
    record = node.restart("zk_migration", TO_HYBRID, only_start=True)
    assert record["outcome"] == "done" and node.mode == "zk_migration" and "stop" not in node.steps(record)


def test_a_node_that_ends_while_it_is_started_with_such_a_token_reverts(host):
    node = host(PLAIN)
    down(node)
    node.broken = {"zk_migration"}
    record = node.restart("zk_migration", TO_HYBRID, only_start=True)
    assert record["outcome"] == "reverted" and node.mode == "zk" and "stop again" not in node.steps(record)


@pytest.mark.parametrize("text, kind, changes", [(PLAIN, "zk_migration", TO_HYBRID), (HYBRID, "kraft", TO_KRAFT)])
def test_a_node_that_runs_but_does_not_answer_after_such_a_start_keeps_running(host, monkeypatch, text, kind, changes):
    node = host(text)
    down(node)
    monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: None)
    record = node.restart(kind, changes, only_start=True)
    assert record["outcome"] == "failed" and node.active and node.mode == kind
    assert "was not reverted: kafka runs, and this restart may only start it" in record["message"]


@pytest.mark.parametrize("text", [HYBRID, KRAFT])
def test_the_repair_of_an_interrupted_restart_stops_no_node_that_runs_and_does_not_answer(host, monkeypatch, text):
    node = host(text)
    interrupt(node, "begun", "keep the old file", "stop", "write the file", "start", "register")
    monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: None)
    record = node.finish()
    assert (
        record["outcome"] == "failed"
        and node.active
        and node.invocation == 1
        and node.file.read_text().startswith(text)
    )
    assert "may only start it" in record["message"]


def test_finish_starts_a_node_that_went_down_after_its_restart(host):
    node = host(PLAIN)
    assert node.restart("zk_migration", TO_HYBRID)["outcome"] == "done"
    down(node)
    record = node.finish()
    assert record["outcome"] == "done" and record["kind"] == "repair" and node.active


# Completing an interrupted restart ------------------------------------------------------------------------------------


def interrupt(node, *steps):
    where = {"state_dir": str(node.directory / "state"), "cluster_id": "cluster", "role": "broker", "node_id": 2}
    directory = host_state.make_node_directory(where)
    spec = {"id": "old/zk_migration/b2", "kind": "zk_migration", "mode": "zk_migration", "run": "old"}
    record = restart_record.Record(directory, {**spec, "service": "kafka", "config_file": str(node.file)}, "", "")
    for step in steps:
        record.step(step)
    node.active = steps[-1] in ("begun", "keep the old file", "register")
    if not node.active:
        node.zookeeper["brokers"].remove("2")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (PLAIN, ["begun"]),
        (PLAIN, ["begun", "keep the old file", "stop"]),
        (PLAIN, ["begun", "keep the old file", "stop", "write the file"]),
        (HYBRID, ["begun", "keep the old file", "stop", "write the file"]),
        (HYBRID, ["begun", "keep the old file", "stop", "write the file", "start", "register"]),
        (KRAFT, ["begun", "keep the old file", "stop", "write the file", "start"]),
    ],
)
def test_interrupted_node_runs_in_the_mode_of_its_file(host, text, steps):
    node = host(text)
    interrupt(node, *steps)
    ran, before = node.active, node.file.read_text()
    record = node.finish()
    assert record["outcome"] == "done" and record["kind"] == "repair" and record["id"] == "r/x/b2"
    assert node.active and node.file.read_text() == before
    assert record["changed"] == (not ran) and ("start" in node.steps(record)) == (not ran)


def test_finish_returns_the_record_of_a_restart_that_has_succeeded(host):
    node = host(PLAIN)
    assert node.restart("zk_migration", TO_HYBRID)["outcome"] == "done"
    record = node.finish()
    assert record["outcome"] == "done" and record["kind"] == "zk_migration" and node.invocation == 2


def test_finish_applies_changes_to_a_broker_that_is_down(host):
    node = host(HYBRID + "num.io.threads=none\n")
    interrupt(node, "begun", "stop", "start")
    record = node.finish(changes={"num.io.threads": "8"})
    assert record["outcome"] == "done" and "num.io.threads=8" in node.file.read_text()


def test_finish_waits_until_the_old_session_expires(host, monkeypatch):
    node = host(PLAIN)
    interrupt(node, "begun", "stop")
    node.zookeeper["brokers"].append("2")
    asked = []

    def gather(_values, timeout=10):
        asked.append(node.active)
        if len(asked) == 3:
            node.zookeeper["brokers"].remove("2")
        return json.loads(json.dumps(node.zookeeper))

    monkeypatch.setattr(own_zookeeper, "collect", gather)
    assert node.finish()["outcome"] == "done" and asked[:3] == [False] * 3


def test_finish_reverts_a_broker_that_does_not_come_up(host):
    node = host(PLAIN)
    before = node.file.read_text()
    node.broken = {"zk_migration"}
    node.zookeeper["controller"] = None
    assert node.restart("zk_migration", TO_HYBRID)["outcome"] == "failed"
    node.zookeeper["controller"] = {"broker_id": 5, "ephemeral": True}
    record = node.finish()
    assert record["outcome"] == "reverted" and node.active and node.file.read_text() == before


# Plain restarts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [PLAIN, KRAFT])
def test_a_plain_restart_keeps_mode_and_file(host, text):
    node = host(text)
    before = node.file.read_text()
    spec = {"kind": "restart_broker", "config_file": str(node.file), "service": "kafka"}
    record = node.restart("restart_broker", None, mode=restart_worker.kept_mode(spec))
    assert record["outcome"] == "done" and node.steps(record) == ["begun", "stop", "start", "register"]
    assert node.file.read_text() == before and node.invocation == 2


def test_a_broker_that_does_not_come_up_after_a_plain_restart_stays_in_its_mode(host):
    node = host(KRAFT)
    node.broken.add("kraft")
    before = node.file.read_text()
    record = node.restart("restart_broker", None, mode="kraft")
    assert record["outcome"] == "failed" and "a plain restart changes no file" in record["message"]
    assert node.file.read_text() == before


@pytest.mark.parametrize(("text", "kind"), [(HYBRID, "restart_broker"), (CONTROLLER, "restart_controller")])
def test_a_plain_restart_is_refused_in_a_mode_of_a_migration(host, text, kind):
    spec = {"kind": kind, "config_file": str(host(text).file), "service": "kafka"}
    with pytest.raises(restart_record.RestartError, match="a plain restart needs"):
        restart_worker.kept_mode(spec)


def test_a_plain_restart_is_refused_where_the_file_would_change_the_mode(host, monkeypatch):
    node = host(KRAFT)
    monkeypatch.setattr(own_node, "read_running_mode", lambda *_given: "zk")
    spec = {"kind": "restart_broker", "config_file": str(node.file), "service": "kafka"}
    with pytest.raises(restart_record.RestartError, match="would change its mode"):
        restart_worker.kept_mode(spec)


def test_a_node_that_started_after_the_change_is_not_restarted(host):
    node = host(PLAIN)  # its process started at 1.0
    spec = {"kind": "restart_broker", "mode": "zk", "config_file": str(node.file), "service": "kafka", "run_key": "k"}
    assert restart_worker.plan_restart({**spec, "since": 0.5})["needed"] is False
    assert restart_worker.plan_restart({**spec, "since": 1.5})["needed"] is True
    assert restart_worker.plan_restart({**spec, "since": 0})["needed"] is True


def test_check_mode_shows_what_a_repair_changes_without_a_kind(host):
    """The module's action `finish` has none: the kind follows from the file, once the host is locked."""
    node = host(PLAIN)
    spec = {"kind": None, "mode": None, "config_file": str(node.file), "service": "kafka", "run_key": "k"}
    plan = restart_worker.plan_restart({**spec, "changes": {"num.io.threads": "4"}})
    assert "num.io.threads=4" in plan["after"] and "num.io.threads" not in plan["before"]


# Upgrades ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def upgraded(host, monkeypatch):
    """A function that makes a host with a link to 3.7.2, whose service runs the release to which the link leads."""

    def make(text=PLAIN):
        node = host(text)
        for version in ("3.7.2", "3.9.2"):
            for path in (f"libs/kafka_2.13-{version}.jar", "bin/kafka-server-start.sh"):
                made = node.directory / f"kafka-{version}" / path
                made.parent.mkdir(parents=True)
                made.touch()
        (node.directory / "kafka").symlink_to("kafka-3.7.2")
        node.release = {
            "home": str(node.directory / "kafka"),
            "to": str(node.directory / "kafka-3.9.2"),
            "version": "3.9.2",
        }
        node.target = lambda: os.path.basename(os.readlink(node.directory / "kafka"))
        monkeypatch.setattr(home_link, "read_running_version", lambda _name: node.target().partition("-")[2])
        return node

    return make


PINNED = {"inter.broker.protocol.version": "3.7"}


def test_an_upgrade_writes_the_file_before_it_switches_the_release(upgraded):
    node = upgraded()
    record = node.restart("upgrade_broker", PINNED, mode="zk", release=node.release)
    assert record["outcome"] == "done" and node.target() == "kafka-3.9.2"
    assert node.steps(record)[2:] == ["stop", "write the file", "switch the release", "start", "register"]
    assert properties.parse(node.file.read_bytes())["inter.broker.protocol.version"] == "3.7"
    spec = {"kind": "upgrade_broker", "mode": "zk", "config_file": str(node.file), "service": "kafka", "run_key": "k"}
    assert restart_worker.plan_restart({**spec, "release": node.release})["needed"] is False
    assert restart_worker.plan_restart({**spec, "release": {**node.release, "version": "3.7.2"}})["needed"] is True


def test_a_node_that_does_not_come_up_with_the_new_release_gets_the_earlier_one_back(upgraded):
    node = upgraded()
    begin = node.begin

    def starts_with_the_old_release_alone(action, name):
        begin(action, name)
        node.ends_unless(node.target() == "kafka-3.7.2")

    service.begin = starts_with_the_old_release_alone
    before = node.file.read_text()
    record = node.restart("upgrade_broker", PINNED, mode="zk", release=node.release)
    assert record["outcome"] == "reverted" and node.target() == "kafka-3.7.2" and node.active
    assert node.file.read_text() == before
    assert "kafka did not come up with Kafka 3.9.2" in record["message"]
    assert "It is up again with kafka-3.7.2. Fix the cause and run again" in record["message"]


def test_a_service_that_does_not_use_the_link_gets_it_back(upgraded, monkeypatch):
    node = upgraded()
    monkeypatch.setattr(home_link, "read_running_version", lambda _name: "3.7.2")
    record = node.restart("upgrade_broker", None, mode="zk", release=node.release)
    assert record["outcome"] == "reverted" and node.target() == "kafka-3.7.2"
    assert "its unit does not start Kafka from" in record["message"]


def test_a_node_that_comes_up_with_neither_release_stays_down_and_says_so(upgraded):
    node = upgraded()
    node.broken.add("zk")
    record = node.restart("upgrade_broker", None, mode="zk", release=node.release)
    assert record["outcome"] == "failed" and node.target() == "kafka-3.7.2"
    assert "Restoring what it had before failed too" in record["message"]


def test_a_broker_that_does_not_come_up_with_the_new_protocol_gets_its_file_back(host):
    node = host(PLAIN)
    begin = node.begin

    def starts_with_the_old_file_alone(action, name):
        begin(action, name)
        node.ends_unless("inter.broker" not in node.file.read_text())

    service.begin = starts_with_the_old_file_alone
    before = node.file.read_text()
    record = node.restart("protocol_broker", {"inter.broker.protocol.version": "3.9"}, mode="zk")
    assert record["outcome"] == "reverted" and node.file.read_text() == before and node.active


def test_a_broker_that_started_before_its_file_was_written_needs_the_restart_of_the_second_step(host):
    node = host(PLAIN)  # its process started at 1.0
    spec = {"kind": "protocol_broker", "mode": "zk", "config_file": str(node.file), "service": "kafka", "run_key": "k"}
    os.utime(node.file, (0.5, 0.5))
    assert restart_worker.plan_restart(spec)["needed"] is False
    os.utime(node.file, (2, 2))
    assert restart_worker.plan_restart(spec)["needed"] is True
