# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gate_views: list what is compared before a gate opens. Runs on the control node alone."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import baseline
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Lists the views of a gate, and where the baseline among the run artifacts was read."""

    def act(self, args):
        return {
            "changed": False,
            "views": gates.views_to_compare(args["gate"], args["phase"]),
            "compares_records": args["gate"] in gates.DATA_GATES,
            "baseline": baseline.position(self._artifacts().cluster),
        }
