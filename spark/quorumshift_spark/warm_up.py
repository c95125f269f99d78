# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The synthetic views of a warm-up: a cluster of a few topics. Nothing is read.

A first comparison takes four times as long as a second one: the JVM loads Spark's classes, compiles the code of each
query, and Python imports what tasks need. An application that waits for its job (ahead.py) does this on these views.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import pyarrow as pa

from quorumshift_spark import columns, rules
from quorumshift_spark import normal_form as form
from quorumshift_spark.views import Statement, View, family
from quorumshift_spark.views.metadata_log import LogSource

GATE = "after_kraft"
CLUSTER_ID = "warm-up"
TOPICS = [f"topic-{number}" for number in range(4)]
UNEQUAL = TOPICS[0]
"""OTHER_LOG has another retention of this topic than LOG: a warm-up takes the path of a difference."""
OTHER_LOG = f"{rules.LOG}:2"

_PARTITIONS = 3
_DIGESTS = form.Digests(b"a warm-up has no secrets")
_BROKERS = (1, 2, 3)
_STATES: Dict[str, Dict[str, Any]] = {
    rules.ZOOKEEPER: {"zxid": 1},
    rules.LOG: {"offset": 1, "epoch": 1},
    rules.BROKER: {"offset": 1, "time_ms": 1, "not_served": {}},
}


class Synthetic(View):
    """A view of that name."""

    kinds = ("topic", "partition", "config")

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = LogSource(end_offset=1, directory="warm-up")  # as a metadata log's, as is the next
        self.between: Dict[Any, Any] = {}
        self.has_buckets = family(name) in (rules.BROKER, rules.LOG)

    def read(self, part: Any) -> Iterator[Any]:
        """Yield the cluster's topics, their partitions and a config of each."""
        of_topics = {name: form.topic(name, f"id-{name}") for name in TOPICS}
        yield from of_topics.values()
        for name in TOPICS:
            is_changed = name == UNEQUAL and self.name == OTHER_LOG
            yield form.config("topic", name, "retention.ms", "2" if is_changed else "1", _DIGESTS)
        yield _partitions()
        yield Statement(_STATES[family(self.name)], [])

    def migration(self) -> Tuple[int, int]:
        """Return what ZooKeeper has of the log: its last record."""
        return 0, 1


def views() -> Dict[str, View]:
    """Return the views by their names."""
    names = (rules.ZOOKEEPER, rules.LOG, OTHER_LOG, *(f"{rules.BROKER}:{number}" for number in _BROKERS))
    return {name: Synthetic(name) for name in names}


def _partitions() -> pa.RecordBatch:
    rows: List[Dict[str, Any]] = [
        {
            **{"topic": name, "topic_id": f"id-{name}", "partition": number, "replicas": [1, 2, 3]},
            **{"adding": [], "removing": [], "isr": [1, 2, 3], "leader": 1, "leader_epoch": 0},
            **{"recovery_state": 0, "partition_epoch": 0, "elr": [], "last_known_elr": []},
            **{"directories": None, "at": 1},
        }
        for name in TOPICS
        for number in range(_PARTITIONS)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns.PARTITIONS)
