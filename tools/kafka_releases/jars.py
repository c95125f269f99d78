# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jars of a release of Kafka, and what their own classes say.

Maven resolves `org.apache.kafka:kafka_2.13` with all that it needs to `.build/kafka_releases/VERSION`, and
KafkaRelease.java runs on these jars.
"""

from __future__ import annotations

import functools
import os
import shutil
import struct
import subprocess
import threading
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build" / "kafka_releases"
PROGRAM = Path(__file__).with_name("KafkaRelease.java")
SETTINGS = Path(__file__).with_name("KafkaSettings.java")
LIMIT_S = 600
_FIRST_CLASS_FILE = 44  # the major version of Java's class files is its release and this
_COMPILING = threading.Lock()
# the class that starts a broker, and one that only releases with ZooKeeper have
MAIN, ZOOKEEPER = "kafka/Kafka.class", "kafka/zk/KafkaZkClient.class"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.quorumshift</groupId>
  <artifactId>kafka-{version}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>3.6.1</version>
      </plugin>
    </plugins>
  </build>
</project>
"""


class ReleaseError(Exception):
    """The jars of a release cannot be resolved or read."""


def resolved(version: str) -> Path:
    """Return the directory with the jars of a release, resolved by Maven at first. Raises ReleaseError."""
    libs = BUILD / version
    if libs.exists():
        return libs
    BUILD.mkdir(parents=True, exist_ok=True)
    pom, fresh = BUILD / f"{version}.pom.xml", BUILD / f"{version}.new"
    pom.write_text(_POM.format(version=version), encoding="utf-8")
    shutil.rmtree(fresh, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise ReleaseError(f"Maven cannot resolve Kafka {version}:\n{done.stdout[-1500:]}{done.stderr[-500:]}")
    fresh.rename(libs)
    return libs


def built_for(libs: Path) -> tuple[int, bool]:
    """Return the release of Java that a broker of these jars needs, and whether they have ZooKeeper."""
    (jar,) = libs.glob("kafka_2.13-*.jar")
    with zipfile.ZipFile(jar) as opened:
        _magic, _minor, major = struct.unpack(">IHH", opened.read(MAIN)[:8])
        return major - _FIRST_CLASS_FILE, ZOOKEEPER in opened.namelist()


@functools.lru_cache(maxsize=None)
def running_java() -> int:
    """Return the release of the Java that runs KafkaRelease.java."""
    done = subprocess.run(
        [_java(), "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
    )
    lines = (line.strip().partition(" = ") for line in done.stderr.splitlines())
    return int({name: value for name, _equals, value in lines}["java.specification.version"].rpartition(".")[2])


def said(version: str, libs: Path, *what: str, program: Path = PROGRAM) -> list[tuple[str, ...]]:
    """Return the lines of a program as tuples of fields. `what`: describe or behave for KafkaRelease.java, nothing for
    SETTINGS. Raises ReleaseError."""
    needed, _zookeeper = built_for(libs)
    if needed > running_java():
        raise ReleaseError(
            f"Kafka {version} is built for Java {needed}, and this is Java {running_java()}. Set JAVA_HOME to a JDK "
            f"{needed}, and run again"
        )
    flags = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
    jars = os.pathsep.join(str(jar) for jar in sorted(libs.glob("*.jar")))
    command = [_java(), *flags, "-cp", f"{_compiled(program)}{os.pathsep}{jars}", program.stem, *what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise ReleaseError(f"the classes of Kafka {version} cannot be read:\n{done.stderr[-2000:]}")
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def _compiled(program: Path) -> Path:
    """Return the directory of a program's classes; it needs no jar of Kafka."""
    with _COMPILING:
        return _classes(program)


@functools.lru_cache(maxsize=None)
def _classes(program: Path) -> Path:
    classes = BUILD / "classes"
    command = [_java("javac"), "-d", str(classes), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise ReleaseError(f"{program.name} cannot be compiled:\n{done.stderr[-2000:]}")
    return classes


def _java(name: str = "java") -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{name}" if home else name
