# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""broker_unregister: asks the probe host, journals what was removed."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction


class ActionModule(ProbeAction):
    """Removes registrations."""

    def ends_run(self, result):
        """Who asked for it tells how the run ends: after a put-back that is the smaller of two troubles."""
        return False

    def act(self, args: dict) -> dict:
        result = self.module(self.filled(args))
        if result.get("unregistered") and not self._task.check_mode:
            self.say(f"removed from the quorum: the registration of broker {result['unregistered']}")
            self.artifacts().note("event", "unregistered", brokers=result["unregistered"])
        return result
