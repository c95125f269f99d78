# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the metadata of one large cluster in dual-write, the same in ZooKeeper, three voters and three brokers.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/generate_world.py DIRECTORY --partitions 1000000
        [--plant K]

Content depends on the arguments only. DIRECTORY gets:

- `zookeeper/version-2/snapshot.*` and `log.*`: a data directory of ZooKeeper. Kafka is below CHROOT, beside another
  tenant. The log changes the snapshot, so that it must be replayed.
- `metadata_log/__cluster_metadata-0`: a checkpoint, and a segment that changes, adds and removes; one transaction is
  committed, one aborted. `metadata_log-1002` has the same files, `metadata_log-1003` ends at the same offset.
- `brokers/<id>`: answers of three brokers in KRaft mode, `controllers/<id>`: of the voters, for world_brokers.py.
- `planted.json`: the differences that `--plant` adds, as the job names them: see Plant.
- `world.json`: the facts that job.json needs, and the counts of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import shutil
import time
from typing import Any, Dict

from tests.benchmarks import world_log, world_zookeeper
from tests.benchmarks.world import CHROOT, CLUSTER_ID, LOG, OTHER_LOG, SERVED, VOTERS, ZOOKEEPER, World
from tests.benchmarks.world_brokers import BrokerFiles

_LOG_DIR = "__cluster_metadata-0"


def generate(directory: pathlib.Path, topics: int, size: int, seed: int = 1, planted: int = 0) -> Dict[str, Any]:
    """Write the world to `directory`, which must not exist, and return the content of world.json."""
    started = time.time()
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    world = World(topics, size, seed, planted)
    zookeeper = world_zookeeper.ZooKeeperFiles(part / "zookeeper")
    logs = {LOG: part / "metadata_log" / _LOG_DIR, OTHER_LOG: part / "metadata_log-1003" / _LOG_DIR}
    written = {name: world_log.MetadataLog(path) for name, path in logs.items()}
    brokers = {f"broker:{number}": BrokerFiles(part / "brokers" / str(number), number) for number in SERVED}
    world_zookeeper.begin(zookeeper, topics)
    configured: Dict[str, Dict[str, str]] = {}
    for number in range(topics):
        topic = world.topic(number)
        in_zookeeper = world.in_store(topic, number, ZOOKEEPER)
        zookeeper.topic(in_zookeeper)
        if in_zookeeper.configs:
            configured[topic.name] = in_zookeeper.configs
        for name, log in written.items():
            log.topic(world.in_store(topic, number, name))
        for name, files in brokers.items():
            files.topic(world.in_store(topic, number, name))
    ends = [
        log.rest(world.tables(name), topics, world.in_store(world.topic(0), 0, name)) for name, log in written.items()
    ]
    end_offset = max(ends) + 1
    records = [log.close(end_offset) for log in written.values()]
    shutil.copytree(logs[LOG].parent, part / "metadata_log-1002", copy_function=os.link)
    world_zookeeper.end(zookeeper, world, configured, end_offset)
    for name, files in brokers.items():
        files.close(world.tables(name), end_offset)
    for number in VOTERS:
        controller = BrokerFiles(part / "controllers" / str(number), number)
        controller.close(world.tables(f"controller:{number}"), end_offset)
    facts = {
        "topics": topics,
        "partitions": topics * size,
        "seed": seed,
        "cluster_id": CLUSTER_ID,
        "chroot": CHROOT,
        "end_offset": end_offset,
        "migration_offset": end_offset - 1,
        "zxid": zookeeper.zxid,
        "znodes": zookeeper.znodes,
        "records": records[0],
        **{name: len(table) for name, table in world.tables("")._asdict().items()},
        "seconds": round(time.time() - started, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    (part / "planted.json").write_text(json.dumps([plant._asdict() for plant in world.plants], indent=1))
    (part / "world.json").write_text(json.dumps(facts, indent=1))
    part.rename(directory)
    return facts


def main() -> None:
    """Generate a world and print its facts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=50, help="partitions of a topic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", type=int, default=0, metavar="K", help="number of planted differences")
    given = parser.parse_args()
    print(json.dumps(generate(given.directory, given.partitions // given.size, given.size, given.seed, given.plant)))


if __name__ == "__main__":
    main()
