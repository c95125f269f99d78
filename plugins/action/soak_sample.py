# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""soak_sample: take a sample of the cluster from the probe host, and show it."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import soak
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Takes the sample and shows it."""

    def act(self, args):
        result = self.module(self.fill(args))
        if not result.get("failed"):
            for line in soak.lines(result):
                self.say(line)
        return result
