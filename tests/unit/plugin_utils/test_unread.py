# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host's facts are missing, in the words of whoever knows."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import unread


@pytest.mark.parametrize(
    ("gathered", "reported"),
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
def test_why_a_host_was_not_read(gathered, reported):
    assert unread(gathered) == reported
