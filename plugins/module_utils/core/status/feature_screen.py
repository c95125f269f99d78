# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The features of a cluster as `features` and `status` show them (KIP-584). Pure."""

from __future__ import annotations

import shlex
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import feature_changes, features, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Range, name_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts


def render(found: Mapping[str, Any]) -> List[str]:
    """Return the features of a cluster as lines: a row for each feature, a row for each node, and what stands out.

    `found`: the result of kafka_features_info.
    """
    supported = _ranges(found["nodes"])
    names = sorted({*found["finalized"], *(name for ranges in supported.values() for name in ranges)})
    head = f"Features of cluster {found['cluster_id'] or '?'}: mode {found['mode']}, epoch {found['epoch']}"
    rows = [["feature", "finalized", "minimum", "every node supports", "held back by"]]
    for name in names:
        finalized = found["finalized"].get(name)
        held = [f"{node} ({_label(name, level)})" for node, level in (found["held_back"].get(name) or {}).items()]
        rows.append(
            [
                name,
                _label(name, finalized["level"]) if finalized else "-",
                _label(name, finalized["minimum"]) if finalized else "-",
                _format_common(name, supported),
                format_names(held, 3) or "-",
            ]
        )
    nodes = [["node", "release", "epoch", *names]]
    for name, node in sorted(found["nodes"].items()):
        if "error" in node:
            nodes.append([name, "no answer"])
            continue
        release = features.release_of(supported[name])
        nodes.append(
            [
                name,
                releases.format_release(release) if release else "?",
                str(node["epoch"]),
                *(_format_range(supported[name].get(feature)) for feature in names),
            ]
        )
    errors = [f"! {name}: {node['error']}" for name, node in sorted(found["nodes"].items()) if "error" in node]
    lines = [head, *render_table(rows), "", *render_table(nodes), *(f"  {text}" for text in errors)]
    if found["quorum_error"] and found["mode"] != "zookeeper":
        lines.append(f"  ! the quorum could not be described: {found['quorum_error']}")
    if found["voters_unknown"]:
        lines.append(f"  ! controllers whose address is unknown: {', '.join(map(str, found['voters_unknown']))}")
    if found["alive"]:
        alive = ", ".join(map(str, found["alive"]))
        lines.append(f"  ! no broker answered, and these have just fetched the metadata log: {alive}")
    lines += [f"  ! lags: {text}" for text in found["lagging"]]
    return lines + [f"  {text}" for text in found["notes"]]


def render_change(result: Mapping[str, Any], applies: bool) -> List[str]:
    """Return a change of features that the controller has validated as lines, and what makes it unless this run does.

    `result`: of kafka_features in check mode; `applies`: whether this run makes the change.
    """
    if not result["results"]:
        return ["nothing would change"]
    lines = [
        f"{_verb(update)} {update['feature']}: {_before(update)} -> "
        f"{_label(update['feature'], update['after']) if update['after'] else 'deleted'}"
        for update in result["results"]
    ]
    lines += result["notes"]
    lines += [f"nothing takes this back: {why}" for why in result["one_way"]]
    token = f" -e {shlex.quote('features_confirm=' + result['token'])}" if result["token"] else ""
    done = "the controller accepts it"
    return [*lines, done if applies else f"{done}. To make it, add -e features_apply=true{token}"]


def summary(facts: ClusterFacts) -> Dict[str, Any]:
    """Return the features as `status` shows them: {finalized, epoch, lagging: what hosts serve instead, highest_common:
    {feature: level}, held_back: {feature: {host: its highest level}}}; {} where no node names a finalized feature, as
    in ZooKeeper mode. `facts`: of probes.cluster.cluster.collect."""
    nodes: Dict[str, Any] = {
        host: node["features"]
        for host, node in facts["nodes"].items()
        if node.get("features") and not str(node.get("running")).startswith(phase.ZK)  # such a broker has none
    }
    newest = max(nodes.values(), key=lambda node: node["epoch"], default=None)
    if newest is None or not newest["finalized"]:
        return {}
    supported = _ranges(nodes)
    names = sorted({name for ranges in supported.values() for name in ranges})
    return {
        "finalized": newest["finalized"],
        "epoch": newest["epoch"],
        "lagging": list(features.find_lagging(nodes, newest["finalized"])),
        "highest_common": {name: features.highest_common(name, supported) for name in names},
        "held_back": feature_changes.find_held_back(supported),
    }


def lines(found: Mapping[str, Any]) -> List[str]:
    """Return the lines of `status` about features. `found`: of `summary`."""
    if not found:
        return []
    levels = ", ".join(f"{name} {_label(name, level)}" for name, level in found["finalized"].items())
    shown = [f"features: {levels}; epoch {found['epoch']}"]
    for name, held in found["held_back"].items():
        common = _label(name, found["highest_common"][name])
        hosts = [f"{host} ({_label(name, level)})" for host, level in held.items()]
        shown.append(f"features: {name} can be {common} at most, held back by {format_names(hosts, 3)}")
    return shown + [f"! features: {text}." for text in found["lagging"]]


def _ranges(nodes: Mapping[str, Mapping[str, Any]]) -> Dict[str, Dict[str, Range]]:
    return {
        name: {feature: Range(*levels) for feature, levels in node["supported"].items()}
        for name, node in nodes.items()
        if "supported" in node
    }


def _format_common(name: str, supported: Mapping[str, Mapping[str, Range]]) -> str:
    """Return the range that every node supports."""
    ranges = [nodes.get(name, Range(0, 0)) for nodes in supported.values()]
    lowest, highest = max(found.lowest for found in ranges), min(found.highest for found in ranges)
    return f"{_label(name, lowest)} to {_label(name, highest)}" if lowest <= highest else "no level"


def _format_range(found: Range | None) -> str:
    return f"{found.lowest} to {found.highest}" if found else "-"


def _label(name: str, level: int) -> str:
    """Return a level with its name where it has one, as 3.9-IV0 (21)."""
    named = name_of(name, level)
    return named if named == str(level) else f"{named} ({level})"


def _verb(update: Mapping[str, Any]) -> str:
    if not update["after"]:
        return "delete"
    if update["after"] < update["before"]:
        return "lower"
    return "raise" if update["before"] else "add"


def _before(update: Mapping[str, Any]) -> str:
    return _label(update["feature"], update["before"]) if update["before"] else "not finalized"


def render_table(rows: Sequence[Sequence[str]]) -> List[str]:
    """Return rows as lines of columns of equal width."""
    widths = [
        max(len(row[column]) for row in rows if column < len(row)) for column in range(max(len(row) for row in rows))
    ]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
