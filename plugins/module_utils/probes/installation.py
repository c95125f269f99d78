# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find Kafka's version and tools on a host, in the layouts of Apache Kafka and of Confluent's packages.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import os
import re

STORAGE = "bin/kafka-storage.sh"  # formats a controller's log directory
_JARS = ("libs", "share/java/kafka")  # Apache; Confluent's archive, and its packages in /usr
_JAR = re.compile(r"kafka_\d\.\d+-(\d[\w.+-]*?)\.jar\b")
_NO_CODE = re.compile(r"-(sources|javadoc|scaladoc|test|test-sources)$")


def tool(path: str) -> str:
    """Return the path of one of Kafka's scripts: Confluent's packages name it without `.sh`."""
    without = path[: -len(".sh")] if path.endswith(".sh") else path
    return without if not os.path.exists(path) and os.path.exists(without) else path


def installed_version(kafka_home: str) -> str | None:
    """Return the version of the Kafka jar below `kafka_home`, None if there is none."""
    patterns = [os.path.join(glob.escape(kafka_home), directory, "kafka_*.jar") for directory in _JARS]
    return _version(os.path.basename(path) for pattern in patterns for path in sorted(glob.glob(pattern)))


def running_version(pid: int, arguments: list[str]) -> str | None:
    """Return the version of the Kafka jar that a process has loaded, None if it cannot be seen.

    The command line names the jar, or only a directory (`/usr/share/java/kafka/*`). The process keeps the jars of its
    class path open.
    """
    return _version(arguments) or _version(_open_files(pid))


def _open_files(pid: int) -> list[str]:
    opened = []
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            opened.append(os.readlink(link))
        except OSError:
            continue  # closed meanwhile
    return opened


def _version(texts) -> str | None:
    found = (match for text in texts for match in _JAR.findall(text))
    return next((version for version in found if not _NO_CODE.search(version)), None)
