# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""upgrade_plan: ask the probe host, and show what an upgrade does and how it goes on."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import KINDS
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Evaluates one step of an upgrade and shows it."""

    def act(self, args):
        hostvars = self.vars["hostvars"]
        if args["step"] != "versions":
            read = {host: hostvars[host].get("upgrade_home_read") or {} for host in self.nodes()}
            args["homes"] = {host: found for host, found in read.items() if "home" in found}
        result = super().act({**args, "to": str(args["to"])})
        if not result.get("failed"):
            shows = {"binaries": self._binaries, "versions": self._versions, "settled": self._settled}
            shows[args["step"]](args, result)
        return result

    def _settled(self, args, _result):
        self.say(f"every node runs Kafka {args['to']}")

    def _binaries(self, args, result):
        self.say(f"to Kafka {args['to']}: {', then '.join(f'{KINDS[kind].role}s' for kind in result['order'])}")
        if result["ready"]:
            self.say(f"run it already: {format_names(result['ready'])}")
        if result["switched"]:
            self.say(f"no node runs, the link alone is switched: {format_names(result['switched'])}")
        if result.get("by_hook"):
            self.say(f"the hook installs it: {format_names(result['by_hook'])}")
        for host, found in (result.get("ahead") or {}).items():
            self.say(
                f"{found['path']} of {host} leads to {found['target']} already, and its process runs {found['runs']}"
            )
        hosts: dict[str, list[str]] = {}
        instead: dict[str, str] = {}
        for host, keys in result["removed"].items():
            for key, more in keys.items():
                hosts.setdefault(key, []).append(host)
                instead[key] = more
        for key, found in sorted(hosts.items()):
            how = f"set {instead[key]} instead" if instead[key] else "remove it after the upgrade"
            self.say(f"Kafka {args['to']} does not know {key} of {format_names(found)}: {how}")
        self._capped(result)

    def _capped(self, result):
        for text in result.get("capped", ()):
            self.say(text)

    def _versions(self, args, result):
        if not result["needed"]:
            self.say("nothing is left to raise: the upgrade is complete")
            return
        if result["protocol"]:
            what = f"inter.broker.protocol.version from {result['before']} to {result['protocol']}"
        else:
            what = _format_raised(result["features"], result["before"])
        if result["confirmed"]:
            self.say(f"raise {what}")
            return
        self.say(
            f"every node runs Kafka {args['to']}, and what it uses stays as it was: the binaries can be taken back"
        )
        self._capped(result)
        self.say(
            f"to raise {what}, which cannot be taken back, run it again with -e upgrade_confirm={result['needed']}"
        )


def _format_raised(levels, before):
    """Return which features are raised, metadata.version first. `before`: its name now."""
    first = features.METADATA_VERSION
    raised = [f"{first} from {before} to {features.name_of(first, levels[first])}"] if first in levels else []
    return ", ".join([*raised, *(f"{name} to {level}" for name, level in sorted(levels.items()) if name != first)])
