# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the operator's own command on a host at three moments of a restart.

One contract for all of them: the command gets the moment as its argument and the restart in its environment, runs as
the worker does (root), may be called again for the same moment, and reports success by exit code 0.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import Record, RestartError

BEFORE_STOP, STOPPED, UP = "before-stop", "stopped", "up"
STEP = {moment: f"hook {moment}" for moment in (BEFORE_STOP, STOPPED, UP)}
_PAUSE_S = 0.1
_QUOTED = 600


class HookFailed(RestartError):
    """The hook failed at a moment of a restart."""


def run(spec: Mapping[str, Any], record: Record, moment: str, version: str = "", reverts: bool = False) -> None:
    """Run the hook at a moment of a restart, if there is one. Raises HookFailed where it fails or takes too long.

    `version`: the release of Kafka that is to be installed when the hook of the moment `stopped` ends, '' where the
    restart changes none; `reverts`: whether the worker gives the node back what it had before.
    """
    command = spec.get("hook")
    if not command:
        return
    record.step(STEP[moment])
    given = {
        **{name: spec.get(name) for name in ("host", "node_id", "service", "config_file", "cluster_id", "run", "mode")},
        "kind": record.values["kind"],
        "version": version,
        "reverts": "1" if reverts else "",
    }
    environment = {f"QUORUMSHIFT_{name.upper()}": "" if value is None else str(value) for name, value in given.items()}
    try:
        code, output = _ended([command, moment], {**os.environ, **environment}, spec["hook_timeout_s"])
    except OSError as error:
        raise HookFailed(
            f"the hook {command} could not be started at the moment {moment}: {error} (QS-RESTART-006)"
        ) from None
    if code != 0:
        how = f"it was killed after {spec['hook_timeout_s']:g} s" if code is None else f"exit code {code}"
        said = f". It said: {output}" if output else ""
        raise HookFailed(f"the hook {command} failed at the moment {moment}: {how}{said} (QS-RESTART-006)")


def _ended(command: list[str], environment: Mapping[str, str], timeout_s: float) -> tuple[int | None, str]:
    """Return (exit code, end of what it wrote); None for a command that was killed with all its processes.

    Its output is a file: a process that it leaves in the background would keep a pipe open.
    """
    with tempfile.TemporaryFile() as written:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
        ends = time.monotonic() + timeout_s
        code = process.poll()
        while code is None and time.monotonic() < ends:
            time.sleep(_PAUSE_S)
            code = process.poll()
        if code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        written.seek(0)
        text = written.read().decode("utf-8", "replace").strip()
    return code, mask(text)[-_QUOTED:]
