# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_facts: the key of the run is made here, so that secrets leave the host sealed."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Fills in the run's key."""

    def act(self, args: dict) -> dict:
        args["run_key"] = self.run_key()
        return self.module(args)
