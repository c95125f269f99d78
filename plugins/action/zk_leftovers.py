# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_leftovers: remove what other applications left on the destination, and journal it."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Lists or removes."""

    def done(self, args, result):
        if result["changed"]:
            znodes = sum(leftover["znodes"] for leftover in result["leftovers"])
            self.say(f"removed {znodes} znodes of other applications from the destination")
            self.artifacts().note("event", "zk_leftovers removed", leftovers=result["leftovers"])
