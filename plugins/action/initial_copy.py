# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""initial_copy: count, await and compare the initial copy, from the probe host; keep the counts."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

KEPT = ("counted", "damage", "differences", "moved", "unseen", "records", "took_s")


class ActionModule(QuorumshiftAction):
    """Runs the module and keeps what it found, also when it fails."""

    def act(self, args):
        result = super().act(args)
        kept = {key: value for key, value in result.items() if key in KEPT}
        if kept:
            self.artifacts().save(f"copy-{args['state']}.json", json.dumps(kept, indent=1))
        if args["state"] == "compared" and not result.get("failed"):
            expected = (args.get("before") or {}).get("records", {})
            counted = (f"{name} {result['records'].get(name, 0)}" for name in expected)
            self.say(f"copied: {', '.join(counted) or 'nothing'}")
            if result.get("took_s") is not None:
                self.say(f"the initial copy took {result['took_s']:g} s, in which no leader was elected")
            for text in result["moved"]:
                self.say(f"changed meanwhile: {text}")
        return result
