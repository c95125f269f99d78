# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zk_cut_check: check that no destination server lacks a write of Kafka, and show the verdict."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Checks, and shows which servers start first."""

    def done(self, args, result):
        if args.get("state", "cut") != "cut":
            return
        for note in result["notes"]:
            self.say(note)
        how = (
            "the source's log"
            if result["exact"]
            else "the zxids of the source's znodes, which show no change of an ACL"
        )
        self.say(f"every destination server has all writes of Kafka, by {how} ({result['read_s']:.2f} s)")
        self.artifacts().note("event", "zk_cut checked", zxids=result["zxids"], first=result["first"])
