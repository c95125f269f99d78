# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata_snapshot: fetch the archive of a voter's log, and remove it from its host."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.archive_action import ArchiveAction


class ActionModule(ArchiveAction):
    """Has a voter archive its log; see ArchiveAction."""

    def explain_unreachable(self, why: str) -> str:
        return (
            f"gate {self.variable('quorumshift_gate')} stays closed: {self.host}, the quorum's leader, is unreachable, "
            f"so its metadata log was not read ({why}). The comparison changed nothing. Check the host with: "
            f"ssh {self.host}. Then run the playbook again (QS-VERIFY-002)"
        )
