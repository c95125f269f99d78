# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ids_at_end: a message with its ids at its end."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids

DOCUMENTATION = r"""
name: ids_at_end
short_description: Return a message with its ids at its end, each once
version_added: 0.1.0
description:
  - Internal; the playbooks of this collection use it where a task passes the message of another one on.
  - A message without an id gets C(QS-HOST-001).
options:
  _input:
    description: The message.
    type: str
    required: true
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Fail
  ansible.builtin.fail:
    msg: "{{ ansible_failed_result.msg | quorumshift.kafka.ids_at_end }}"
"""

RETURN = r"""
_value:
  description: The message.
  type: str
"""


def ids_at_end(message: str) -> str:
    """Return a message with its ids at its end."""
    return message_ids.move_to_end(str(message), message_ids.NO_ID)


class FilterModule:
    """The filter, as Ansible loads it."""

    def filters(self):
        """Return {name: function}."""
        return {"ids_at_end": ids_at_end}
