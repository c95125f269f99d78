# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jars of Kafka, of ZooKeeper and of Spark's Kafka source: resolved by Maven, each checked against jars.sha256."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from layout import CHECKOUT, LIBS, SPARK_JARS, TESTBED, BedError, digest_of

_COMPLETE = ".complete"


def resolve() -> bool:
    """Fill .build/kafka/libs, and .build/spark/jars with what Spark needs to read topics, unless they are complete;
    True when it had to be done. Raises BedError."""
    return any([_resolve(TESTBED / "pom.xml", LIBS), _resolve(CHECKOUT / "spark" / "pom.xml", SPARK_JARS)])


def _resolve(pom: Path, libs: Path) -> bool:
    sums, complete = pom.parent / "jars.sha256", libs / _COMPLETE
    wanted = digest_of(pom, sums)
    if complete.exists() and complete.read_text() == wanted:
        return False
    if shutil.which("mvn") is None:
        raise BedError("mvn not found; install Maven and a JDK: apt-get install maven openjdk-17-jdk-headless")
    fresh = libs.with_name(f"{libs.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    maven = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if maven.returncode:
        raise BedError(f"Maven could not resolve {pom}:\n{maven.stdout[-3000:]}")
    _check(fresh, sums)
    shutil.rmtree(libs, ignore_errors=True)
    libs.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(libs)
    complete.write_text(wanted)
    return True


def _check(directory: Path, sums: Path) -> None:
    recorded = dict(reversed(line.split("  ", 1)) for line in sums.read_text().splitlines())
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in directory.glob("*.jar")}
    wrong = [
        f"{name}: recorded {recorded.get(name, 'not at all')}, resolved {found.get(name, 'not at all')}"
        for name in sorted(recorded.keys() | found.keys())
        if recorded.get(name) != found.get(name)
    ]
    if wrong:
        raise BedError(f"jars differ from {sums}; look into it before anything runs them:\n" + "\n".join(wrong))
