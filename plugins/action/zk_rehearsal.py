# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_rehearsal: watch clients during a rehearsed cut, and show and keep what it took."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Begins or ends the watch. What was measured is shown where the rehearsal failed, too."""

    def act(self, args):
        args = self.fill(args)
        result = self.module(args)
        for line in result.get("lines") or ():
            self.say(line)
        if "times" in result:
            kept = {key: result[key] for key in ("times", "figures", "watched")}
            self.artifacts().save("zk_rehearsal.json", json.dumps(kept, indent=1))
            self.artifacts().note("event", "zk_cut rehearsed", whole=not result.get("failed"), **kept)
        return result
