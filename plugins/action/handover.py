# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""handover: keep what configuration management has to write from now on. Runs on the control node alone."""

from __future__ import annotations

import json

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import handover
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import PREFIX, is_secret
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_FILE = "handover.json"  # of the run artifacts


class ActionModule(QuorumshiftAction):
    """Writes handover.json of the run artifacts and shows it."""

    def act(self, _args):
        found = handover.describe(
            self.session["cluster_id"],
            self.nodes(),
            self.variable("quorumshift_broker_config") or {},
            lambda key, value: is_secret(key) or PREFIX in value,
        )
        where = f"{_FILE} of the run artifacts"
        if not self._task.check_mode:
            where = self.artifacts().save(_FILE, json.dumps(found, indent=1))
        for line in handover.lines(found, where):
            self.say(line)
        return {"changed": False, "handover": found}
