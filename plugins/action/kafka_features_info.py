# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_features_info: in a run, fill in the cluster and show its features as a table."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, display


class ActionModule(QuorumshiftAction):
    """Reads the features. Alone, outside of a run of this collection, it fills in nothing."""

    def refusal(self):
        """A playbook of its own may be cut down by tags or limits."""
        return super().refusal() if self.session.get("run") else None

    def act(self, args):
        result = self.module(self.fill(args) if self.session.get("run") else args)
        if result.get("failed"):
            return result
        if self.own.get("show", False):
            for line in feature_screen.render(result):
                display.display(line)
        return self._require_served(result)

    def _require_served(self, result):
        """Return the result, failed where not every node serves the levels that it is to serve."""
        served = self.own.get("served")
        if served is None:
            return result
        names = {*served, *result["finalized"]}
        late = features.find_behind(result["nodes"], {name: int(served.get(name, 0)) for name in names})
        if not late:
            return result
        why = f"nodes do not serve the new levels: {'; '.join(late)}. Check them, then run again (QS-ADMIN-009)"
        return {**result, "failed": True, "msg": why}
