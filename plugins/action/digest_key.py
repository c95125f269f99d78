# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""digest_key: run, cluster and the run's key are filled in."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads, makes or keeps the key."""

    def act(self, args: dict) -> dict:
        own = {"run": self.session.get("run"), "cluster_id": self.session.get("cluster_id"), "run_key": self.run_key()}
        return self.module({**own, **args})
