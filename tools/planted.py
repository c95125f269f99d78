# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of docs/planted-divergences.md from the last run of the suite: `python -m tools.planted`.

tests/spark/test_planted.py writes build/planted/results.json. Exit code 1 if there are no results, if a divergence was
missed, or if a comparison under changes was a false alarm.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from tools.checkout import ROOT

RESULTS = ROOT / "build" / "planted" / "results.json"
PAGE = ROOT / "docs" / "planted-divergences.md"

_REGION = re.compile(r"(<!-- last run -->\n).*(<!-- end -->)", re.DOTALL)
_COLUMNS = ("group", "gate", "planted", "expected", "found", "rule")
_STATUSES = {
    "found": "The comparison found the divergence, by the rule in the last column.",
    "missed": "The comparison must find these, and did not.",
}


def region(results: dict[str, Any]) -> str:
    """Return the figures and tables of the last run."""
    rows = results["rows"]
    counts = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    lines = ["", "| | |", "|---|---|", f"| planted | {len(rows)} |"]
    lines += [f"| {status} | {count} |" for status, count in counts.items()]
    lines += [f"| {name} | {count} |" for name, count in alarms(results).items()]
    for status, what in _STATUSES.items():
        if counts[status]:
            lines += ["", f"## {status.capitalize()}", "", what, "", *_table(rows, status)]
    return "\n".join(lines) + "\n\n"


def alarms(results: dict[str, Any]) -> dict[str, int]:
    """Return the counts of the comparisons under changes: of all, of false alarms and of those without a verdict."""
    runs = results.get("changes", [])
    made = [int(count) for run in runs for what, count in run["changes"].items() if not what.endswith("refused")]
    return {
        "comparisons under changes": sum(run["comparisons"] for run in runs),
        "false alarms": sum(run["differ"] + run["error"] for run in runs),
        "incomplete": sum(run["incomplete"] for run in runs),
        "changes meanwhile": sum(made),
    }


def _table(rows, status):
    number = 0
    yield f"| # | {' | '.join(_COLUMNS)} |"
    yield "|---" * (1 + len(_COLUMNS)) + "|"
    for row in rows:
        if row["status"] == status:
            number += 1
            cells = (
                row[name].replace("|", "\\|") for name in ("group", "gate", "planted", "expected", "found", "rule")
            )
            yield f"| {number} | {' | '.join(cells)} |"


def main() -> int:
    """Write the region of the page."""
    if not RESULTS.exists():
        print(f"{RESULTS} does not exist. Run: python -m pytest tests/spark/test_planted.py", file=sys.stderr)
        return 1
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_REGION.sub(lambda match: f"{match[1]}{region(results)}{match[2]}", text), encoding="utf-8")
    missed = [row["planted"] for row in results["rows"] if row["status"] == "missed"]
    wrong = alarms(results)["false alarms"]
    print(f"{PAGE.relative_to(ROOT)}: {len(results['rows'])} rows, {len(missed)} missed, {wrong} false alarms")
    return 1 if missed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
