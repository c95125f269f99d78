# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""broker_unregister: remove registrations, from the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Removes registrations."""

    def done(self, args, result):
        if result["unregistered"]:
            self.say(f"removed from the quorum: the registration of broker {result['unregistered']}")
            self.artifacts().note("event", "unregistered", brokers=result["unregistered"])
