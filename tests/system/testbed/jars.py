# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jars of Kafka and ZooKeeper: resolved by Maven, checked against jars.sha256."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.system.testbed.layout import ADMIN_SERVER_LIBS, LIBS, TESTBED, TestbedError, digest_of, release_libs

_COMPLETE = ".complete"


def resolve() -> bool:
    """Fill .build/kafka/libs unless it is complete; return whether anything was done. Raise TestbedError."""
    return _resolve(TESTBED / "pom.xml", LIBS)


def resolve_release(version: str) -> bool:
    """Fill release_libs(version) unless it is complete; return whether anything was done. Raise TestbedError."""
    pom = TESTBED / "releases" / version / "pom.xml"
    if not pom.exists():
        known = ", ".join(sorted(directory.name for directory in pom.parents[1].iterdir()))
        raise TestbedError(f"the testbed has no jars of Kafka {version}. It has those of {known}")
    return _resolve(pom, release_libs(version))


def resolve_admin_server() -> Path:
    """Fill ADMIN_SERVER_LIBS unless it is complete, and return it: a server with these jars starts its AdminServer.
    Raise TestbedError."""
    _resolve(TESTBED / "admin_server" / "pom.xml", ADMIN_SERVER_LIBS)
    return ADMIN_SERVER_LIBS


def resolve_zookeeper(version: str) -> list[Path]:
    """Return the class path of a ZooKeeper server of another release: its own jars, and what it needs of Kafka's. Raise
    TestbedError."""
    resolve()
    own = LIBS.parents[1] / f"zookeeper-{version}" / "libs"
    _resolve(TESTBED / "zookeepers" / version / "pom.xml", own)
    return [*sorted(own.glob("*.jar")), *(jar for jar in sorted(LIBS.glob("*.jar")) if "zookeeper" not in jar.name)]


def _resolve(pom: Path, libs: Path) -> bool:
    sums, complete = pom.parent / "jars.sha256", libs / _COMPLETE
    digest = digest_of(pom, sums)
    if complete.exists() and complete.read_text() == digest:
        return False
    if shutil.which("mvn") is None:
        raise TestbedError("mvn is missing. Install Maven and a JDK: apt-get install maven openjdk-17-jdk-headless")
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
        raise TestbedError(f"Maven cannot resolve {pom}:\n{maven.stdout[-3000:]}")
    _check(fresh, sums)
    shutil.rmtree(libs, ignore_errors=True)
    libs.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(libs)
    complete.write_text(digest)
    return True


def _check(directory: Path, sums: Path) -> None:
    recorded = dict(reversed(line.split("  ", 1)) for line in sums.read_text().splitlines())
    resolved = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in directory.glob("*.jar")}
    wrong = [
        f"{name}: recorded {recorded.get(name, 'none')}, resolved {resolved.get(name, 'none')}"
        for name in sorted(recorded.keys() | resolved.keys())
        if recorded.get(name) != resolved.get(name)
    ]
    if wrong:
        raise TestbedError(f"jars differ from {sums}. Find the cause before you run them:\n" + "\n".join(wrong))
