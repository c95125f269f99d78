# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a module did not start on a host, from what its Python and its system say. Pure."""

from __future__ import annotations

import re
from typing import Mapping, Tuple

OLDEST = (3, 8)
"""The oldest Python on which this collection's code for hosts runs."""
PROBE = "'import sys; print(\"Python %d %d\" % sys.version_info[:2])'"
"""Prints the version, in Python 2 as well."""
_TOO_OLD = re.compile(r"ansible-core requires a minimum of Python version")
_SET = "Then set ansible_python_interpreter to its path in the inventory"
_INSTALL = (
    (("rhel", "centos", "rocky", "almalinux", "ol"), "8", "RHEL 8: dnf install python3.12"),
    (("rhel", "centos", "rocky", "almalinux", "ol"), "7", "RHEL 7: build Python, or use a host with a newer system"),
    (("ubuntu",), "18.04", "Ubuntu 18.04: apt install python3.8"),
    (("sles", "opensuse-leap"), "15", "SLES 15: zypper install python311"),
)


def is_not_started(result: Mapping) -> bool:
    """Return whether a task's result is of a module that never ran."""
    parsed = result.get("_ansible_parsed", True)
    return bool(result.get("failed")) and (
        ("module_stdout" in result and not parsed) or bool(_TOO_OLD.search(str(result.get("msg", ""))))
    )


def reason(interpreter: str, output: str, stderr: str, wanted: Tuple[int, int]) -> str:
    """Return why a module did not start.

    `output`: what `interpreter -c PROBE` and /etc/os-release print; `stderr`: of the module; `wanted`: the oldest
    Python that this ansible-core supports on hosts.
    """
    found, install = _parse_version(output), _suggest_install(output, wanted)
    if found is None:
        return f"there is no Python at {interpreter}. {install}. {_SET} (QS-RUN-010)"
    if found < tuple(wanted):
        return f"Python {'.'.join(map(str, found))} is too old: {interpreter}. {install}. {_SET} (QS-RUN-010)"
    return f"the module did not start: {_last_line(stderr)}. Run it again with -vvv to see all output (QS-RUN-010)"


def _parse_version(output: str) -> Tuple[int, int] | None:
    """Return the version that `PROBE` printed, None if it did not run."""
    found = re.search(r"^Python (\d+) (\d+)$", output, re.M)
    return (int(found.group(1)), int(found.group(2))) if found else None


def _last_line(text: str) -> str:
    """Return the last line of a text, which has the error in Python's tracebacks."""
    return " ".join((text.strip().splitlines() or ["it printed nothing"])[-1].split())


def _suggest_install(output: str, wanted: Tuple[int, int]) -> str:
    """Return how to install a Python on this system."""
    release = dict(re.findall(r"^(ID|VERSION_ID)=\"?([^\"\n]*)\"?$", output, re.M))
    for names, version, command in _INSTALL:
        if release.get("ID") in names and (release.get("VERSION_ID", "") + ".").startswith(version + "."):
            return command
    return f"Install Python {'.'.join(map(str, wanted))} or newer"
