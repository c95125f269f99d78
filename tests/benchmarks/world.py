# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the metadata of one large cluster in dual-write, the same in ZooKeeper, KRaft and three brokers.

    PYTHONPATH=.build:.:spark .venv/bin/python tests/benchmarks/world.py DIRECTORY --partitions 1000000 [--plant K]

Content depends on the arguments only. DIRECTORY gets:

- `zookeeper/version-2/snapshot.*` and `log.*`: a data directory of ZooKeeper. Kafka is below CHROOT, beside another
  tenant. The log changes the snapshot, so that it must be replayed.
- `metadata_log/__cluster_metadata-0`: a checkpoint, and a segment that changes, adds and removes; one transaction is
  committed, one aborted.
- `brokers/<id>`: answers of three brokers in KRaft mode, for world_brokers.py.
- `planted.json`: the differences that `--plant` adds, as the job names them: see Plant.
- `world.json`: the facts that job.json needs, and the counts of each kind.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import os
