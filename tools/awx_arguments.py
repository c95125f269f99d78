# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the options of awx.awx's modules that docs/awx/create.yml uses, as their documentation has them.

    python -m tools.awx_arguments DIRECTORY

DIRECTORY holds ansible_collections/awx/awx, as PyPI's package `ansible` ships it. No test needs that collection:
tests/unit/test_awx.py makes modules with these options.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Mapping

from tools.checkout import ROOT

CREATE = ROOT / "docs" / "awx" / "create.yml"
WRITTEN = ROOT / "tests" / "unit" / "fixtures" / "awx_arguments.json"
_KEPT = ("type", "elements", "required", "choices", "aliases", "default")


def main() -> int:
    """Write the file; return the exit code."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    path = Path(sys.argv[1]).resolve()
    manifest = json.loads((path / "ansible_collections" / "awx" / "awx" / "MANIFEST.json").read_text())
    names = modules(CREATE.read_text())
    command = [str(Path(sys.executable).with_name("ansible-doc")), "--json", *names]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(path)}
    found = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    written = {
        "collection": f"awx.awx {manifest['collection_info']['version']}",
        "modules": {name: _options(found[name]["doc"]["options"]) for name in names},
    }
    WRITTEN.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    return 0


def modules(text: str) -> list[str]:
    """Return the modules of awx.awx that a playbook uses."""
    return sorted(set(re.findall(r"^ +(awx\.awx\.\w+):", text, re.MULTILINE)))


def _options(documented: Mapping[str, Any]) -> Dict[str, Any]:
    """Return documented options as an argument spec."""
    spec = {}
    for name, option in documented.items():
        spec[name] = {key: option[key] for key in _KEPT if key in option}
        if option.get("suboptions"):
            spec[name]["options"] = _options(option["suboptions"])
    return spec


if __name__ == "__main__":
    sys.exit(main())
