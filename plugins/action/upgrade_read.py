# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upgrade_read: read a host for an audit, which names the host where that fails, as it names one that is lost."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads what decides on a host whether a later release starts there."""

    def act(self, args):
        result = self.module(self.fill(args))
        if result.get("failed"):
            trace = str(result.get("exception") or result.get("module_stderr") or "").strip().splitlines()
            return {"changed": False, "unread": result.get("msg") or (trace or ["the module failed"])[-1]}
        return result
