# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""controller_host: prepare a host for a controller, without starting one."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import controller_host
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Names the files that settings need, and prepares the host."""

    def act(self, args):
        settings = self.variable("quorumshift_controller_config") or {}
        files = controller_host.named_files(settings, args.get("environment") or {})
        result = super().act({**args, "files": files})
        if result.get("created") and not self._task.check_mode:
            self.say(f"{self.host}: created {', '.join(result['created'])}")
        return result
