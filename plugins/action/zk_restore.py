# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_restore: compare ZooKeeper with a backup, or restore from it, from the probe host."""

from __future__ import annotations

import glob
import json
import os

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

PLANNED = ("backup", "token", "revived", "later", "missing", "completed", "partitions", "pending_deletions", "unread")
RESTORED = ("written", "states", "controller_epoch", "from_disks", "without_data")


class ActionModule(QuorumshiftAction):
    """Compares or restores."""

    def act(self, args):
        if args["state"] != "admitted":
            args["accepted"] = self._accepted(args.get("token") or "")
        result = super().act(args)
        if result.get("failed") or args["state"] == "admitted":
            return result
        kept = {key: result[key] for key in (*PLANNED, *RESTORED) if key in result}
        self.artifacts().save(f"restore-{args['state']}.json", json.dumps(kept, indent=1))
        if args["state"] == "planned":
            self._show(result)
        return result

    def _accepted(self, token: str) -> list[str]:
        """Return what the plan that printed this token listed, also that of an earlier run; [] if it is not here."""
        pattern = os.path.join(glob.escape(self.artifacts().cluster), "*", "restore-planned.json")
        for path in sorted(glob.glob(pattern)):
            with open(path, encoding="utf-8") as stream:
                planned = json.load(stream)
            if planned.get("token") == token:
                return planned.get("revived") or []
        return []

    def done(self, args, result):
        if args["state"] != "restored":
            return
        self.artifacts().note("event", "restored", written=result["written"], states=result["states"])
        self.say(
            f"{result['written']} znodes restored, {result['states']} partition states set from the brokers' disks, "
            f"controller epoch {result['controller_epoch']}"
        )
        for name in result["from_disks"]:
            self.say(f"topic {name} is newer than the backup: partitions as on the brokers' disks; check its configs")
        for name in result["without_data"]:
            self.say(f"no broker's disk has a replica of {name}")

    def _show(self, result: dict) -> None:
        backup = result["backup"]
        self.say(f"backup of {backup['taken_at']}: {backup['znodes']} znodes, {backup['path'].rpartition('/')[2]}")
        for key, title in (("missing", "missing from ZooKeeper"), ("completed", "in ZooKeeper, but incomplete")):
            counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in result[key].items())
            self.say(f"{title}: {counts or 'nothing'}")
        for line in result["revived"]:
            self.say(f"brings back {line}")
        none = "" if result["revived"] else "no user and no permission is brought back, "
        self.say(f"{none}no user and no permission is taken away")
        for broker, partitions in result["unread"].items():
            self.say(
                f"broker {broker} is not in the inventory: its replicas of {partitions} partitions are not read, and "
                "are lost where no other broker has them"
            )
        for name in result["pending_deletions"]:
            self.say(f"topic {name} is marked for deletion in ZooKeeper; the next controller goes on with that")
