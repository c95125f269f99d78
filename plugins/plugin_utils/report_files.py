# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contents of a run's artifacts, in the shapes that the report's templates use. Pure.

A missing or malformed file never fails the report.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import KINDS
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask, mask_comment
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK, is_secret
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import Recorded, items, load, mapping
from markupsafe import Markup

_MASKED = re.compile(re.escape(MASK) + r"( \(differs\))?")
_LINE = re.compile(r"([ +-]?)(\s*)([^\s=:#!]+)(\s*[=:\s]\s*)(.*)")


class Line(NamedTuple):
    """A line of a diff; `style` is add, remove, hunk or same."""

    style: str
    text: str


def scrub(value: Any) -> Any:
    """Return text with secrets and sealed values masked, Markup as Markup; return other values unchanged."""
    if not isinstance(value, str):
        return value
    text = mask(str(value))
    return Markup(text) if isinstance(value, Markup) else text


def diff(text: str) -> list[Line]:
    """Return a unified diff's lines, with secrets' values masked again, also where they continue after a backslash."""
    lines, secret = [], False
    for line in text.splitlines():
        style = {"+": "add", "-": "remove", "@": "hunk"}.get(line[:1], "same")
        if line.startswith(("--- ", "+++ ", "@@")):
            lines.append(Line("hunk", line))
            secret = False
            continue
        if secret:
            secret = line.endswith("\\")
            lines.append(Line(style, line[:1] + MASK))
            continue
        found = _LINE.match(line)
        if found and is_secret(found[3]) and found[5] and not _MASKED.fullmatch(found[5]):
            secret = line.endswith("\\")
            line = "".join(found.group(1, 2, 3, 4)) + MASK
        elif not found:
            line = line[:1] + mask_comment(line[1:])
        lines.append(Line(style, line))
    return lines


def diffs(recorded: Recorded) -> list[dict]:
    """Return each host's config diff: {name, added, removed, lines}."""
    entries = []
    for path in sorted(recorded.files):
        if path.startswith("diffs/") and path.endswith(".diff"):
            lines = diff(recorded.files[path])
            added, removed = (sum(1 for line in lines if line.style == style) for style in ("add", "remove"))
            entries.append({"name": path[6:-5], "added": added, "removed": removed, "lines": lines})
    return sorted(entries, key=lambda entry: _order(entry["name"]))


def _order(name: str) -> int:
    """Return a sort key: the position of the kind of restart with which a file's name ends."""
    kinds = list(KINDS)
    return next((number for number, kind in enumerate(kinds) if f"-{name}".endswith(f"-{kind}")), len(kinds))


def plans(recorded: Recorded) -> list[dict]:
    """Return each rolling restart's plan: {kind, order: [[{host, reason}]], done, unavoidable: [(partition, why)]}."""
    entries = []
    for path in sorted(recorded.files):
        plan = mapping(load(recorded.files, path)) if path.startswith("plan-") else {}
        if not plan:
            continue
        reasons = mapping(plan.get("reasons"))
        order = [
            [{"host": str(host), "reason": reasons.get(host, "")} for host in items(batch)]
            for batch in items(plan.get("batches"))
        ]
        entries.append(
            {
                "kind": plan.get("kind") or path[5:-5],
                "order": order,
                "done": items(plan.get("done")),
                "unavoidable": sorted(mapping(plan.get("unavoidable")).items()),
            }
        )
    return sorted(entries, key=lambda plan: _order(str(plan["kind"])))


def preflight(recorded: Recorded) -> dict | None:
    """Return {findings, checks}."""
    result = mapping(load(recorded.files, "preflight.json"))
    findings = [mapping(finding) for finding in items(result.get("findings"))]
    return {"findings": findings, "checks": items(result.get("checks"))} if result else None


def copy(recorded: Recorded) -> dict | None:
    """Return the initial copy: {rows: [{type, before, copied, after, differs}], damage, differences, moved, compared}.

    The quorum's own record types, which ZooKeeper lacks, have no before and after."""
    sides = {}
    for side, path in (("before", "copy-expected.json"), ("after", "copy-awaited.json")):
        sides[side] = mapping(mapping(mapping(load(recorded.files, path)).get("counted")).get("records"))
    compared = mapping(load(recorded.files, "copy-compared.json"))
    initial_copy = mapping(compared.get("records"))
    if not (compared or any(sides.values())):
        return None
    rows = []
    for kind in dict.fromkeys([*sides["before"], *sides["after"], *initial_copy]):
        before, after = sides["before"].get(kind), sides["after"].get(kind)
        count = initial_copy.get(kind, 0 if compared else None)
        known = [known_count for known_count in (before, after) if isinstance(known_count, int)]
        differs = bool(known) and isinstance(count, int) and not min(known) <= count <= max(known)
        rows.append({"type": kind, "before": before, "copied": count, "after": after, "differs": differs})
    results = {key: items(compared.get(key)) for key in ("damage", "differences", "moved")}
    return {"rows": rows, "compared": bool(compared), **results}


def phase_result(recorded: Recorded, path: str | None) -> dict | None:
    """Detect the phase again from the newest facts: {phase, at, evidence, blocks, steps, nodes, error}. `at`: when they
    were read, in seconds since 1970."""
    if path is None or path not in recorded.files:
        return None
    facts = load(recorded.files, path)
    try:
        detected = phase.detect(facts)
        nodes = sorted(screen.node_lines(facts).items(), key=lambda item: (item[1]["role"], item[0]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return {"error": f"This version cannot evaluate {path} ({type(error).__name__}: {error})"}
    evidence = [{"what": item.what, "value": _value(item.value), "source": item.source} for item in detected.evidence]
    return {
        "phase": detected.phase,
        "at": facts.get("time"),
        "evidence": evidence,
        "blocks": detected.blocks,
        "steps": detected.steps,
        "nodes": nodes,
        "error": None,
    }


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value)) or "none"
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def canary_clients(recorded: Recorded) -> dict | None:
    """Return the verdict and the picture of the verification clients: {result, picture (a data URI), ...}.

    The picture is embedded as an image, so that its styles do not leak and nothing in it can run.
    """
    result, picture = mapping(load(recorded.files, "clients.json")), recorded.files.get("clients.svg")
    if not result and not picture:
        return None
    uri = f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}" if picture else None
    stalls, phases = mapping(result.get("max_stall_ms")), mapping(result.get("by_phase"))
    counts = [mapping(error).get("count") for error in items(result.get("app_errors"))]
    errors = sum(count for count in counts if isinstance(count, int))
    by_phase = [(name, mapping(phase_counts)) for name, phase_counts in phases.items()]
    return {"result": result, "picture": uri, "stalls": stalls, "errors": errors, "by_phase": by_phase}
