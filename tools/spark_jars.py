# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch the jars of Spark's Kafka source, which data_fingerprint needs: ``python -m tools.spark_jars``.

They come from spark/pom.xml by Maven, are checked against spark/jars.sha256 and lie in .build/spark/jars.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "extensions" / "molecule" / "bed"))
import jars
from layout import BedError


def main() -> int:
    """Fetch them unless they are there."""
    try:
        fetched = jars.resolve_into(ROOT / "spark" / "pom.xml", ROOT / ".build" / "spark" / "jars")
    except BedError as error:
        print(f"spark_jars: {error}", file=sys.stderr)
        return 1
    print("spark_jars: fetched" if fetched else "spark_jars: there already")
    return 0


if __name__ == "__main__":
    sys.exit(main())
