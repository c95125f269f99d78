# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_features: in a run, fill in the cluster, show what would change, and journal what did."""

from __future__ import annotations

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Changes features. Alone, outside of a run of this collection, it fills in and journals nothing."""

    def refusal(self):
        """A playbook of its own may be cut down by tags or limits."""
        return super().refusal() if self.session.get("run") else None

    def act(self, args):
        if not self.session.get("run"):
            return self.module(args)
        result = self.module(self.fill(args))
        if not self._task.check_mode and result.get("changed"):  # also where a part of a change failed
            self._journal(result)
        if result.get("failed"):
            return result
        if self.own.get("show", False):
            applies = boolean(self.variable("features_apply") or False)
            for line in feature_screen.render_change(result, applies):
                self.say(line)
        return result

    def _journal(self, result):
        """Journal the features that have changed."""
        made = [update for update in result["results"] if not update.get("error")]
        levels = {update["feature"]: [update["before"], update["after"]] for update in made}
        more = {"epoch": result["epoch"]} if "epoch" in result else {}
        self.artifacts().note("event", "features changed", features=levels, **more)
