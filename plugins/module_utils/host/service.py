# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control a host's services, with systemd if it runs, else with `service`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Service

_PROPERTIES = (
    "LoadState,ActiveState,SubState,UnitFileState,MainPID,InvocationID,Result,ExecMainStatus,Restart,"
    "TimeoutStopUSec,NRestarts,ExecMainStartTimestampMonotonic,ExecStart,DropInPaths"
)
# `systemctl mask` fails for a unit file in /etc/systemd/system, where operators put their own.
MASK_DROP_IN = "quorumshift-keeps-it-down.conf"
_MASK_TEXT = """# Quorumshift masks this service: it does not start until a playbook of Quorumshift unmasks it.
[Unit]
ConditionPathExists=/proc/quorumshift/masked
"""
_OTHERS = re.compile(r"[=$]|log4j")
_ARGUMENTS = re.compile(r"argv\[\]=(.*?) ;")


class ServiceError(RuntimeError):
    """A service could not be started, stopped or masked; the text quotes the service manager."""


def read_state(name: str) -> Service:
    """Return {manager, name, active (bool), main_pid (int, 0 if down), masked (bool), ... systemd's properties}."""
    if not runs_systemd():
        done = _run(["service", name, "status"])
        return {"manager": "service", "name": name, "active": done.returncode == 0, "main_pid": 0, "masked": False}
    unit = systemd.unit_name(name)
    lines = _run(["systemctl", "show", unit, "--property", _PROPERTIES]).stdout.splitlines()
    shown = dict(line.partition("=")[::2] for line in lines)
    return {
        "manager": "systemd",
        "name": unit,
        "exists": shown.get("LoadState") not in ("not-found", "", None),
        # `activating`: ExecStartPre runs or a forking unit starts, but also a unit that systemd is about to restart.
        "active": shown.get("ActiveState") in ("active", "reloading", "deactivating")
        or (shown.get("ActiveState") == "activating" and not shown.get("SubState", "").startswith("auto-restart")),
        "main_pid": int(shown.get("MainPID") or 0),
        "masked": shown.get("UnitFileState", "").startswith("masked")
        or shown.get("LoadState") == "masked"
        or MASK_DROP_IN in shown.get("DropInPaths", ""),
        "sub_state": shown.get("SubState", ""),
        "active_state": shown.get("ActiveState", ""),
        "result": shown.get("Result", ""),
        "restart": shown.get("Restart", ""),
        "timeout_stop": shown.get("TimeoutStopUSec", ""),
        "unit_file_state": shown.get("UnitFileState", ""),
        "starts_with": _properties_file(shown.get("ExecStart", "")),
        "invocation": shown.get("InvocationID", ""),
        "restarts": int(shown.get("NRestarts") or 0),
        "started_at": _epoch(shown.get("ExecMainStartTimestampMonotonic")),
    }


def read_environment(name: str) -> dict[str, str] | None:
    """Return the environment of a service's process, or of its unit while it is down; None if it cannot be read."""
    pid = read_state(name)["main_pid"]
    try:
        if pid:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                pairs = stream.read().decode(errors="replace").split("\0")
            return dict(pair.partition("=")[::2] for pair in pairs if pair)
        if not runs_systemd():
            return None
        shown = _run(
            ["systemctl", "show", systemd.unit_name(name), "--property", "Environment,EnvironmentFiles"]
        ).stdout
        lines = [line.partition("=")[::2] for line in shown.split("\n")]
        found: dict[str, str] = {}
        for _key, value in (line for line in lines if line[0] == "Environment"):
            found.update(systemd.parse_shown_environment(value))
        for _key, value in (line for line in lines if line[0] == "EnvironmentFiles"):  # each overrides those before it
            path = value.rpartition(" (")[0]
            if value.endswith("(ignore_errors=yes)") and not os.path.exists(path):
                continue
            with open(path, encoding="utf-8", errors="replace") as stream:
                found.update(systemd.parse_environment_file(stream.read()))
        return found
    except (OSError, ValueError):
        return None


def begin(action: str, name: str) -> None:
    """Begin `start` or `stop` and return at once; the caller polls `state`. Raises ServiceError."""
    if runs_systemd():
        if action == "start":
            # StartLimit would reject a unit that was restarted often in a short time.
            _run(["systemctl", "reset-failed", systemd.unit_name(name)])
        done = _run(["systemctl", "--no-block", action, systemd.unit_name(name)])
    else:
        done = _run(["service", name, action])
    if done.returncode != 0:
        raise ServiceError(
            f"{action} of service {name} failed: {(done.stderr or done.stdout).strip()} (QS-RESTART-012)"
        )


def kill(name: str) -> None:
    """Send SIGKILL to all processes of a service. Raises ServiceError without systemd."""
    if not runs_systemd():
        raise ServiceError(
            f"service {name} did not stop and cannot be killed: this host does not run systemd (QS-COPY-004)"
        )
    done = _run(["systemctl", "kill", "--signal=KILL", systemd.unit_name(name)])
    if done.returncode != 0:
        raise ServiceError(f"service {name} could not be killed: {done.stderr.strip()} (QS-COPY-004)")


def set_masked(name: str, masked: bool) -> bool:
    """Mask a service, so that nothing starts it, not even a reboot, or unmask it. Return whether that was a change.

    A running service continues. Raises ServiceError without systemd.
    """
    if not runs_systemd():
        raise ServiceError(f"service {name} cannot be masked: this host does not run systemd (QS-COPY-004)")
    path = systemd.drop_in(name, MASK_DROP_IN)
    if os.path.exists(path) == masked:
        return False
    if masked:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(_MASK_TEXT)
    else:
        os.unlink(path)
        with contextlib.suppress(OSError):  # the directory may hold the operator's drop-ins
            os.rmdir(os.path.dirname(path))
    done = _run(["systemctl", "daemon-reload"])
    if done.returncode != 0:
        raise ServiceError(f"systemctl daemon-reload failed: {done.stderr.strip()} (QS-COPY-004)")
    return True


def explain_no_systemd() -> str:
    """Return why systemd cannot be used on this host, '' if it can: the manager answers, and starts transient units."""
    if not runs_systemd():
        return "it does not run"
    if shutil.which("systemd-run") is None:
        return "the command systemd-run is missing"
    done = _run(["systemctl", "show", "--property", "Version"])
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()


def read_journal(name: str, lines: int = 100, output: str = "cat") -> list[str]:
    """Return the last lines that a service wrote to systemd's journal, [] if they cannot be read. `output`: the format
    of journalctl, `short-iso` for lines with their time."""
    if not runs_systemd() or shutil.which("journalctl") is None:
        return []
    command = [
        "journalctl",
        "--unit",
        systemd.unit_name(name),
        "--lines",
        str(lines),
        "--output",
        output,
        "--no-pager",
        "--quiet",
    ]
    return [line for line in _run(command).stdout.splitlines() if line.strip()]


def begin_transient(unit: str, command: list[str]) -> None:
    """Start a command as a transient unit of systemd, outside of the caller's session. Raises ServiceError, also while
    a unit of this name exists."""
    quiet = [f"--property=Standard{stream}=null" for stream in ("Output", "Error")]
    try:
        done = _run(["systemd-run", "--quiet", "--collect", f"--unit={unit}", *quiet, *command])
    except OSError as error:
        raise ServiceError(f"systemd-run of {unit} failed: {error} (QS-RESTART-011)") from None
    if done.returncode != 0:
        raise ServiceError(f"systemd-run of {unit} failed: {(done.stderr or done.stdout).strip()} (QS-RESTART-011)")


def is_running(unit: str) -> bool:
    """Return whether a unit of systemd runs, or is about to."""
    shown = _run(["systemctl", "show", unit, "--property", "ActiveState"]).stdout.strip()
    return shown.partition("=")[2] in ("active", "activating", "reloading", "deactivating")


def _properties_file(exec_start: str) -> str | None:
    """Return the properties file that a unit's command names by an absolute path, None if there is none: systemd shows
    variables unexpanded, and a script may name the file itself."""
    arguments = " ".join(_ARGUMENTS.findall(exec_start)).split()
    files = [path for path in arguments if path[0] == "/" and path.endswith(".properties") and not _OTHERS.search(path)]
    return files[-1] if files else None


def _epoch(monotonic_us: str | None) -> float | None:
    """Return a systemd timestamp (CLOCK_MONOTONIC, in microseconds) in epoch seconds."""
    if not monotonic_us or not monotonic_us.isdigit() or monotonic_us == "0":
        return None
    return round(time.time() - time.clock_gettime(time.CLOCK_MONOTONIC) + int(monotonic_us) / 1e6, 3)


def runs_systemd() -> bool:
    """Return whether systemd is this host's service manager."""
    return os.path.isdir("/run/systemd/system") and shutil.which("systemctl") is not None


def _run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
