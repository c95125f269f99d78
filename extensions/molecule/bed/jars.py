# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kafka's and ZooKeeper's jars: resolved by Maven from pom.xml, each checked against jars.sha256."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from layout import BED, LIBS, BedError, digest_of

_POM = BED / "pom.xml"
_SUMS = BED / "jars.sha256"
_COMPLETE = LIBS / ".complete"


def resolve() -> bool:
    """Fill .build/kafka/libs unless it is complete for this pom and these sums; True when it had to be done."""
    wanted = digest_of(_POM, _SUMS)
    if _COMPLETE.exists() and _COMPLETE.read_text() == wanted:
        return False
    if shutil.which("mvn") is None:
        raise BedError("mvn not found; install Maven and a JDK: apt-get install maven openjdk-17-jdk-headless")
    fresh = LIBS.with_name("libs.new")
    shutil.rmtree(fresh, ignore_errors=True)
    maven = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if maven.returncode:
        raise BedError(f"Maven could not resolve {_POM}:\n{maven.stdout[-3000:]}")
    _check(fresh)
    shutil.rmtree(LIBS, ignore_errors=True)
    fresh.rename(LIBS)
    _COMPLETE.write_text(wanted)
    return True


def _check(directory: Path) -> None:
    recorded = dict(reversed(line.split("  ", 1)) for line in _SUMS.read_text().splitlines())
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in directory.glob("*.jar")}
    wrong = [
        f"{name}: recorded {recorded.get(name, 'not at all')}, resolved {found.get(name, 'not at all')}"
        for name in sorted(recorded.keys() | found.keys())
        if recorded.get(name) != found.get(name)
    ]
    if wrong:
        raise BedError("jars differ from jars.sha256; look into it before anything runs them:\n" + "\n".join(wrong))
