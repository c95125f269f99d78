# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of releases and of settings anew: `python -m tools.kafka_releases [--check] [VERSION ...]`.

It reads the jars of the builds that the table names, and of the given ones. With --check nothing is written, and the
exit code is 1 if a table would change.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases

from tools.kafka_releases import jars, settings, table

PARALLEL = 4
TARGET = jars.ROOT / "plugins" / "module_utils" / "core" / "releases" / "kafka_releases.py"
SETTINGS = TARGET.with_name("kafka_settings.py")


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
            accepted = list(pool.map(settings_of, sorted(versions)))
        texts = {
            TARGET: formatted(table.module(table.joined(found))),
            SETTINGS: formatted(settings.module(settings.joined(accepted))),
        }
    except (jars.ReleaseError, table.TableError) as error:
        print(f"{error}\nNothing was written.", file=sys.stderr)
        return 2
    would_change = False
    for target, text in texts.items():
        changed = not target.exists() or text != target.read_text(encoding="utf-8")
        if changed and not given.check:
            target.write_text(text, encoding="utf-8")
        state = "unchanged" if not changed else "would change" if given.check else "written"
        print(f"{target.relative_to(jars.ROOT)}: {state}, from {len(found)} builds")
        would_change = would_change or changed
    return int(would_change and given.check)


def described(version: str) -> table.Described:
    """Return what one build says."""
    libs = jars.resolved(version)
    return table.parsed(version, *jars.built_for(libs), jars.said(version, libs, "describe"))


def settings_of(version: str) -> settings.Accepted:
    """Return what one build accepts."""
    return settings.parsed(version, jars.said(version, jars.resolved(version), program=jars.SETTINGS))


def formatted(text: str) -> str:
    """Return the module as ruff formats it."""
    ruff = [str(jars.ROOT / ".venv" / "bin" / "ruff"), "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
