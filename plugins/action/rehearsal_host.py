# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rehearsal_host: build, start or remove what a rehearsal has on the task's host."""

from __future__ import annotations

import hashlib
import hmac

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

_SECRETS = ("password.encoder.secret", "delegation.token.secret.key")
_BUILDS = ("checked", "present")


class ActionModule(QuorumshiftAction):
    """Gives the module what the plan has for its host, with the rehearsal's secrets, which are in no result."""

    def act(self, args):
        if args["state"] in _BUILDS:
            args = {**self.own["plan"]["hosts"][self.host], **args}
        if args["state"] == "present" and args["broker_id"] is not None:
            args["passwords"] = {name: self._secret(args["cluster_id"], name) for name in _SECRETS}
        result = self.module(args)
        if result.get("changed") and not self._task.check_mode:
            for verb in ("created", "removed"):
                if result.get(verb):
                    self.say(f"{self.host}: {verb} {', '.join(result[verb])}")
        return result

    def _secret(self, cluster_id: str, name: str) -> str:
        """Return a secret that all brokers of this rehearsal share, and no other one."""
        return hmac.new(self.run_key().encode(), f"{cluster_id} {name}".encode(), hashlib.sha256).hexdigest()
