# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker that was killed recovers its partitions for longer than its start may take without progress: the start waits
for it. One that hangs meanwhile fails, with what it did last."""

from __future__ import annotations

import contextlib
import pathlib
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_record, restart_steps
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration import servers

pytestmark = pytest.mark.real

SLOW = pathlib.Path(__file__).with_name("SlowLoading.java")
PARTITIONS = 300
TIMEOUT_S = 25.0  # more than a slow machine's JVM takes before it loads the first partition, and after the last one
PAUSE_MS = 120  # so that loading alone takes 36 s
NEVER = -1


class Service:
    """The broker's service: systemd's commands, of a real process. Its start returns at once, as systemd's does."""

    def __init__(self, broker):
        self.broker, self.starts = broker, 0

    def begin(self, action, _name):
        assert action == "start"
        self.starts += 1
        self.broker.start(lambda: True)

    def state(self, _name):
        alive = self.starts > 0 and pathlib.Path("/proc", str(self.broker.pid), "exe").exists()
        shown = {"active": alive, "active_state": "active" if alive else "failed", "sub_state": "", "result": "signal"}
        return {"manager": "systemd", "invocation": str(self.starts), "started_at": None, **shown}


def fill(broker):
    """Create a topic with a record in each partition. The clients end with this, before the broker does."""
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    servers.wait_for(lambda: servers.knows_controller(admin, 1), 60, "the controller")
    servers.create_topics(admin, [NewTopic("orders", PARTITIONS, 1)])
    servers.wait_for(lambda: servers.in_sync(admin, "orders", 1), 120, "every partition")
    producer = Producer({"bootstrap.servers": str(broker.address), "acks": "all"})
    for partition in range(PARTITIONS):
        producer.produce("orders", b"record", partition=partition)
    assert producer.flush(120) == 0


@contextlib.contextmanager
def killed_broker(name):
    """Yield (broker, file of SlowLoading) of a broker with data in every partition, after SIGKILL."""
    with servers.workdir(name) as home, servers.zookeeper(home) as zookeeper:
        how = home / "slow.loading"
        how.write_text(f"0 {NEVER}")
        broker = servers.zk_broker(home, 1, f"{zookeeper.connect}/kafka", jvm=[f"-Dslow.loading={how}"])
        with broker as broker:
            fill(broker)
            broker.kill()
            broker.add_classes(servers.compile_java(SLOW, home))
            with (home / "log4j.properties").open("a") as log4j:
                log4j.write("log4j.appender.stdout.filter.1=SlowLoading\n")
            yield broker, how


def start(broker, monkeypatch):
    """Start the broker as the restart worker does; return its record."""
    manager = Service(broker)
    monkeypatch.setattr(service, "begin", manager.begin)
    monkeypatch.setattr(service, "read_state", manager.state)
    config = str(broker.home / "server.properties")
    spec = {"id": "r/zk/b1", "kind": "zk", "mode": "zk", "run": "r", "service": "kafka", "config_file": config}
    spec.update(node_id=1, log_file=str(broker.log), start_timeout_s=TIMEOUT_S)
    record = restart_record.Record(str(broker.home), spec, "", "")
    shown = []
    monkeypatch.setattr(record, "progress", shown.append)
    try:
        restart_steps.start(spec, record, properties.parse(pathlib.Path(config).read_bytes()), {})
    finally:
        record.values["shown"] = shown
    return record.values


def test_a_broker_that_recovers_for_long_comes_up(monkeypatch):
    with killed_broker("slow_start") as (broker, how):
        how.write_text(f"{PAUSE_MS} {NEVER}")
        record = start(broker, monkeypatch)
        assert record["times"]["start_s"] > TIMEOUT_S and "registered_at" in record["times"]
        counts = [re.fullmatch(r"recovering log directory \S+: (\d+) of (\d+) logs", text) for text in record["shown"]]
        loaded = [int(count.group(1)) for count in counts if count]
        assert loaded and loaded == sorted(loaded) and loaded[0] < PARTITIONS, record["shown"]


def test_a_broker_that_hangs_while_it_recovers_fails_with_what_it_did_last(monkeypatch):
    with killed_broker("hanging_start") as (broker, how):
        how.write_text(f"0 {PARTITIONS // 2}")
        with pytest.raises(restart_steps.NotUp) as failed:
            start(broker, monkeypatch)
        waited, _colon, last = str(failed.value).partition(". Last progress in its log: ")
        assert waited == "waited 25 s for kafka to answer in mode zk. Last seen: its listener does not answer"
        recovering = rf"recovering log directory \S+: {PARTITIONS // 2 - 1} of \d+ logs"
        assert re.fullmatch(rf"{recovering} \(QS-RESTART-012\)", last), last
