# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a backup of a cluster that is as large as one likes, for a rehearsal: the znodes of a real cluster, and more
topics of the same form.

python -m tests.benchmarks.rehearsal_backup HOST:PORT/CHROOT FILE [--partitions 20000] [--replicas 2] [--brokers 3]
"""

from __future__ import annotations

import argparse
import base64
import json
import pathlib
import random
import tempfile
from typing import Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, importing, taking

PER_TOPIC = 20


def topics(found: tree.Source, partitions: int, replicas: int, brokers: list[int]) -> Iterator[znodes.Znode]:
    """Yield the znodes of topics with so many partitions in all, with the real cluster's own."""
    chance = random.Random(1)
    for number in range((partitions - found.partitions + PER_TOPIC - 1) // PER_TOPIC):
        path = f"{znodes.TOPICS}/rehearsed-{number:05}"
        first = number * PER_TOPIC
        count = min(PER_TOPIC, partitions - found.partitions - first)
        placed = {
            str(index): [brokers[(first + index + step) % len(brokers)] for step in range(replicas)]
            for index in range(count)
        }
        topic_id = base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")
        yield _znode(path, znodes.topic_value(placed, topic_id))
        yield _znode(f"{path}/partitions", None)
        for index, assigned in placed.items():
            state = {"controller_epoch": 1, "leader": assigned[0], "version": 1, "leader_epoch": 0, "isr": assigned}
            yield _znode(f"{path}/partitions/{index}", None)
            yield _znode(f"{path}/partitions/{index}/state", json.dumps(state).encode())
        if number % 4 == 0:
            config = {"version": 1, "config": {"retention.ms": str(86_400_000 + number)}}
            yield _znode(znodes.config_path("topics", path.rpartition("/")[2]), json.dumps(config).encode())


def _znode(path: str, data: bytes | None) -> znodes.Znode:
    return znodes.Znode(path, data, tree.OPEN_ACL, tree.NEW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("connect")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--partitions", type=int, default=20000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--brokers", type=int, default=0, help="how many the cluster has; 0: as many as it has")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, zookeeper.connect(given.connect) as client:
        taking.take(client, f"{directory}/real.gz", given.connect, "rehearsal_backup")
        real = backup_file.Backup(f"{directory}/real.gz").check()
        found = tree.survey(real.znodes())
        brokers = found.brokers + [1000 + number for number in range(given.brokers - len(found.brokers))]
        nodes = [*real.znodes(), *topics(found, given.partitions, given.replicas, brokers)]
        # A registration shows how many brokers there are
        own = next(node for node in nodes if znodes.kind(node.path) == "broker")
        nodes += [own._replace(path=f"{znodes.BROKER_IDS}/{number}") for number in brokers[len(found.brokers) :]]
        made = importing.save(nodes, str(given.file), found.cluster_id)
    print(f"{given.file}: {made['znodes']} znodes, {len(brokers)} brokers")


if __name__ == "__main__":
    main()
