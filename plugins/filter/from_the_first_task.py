# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""from_the_first_task: the hosts of a play, refused where the command excludes hosts or tasks."""

from __future__ import annotations

from ansible.errors import AnsibleError
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import whole_run

DOCUMENTATION = r"""
name: from_the_first_task
short_description: Return the hosts of a play, or fail if an option excludes hosts or tasks
version_added: 0.1.0
description:
  - Internal; the playbooks of this collection use it for the hosts of their first play.
  - C(--limit), C(--tags), C(--skip-tags), C(--start-at-task) and C(--step) exclude hosts or tasks. If no
    task is left, ansible-core ends with exit code 0. A task cannot refuse that, the hosts of a play can.
options:
  _input:
    description: The hosts of the play.
    type: str
    required: true
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Check the inventory
  hosts: "{{ 'localhost' | quorumshift.kafka.from_the_first_task }}"
"""

RETURN = r"""
_value:
  description: The hosts of the play, as they were given.
  type: str
"""


def hosts_of_the_first_play(hosts: str) -> str:
    """Return the hosts. Raises AnsibleError if an option of the command excludes hosts or tasks."""
    why = whole_run.find_exclusion()
    if why:
        raise AnsibleError(why)
    return hosts


class FilterModule:
    """The filter, as Ansible loads it."""

    def filters(self):
        """Return {name: function}."""
        return {"from_the_first_task": hosts_of_the_first_play}
