# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_handback: nodes and connection are filled in, what was done in ZooKeeper is told and journalled."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction


class ActionModule(ProbeAction):
    """Hands ZooKeeper back."""

    def act(self, args: dict) -> dict:
        result = super().act(args)
        if result.get("failed") or self._task.check_mode:
            return result
        if result["controller_epoch"] is not None:
            self.say(f"/controller_epoch is {result['controller_epoch']} now, above that of every partition")
        if result["raised"]:
            self.say(f"{result['raised']} states in ZooKeeper got the version that brokers know of them")
        if result["changed"]:
            excluded = f"; deleted: {', '.join(result['deleted'])}" if result["deleted"] else ""
            without = f", after {result['without_s']:.1f} s without one" if result["without_s"] else ""
            self.say(f"broker {result['elected']} is the controller{without}{excluded}")
        reported = {key: result[key] for key in ("controller_epoch", "raised", "elected", "deleted")}
        self.artifacts().note("event", "handed back", **reported, without_controller_s=result["without_s"])
        return result
