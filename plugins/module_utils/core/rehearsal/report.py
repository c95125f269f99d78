# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal says at its end: findings, sizes, and how long the cluster's own runs will take. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import estimate
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations, sizes

VERSION = 1
_NOT_REHEARSED = (
    "security of connections, hosts and names: every listener of a rehearsal is PLAINTEXT",
    "records: every replica is empty, so a start reads no log, and a restart catches up at once",
    "clients: nothing produces or consumes meanwhile",
)


class Report(NamedTuple):
    """`source`: of rehearsal_znodes; `rehearsal`: {id, brokers, controllers}; `built`: seconds and numbers of building
    it; `sizes`: {host: {path: bytes}}; `runs`: of rehearsal_runs.play; `nodes`: of the cluster."""

    source: Mapping[str, Any]
    left: Mapping[str, int]
    blocks: Mapping[str, int]
    rehearsal: Mapping[str, Any]
    built: Mapping[str, Any]
    sizes: Mapping[str, Mapping[str, int]]
    runs: Sequence[Mapping[str, Any]]
    nodes: estimate.Nodes
    estimates: Sequence[estimate.Estimate]


def lines(found: Report) -> List[str]:
    """Return the report as lines."""
    return [*_head(found), *_findings(found), *_sizes(found), *_took(found), *_eta(found)]


def _head(found: Report) -> List[str]:
    source, own = found.source, found.rehearsal
    shown = [
        f"Rehearsal {own['id']} of cluster {source['cluster_id']}",
        f"  cluster: {found.nodes.brokers} brokers, {found.nodes.controllers} controllers, {source['topics']} topics, "
        f"{source['partitions']} partitions, {source['replicas']} replicas",
        f"  rehearsed on {own['brokers']} brokers and {own['controllers']} controllers",
    ]
    if found.nodes.brokers > own["brokers"]:
        share = found.nodes.brokers / own["brokers"]
        shown.append(
            f"  each broker of the rehearsal has the replicas of {share:.1f} of the cluster's brokers, "
            "so that its restarts take longer than the cluster's"
        )
    return shown


def _findings(found: Report) -> List[str]:
    shown = ["", "Findings"]
    for name, count in found.blocks.items():
        shown.append(f"  ! {count} x {name}: blocks the cluster's own migration, and was not rehearsed")
    for run, times in _preflights(found.runs):
        for finding in run:
            shown.append(f"  ! {finding['id']} ({finding['severity']}): {finding['seen']}")
        shown.append(f"  preflight checks: {len(run) or 'no'} findings in {times}")
    for number, run in enumerate(found.runs, 1):
        opened = [gate["name"] for gate in run["gates"] if gate["result"] == "pass"]
        closed = [gate for gate in run["gates"] if gate["result"] != "pass"]
        shown.append(f"  {number} {run['name']}: {run['phase']}; gates passed: {', '.join(opened) or 'none'}")
        shown += [f"    ! gate {gate['name']} stayed closed: {gate['reason']}" for gate in closed]
    shown += [f"  left out or replaced: {count} x {name}" for name, count in found.left.items()]
    return [*shown, *(f"  not rehearsed: {text}" for text in _NOT_REHEARSED)]


def _preflights(runs: Sequence[Mapping[str, Any]]) -> Iterable[tuple]:
    """Yield each list of findings once, with the names of its runs."""
    by_findings: Dict[str, List[str]] = {}
    known: Dict[str, Any] = {}
    for number, run in enumerate(runs, 1):
        if run["name"] != "forward":
            continue
        key = repr(sorted((finding["id"], finding["seen"]) for finding in run["preflight"]))
        known[key] = run["preflight"]
        by_findings.setdefault(key, []).append(str(number))
    for key, numbers in by_findings.items():
        yield known[key], f"run {' and '.join(numbers)}"


def _sizes(found: Report) -> List[str]:
    source, built = found.source, found.built
    shown = [
        "",
        "Sizes",
        f"  cluster: {source['znodes']} znodes, {sizes.format_bytes(source['data_bytes'])} of data",
        f"  rehearsal: {built.get('znodes', 0)} znodes, {sizes.format_bytes(built.get('data_bytes', 0))} of data",
    ]
    names = {
        "zookeeper/version-2": "ZooKeeper's snapshots and log",
        "metadata/__cluster_metadata-0": "a controller's metadata log and snapshots",
        "data": "a broker's log directory",
    }
    for path, name in names.items():
        largest = max((own.get(path, 0) for own in found.sizes.values()), default=0)
        if largest:
            shown.append(f"  {name}: {sizes.format_bytes(largest)}")
    return shown


def _took(found: Report) -> List[str]:
    shown = ["", "What the rehearsal took"]
    for name, key in (
        ("read the cluster", "read_s"),
        ("write the znodes", "write_s"),
        ("start the brokers", "start_s"),
    ):
        if found.built.get(key) is not None:
            shown.append(f"  {name}: {durations.format_duration(found.built[key])}")
    for number, run in enumerate(found.runs, 1):
        shown.append(f"  {number} {run['name']}: {durations.format_duration(run['seconds'])}")
    return shown


def _eta(found: Report) -> List[str]:
    shown = ["", f"Estimate for the cluster, {found.nodes.at_once} broker{'s' * (found.nodes.at_once > 1)} at once"]
    for each in found.estimates:
        between = ""
        if each.most_s - each.least_s > 1:
            least, most = (durations.format_duration(seconds) for seconds in (each.least_s, each.most_s))
            between = f", between {least} and {most}"
        shown.append(f"  {each.name}: {durations.format_duration(each.seconds)}{between}")
        for line in each.lines:
            shown.append(f"    {_text(line.kind)}: {line.batches} x {line.each_s:.0f} s")
        shown.append(f"    everything else, once: {durations.format_duration(each.fixed_s)}")
    return [
        *shown,
        "  Add what a broker with records needs for its start, and the soak.",
    ]


def comparison_lines(compared: Iterable[estimate.Comparison]) -> List[str]:
    """Return the estimates beside what the cluster's own runs took."""
    return [
        f"  {each.name}: estimated {durations.format_duration(each.estimated_s)}, took "
        f"{durations.format_duration(each.took_s)} ({each.off:+.0%})"
        for each in compared
    ]


def as_json(found: Report) -> Dict[str, Any]:
    """Return the report as it is kept for programs."""
    runs = [{key: value for key, value in run.items() if key != "events"} for run in found.runs]
    estimates = [{**each._asdict(), "lines": [line._asdict() for line in each.lines]} for each in found.estimates]
    return {
        "version": VERSION,
        "began_at": found.built.get("began_at", 0.0),
        **found._asdict(),
        "runs": runs,
        "nodes": found.nodes._asdict(),
        "estimates": estimates,
        "not_rehearsed": list(_NOT_REHEARSED),
    }


def _text(kind: str) -> str:
    row = transitions.KINDS.get(kind)
    return f"restart of a {row.role} ({kind})" if row else kind
