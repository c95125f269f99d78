# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_stop: stop, mask or unmask a service."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Stops, masks or unmasks a service."""

    def done(self, args, result):
        if result["changed"] and self.session.get("run"):  # used outside a run, the module has no journal
            stopped = {"service": args["service"], "stopped": result["stopped"]}
            self.artifacts().note("event", args["state"], host=self.host, **stopped)
