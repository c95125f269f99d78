# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find Kafka's version, tools and directory on a host, in the layouts of Apache Kafka and of Confluent's packages.

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import glob
import os
import pwd
import re
import shutil
import subprocess
from typing import Iterable, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import as_user

STORAGE = "bin/kafka-storage.sh"  # formats a controller's log directory
_JARS = ("libs", "share/java/kafka")  # Apache; Confluent's archive, and its packages in /usr
_JAR = re.compile(r"kafka_\d\.\d+-(\d[\w.+-]*?)\.jar\b")
_NO_CODE = re.compile(r"-(sources|javadoc|scaladoc|test|test-sources)$")
_READLINK_S = 10.0
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="([^"\n]+)"', re.MULTILINE)
_DELETED = " (deleted)"  # of a file that a process keeps open (proc(5))
_QUERIES = (("dpkg-query", "-S"), ("rpm", "-qf", "--queryformat", "%{NAME}"))
_QUERY_S = 30
# Of the file system hierarchy: below the first, everything belongs to the system; the others are shared as a whole
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr")
_OF_LOCAL = ("bin", "etc", "games", "include", "lib", "libexec", "man", "sbin", "share", "src")
_SHARED = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var")


class Home(NamedTuple):
    """From where a process runs Kafka. `path`: the directory, without links; `exists`: whether that jar is there."""

    path: str
    version: str
    exists: bool


def tool_path(path: str) -> str:
    """Return the path of one of Kafka's scripts: Confluent's packages name it without `.sh`."""
    without = path[: -len(".sh")] if path.endswith(".sh") else path
    return without if not os.path.exists(path) and os.path.exists(without) else path


def installed_version(kafka_home: str) -> str | None:
    """Return the version of the Kafka jar below `kafka_home`, None if there is none."""
    return _version(os.path.basename(path) for path in _installed_jars(kafka_home))


def _installed_jars(kafka_home: str) -> list[str]:
    patterns = [os.path.join(glob.escape(kafka_home), directory, "kafka_*.jar") for directory in _JARS]
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


def running_version(pid: int, arguments: list[str]) -> str | None:
    """Return the version of the Kafka jar that a process has loaded, None if it cannot be seen.

    The command line names the jar, or only a directory (`/usr/share/java/kafka/*`). The process keeps the jars of its
    class path open.
    """
    return _version(arguments) or _version(_open_files(pid))


def find_binary(pid: int) -> str:
    """Return the path of the program that a process runs. Raises OSError.

    Another user's needs CAP_SYS_PTRACE (proc(5)), which root lacks in a container. Its own user needs nothing.
    """
    link = f"/proc/{pid}/exe"
    try:
        return os.readlink(link)
    except PermissionError as error:
        try:
            user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
            done = as_user.run(user, ["readlink", link], _READLINK_S)
        except KeyError:
            raise error from None
        if done.code != 0 or not done.output.strip():
            raise
        return done.output.strip()


def java_version(pid: int) -> str | None:
    """Return the version of the Java that a process runs, by the file `release` of its installation; None if it cannot
    be seen."""
    try:
        release = os.path.join(os.path.dirname(os.path.dirname(find_binary(pid))), "release")
        with open(release, encoding="utf-8", errors="replace") as stream:
            found = _JAVA_VERSION.search(stream.read(1 << 16))
    except OSError:
        return None
    return found[1] if found else None


def running_home(pid: int) -> Home | None:
    """Return from where a process runs Kafka, None if it cannot be seen.

    The process keeps the jars of its class path open, and the kernel names them without links: a link that was switched
    since leads elsewhere.
    """
    for path in _open_files(pid):
        jar = path[: -len(_DELETED)] if path.endswith(_DELETED) else path
        version = _version([os.path.basename(jar)])
        home = next(
            (
                os.path.dirname(jar)[: -len(folder) - 1]
                for folder in _JARS
                if jar.startswith("/") and _is_in(jar, folder)
            ),
            "",
        )
        if version and home:
            return Home(home, version, os.path.exists(path))
    return None


def _is_in(path: str, directory: str) -> bool:
    return os.path.dirname(path).endswith(f"/{directory}")


def find_package(kafka_home: str) -> str | None:
    """Return the package that installed the Kafka jar below `kafka_home`, None if no package did."""
    jars = [path for path in _installed_jars(kafka_home) if _version([os.path.basename(path)])]
    for command in _QUERIES if jars else ():
        if shutil.which(command[0]) is None:
            continue
        # a package names the path at which it installed the file
        for path in dict.fromkeys((jars[0], os.path.realpath(jars[0]))):
            done = subprocess.run(
                [*command, path],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_QUERY_S,
            )
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.split(":", 1)[0].split()[0]
    return None


def is_shared(path: str) -> bool:
    """Return whether a directory is the system's, a file system's root or a user's home: it has more than Kafka, so it
    is never moved."""
    real = os.path.realpath(path)
    parts = real.split("/")
    if parts[1:3] == ["usr", "local"]:
        of_system = len(parts) == 3 or parts[3] in _OF_LOCAL
    else:
        of_system = any(real == directory or real.startswith(f"{directory}/") for directory in _SYSTEM)
    shared = real in _SHARED or os.path.dirname(real) in ("/var", "/home") or os.path.ismount(real)
    return of_system or shared or real in {os.path.realpath(user.pw_dir) for user in pwd.getpwall()}


def _open_files(pid: int) -> list[str]:
    opened = []
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            opened.append(os.readlink(link))
        except OSError:
            continue  # closed meanwhile
    return opened


def _version(texts: Iterable[str]) -> str | None:
    found = (match for text in texts for match in _JAR.findall(text))
    return next((version for version in found if not _NO_CODE.search(version)), None)
