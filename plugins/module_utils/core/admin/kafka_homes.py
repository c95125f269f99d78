# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where a host's service starts Kafka, and why an upgrade may not change that. Pure, over what home_link.read
found.

There are two ways. A link is switched from the directory of one release to that of another. In any other directory,
such as one of packages, the operator's hook installs the release between stop and start. No directory is moved that has
more than Kafka.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Dict, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names

HOOK = "quorumshift_restart_hook"


def is_in_place(found: Mapping[str, Any]) -> bool:
    """Return whether the other release is installed in the same directory."""
    return os.path.normpath(found["to"]["path"]) == os.path.normpath(found["home"]["path"])


def refusals(host: str, version: str | None, found: Mapping[str, Any], target: str, must: bool) -> List[str]:
    """Return why the release of a host may not be changed to the target, as sentences.

    `version`: that runs, or is installed where none runs; `found`: of home_link.read, {} if it was not read; `must`:
    whether a node is upgraded there.
    """
    if not found:
        return [f"the directories of {host} were not read. Run the whole playbook (QS-RESTART-004)"]
    home = found["home"]
    if not must and not home["is_link"]:
        return []  # no node runs, and there is nothing to switch
    if is_in_place(found):
        return _check_in_place(host, found, target)
    reasons = _check_target(host, found["to"], target)
    if not home["is_link"]:
        return [*reasons, _check_directory(host, version, home, target)]
    return reasons + _check_own_files(host, home, must) + (_check_process(host, version, found, target) if must else [])


def find_switched_ahead(homes: Mapping[str, Mapping[str, Any]]) -> Dict[str, Dict[str, str]]:
    """Return the hosts whose link was switched ahead of their restart, {host: {path, target, runs}}."""
    found = {}
    for host, collected in sorted(homes.items()):
        home, running = collected["home"], collected.get("running")
        if home["is_link"] and running and running["path"] != home["real"]:
            found[host] = {"path": home["path"], "target": home["target"], "runs": running["path"]}
    return found


def find_hook_hosts(homes: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Return the hosts on which the hook installs the release."""
    return [host for host, found in sorted(homes.items()) if is_in_place(found) and not found["home"]["is_link"]]


def _check_in_place(host: str, found: Mapping[str, Any], target: str) -> List[str]:
    """Return why the release cannot be installed in the same directory."""
    home, hook = found["home"], found.get("hook")
    if home["is_link"]:
        return [
            f"upgrade_home of {host} is not set, or is the link {home['path']} itself. Set it to the directory of "
            f"Kafka {target} (QS-RESTART-004)"
        ]
    if not hook:
        return [_needs_hook(host, home, target)]
    if not hook["runs"]:
        return [f"{hook['path']} of {host} is no executable file. Correct {HOOK}, or install it there (QS-RESTART-004)"]
    return []


def _needs_hook(host: str, home: Mapping[str, Any], target: str) -> str:
    """Return why the hook must install the release."""
    return (
        f"{_name_home(host, home)}. Set {HOOK} to a command on the host that installs Kafka {target} there, and leave "
        "out upgrade_home. See docs/upgrades.md, Packages (QS-RESTART-004)"
    )


def _name_home(host: str, home: Mapping[str, Any]) -> str:
    """Return what an installation that is no link is."""
    if home.get("package"):
        return f"Kafka in {home['path']} of {host} is of the package {home['package']}"
    if home.get("shared"):
        return f"{home['path']} of {host} is a directory of the system, which has more than Kafka"
    return f"{home['path']} of {host} is no link"


def _check_directory(host: str, version: str | None, home: Mapping[str, Any], target: str) -> str:
    """Return why a directory cannot be switched."""
    if home.get("package") or home.get("shared"):
        return _needs_hook(host, home, target)
    if home.get("holds"):
        return (
            f"{home['path']} of {host} is no link, and has the node's own files: {_files(home)}. Move these elsewhere "
            f"and restart the node with them, or set {HOOK} and leave out upgrade_home. See docs/upgrades.md, "
            "Packages (QS-RESTART-004)"
        )
    path, beside = shlex.quote(home["path"]), shlex.quote(f"{home['path']}-{version or 'earlier'}")
    return (
        f"{home['path']} of {host} is no link, and the upgrade switches a link. Make it one, while Kafka runs: "
        f"mv -T {path} {beside} && ln -sT {beside} {path} (QS-RESTART-004)"
    )


def _files(home: Mapping[str, Any]) -> str:
    return format_names([f"{path} ({key})" for path, key in home["holds"].items()])


def _check_own_files(host: str, home: Mapping[str, Any], must: bool) -> List[str]:
    """Return why a link may not be switched: the node would lose its own files."""
    if not must or not home.get("holds"):
        return []
    return [
        f"{home['path']} of {host} has the node's own files: {_files(home)}. A switch of the link would leave them "
        "behind. Move them elsewhere, and restart the node with them (QS-RESTART-004)"
    ]


def _check_target(host: str, new: Mapping[str, Any], target: str) -> List[str]:
    """Return why a link cannot be switched to a directory."""
    if not new["exists"]:
        return [
            f"{new['path']} does not exist on {host}. Install Kafka {target} there, or correct "
            "upgrade_home (QS-RESTART-004)"
        ]
    if new["version"] != target:
        return [
            f"{new['path']} of {host} has {'Kafka ' + new['version'] if new['version'] else 'no Kafka jar in libs/'}, "
            f"and upgrade_to is {target}. Install that version there, or correct upgrade_home (QS-RESTART-004)"
        ]
    if not new["starts"]:
        return [
            f"{new['path']}/bin of {host} has no kafka-server-start.sh. Install the whole release "
            "there (QS-RESTART-004)"
        ]
    return []


def _check_process(host: str, version: str | None, found: Mapping[str, Any], target: str) -> List[str]:
    """Return why a node could not go back to what its process runs, or would start something else."""
    home, running = found["home"], found.get("running")
    if not found["active"] or version is None:
        return []
    if version == target and home["version"] != target:
        return [
            f"{host} runs Kafka {target}, and {home['path']} leads to {home['target']}, which its next start would "
            f"run. Correct the link: ln -sfn {shlex.quote(found['to']['path'])} "
            f"{shlex.quote(home['path'])} (QS-RESTART-004)"
        ]
    if version == target:
        return []
    if running and not running["exists"]:
        return [
            f"{host} runs Kafka {version} from {running['path']}, which is gone: it could not go back. Install "
            f"Kafka {version} there again (QS-RESTART-004)"
        ]
    if not running and home["version"] != version:
        return [
            f"{host} runs Kafka {version}, and {home['path']} leads to {home['target']}: from which directory it runs "
            f"cannot be seen, so it could not go back. Let the link lead to Kafka {version} (QS-RESTART-004)"
        ]
    return []
