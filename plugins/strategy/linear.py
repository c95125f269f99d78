# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""linear: what any_errors_fatal means since ansible-core 2.17, for 2.16. playbooks/parts/step.yml chooses it."""

from __future__ import annotations

DOCUMENTATION = """
name: linear
author: Quorumshift contributors (@quorumshift)
short_description: stops every host of a block with a rescue where one fails, on ansible-core 2.16
version_added: 0.1.0
description:
  - The strategy of the collection's steps on ansible-core 2.16.
  - In a play with C(any_errors_fatal), ansible-core 2.16 lets the other hosts run the rest of a block where a host
    fails and the block has a C(rescue). They are never rescued. Where a host is unreachable, no host is rescued.
  - Since ansible-core 2.17 every host of the batch goes to the rescue at once. So it does with this strategy.
"""

from typing import Any

from ansible.plugins.strategy.linear import StrategyModule as Linear


class StrategyModule(Linear):
    """Ansible's own linear strategy, in which a fatal error of one host is one of all."""

    def __init__(self, tqm: Any) -> None:
        super().__init__(tqm)
        self._of_play: Any = None  # the play's iterator
        self._fatal: list[Any] = []  # of the last task, where a failure of it is fatal

    def run(self, iterator: Any, play_context: Any) -> Any:
        """Run a batch of the play."""
        self._of_play, self._fatal = iterator, []
        return super().run(iterator, play_context)

    def update_active_connections(self, results: Any) -> None:
        """Keep the results of all hosts. The strategy calls this once for each task."""
        super().update_active_connections(results)
        self._fatal = [result for result in results if _is_fatal(result._task)]
        lost = [result._host for result in self._fatal if result.is_unreachable()]
        if lost:  # the strategy ends the play for one that is not rescued; no file is included by such a task
            left = [*self.get_hosts_left(self._of_play), *lost]
            self._fail_others({host.name: host for host in left}.values())

    def _get_next_task_lockstep(self, hosts: Any, iterator: Any) -> Any:
        # Not before: a file that cannot be included fails its host only after that, and a host that fails while files
        # are included would run the included tasks in its rescue
        if any(result.is_failed() for result in self._fatal):
            self._fail_others(hosts)
        self._fatal = []
        return super()._get_next_task_lockstep(hosts, iterator)

    def _fail_others(self, hosts: Any) -> None:
        failed, self._fatal = {result._host.name for result in self._fatal if result.is_failed()}, []
        for host in hosts:
            if host.name not in failed:
                self._tqm._failed_hosts[host.name] = True
                self._of_play.mark_host_failed(host)


def _is_fatal(task: Any) -> bool:
    """Return whether a failure of the task ends the play for all hosts."""
    return bool(task.any_errors_fatal or task.run_once) and not task.ignore_errors
