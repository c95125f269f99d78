# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_restore: nodes and connection are filled in, what is missing and what was restored is told and kept."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction

PLANNED = ("backup", "missing", "completed", "partitions", "pending_deletions", "unread")
RESTORED = ("written", "states", "controller_epoch", "from_disks", "without_data")


class ActionModule(ProbeAction):
    """Compares or restores."""

    def act(self, args: dict) -> dict:
        args.setdefault("run", self.session.get("run"))
        result = super().act(args)
        if result.get("failed"):
            return result
        state = args["state"]
        kept = {key: result[key] for key in (*PLANNED, *RESTORED) if key in result}
        self.artifacts().save(f"restore-{state}.json", json.dumps(kept, indent=1))
        if state == "planned":
            self._tell(result)
        elif not self._task.check_mode:
            self.artifacts().note("event", "restored", written=result["written"], states=result["states"])
            self.say(
                f"{result['written']} znodes brought back, {result['states']} partitions set from the brokers' disks, "
                f"controller epoch {result['controller_epoch']}"
            )
            for name in result["from_disks"]:
                self.say(
                    f"topic {name} came after the backup: partitions are as on the brokers' disks, see its configs"
                )
            for name in result["without_data"]:
                self.say(f"no disk holds anything of {name}")
        return result

    def _tell(self, result: dict) -> None:
        backup = result["backup"]
        self.say(f"backup of {backup['taken_at']}: {backup['znodes']} znodes, {backup['path'].rpartition('/')[2]}")
        for key, tokens in (("missing", "missing from ZooKeeper"), ("completed", "there, and lacking something")):
            counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in result[key].items())
            self.say(f"{tokens}: {counts or 'nothing'}")
        for broker, partitions in result["unread"].items():
            self.say(
                f"broker {broker} is not in the inventory: what its disks hold of {partitions} partitions is not read, "
                "and is lost where no other broker has it"
            )
        for name in result["pending_deletions"]:
            self.say(f"topic {name} is marked for deletion in ZooKeeper, which goes on once a controller is elected")
