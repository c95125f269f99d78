# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_down: what was stopped, kept down or allowed to start again is journalled."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Stops, masks or unmasks a service."""

    def act(self, args: dict) -> dict:
        result = self.module(args)
        reported = result.get("changed") and not result.get("failed") and not self._task.check_mode
        if reported and self.session.get("run"):  # by itself, as a module is tried, it belongs to no run
            host = self.vars["inventory_hostname"]
            self.artifacts().note("event", args["state"], host=host, service=args["service"], stopped=result["stopped"])
        return result
