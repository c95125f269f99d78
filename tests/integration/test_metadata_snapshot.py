# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of a metadata log while a real controller writes, rolls and cleans it, read by our reader and by Kafka."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import kafka_wire
from confluent_kafka import admin as kafka

from tests.integration import servers
from tests.unit.formats.metadata_json import comparable, dumped_records

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
SECONDS = 60
CHECKPOINTS = 4
CLEANED_SECONDS = 180  # Kafka cleans its metadata log once a minute (KafkaRaftClient)
# the smallest segments, checkpoints and retention that Kafka allows, so that files change all the time
SMALL_FILES = {
    "metadata.log.segment.bytes": "8192",
    "metadata.log.segment.min.bytes": "8192",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "30000",
    "metadata.max.retention.ms": "-1",
    "metadata.max.idle.interval.ms": "20",
}


@pytest.fixture(scope="module")
def cluster():
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(servers.workdir("metadata_snapshot"))
        address = HostPort("127.0.0.1", servers.free_port())
        voters = f"101@{address}"
        controller = stack.enter_context(servers.kraft_controller(home, 101, address, voters, SMALL_FILES))
        broker = stack.enter_context(servers.kraft_broker(home, 1, voters))
        directory = controller.home / "data" / "__cluster_metadata-0"
        yield SimpleNamespace(home=home, controller=controller, broker=broker, directory=str(directory))


class Writer(threading.Thread):
    """Creates and deletes topics until `stopping`. `known` is {name: whether it exists} of what is committed."""

    def __init__(self, address):
        super().__init__()
        self.client = kafka.AdminClient({"bootstrap.servers": str(address)})
        self.known, self.stopping, self.failure = {}, threading.Event(), None

    def run(self):
        number = 0
        try:
            while not self.stopping.is_set():
                names = [f"moving-{number}-{index}" for index in range(8)]
                servers.create_topics(self.client, [kafka.NewTopic(name, 3, 1) for name in names])
                self.known.update(dict.fromkeys(names, True))
                deleted = names[::2]
                for name in deleted:
                    self.known.pop(name)  # unknown until the deletion ends
                self._done(self.client.delete_topics(deleted))
                self.known.update(dict.fromkeys(deleted, False))
                number += 1
                time.sleep(0.3)
        except Exception as error:
            self.failure = error

    @staticmethod
    def _done(futures):
        for future in futures.values():
            future.result(SECONDS)


def topics_in(directory, end_offset):
    """Return the names of the topics in the log of `directory`; check every batch."""
    topics = {}
    for record in metadata_log.read_records(directory, end_offset, ["TOPIC_RECORD", "REMOVE_TOPIC_RECORD"]):
        if record.type == "TOPIC_RECORD":
            topics[record.fields["topicId"]] = record.fields["name"]
        else:
            topics.pop(record.fields["topicId"])
    return set(topics.values())


def test_snapshots_of_a_rolling_log_have_its_topics(cluster):
    writer = Writer(cluster.broker.address)
    writer.start()
    taken, checkpoints, until = [], set(), time.monotonic() + CLEANED_SECONDS
    try:
        while len(checkpoints) < CHECKPOINTS or not oldest_offset(cluster.directory):
            message = f"within {CLEANED_SECONDS} s only {checkpoints}, or no segment was deleted"
            assert time.monotonic() < until, message
            time.sleep(0.1)
            known = dict(writer.known)
            quorum = kafka_wire.describe_quorum(cluster.controller.address)
            target = cluster.home / "snapshot"
            snapshot = metadata_snapshot.take(cluster.directory, str(target), quorum.high_watermark, 10.0)
            unpacked = str(cluster.home / f"unpacked-{len(taken)}")
            metadata_snapshot.unpack(snapshot.path, snapshot.sha256, unpacked)
            taken.append((snapshot, unpacked))
            checkpoints.add(snapshot.checkpoint)

            assert (snapshot.end_offset, snapshot.last_epoch) == (quorum.high_watermark, quorum.leader_epoch)
            topics = topics_in(unpacked, snapshot.end_offset)
            now = writer.known
            stable = {name: exists for name, exists in known.items() if now.get(name) == exists}
            assert {name: name in topics for name in stable} == stable
    finally:
        writer.stopping.set()
        writer.join()
    assert writer.failure is None
    assert max(len(snapshot.files) for snapshot, _unpacked in taken) > 2, "no snapshot had a rolled segment"
    several_files = [unpacked for snapshot, unpacked in taken if len(snapshot.files) > 1]
    assert_kafka_reads(Path(several_files[-1]))


def oldest_offset(directory):
    return metadata_log.list_files(directory).segments[0].base_offset


def assert_kafka_reads(directory):
    """Assert that Kafka's tool dumps the same records from a snapshot's files as our reader."""
    paths = sorted(str(path) for path in directory.iterdir())
    command = [*servers.java(), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", ",".join(paths)]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert dumped_records(dumped) == {
        os.path.basename(path): [comparable(record) for record in metadata_log.read_file(path)] for path in paths
    }


def run_module(**arguments):
    check = ["--check"] if arguments.pop("check", False) else []
    command = [str(ROOT / ".venv/bin/ansible"), "localhost", "-m", "quorumshift.kafka.metadata_snapshot", *check]
    env = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"),
        "ANSIBLE_PYTHON_INTERPRETER": str(ROOT / ".venv/bin/python"),
    }
    done = subprocess.run(
        [*command, "-a", json.dumps(arguments)], capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_the_module_takes_a_snapshot(cluster):
    state_dir = cluster.home / "state"
    scope = {"cluster_id": servers.CLUSTER_ID, "state_dir": str(state_dir)}
    high_watermark = kafka_wire.describe_quorum(cluster.controller.address).high_watermark
    source = {"config_file": str(cluster.controller.home / "server.properties"), "end_offset": high_watermark}
    assert f'"end_offset": {high_watermark}' in run_module(**scope, **source, check=True)
    assert not state_dir.exists()

    output = run_module(**scope, **source)
    assert '"changed": true' in output and '"cut_at": "high_watermark"' in output
    (archive,) = (state_dir / servers.CLUSTER_ID / "metadata_snapshot").iterdir()
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert stat.S_IMODE(archive.parent.stat().st_mode) == 0o700


def test_without_a_leader_the_snapshot_has_the_complete_log(cluster):
    cluster.broker.kill()
    cluster.controller.kill()
    snapshot = metadata_snapshot.take(cluster.directory, str(cluster.home / "snapshot"))
    with metadata_log.open_log(cluster.directory) as log:
        extent = metadata_log.scan_log(log)
    assert (snapshot.end_offset, snapshot.last_epoch) == (extent.end_offset, extent.last_epoch)


def test_a_log_that_stands_still_before_the_end_offset_is_reported(cluster):
    """After its controller was killed. One that moves is read until it reaches the offset."""
    config = str(cluster.controller.home / "server.properties")
    scope = {"cluster_id": servers.CLUSTER_ID, "state_dir": str(cluster.home / "state")}
    behind = run_module(**scope, config_file=config, end_offset=10**9, timeout_s=0.5)
    assert "short of" in behind and "has not moved" in behind and '"changed": true' not in behind
