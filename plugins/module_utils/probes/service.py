# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's services, by systemd where it runs and by `service` elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time

_PROPERTIES = (
    "LoadState,ActiveState,SubState,UnitFileState,MainPID,InvocationID,Result,ExecMainStatus,Restart,"
    "TimeoutStopUSec,NRestarts,ExecMainStartTimestampMonotonic,ExecStart,DropInPaths"
)
# `systemctl mask` does nothing to a unit whose file stands in /etc/systemd/system, as operators' own do.
KEEPS_DOWN = "quorumshift-keeps-it-down.conf"
_KEEPS_DOWN_TEXT = """# Quorumshift keeps this service down until it is unmasked: see its playbook that was run last.
[Unit]
ConditionPathExists=/proc/quorumshift/keeps/it/down
"""
_OTHERS = re.compile(r"[=$]|log4j")
_ARGUMENTS = re.compile(r"argv\[\]=(.*?) ;")


class ServiceError(RuntimeError):
    """A service that did not do as told; the text carries what the service manager said."""


def state(name: str) -> dict:
    """Return {manager, name, active (bool), main_pid (int, 0 when down), masked (bool), ...systemd's own words}."""
    if not _systemd():
        done = _run(["service", name, "status"])
        return {"manager": "service", "name": name, "active": done.returncode == 0, "main_pid": 0, "masked": False}
    unit = _unit(name)
    shown = _run(["systemctl", "show", unit, "--property", _PROPERTIES]).stdout
    tokens = dict(line.partition("=")[::2] for line in shown.splitlines())
    return {
        "manager": "systemd",
        "name": unit,
        "exists": tokens.get("LoadState") not in ("not-found", "", None),
        # `activating` are a unit whose ExecStartPre runs and a forking one that starts, and as well one whose process
        # ended and that systemd is about to start again.
        "active": tokens.get("ActiveState") in ("active", "reloading", "deactivating")
        or (tokens.get("ActiveState") == "activating" and not tokens.get("SubState", "").startswith("auto-restart")),
        "main_pid": int(tokens.get("MainPID") or 0),
        "masked": tokens.get("UnitFileState", "").startswith("masked")
        or tokens.get("LoadState") == "masked"
        or KEEPS_DOWN in tokens.get("DropInPaths", ""),
        "sub_state": tokens.get("SubState", ""),
        "active_state": tokens.get("ActiveState", ""),
        "result": tokens.get("Result", ""),
        "restart": tokens.get("Restart", ""),
        "timeout_stop": tokens.get("TimeoutStopUSec", ""),
        "unit_file_state": tokens.get("UnitFileState", ""),
        "starts_with": _properties_file(tokens.get("ExecStart", "")),
        "invocation": tokens.get("InvocationID", ""),
        "restarts": int(tokens.get("NRestarts") or 0),
        "started_at": _epoch(tokens.get("ExecMainStartTimestampMonotonic")),
    }


def begin(action: str, name: str) -> None:
    """Ask for `start` or `stop` and return at once; the caller waits for what it wants to see (`state`)."""
    if _systemd():
        if action == "start":
            # A unit that was restarted often in a short time is refused by StartLimit; a turn is not a restart loop.
            _run(["systemctl", "reset-failed", _unit(name)])
        done = _run(["systemctl", "--no-block", action, _unit(name)])
    else:
        done = _run(["service", name, action])
    if done.returncode != 0:
        raise ServiceError(f"{action} of service {name} was refused: {(done.stderr or done.stdout).strip()}")


def kill(name: str) -> None:
    """End all processes of a service by SIGKILL. Raises ServiceError where systemd does not run."""
    if not _systemd():
        raise ServiceError(f"service {name} did not stop, and without systemd its processes are not known")
    done = _run(["systemctl", "kill", "--signal=KILL", _unit(name)])
    if done.returncode != 0:
        raise ServiceError(f"service {name} could not be killed: {done.stderr.strip()}")


def keep_down(name: str, down: bool) -> bool:
    """Let nothing start a service, a reboot included, or allow it again; say whether that was a change.

    A running service goes on. Raises ServiceError where systemd does not run.
    """
    if not _systemd():
        raise ServiceError(f"service {name} cannot be masked: this host does not run systemd")
    path = os.path.join("/etc/systemd/system", f"{_unit(name)}.d", KEEPS_DOWN)
    if os.path.exists(path) == down:
        return False
    if down:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(_KEEPS_DOWN_TEXT)
    else:
        os.unlink(path)
        with contextlib.suppress(OSError):  # somebody's own drop-ins stay
            os.rmdir(os.path.dirname(path))
    done = _run(["systemctl", "daemon-reload"])
    if done.returncode != 0:
        raise ServiceError(f"systemctl daemon-reload failed: {done.stderr.strip()}")
    return True


def _properties_file(exec_start: str) -> str | None:
    """Return the properties file that a unit's command names, drop-ins included; None when it does not name one by a
    whole path: systemd shows variables as they are written, and a script may know the file by itself."""
    arguments = " ".join(_ARGUMENTS.findall(exec_start)).split()
    named = [one for one in arguments if one[0] == "/" and one.endswith(".properties") and not _OTHERS.search(one)]
    return named[-1] if named else None


def _epoch(monotonic_us: str | None) -> float | None:
    """Return the time of a systemd timestamp in epoch seconds; its clock is CLOCK_MONOTONIC, in microseconds."""
    if not monotonic_us or not monotonic_us.isdigit() or monotonic_us == "0":
        return None
    return round(time.time() - time.clock_gettime(time.CLOCK_MONOTONIC) + int(monotonic_us) / 1e6, 3)


def _unit(name: str) -> str:
    return name if "." in name else name + ".service"


def _systemd() -> bool:
    return os.path.isdir("/run/systemd/system") and shutil.which("systemctl") is not None


def _run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
