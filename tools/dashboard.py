# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the Grafana dashboard against Grafana's own types: ``python -m tools.dashboard``. Needs npm.

No server runs here. TypeScript compares each key and value of docs/monitoring/quorumshift.dashboard.json with the types
of `@grafana/schema`: the dashboard, and the options of each kind of panel that the package describes. A key that is not
known is an error. Exit code 1: Grafana would not take it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

from tools.checkout import ROOT

DASHBOARD = ROOT / "docs" / "monitoring" / "quorumshift.dashboard.json"
HOME = ROOT / ".build" / "grafana"
PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9.3")
# Without types in the package: what Grafana makes of their options is not checked
UNTYPED = frozenset({"alertlist"})
# JSON has no enums: each is a text or a number
PLAIN = """
type Plain<T> = T extends string ? `${T}`
  : T extends number ? (`${T}` extends `${infer N extends number}` ? N : T)
  : T extends Array<infer U> ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""


def source(dashboard: dict) -> str:
    """Return a program that compiles if the dashboard has Grafana's types."""
    kinds = sorted({panel["type"] for panel in dashboard["panels"]} - UNTYPED)
    lines = ["import type { Dashboard } from '@grafana/schema';"]
    for kind in kinds:
        path = f"./node_modules/@grafana/schema/dist/types/raw/composable/{kind.replace('-', '')}/panelcfg/x/types.gen"
        lines.append(f"import type {{ Options as {_name(kind)} }} from '{path}';")
    lines += [PLAIN, f"export const dashboard: Plain<Dashboard> = {json.dumps(dashboard, indent=1)};"]
    for panel in dashboard["panels"]:
        if panel["type"] not in UNTYPED:
            options = json.dumps(panel["options"])
            lines.append(f"export const panel{panel['id']}: Partial<Plain<{_name(panel['type'])}>> = {options};")
    return "\n".join(lines) + "\n"


def _name(kind: str) -> str:
    return f"{kind.replace('-', '').capitalize()}Options"


def main() -> int:
    """Compile, and return the exit code."""
    npm = shutil.which("npm")
    if not npm:
        print("npm is missing: apt-get install npm", file=sys.stderr)
        return 1
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--silent")
    subprocess.run([npm, "install", *quiet, *PACKAGES], cwd=HOME, check=True)
    program = HOME / "dashboard.ts"
    program.write_text(source(json.loads(DASHBOARD.read_text(encoding="utf-8"))), encoding="utf-8")
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext")
    done = subprocess.run(["node_modules/.bin/tsc", *options, program.name], cwd=HOME, check=False)
    print(
        "the dashboard has Grafana's types" if done.returncode == 0 else "the dashboard is not as Grafana's types are"
    )
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
