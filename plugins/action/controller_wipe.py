# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""controller_wipe: remove what a migration left on a controller's host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Wipes the controller."""

    def act(self, args):
        result = super().act(args)
        return self.renew(result, gates.WIPE) if self.own.get("renewable") else result

    def done(self, args, result):
        if result["changed"]:
            emptied = ", ".join(result["emptied"]) or "no log directory to empty"
            self.say(f"{self.host}: {emptied}; properties file {result['config_file']}")
            wiped = {"emptied": result["emptied"], "config_file": result["config_file"]}
            self.artifacts().note("event", "wiped", host=self.host, **wiped)
