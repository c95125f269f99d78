# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""controller_wipe: run and cluster are filled in, what was removed is told and journalled."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Removes what a migration left on a controller's host."""

    def act(self, args: dict) -> dict:
        host = self.vars["inventory_hostname"]
        args.update(
            run=self.session.get("run"),
            cluster_id=self.session.get("cluster_id"),
            state_dir=self.variable("quorumshift_state_dir"),
        )
        result = self.module(args)
        if result.get("changed") and not result.get("failed") and not self._task.check_mode:
            emptied = ", ".join(result["emptied"]) or "nothing to empty"
            self.say(f"{host}: {emptied}; properties file {result['config_file']}")
            reported = {"emptied": result["emptied"], "config_file": result["config_file"]}
            self.artifacts().note("event", "wiped", host=host, **reported)
        return result
