# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""restore_zk_controller: have ZooKeeper's own controller elected, from the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Restores ZooKeeper's controller."""

    def done(self, args, result):
        if result["controller_epoch"] is not None:
            self.say(f"/controller_epoch is {result['controller_epoch']} now, above that of every partition")
        if result["raised"]:
            self.say(f"{result['raised']} partition states in ZooKeeper got the version that the brokers know")
        if result["changed"]:
            deleted = f"; deleted: {', '.join(result['deleted'])}" if result["deleted"] else ""
            without = f", after {result['without_s']:.1f} s without a controller" if result["without_s"] else ""
            self.say(f"broker {result['elected']} is the controller{without}{deleted}")
        changes = {key: result[key] for key in ("controller_epoch", "raised", "elected", "deleted")}
        self.artifacts().note(
            "event", "ZooKeeper controller restored", **changes, without_controller_s=result["without_s"]
        )
