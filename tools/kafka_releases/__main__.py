# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of Kafka's releases anew: `python -m tools.kafka_releases [--check] [VERSION ...]`.

It reads the jars of the builds that the table names, and of the given ones. With --check nothing is written, and the
exit code is 1 if the table would change.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases

from tools.kafka_releases import jars, table

PARALLEL = 4
TARGET = jars.ROOT / "plugins" / "module_utils" / "core" / "releases" / "kafka_releases.py"


def main() -> int:
    """Read every build, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the table would change")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="another build of Kafka, such as 4.4.1")
    given = parser.parse_args()
    versions = {build for release in kafka_releases.RELEASES.values() for build in release["builds"]} | set(
        given.versions
    )
    try:
        with ThreadPoolExecutor(PARALLEL) as pool:
            found = list(pool.map(described, sorted(versions)))
        text = formatted(table.module(table.joined(found)))
    except (jars.ReleaseError, table.TableError) as error:
        print(f"{error}\nNothing was written.", file=sys.stderr)
        return 2
    changed = not TARGET.exists() or text != TARGET.read_text(encoding="utf-8")
    if changed and not given.check:
        TARGET.write_text(text, encoding="utf-8")
    state = "unchanged" if not changed else "would change" if given.check else "written"
    print(f"{TARGET.relative_to(jars.ROOT)}: {state}, from {len(found)} builds")
    return int(changed and given.check)


def described(version: str) -> table.Described:
    """Return what one build says."""
    libs = jars.resolved(version)
    return table.parsed(version, *jars.built_for(libs), jars.said(version, libs, "describe"))


def formatted(text: str) -> str:
    """Return the module as ruff formats it."""
    ruff = [str(jars.ROOT / ".venv" / "bin" / "ruff"), "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
