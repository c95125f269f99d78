# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_facts: the key of the run is made here, so that secrets leave the host sealed; the host's clock is bracketed."""

from __future__ import annotations

import time

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Fills in the run's key. Adds to the facts when, by the control node's clock, they were asked for and had."""

    def act(self, args: dict) -> dict:
        args["run_key"] = self.run_key()
        asked = time.time()
        result = self.module(args)
        if not result.get("failed") and not result.get("unreachable"):
            result["ansible_facts"]["quorumshift_node"]["asked"] = [asked, time.time()]
        return result
