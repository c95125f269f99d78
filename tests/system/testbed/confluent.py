# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Confluent's packages install, for the variant `confluent`: jars and scripts in `/usr`, without Confluent's code.

The jars are Apache's under the names of the community build (`-ccs`), the scripts have no `.sh`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Iterator

from tests.system.testbed.layout import LIBS, STATE, TESTBED

RELEASE = "7.9.2-ccs"  # of Confluent Platform: Kafka 3.9
JARS = "/usr/share/java/kafka"
_APACHE = "-3.9.2.jar"
_OWN = ("kafka-run-class", "kafka-server-start", "zookeeper-server-start")


def jars() -> Path:
    """Return a directory with Kafka's jars under the names of the community build, as links to the originals."""
    directory = STATE / "jars"
    fresh = directory.with_suffix(f".{os.getpid()}")
    if not directory.exists():
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for jar in LIBS.glob("*.jar"):
            os.link(jar, fresh / jar.name.replace(_APACHE, f"-{RELEASE}.jar"))
        fresh.rename(directory)
    return directory


def scripts(image_home: Path) -> Iterator[tuple[str, str, int]]:
    """Yield path, text and mode of each script and of its configuration. The tools are those of the image."""
    for name in _OWN:
        yield f"/usr/bin/{name}", (TESTBED / "templates" / "confluent" / name).read_text(), 0o755
    for file in sorted((image_home / "bin").iterdir()):
        if file.stem not in _OWN:
            text = file.read_text().replace("/opt/kafka/bin/kafka-run-class.sh", "/usr/bin/kafka-run-class")
            yield f"/usr/bin/{file.stem}", text, 0o755
    for file in (image_home / "config").iterdir():
        yield f"/etc/kafka/{file.name}", file.read_text(), 0o644
