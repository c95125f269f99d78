# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where a node's service starts Kafka: a link, which is switched to another release, or a directory, in which
the operator's hook installs it.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError

_NEW = ".quorumshift"
_MOST_LINKS = 40  # path_resolution(7)
_START = "bin/kafka-server-start.sh"


def read(home: str, to: str, service_name: str, config_file: str = "", hook: str = "") -> Dict[str, Any]:
    """Return {home: {path, is_link, target, real, version, package, shared, holds}, to: {path, exists, version,
    starts}, running: {path, version, exists} or None, hook: {path, runs} or None, active, java}.

    `target`: where the link leads, None without a link; `real`: the path without links; `package`: that installed Kafka
    there, None if none did; `shared`: whether the directory has more than Kafka; `holds`: the node's own files below
    it, its properties file and what that names; `starts`: whether there is the script that starts Kafka; `running`:
    from where the process runs Kafka, None if it cannot be seen; `java`: the major version of the running node's Java,
    None if it is unknown.
    """
    found = service.read_state(service_name)
    home = os.path.normpath(home)  # with a slash at its end, a link is what it leads to
    is_link = os.path.islink(home)
    running = _running(found["main_pid"])
    return {
        "home": {
            "path": home,
            "is_link": is_link,
            "target": read_target(home),
            "real": os.path.realpath(home),
            "version": installation.installed_version(home),
            "package": None if is_link else installation.find_package(home),
            "shared": not is_link and installation.is_shared(home),
            "holds": _holds(home, to, config_file),
        },
        "to": {
            "path": to,
            "exists": os.path.isdir(to),
            "version": installation.installed_version(to),
            "starts": _starts(to),
        },
        "running": running._asdict() if running else None,
        "hook": {"path": hook, "runs": os.path.isfile(hook) and os.access(hook, os.X_OK)} if hook else None,
        "active": bool(found["active"]),
        "java": releases.java_release(installation.java_version(node.find_process(found["main_pid"])[0]) or ""),
    }


def _starts(home: str) -> bool:
    return os.path.exists(installation.tool_path(os.path.join(home, _START)))


def _running(pid: int) -> installation.Home | None:
    return installation.running_home(node.find_process(pid)[0])


def _holds(home: str, to: str, config_file: str) -> Dict[str, str]:
    """Return the node's own files below the directory, {path: what names it}: a switched link leaves them behind. Those
    that the other release has too are not among them, but for the properties file and the data."""
    try:
        values = node.read_properties(config_file) if config_file else {}
    except (OSError, ValueError):
        values = {}
    named = {config_file: "the properties file"}
    for key, value in sorted(values.items()):
        for path in value.split(","):
            named.setdefault(path.strip(), key)
    below = os.path.normpath(home) + "/"
    found = {path: key for path, key in named.items() if path[:1] == "/" and os.path.normpath(path).startswith(below)}
    data = {config_file, *config_values.log_dirs(values), values.get("metadata.log.dir")}
    return {
        path: key
        for path, key in found.items()
        if path in data or not os.path.exists(os.path.join(to, os.path.normpath(path)[len(below) :]))
    }


def is_in_place(release: Mapping[str, str]) -> bool:
    """Return whether another release is installed in the same directory, by the operator's hook."""
    return os.path.normpath(release["to"]) == os.path.normpath(release["home"])


def read_earlier(release: Mapping[str, str], service_name: str) -> Dict[str, str]:
    """Return what a node has before its release is changed: {target: the directory to which its link is switched back,
    '' if none is known; from_version}.

    The process shows it, not the link, which may have been switched ahead of time. Raises RestartError where the
    process runs a release to which the node could not go back, and where the new release is not there.
    """
    home, to, version = os.path.normpath(release["home"]), release["to"], release["version"]
    running, ran = _running(service.read_state(service_name)["main_pid"]), read_running_version(service_name)
    installed = installation.installed_version(home)
    if is_in_place(release):
        return {"target": "", "from_version": ran or installed or ""}
    if installation.installed_version(to) != version or not _starts(to):
        raise RestartError(
            f"{to} does not have Kafka {version} with its start script. Install it there and run again (QS-RESTART-005)"
        )
    if leads_through(to, home):
        raise RestartError(
            f"{to} leads through the link {home}, which would then lead to itself. Set upgrade_home to the directory "
            f"of Kafka {version} itself, and run again (QS-RESTART-005)"
        )
    if running is None and ran not in (None, installed):
        raise RestartError(
            f"{service_name} runs Kafka {ran}, and {home} leads to {installed or 'no Kafka'}: from which directory it "
            f"runs cannot be seen, so it could not go back. Let {home} lead to Kafka {ran}, and run "
            "again (QS-RESTART-005)"
        )
    if running is not None and not running.exists:
        raise RestartError(
            f"{service_name} runs Kafka {running.version} from {running.path}, which is gone: it could not go back. "
            f"Install Kafka {running.version} there again, and run again (QS-RESTART-005)"
        )
    known = running.path if running else os.path.realpath(home)
    if known == os.path.realpath(to):
        return {"target": "", "from_version": ran or ""}
    led = read_target(home) or ""
    return {"target": led if known == os.path.realpath(home) else known, "from_version": ran or installed or ""}


def read_target(home: str) -> str | None:
    """Return where the link leads, as it is written; None if it is no link."""
    home = os.path.normpath(home)
    return os.readlink(home) if os.path.islink(home) else None


def leads_through(path: str, home: str) -> bool:
    """Return whether a path, or a link that it follows, is `home` or below it."""
    link = os.path.join(os.path.realpath(os.path.dirname(home)), os.path.basename(home))
    left, current, followed = os.path.abspath(path).split("/")[1:], "/", 0
    while left and followed <= _MOST_LINKS:
        current = os.path.normpath(os.path.join(current, left.pop(0)))
        if current == link:
            return True
        if os.path.islink(current):
            target = os.readlink(current)
            left, followed = [*target.split("/"), *left], followed + 1
            current = "/" if target.startswith("/") else os.path.dirname(current)
    return False


def switch(home: str, to: str) -> None:
    """Replace the link by one to another directory, by rename. Raises RestartError where it is no link, OSError."""
    home = os.path.normpath(home)
    if not os.path.islink(home):
        raise RestartError(f"{home} is no link: nothing was switched (QS-RESTART-005)")
    owner, new = os.lstat(home), home + _NEW
    with contextlib.suppress(FileNotFoundError):  # of a worker that was killed
        os.unlink(new)
    os.symlink(to, new)
    os.lchown(new, owner.st_uid, owner.st_gid)
    os.replace(new, home)


def read_running_version(service_name: str) -> str | None:
    """Return the version of Kafka that the service runs, None if it cannot be seen."""
    return installation.running_version(*node.find_process(service.read_state(service_name)["main_pid"]))


def require_installed(home: str, version: str) -> None:
    """Raise RestartError if the hook left another version in the directory."""
    found = installation.installed_version(home)
    if found != version:
        raise RestartError(
            f"the hook left {'Kafka ' + found if found else 'no Kafka'} in {home}, instead of "
            f"{version} (QS-RESTART-006)"
        )


def require(service_name: str, home: str, version: str) -> None:
    """Raise RestartError if the service runs another version, which its own directory must have given it."""
    found = read_running_version(service_name)
    if found not in (None, version):
        raise RestartError(
            f"{service_name} runs Kafka {found}, though {home} leads to {version}: its unit does not start Kafka from "
            f"{home}. Correct the unit, or quorumshift_kafka_home (QS-RESTART-005)"
        )
