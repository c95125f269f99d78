# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A turn's every way to end, on a host that is told what to do: which file stands in the end, what runs, what is said.

The same on real hosts: tests/e2e/test_put_back.py, tests/e2e/test_lost_worker.py.
"""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, restart_record, restart_worker
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import metadata_image, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import own_node, own_zookeeper, service

PLAIN = "broker.id=2\nzookeeper.connect=z:2181\n"
HYBRID = PLAIN + "zookeeper.metadata.migration.enable=true\n"
KRAFT = "node.id=2\nprocess.roles=broker\n"
FINAL = "node.id=101\nprocess.roles=controller\n"
CONTROLLER = FINAL + "zookeeper.metadata.migration.enable=true\n"
TO_HYBRID = {"zookeeper.metadata.migration.enable": "true"}
TO_KRAFT = {**dict.fromkeys(properties.parse(HYBRID)), **properties.parse(KRAFT)}
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
        self.active, self.invocation, self.running = True, 1, self.mode
        self.broken, self.registers, self.log_state = set(), False, "MIGRATION"
        self.zookeeper = {"migration": MIGRATION, "controller": {"broker_id": 5, "ephemeral": True}, "brokers": []}
        self.zookeeper["brokers"] = ["1", "2", "5"]
        self.on_start = lambda: None

    @property
    def mode(self):
        return kraft_config.mode_at_next_start(properties.parse(self.file.read_text()))

    def state(self, _name):
        reported = {"manager": "systemd", "sub_state": "", "result": "exit-code", "started_at": 1.0}
        shown = "active" if self.active else "failed"
        return {**reported, "active": self.active, "active_state": shown, "invocation": str(self.invocation)}

    def begin(self, action, _name):
        self.active = action == "start"
        self.zookeeper["brokers"] = [one for one in self.zookeeper["brokers"] if one != "2"]
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

    def registration(self, _values, _node_id, mode):
        reported = {
            "incarnation_id": self.invocation,
            "fenced": False,
            "zk_migration_ready": mode != "controller_final",
        }
        return {**reported, "is_migrating_zk_broker": mode == "zk_migration"} if self.active else {}

    def take(self, kind, changes, **more):
        """Take a turn to its end and return its record."""
        return self._ended(
            restart_worker.begin, {"kind": kind, "mode": restart_modes(kind), "changes": changes, **more}
        )

    def finish(self, **more):
        """End what a lost worker left and return the record."""
        return self._ended(restart_worker.finish, {"changes": {}, **more})

    def _ended(self, begin, more):
        spec = {
            "id": "r/x/b2",
            "run": "r",
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
        directory = host_state.directory(spec["state_dir"], spec["cluster_id"])
        host_state.write_json(os.path.join(directory, host_state.RUN_LOCK), {"number": 1, "run": "r", "closed": False})
        begin(spec)
        return json.loads((self.directory / "state" / "cluster" / "restart.json").read_text())

    def steps(self, reported):
        return [one["name"] for one in reported["steps"]]


def restart_modes(kind):
    return {"controller": "controller_migration"}.get(kind, kind)


def in_this_process(record, work):
    record.step("begun")
    work()


@pytest.fixture
def host(tmp_path, monkeypatch):
    def made(text):
        one = Host(tmp_path, text + f"log.dirs={tmp_path}/data\n")
        monkeypatch.setattr(service, "state", one.state)
        monkeypatch.setattr(service, "begin", one.begin)
        monkeypatch.setattr(own_node, "registration", one.registration)
        monkeypatch.setattr(own_node, "running_mode", lambda *_given: one.mode if one.active else None)
        monkeypatch.setattr(own_zookeeper, "gather", lambda _values, timeout=10: json.loads(json.dumps(one.zookeeper)))
        monkeypatch.setattr(metadata_image, "summarise", lambda _dir: {"zk_migration_state": one.log_state})
        monkeypatch.setattr(restart_worker, "_detached", in_this_process)
        return one

    return made


def test_a_turn_that_goes_well(host):
    one = host(PLAIN)
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "done" and one.active and one.mode == "zk_migration"
    assert one.steps(reported) == ["begun", "keep the old file", "stop", "write the file", "start", "register"]
    assert {"stop_s", "start_s", "register_s"} <= set(reported["times"])


def test_the_hosts_journal_keeps_how_each_turn_ended(host):
    one = host(PLAIN)
    one.take("zk_migration", TO_HYBRID)
    one.broken = {"kraft"}
    one.take("kraft", TO_KRAFT)
    reported = host_state.read_journal(str(one.directory / "state" / "cluster"), 10)
    events = reported["events"]
    assert [(event["name"], event["run"], event["kind"], event["outcome"]) for event in events] == [
        ("node_restart", "r", "zk_migration", "done"),
        ("node_restart", "r", "kraft", "reverted"),
    ]
    assert reported["torn"] == 0 and "it is up in mode zk_migration again" in events[1]["message"]


def test_a_journal_that_cannot_be_written_undoes_no_turn(host, monkeypatch):
    def full(*_given, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host_state, "note", full)
    assert host(PLAIN).take("zk_migration", TO_HYBRID)["outcome"] == "done"


def test_back_to_plain_mode(host):
    one = host(PLAIN)
    before = one.file.read_text()
    one.broken = {"zk_migration"}
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "reverted" and one.active and one.file.read_text() == before
    assert reported["message"].splitlines() == [
        "kafka did not come up in mode zk_migration: kafka ended while it started (systemd: exit-code). "
        "Its properties file was put back and it is up in mode zk again. Mend the cause and run again.",
        f"{one.directory}/server.log says:",
        "[t] ERROR cannot start as zk_migration",
    ]


def test_a_registration_is_no_hindrance_while_another_broker_is_awaited(host):
    one = host(PLAIN)
    one.broken, one.registers = {"zk_migration"}, True
    assert one.take("zk_migration", TO_HYBRID, registered=["1"])["outcome"] == "reverted"


def test_the_last_broker_that_may_have_registered_stays(host):
    one = host(PLAIN)
    one.broken, one.registers = {"zk_migration"}, True
    reported = one.take("zk_migration", TO_HYBRID, registered=["1", "5"])
    assert reported["outcome"] == "failed" and one.mode == "zk_migration" and not one.active
    assert "broker 2 and all other live brokers are registered in the quorum" in reported["message"]
    assert "Mend the cause, then start kafka on this host or run again" in reported["message"]


def test_the_last_broker_that_never_came_so_far_goes_back(host):
    one = host(PLAIN)
    one.broken = {"zk_migration"}
    assert one.take("zk_migration", TO_HYBRID, registered=["1", "5"])["outcome"] == "reverted"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"migration": COPIED}, "/migration has kraft_metadata_offset 71"),
        ({"controller": {"broker_id": 101, "ephemeral": False}}, "/controller is owned by KRaft controller 101"),
    ],
)
def test_nothing_goes_back_once_the_copy_has_begun(host, changed, why):
    one = host(PLAIN)
    one.broken = {"zk_migration"}
    one.on_start = lambda: one.zookeeper.update(changed)
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "failed" and one.mode == "zk_migration" and "stop again" not in one.steps(reported)
    assert f"Its properties file was not put back: {why}" in reported["message"]


def test_nothing_goes_back_where_zookeeper_cannot_be_read(host, monkeypatch):
    one = host(PLAIN)
    one.broken = {"zk_migration"}

    def unread(_values, timeout=10):
        raise own_zookeeper.SecurityError("zookeeper.ssl.truststore.location: t.jks is no PEM file")

    monkeypatch.setattr(own_zookeeper, "gather", unread)
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "failed" and one.mode == "zk_migration"
    assert "could not be read from this host: zookeeper.ssl.truststore.location" in reported["message"]


def test_a_copy_that_begins_while_the_broker_goes_back(host):
    one = host(PLAIN)
    one.broken = {"zk_migration"}

    def trigger():
        if one.mode == "zk":
            one.zookeeper["migration"] = COPIED

    one.on_start = trigger
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "failed" and one.mode == "zk_migration" and not one.active
    assert "the initial copy has begun, while it went back" in reported["message"]


def test_a_broker_that_comes_up_in_neither_mode(host):
    one = host(PLAIN)
    one.broken = {"zk_migration", "zk"}
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "failed" and one.mode == "zk" and not one.active
    assert "Going back to mode zk did not work either: kafka ended while it started" in reported["message"]
    assert "Its file starts it in mode zk." in reported["message"]
    assert (
        "ERROR cannot start as zk_migration" in reported["message"]
        and "ERROR cannot start as zk\n" in reported["message"] + "\n"
    )


def test_a_file_that_cannot_be_written(host, monkeypatch):
    one = host(PLAIN)
    replaced = restart_worker.restart_files.replace

    def full(path, text, owner, mode=0o640):
        if path == str(one.file) and "migration.enable=true" in text:
            raise OSError(28, "No space left on device", path)
        replaced(path, text, owner, mode)

    monkeypatch.setattr(restart_worker.restart_files, "replace", full)
    reported = one.take("zk_migration", TO_HYBRID)
    assert reported["outcome"] == "reverted" and one.active and one.mode == "zk"
    assert "No space left on device" in reported["message"]


def test_back_to_migration_mode(host):
    one = host(HYBRID)
    before = one.file.read_text()
    one.broken = {"kraft"}
    reported = one.take("kraft", TO_KRAFT)
    assert reported["outcome"] == "reverted" and one.active and one.file.read_text() == before
    assert "it is up in mode zk_migration again" in reported["message"]


def test_not_to_migration_mode_under_a_final_quorum(host):
    one = host(HYBRID)
    one.broken, one.log_state = {"kraft"}, "POST_MIGRATION"
    reported = one.take("kraft", TO_KRAFT)
    assert reported["outcome"] == "failed" and one.mode == "kraft"
    assert "the migration state in this host's metadata log is POST_MIGRATION, not MIGRATION" in reported["message"]


def test_a_controller_is_not_put_back(host):
    one = host(CONTROLLER)
    one.broken = {"controller_final"}
    reported = one.take("controller_final", {"zookeeper.metadata.migration.enable": None})
    assert reported["outcome"] == "failed" and one.mode == "controller_final"
    assert "was not put back: finalization cannot be undone" in reported["message"]


# Finishing what was left ----------------------------------------------------------------------------------------------


def left(one, *steps):
    directory = host_state.directory(str(one.directory / "state"), "cluster")
    spec = {"id": "old/zk_migration/b2", "kind": "zk_migration", "mode": "zk_migration", "run": "old"}
    record = restart_record.Record(directory, {**spec, "service": "kafka", "config_file": str(one.file)}, "", "")
    for step in steps:
        record.step(step)
    one.active = steps[-1] in ("begun", "keep the old file", "register")
    if not one.active:
        one.zookeeper["brokers"].remove("2")


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
def test_a_node_runs_in_the_mode_of_its_file(host, text, steps):
    one = host(text)
    left(one, *steps)
    ran, before = one.active, one.file.read_text()
    reported = one.finish()
    assert reported["outcome"] == "done" and reported["kind"] == "repair" and reported["id"] == "r/x/b2"
    assert one.active and one.file.read_text() == before
    assert reported["changed"] == (not ran) and ("start" in one.steps(reported)) == (not ran)


def test_a_turn_that_ended_meanwhile_is_told_as_it_ended(host):
    one = host(PLAIN)
    assert one.take("zk_migration", TO_HYBRID)["outcome"] == "done"
    reported = one.finish()
    assert reported["outcome"] == "done" and reported["kind"] == "zk_migration" and one.invocation == 2


def test_a_broker_that_is_down_gets_the_settings_of_now(host):
    one = host(HYBRID + "num.io.threads=none\n")
    left(one, "begun", "stop", "start")
    reported = one.finish(changes={"num.io.threads": "8"})
    assert reported["outcome"] == "done" and "num.io.threads=8" in one.file.read_text()


def test_a_session_that_a_lost_broker_left_is_let_expire(host, monkeypatch):
    one = host(PLAIN)
    left(one, "begun", "stop")
    one.zookeeper["brokers"].append("2")
    asked = []

    def gather(_values, timeout=10):
        asked.append(one.active)
        if len(asked) == 3:
            one.zookeeper["brokers"].remove("2")
        return json.loads(json.dumps(one.zookeeper))

    monkeypatch.setattr(own_zookeeper, "gather", gather)
    assert one.finish()["outcome"] == "done" and asked[:3] == [False] * 3


def test_what_cannot_be_finished_goes_back_as_in_the_turn_itself(host):
    one = host(PLAIN)
    before = one.file.read_text()
    one.broken = {"zk_migration"}
    one.zookeeper["controller"] = None
    assert one.take("zk_migration", TO_HYBRID)["outcome"] == "failed"
    one.zookeeper["controller"] = {"broker_id": 5, "ephemeral": True}
    reported = one.finish()
    assert reported["outcome"] == "reverted" and one.active and one.file.read_text() == before
