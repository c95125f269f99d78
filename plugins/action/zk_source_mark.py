# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_source_mark: mark Kafka's old data on the source, and keep what was there before."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Marks, or takes the mark off."""

    def done(self, args, result):
        if result["changed"]:
            self.artifacts().save("zk_source_before_mark.json", json.dumps(result["before"], indent=1))
            self.artifacts().note("event", f"zk_source {args['state']}", shown_id=result["shown_id"])
            self.say(f"/cluster/id on the source is {result['shown_id']} now")
