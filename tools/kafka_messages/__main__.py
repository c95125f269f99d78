# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the collection's definitions.py anew: `python -m tools.kafka_messages [--check] [--add RELEASE NAME ...]`.

It is made of the JSON files in the tree. --add first takes these files from the jars of a release, which Maven
resolves: `--add 3.9.2 VoteRequest VoteResponse`. With --check nothing is written, and the exit code is 1 if the module
would change.
"""

from __future__ import annotations

import argparse
import sys

from tools.kafka_messages import HOME, ROOT, TARGET, module, of_jars, sources
from tools.kafka_releases import jars


def main() -> int:
    """Write the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the module would change")
    parser.add_argument("--add", nargs="+", metavar=("RELEASE", "NAME"), help="take these definitions from the jars")
    given = parser.parse_args()
    if given.add:
        release, *names = given.add
        try:
            found = of_jars(release, jars.resolved(release))
        except jars.ReleaseError as error:
            print(error, file=sys.stderr)
            return 2
        missing = [name for name in names if f"{name}.json" not in found]
        if missing:
            print(f"The jars of Kafka {release} have no {', '.join(missing)}. Nothing was written.", file=sys.stderr)
            return 2
        (HOME / release).mkdir(exist_ok=True)
        for name in names:
            (HOME / release / f"{name}.json").write_bytes(found[f"{name}.json"].encode("utf-8"))
    text = module()
    changed = not TARGET.exists() or text != TARGET.read_text(encoding="utf-8")
    if changed and not given.check:
        TARGET.write_text(text, encoding="utf-8")
    state = "unchanged" if not changed else "would change" if given.check else "written"
    print(f"{TARGET.relative_to(ROOT)}: {state}, from {len(sources())} definitions")
    return int(changed and given.check)


if __name__ == "__main__":
    sys.exit(main())
