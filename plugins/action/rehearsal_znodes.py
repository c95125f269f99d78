# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rehearsal_znodes: read the cluster, and write the rehearsal's znodes, from the probe host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Reads, writes or releases, and says how much it was."""

    def done(self, args, result):
        if args["state"] == "read":
            source = result["source"]
            self.say(
                f"cluster {source['cluster_id']}: {source['topics']} topics, {source['partitions']} partitions, "
                f"{len(source['registered'])} brokers; the rehearsal is {result['plan']['rehearsal_id']}"
            )
        elif args["state"] == "written":
            self.say(f"{result['znodes']} znodes written in {result['seconds']:.0f} s")
        else:
            self.say(f"all replicas are in sync after {result['seconds']:.0f} s")
