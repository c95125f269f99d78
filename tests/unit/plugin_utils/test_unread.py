# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message for a host whose facts are missing."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import unread


@pytest.mark.parametrize(
    ("gathered", "message"),
    [
        (None, "--limit or --start-at-task excluded it"),
        (
            {
                "unreachable": True,
                "msg": "Failed to connect to the host via ssh:\n ssh: connect to host b2 port 22: timed out",
            },
            "it is unreachable: Failed to connect to the host via ssh: ssh: connect to host b2 port 22: timed out",
        ),
        ({"failed": True, "msg": "no Python there"}, "its facts could not be read: no Python there"),
    ],
)
def test_message_says_why_the_facts_are_missing(gathered, message):
    assert unread(gathered) == message
