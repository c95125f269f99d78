# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What five papers ask for, and which test shows it: docs/papers.yml as tables, and what of it is wrong.

tools/reference.py writes the tables.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from tools.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "papers.yml"
SHOWN, KAFKA = "shown", "kafka"
VERDICTS = {SHOWN: "yes", "partly": "partly", "absent": "no", KAFKA: "not ours"}
# Where tests start real servers. All of `make` but these do too.
_REAL = ("tests/integration/", "tests/spark/", "tests/system/")
WITHOUT_SERVERS = frozenset({"unit", "lint", "build", "sanity", "failure-proof", "failure-sample", "simulate", "model"})
_DRILL, _MAKE = "drill: ", "make "
_PATH = re.compile(r"\b(?:tests|docs|playbooks)/[\w./-]+\.(?:py|md|yml)")


def papers() -> list[dict[str, Any]]:
    """Return the papers with their rows."""
    return read_yaml(DATA)["papers"]


def counts_table() -> str:
    """Return how many rows of each paper have which verdict."""
    names = [VERDICTS[verdict] for verdict in VERDICTS]
    lines = [f"| paper | rows | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for paper in papers():
        counts = [sum(row["verdict"] == verdict for row in paper["rows"]) for verdict in VERDICTS]
        lines.append(f"| {paper['name']} | {len(paper['rows'])} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def open_rows_table() -> str:
    """Return the rows that no test shows, each with the reason, without those of Kafka alone."""
    lines = ["| paper | item | | why |", "|---|---|---|---|"]
    for paper in papers():
        for row in paper["rows"]:
            if row["verdict"] not in (SHOWN, KAFKA):
                name = f"{paper['name']} {row['number']}"
                lines.append(f"| {name} | {row['item']} | {VERDICTS[row['verdict']]} | {_marked(row['why'])} |")
    return "\n".join(lines)


def rows_tables() -> str:
    """Return a table of each paper, with a heading."""
    parts = []
    for paper in papers():
        lines = [f"## {paper['name']}", "", f"[{paper['title']}]({paper['link']}).", ""]
        lines += ["| | item | | shown by, or why not |", "|---|---|---|---|"]
        for row in paper["rows"]:
            evidence = "; ".join(f"`{each}`" if not each.startswith(_DRILL) else each for each in row.get("by", ()))
            said = " ".join(filter(None, (evidence, _marked(row.get("why", "")))))
            lines.append(f"| {row['number']} | {row['item']} | {VERDICTS[row['verdict']]} | {said} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _marked(text: str) -> str:
    return _PATH.sub(lambda match: f"`{match[0]}`", text)


def problems(drills: set[str], targets: set[str]) -> list[str]:
    """Return what is wrong with the rows. `drills`: names of drills; `targets`: of make."""
    found = []
    for paper in papers():
        if [row["number"] for row in paper["rows"]] != list(range(1, len(paper["rows"]) + 1)):
            found.append(f"{paper['name']}: the rows are not numbered from 1 on")
        for row in paper["rows"]:
            name = f"{paper['name']} {row['number']}"
            found += [f"{name}: {text}" for text in _row_problems(row, drills, targets)]
    return found


def _row_problems(row: dict[str, Any], drills: set[str], targets: set[str]) -> list[str]:
    by, why = row.get("by", []), row.get("why", "")
    if row["verdict"] not in VERDICTS:
        return [f"the verdict {row['verdict']} is none of {', '.join(VERDICTS)}"]
    found = [text for each in by if (text := _missing(each, drills, targets))]
    if row["verdict"] == SHOWN and not any(_is_real(each) for each in by):
        found.append("no test on real servers is named")
    if row["verdict"] != SHOWN and (by or not why.endswith(".")):
        found.append("it needs a sentence that says why not, and no test")
    return found + [f"{path} does not exist" for path in _PATH.findall(why) if not (ROOT / path).exists()]


def _is_real(evidence: str) -> bool:
    """Return whether it runs on real servers."""
    if evidence.startswith(_MAKE):
        return evidence.removeprefix(_MAKE) not in WITHOUT_SERVERS
    return evidence.startswith((_DRILL, *_REAL))


def _missing(evidence: str, drills: set[str], targets: set[str]) -> str:
    """Return what evidence names that does not exist, '' where all does."""
    if evidence.startswith(_DRILL):
        return "" if evidence.removeprefix(_DRILL) in drills else f"there is no drill {evidence!r}"
    if evidence.startswith(_MAKE):
        return "" if evidence.removeprefix(_MAKE) in targets else f"there is no target {evidence!r}"
    path, _colons, function = evidence.partition("::")
    if not (ROOT / path).is_file():
        return f"{path} does not exist"
    return "" if not function or function in _functions(path) else f"{path} has no function {function}"


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
