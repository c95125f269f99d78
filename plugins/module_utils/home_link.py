# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The link from which a node's service starts Kafka: where it leads, and how it is switched to another release.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Dict

from .probes import installation, node, service
from .restart_record import RestartError

_NEW = ".quorumshift"
_START = "bin/kafka-server-start.sh"
_JAVA = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def read(home: str, to: str, service_name: str) -> Dict[str, Any]:
    """Return {home: {path, is_link, target, version}, to: {path, exists, version, starts}, active, java}.

    `target`: where the link leads, None without a link; `starts`: whether there is the script that starts Kafka;
    `java`: the major version of the running node's Java, None if it is unknown.
    """
    found = service.state(service_name)
    return {
        "home": {
            "path": home,
            "is_link": os.path.islink(home),
            "target": target(home),
            "version": installation.installed_version(home),
        },
        "to": {
            "path": to,
            "exists": os.path.isdir(to),
            "version": installation.installed_version(to),
            "starts": os.path.exists(installation.tool(os.path.join(to, _START))),
        },
        "active": bool(found["active"]),
        "java": _java(node.process(found["main_pid"])[0]),
    }


def target(home: str) -> str | None:
    """Return where the link leads, as it is written; None if it is no link."""
    return os.readlink(home) if os.path.islink(home) else None


def switch(home: str, to: str) -> None:
    """Replace the link by one to another directory, by rename. Raises RestartError where it is no link, OSError."""
    if not os.path.islink(home):
        raise RestartError(f"{home} is no link: nothing was switched")
    owner, new = os.lstat(home), home + _NEW
    with contextlib.suppress(FileNotFoundError):  # of a worker that was killed
        os.unlink(new)
    os.symlink(to, new)
    os.lchown(new, owner.st_uid, owner.st_gid)
    os.replace(new, home)


def running_version(service_name: str) -> str | None:
    """Return the version of Kafka that the service runs, None if it cannot be seen."""
    return installation.running_version(*node.process(service.state(service_name)["main_pid"]))


def require(service_name: str, home: str, version: str) -> None:
    """Raise RestartError if the service runs another version, which its own directory must have given it."""
    found = running_version(service_name)
    if found not in (None, version):
        raise RestartError(
            f"{service_name} runs Kafka {found}, though {home} leads to {version}: its unit does not start Kafka from "
            f"{home}. Correct the unit, or quorumshift_kafka_home"
        )


def _java(pid: int) -> int | None:
    """Return the major version of a process's Java, by the file `release` of its JDK or JRE."""
    try:
        binary = os.readlink(f"/proc/{pid}/exe")
        with open(os.path.join(os.path.dirname(os.path.dirname(binary)), "release"), encoding="utf-8") as stream:
            found = _JAVA.search(stream.read())
    except (OSError, ValueError):
        return None
    return int(found.group(1)) if found else None
