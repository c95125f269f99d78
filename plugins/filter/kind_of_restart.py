# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kind_of_restart: the row of a kind of restart, for the roles."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import KINDS

DOCUMENTATION = r"""
name: kind_of_restart
short_description: Return what a kind of restart is
version_added: 0.1.0
description:
  - Internal; the roles of this collection use it where they depend on the kind of restart.
options:
  _input:
    description: The kind of restart, as M(quorumshift.kafka.rolling_restart) has it.
    type: str
    required: true
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Give the brokers their partitions back
  ansible.builtin.include_tasks: election.yml
  when: (restart_kind | quorumshift.kafka.kind_of_restart).role == 'broker'
"""

RETURN = r"""
_value:
  description:
    - C(role) of the node.
    - C(is_plain) is whether the node keeps its mode, C(changes_host) whether such a restart changes file or release.
    - C(is_rollback) is whether the restart belongs to a rollback, C(joins) whether the broker joins the quorum by it.
  type: dict
"""

_SHOWN = ("role", "is_plain", "changes_host", "is_rollback", "joins")


def kind_of_restart(name: str) -> dict:
    """Return the row of a kind of restart. Raises KeyError."""
    return {key: getattr(KINDS[name], key) for key in _SHOWN}


class FilterModule:
    """The filter, as Ansible loads it."""

    def filters(self):
        """Return {name: function}."""
        return {"kind_of_restart": kind_of_restart}
