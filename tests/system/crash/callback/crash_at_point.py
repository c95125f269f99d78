# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ansible callback that kills its own ansible-playbook with SIGKILL just before or after chosen journal records.

Ansible loads it by path (ANSIBLE_CALLBACK_PLUGINS) in the main process, before it forks workers. It wraps the function
that writes the journal. The file $CRASH_TESTS_PENDING lists the points that are still wanted, one a line. The callback
appends the point that it hit to the file $CRASH_TESTS_HIT.
"""

from __future__ import annotations

import contextlib
import os
import signal

from ansible.plugins.callback import CallbackBase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

from tests.system.crash import points

DOCUMENTATION = """
name: crash_at_point
type: aggregate
short_description: Kill the control process just before or after records of the journal
description: Only for the collection's own tests.
"""


class CallbackModule(CallbackBase):
    """Wraps the journal when it is loaded."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "crash_at_point"

    def __init__(self) -> None:
        super().__init__()
        with open(os.environ["CRASH_TESTS_PENDING"], encoding="utf-8") as stream:
            pending = set(stream.read().splitlines())
        write = RunArtifacts.note
        main = os.getpid()  # kept, since a worker's parent changes when this process is killed

        def note(self, kind, name, t=None, **more):
            event = points.of_event(kind, name, more)
            _kill_at(f"before {event}", pending, main)
            write(self, kind, name, t, **more)
            _kill_at(f"after {event}", pending, main)

        RunArtifacts.note = note


def _kill_at(point: str, pending: set[str], main: int) -> None:
    if point not in pending:
        return
    with open(os.environ["CRASH_TESTS_HIT"], "a", encoding="utf-8") as stream:
        stream.write(f"{point}\n")
        stream.flush()
        os.fsync(stream.fileno())
    for process in (main, os.getpid()):  # ansible-playbook and this worker
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
