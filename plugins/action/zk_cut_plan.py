# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_cut_plan: plan the cut, and show the plan."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Plans the cut."""

    def done(self, args, result):
        for note in result["notes"]:
            self.say(note)
        self.say(
            f"the cut takes about {result['estimate_s']:.1f} s, and each host undoes it by itself after "
            f"{result['deadline_s']:.1f} s. {result['sessions']} sessions, the shortest timeout "
            f"{result['timeout_ms']} ms; {result['znodes']} znodes"
        )
        kept = {key: value for key, value in result.items() if key not in ("changed", "invocation", "owned")}
        self.artifacts().note("event", "zk_cut planned", **kept)
