# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible callback that kills its own ansible-playbook with SIGKILL around chosen records of the journal.

It is loaded by path (ANSIBLE_CALLBACK_PLUGINS) in the main process, before any worker is forked, and wraps the one
place that writes the journal. $KILLS_PENDING lists the points still wanted, a line each; the one that was hit is
appended to $KILLS_HIT.
"""

from __future__ import annotations

import contextlib
import os
import signal

from ansible.plugins.callback import CallbackBase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tools.crash_tests import points

DOCUMENTATION = """
name: killer
type: aggregate
short_description: Kills the control process around records of the journal
description: For tests of the collection alone.
"""


class CallbackModule(CallbackBase):
    """Wraps the journal as soon as it is loaded."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "killer"

    def __init__(self) -> None:
        super().__init__()
        with open(os.environ["KILLS_PENDING"], encoding="utf-8") as stream:
            pending = set(stream.read().splitlines())
        write = RunArtifacts.note
        main = os.getpid()  # a worker's parent is another one as soon as this is killed

        def note(self, kind, name, t=None, **more):
            event = points.of_event(kind, name, more)
            _kill_at(f"before {event}", pending, main)
            write(self, kind, name, t, **more)
            _kill_at(f"after {event}", pending, main)

        RunArtifacts.note = note


def _kill_at(point: str, pending: set[str], main: int) -> None:
    if point not in pending:
        return
    with open(os.environ["KILLS_HIT"], "a", encoding="utf-8") as stream:
        stream.write(f"{point}\n")
        stream.flush()
        os.fsync(stream.fileno())
    for process in (main, os.getpid()):  # ansible-playbook and this, one of its workers
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
