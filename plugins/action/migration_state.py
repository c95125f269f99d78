# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""migration_state: fill the options in and return the phase, with what the control node knows of it."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import job_stats, phase_reading
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Detects the phase. It journals nothing, prints nothing and sets no fact."""

    def act(self, args):
        result, reading = phase_reading.read(self, args)
        if reading:
            result["ansible_stats"] = job_stats.of_state(result, self.session.get("run"))
            result["ahead"] = transitions.step_names_ahead(result["phase"], args.get("plan_to") or "")
        return result
