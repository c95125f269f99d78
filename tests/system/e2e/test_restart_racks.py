# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolling restarts of 18 brokers in three racks (variant `racks`): batches of a rack against one broker at a time.

Verification clients run throughout, and the brokers' metadata is read all the time.
"""

from __future__ import annotations

import json
import re
import threading

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics

from tests.system.e2e.clients import assert_nothing_lost, running_clients
from tests.system.e2e.rollbacks import back, phase
from tests.system.testbed.waiting import meanwhile

AS_SHIPPED = {"quorumshift_stable_s": 10, "quorumshift_roll_timeout_s": 600}  # what the comparison is of
IN_BATCHES = {"restart_concurrency": 6}


class UnderMinIsr:
    """Reads the brokers' metadata again and again; `found`: partitions that were under min ISR or without a leader."""

    def __init__(self, testbed) -> None:
        self.connections, self.readings, self.least = testbed.connections(), 0, {}
        self.found: dict[str, str] = {}

    def watch(self, over: threading.Event) -> None:
        bootstrap, client, timeout = self.connections.bootstrap, self.connections.client, self.connections.timeout
        while not over.wait(2):  # a stop and a start take longer, and the brokers need the CPU
            read = topics.read(bootstrap, client, timeout)
            new = [name for name in read.get("partitions") or {} if name not in self.least]
            if new:
                self.least.update(topics.read_min_isr(bootstrap, client, new, timeout))
            partitions = read.get("partitions") or {}
            excused = cluster_health.find_unavoidable(partitions, self.least)
            self.readings += bool(partitions)
            for topic, numbers in partitions.items():
                for number, partition in numbers.items():
                    name = f"{topic}-{number}"
                    if name not in excused and (
                        partition["leader"] < 0 or len(partition["isr"]) < self.least.get(topic, 1)
                    ):
                        self.found[name] = f"leader {partition['leader']}, in sync {partition['isr']}"


@pytest.fixture
def clients(fresh, tmp_path):
    """Verification clients; a function that stops them and returns their verdict."""
    (tmp_path / "clients").mkdir()
    with running_clients(tmp_path / "clients") as stop:
        yield stop


@pytest.fixture(scope="module")
def accepted(fresh):
    """The token that accepts the partitions that no order keeps at min ISR."""
    refused = fresh.play("restart", extra={"restart_roles": ["broker"]})
    assert refused.code and "no order of restarts keeps 6 partitions at min.insync.replicas" in refused.text
    return re.search(r"quorumshift_accept_degraded=(\w+)", refused.text).group(1)


@pytest.fixture
def restart_brokers(fresh, accepted):
    """A function that runs the playbook with further variables; `at_line` is called with each line of the output."""

    def run(at_line=None, **extra):
        given = {**AS_SHIPPED, "restart_roles": ["broker"], "quorumshift_accept_degraded": accepted, **extra}
        return fresh.play("restart", extra=given, kill_when=at_line, timeout=2400)

    return run


def started(testbed):
    """Return when each broker's process started, as systemd shows it."""
    command = "systemctl show kafka -p ExecMainStartTimestampMonotonic --value"
    return dict(zip(testbed.brokers, testbed.on_each(testbed.brokers, command)))


def batches(text):
    """Return the hosts of each batch, in the order in which they were admitted."""
    plays = text.split("TASK [quorumshift.kafka.restart : Wait until the node is up]")[1:]
    return [sorted(re.findall(r"^    (\w+) stops$", play, re.MULTILINE)) for play in plays]


def parts(text):
    """Return the median seconds of a broker's stop and start."""
    stops, starts = (sorted(map(float, re.findall(rf"\b{name} ([\d.]+) s", text))) for name in ("stop", "start"))
    return {"stop_s": stops[len(stops) // 2], "start_s": starts[len(starts) // 2]}


def compare(fresh, restart_brokers):
    """Restart all brokers one at a time, then in batches; assert that no partition was under min ISR."""
    watched = UnderMinIsr(fresh)
    with meanwhile(watched.watch):
        serial = restart_brokers()
        planned = restart_brokers(**IN_BATCHES)
    assert serial.code == planned.code == 0, serial.text + planned.text
    for name, ran in (("serial", serial), ("planned", planned)):
        found = batches(ran.text)
        shown = json.dumps({"s": round(ran.seconds), "batches": len(found), "per broker": parts(ran.text)})
        print(f"{name}: {shown}")
        assert sorted(host for batch in found for host in batch) == fresh.brokers
    assert all(len({host[:2] for host in batch}) == 1 for batch in batches(planned.text))  # one rack each
    assert watched.readings and not watched.found
    print(f"planned is {serial.seconds / planned.seconds:.1f} times as fast; {watched.readings} readings")


def test_batches_of_a_rack_lose_nothing_beside_one_broker_at_a_time(fresh, clients, restart_brokers):
    compare(fresh, restart_brokers)
    assert_nothing_lost(clients(), 10_000)


def test_a_run_that_was_paused_stops_and_a_later_run_skips_what_was_restarted(fresh, restart_brokers, tmp_path):
    before, pause = started(fresh), tmp_path / "pause"
    first = restart_brokers(restart_total_s=15, **IN_BATCHES)  # the canary alone takes longer
    assert first.code and "restart_total_s is 15. No further node is stopped" in first.text
    (since,) = set(re.findall(r"restart_since=(\d+)", first.text))
    now = started(fresh)
    done = [host for host in now if now[host] != before[host]]
    assert batches(first.text) == [done] and len(done) == 1
    pause.touch()
    second = restart_brokers(restart_pause_file=str(pause), restart_pause_timeout_s=5, restart_since=int(since))
    assert second.code and f"{pause} still exists on the control node" in second.text and started(fresh) == now
    pause.unlink()
    third = restart_brokers(restart_pause_file=str(pause), restart_since=int(since), **IN_BATCHES)
    assert third.code == 0, third.text
    after = started(fresh)
    assert [host for host in after if after[host] == now[host]] == done and set(after.values()).isdisjoint(
        before.values()
    )


def test_a_host_that_fails_stops_further_batches_and_its_own_batch_comes_up(fresh, restart_brokers):
    """Its properties file has an error: the broker does not start. No broker of a later batch is touched."""
    with fresh.zookeeper() as client:  # the controller restarts last, alone
        controller = json.loads(client.get("/controller")[0])["brokerid"]
    host = next(broker for broker in ("b11", "b12") if fresh.node_id(broker) != controller)
    file, wrong = fresh.variable("broker_config_file", host), "num.io.threads=none"
    fresh.run(host, f"echo '{wrong}' >> {file}")
    before = started(fresh)
    failed = restart_brokers(quorumshift_start_timeout_s=60, **IN_BATCHES)
    assert failed.code and host in failed.text
    assert host in batches(failed.text)[-1]
    touched = {broker for batch in batches(failed.text) for broker in batch}
    untouched = [broker for broker in fresh.brokers if broker not in touched]
    assert untouched and all(started(fresh)[broker] == before[broker] for broker in untouched)
    fresh.run(host, f"sed -i '/{wrong}/d' {file}")
    (since,) = set(re.findall(r"go on with -e restart_since=(\d+)", failed.text))
    again = restart_brokers(restart_since=int(since), **IN_BATCHES)
    assert again.code == 0, again.text
    fresh.wait_in_sync()


def test_a_broker_that_dies_keeps_the_next_batch_up(fresh, restart_brokers):
    """It is killed when the first batch is up; the next batch waits, and the run stops. A later run starts it first."""
    killed = []

    def kill_b34(line):
        if "is up (" in line and not killed:
            killed.append(fresh.run("b34", "systemctl kill --signal=KILL kafka"))
        return False

    stopped = restart_brokers(kill_b34, quorumshift_roll_timeout_s=30, **IN_BATCHES)
    assert stopped.code and "b34 does not answer" in stopped.text and len(batches(stopped.text)) == 1
    (since,) = set(re.findall(r"go on with -e restart_since=(\d+)", stopped.text))
    again = restart_brokers(restart_since=int(since), **IN_BATCHES)
    assert again.code == 0 and "b34 (down: started first)" in again.text, again.text
    fresh.wait_in_sync()


def test_a_migration_and_its_rollback_restart_in_batches(fresh, clients):
    forward = fresh.play(extra={"quorumshift_verify": False, **IN_BATCHES}, timeout=2400)
    assert forward.code == 0 and phase(forward) == "dual_write", forward.text
    returned = back(fresh, "zk", quorumshift_verify=False, **IN_BATCHES)
    assert returned.code == 0 and phase(returned) == "zk", returned.text
    assert max(map(len, batches(forward.text))) == max(map(len, batches(returned.text))) == 6
    assert_nothing_lost(clients(), 10_000)


@pytest.fixture
def in_kraft_mode(fresh):
    """The cluster, migrated to the end in batches. No broker is a controller there, so none restarts alone for that."""
    given = {"quorumshift_verify": False, **IN_BATCHES}
    stopped = fresh.play(extra=given, timeout=2400)
    token = re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)
    ended = fresh.play(extra={**given, "quorumshift_finalize_token": token, "quorumshift_soak": "0s"}, timeout=2400)
    assert ended.code == 0 and phase(ended) == "finalized", ended.text


def test_the_same_in_kraft_mode(fresh, in_kraft_mode, clients, restart_brokers):
    compare(fresh, restart_brokers)
    assert_nothing_lost(clients(), 10_000)
