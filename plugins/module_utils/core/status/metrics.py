# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample in Prometheus' text format, for the textfile collector of the node exporter. Pure.

Source: Prometheus' exposition format 0.0.4. The names are those of `docs/monitoring`.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback, rollback_readiness
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts


class Metric(NamedTuple):
    """One gauge: its name without the prefix, its help, and its values by labels."""

    name: str
    help: str
    values: Iterable[tuple[Mapping[str, str], float]]


def render(facts: ClusterFacts, detected: phase.PhaseResult, sample: soak.Sample, left_s: float | None) -> str:
    """Return the text. What is not known has no value: an absent metric is no zero."""
    cluster = {"cluster_id": phase.cluster_id(facts) or ""}
    return "".join(_lines(metric, cluster) for metric in _metrics(facts, detected, sample, left_s))


def _metrics(facts, detected, sample, left_s):
    nodes = screen.node_lines(facts)
    ready = rollback_readiness.detect(facts, detected)
    yield Metric("sample_timestamp_seconds", "When the sample was taken.", [({}, sample.at)])
    yield Metric("phase", "1 for the phase of the migration.", [({"phase": detected.phase}, 1)])
    yield Metric("problems", "How many reasons keep the next gate closed.", [({}, len(sample.problems))])
    started = facts["time"] - gates.soaked_s(facts)  # 0 where no start could be read
    yield Metric("last_start_timestamp_seconds", "When the last node started.", [({}, started)] if started else [])
    yield Metric("soak_left_seconds", "How long the soak still takes; negative once it is over.", _known(left_s))
    behind = rollback_readiness.measure_behind(facts, detected)
    yield Metric("mirrored_lag_offsets", "How far ZooKeeper is behind the quorum.", _known(behind))
    yield Metric(
        "node_lag_offsets",
        "How far a node is behind the quorum's metadata log.",
        [({**_node(host, line)}, line["lag"]) for host, line in sorted(nodes.items()) if line["lag"] is not None],
    )
    yield Metric(
        "node_mode",
        "1 for the mode in which a node runs.",
        [({**_node(host, line), "mode": line["mode"]}, 1) for host, line in sorted(nodes.items())],
    )
    targets = [
        ({"target": target}, int(target in ready.targets and not ready.obstacles)) for target in rollback.TARGETS
    ]
    yield Metric("rollback_ready", "1 where a rollback to the target could begin.", targets)


def _known(value):
    return [] if value is None else [({}, value)]


def _node(host, line):
    return {"host": host, "role": line["role"], "id": str(line["id"])}


def _lines(metric, cluster):
    name = f"quorumshift_{metric.name}"
    values = [f"{name}{{{_labels({**cluster, **labels})}}} {value:.10g}\n" for labels, value in metric.values]
    return f"# HELP {name} {metric.help}\n# TYPE {name} gauge\n{''.join(values)}" if values else ""


def _labels(labels):
    return ",".join(f'{key}="{_escape(str(value))}"' for key, value in labels.items())


def _escape(text):
    """Return a label's value, escaped as the format asks."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
