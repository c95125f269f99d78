# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a run when the forks of many hosts ask for it at once, and the message for a host without facts."""

from __future__ import annotations

import multiprocessing
import os
import time

import pytest
from ansible import constants
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import explain_unread

FORKS = 8


def _ask(directory, barrier, answers):
    constants.DEFAULT_LOCAL_TMP = directory
    slowly(base.secrets)
    barrier.wait(30)
    answers.put(base.QuorumshiftAction.run_key(None))


def slowly(secrets):
    """Give the other forks time to see that the key is not written yet."""
    make = secrets.token_hex
    secrets.token_hex = lambda size: time.sleep(0.05) or make(size)


def test_every_fork_gets_the_same_key(tmp_path):
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        barrier, answers = context.Barrier(FORKS), context.Queue()
        forks = [context.Process(target=_ask, args=(str(directory), barrier, answers)) for _fork in range(FORKS)]
        for fork in forks:
            fork.start()
        keys = {answers.get(timeout=30) for _fork in forks}
        for fork in forks:
            fork.join(30)
        assert len(keys) == 1 and len(keys.pop()) == 64
        assert os.listdir(directory) == ["quorumshift-key"]
        assert (directory / "quorumshift-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("gathered", "message"),
    [
        (None, "--limit or --start-at-task excluded it (QS-PHASE-006)"),
        (
            {
                "unreachable": True,
                "msg": "Failed to connect to the host via ssh:\n ssh: connect to host b2 port 22: timed out",
            },
            "Failed to connect to the host via ssh: ssh: connect to host b2 port 22: timed out",
        ),
        (
            {
                "unreachable": True,
                "msg": 'Task failed: Data could not be sent to remote host "b2". Make sure this host can be reached '
                "over ssh: ssh: connect to host b2 port 22: Connection refused",
            },
            "ssh: connect to host b2 port 22: Connection refused",
        ),
        (
            {"changed": False, "unread": "b2: it is damaged."},
            "its facts could not be read: it is damaged (QS-PHASE-006)",
        ),
        (
            {"failed": True, "msg": "b2: there is no Python."},
            "its facts could not be read: there is no Python (QS-PHASE-006)",
        ),
    ],
)
def test_message_says_why_the_facts_are_missing(gathered, message):
    assert explain_unread("b2", gathered) == message
