# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's workers: processes as always, or, where nothing fails, calls in the control process.

A task that fails runs in processes, so that hosts run at the same time and a worker can be lost. A fork costs more
than most of the tasks. So before and after that task, and in runs without a failure, a worker is a call: it gets
a copy of its task, and its result goes through the same queue. `--forked` lets every worker be a process.
"""

from __future__ import annotations

import threading
from typing import Any

from ansible.executor.process import worker
from ansible.executor.task_executor import TaskExecutor
from ansible.executor.task_queue_manager import FinalQueue
from ansible.module_utils.common import warnings
from ansible.plugins import strategy as strategies
from ansible.plugins.loader import strategy_loader

from tools.failure_proof import boundary

try:  # ansible-core 2.19 and 2.20
    from ansible._internal import _task
    from ansible.executor.task_result import _RawTaskResult

    CAN_CALL = True
except ImportError:  # each worker is a process there
    CAN_CALL = False


class Called:
    """A worker that is a call."""

    pid = exitcode = None

    def __init__(self, *, final_q: Any, task_vars: Any, host: Any, task: Any, loader: Any, **other: Any) -> None:
        loader._tempfiles = set()
        self.queue, self.host = final_q, host
        # a worker templates its task and the blocks above it
        self.task = task.copy(exclude_tasks=True)
        self.given = host, self.task, task_vars, other["play_context"], loader
        self.more = other["shared_loader_obj"], final_q, other["variable_manager"]

    def start(self) -> None:
        """Run the task, and send its result."""
        warnings._global_warnings.clear()
        warnings._global_deprecations.clear()
        with _task.TaskContext(self.task):
            result = TaskExecutor(*self.given, *self.more).run()
            fields = self.task.dump_attrs()
            self.queue.send_task_result(
                _RawTaskResult(host=self.host, task=self.task, return_data=result, task_fields=fields)
            )

    def is_alive(self) -> bool:
        """Return whether the worker works: never, it ends before `start` returns."""
        return False

    def close(self) -> None:
        """Do nothing: there is no process."""


def install() -> None:
    """Choose the kind of each worker, and count the steps of each play: a task on its hosts is one."""
    linear = strategy_loader.get("ansible.builtin.linear", class_only=True)
    lockstep = linear._get_next_task_lockstep

    def made(*given: Any, **named: Any) -> Any:
        return (worker.WorkerProcess if boundary.Run.forked or not CAN_CALL else Called)(*given, **named)

    def next_task(self: Any, hosts_left: Any, iterator: Any) -> Any:
        boundary.Run.step += 1
        if boundary.Run.before_step is not None:
            boundary.Run.before_step(self)
        return lockstep(self, hosts_left, iterator)

    strategies.WorkerProcess = made
    linear._get_next_task_lockstep = next_task


def join(strategy: Any) -> None:
    """Wait until the processes of the step before have ended."""
    for process in strategy._workers:
        if isinstance(process, worker.WorkerProcess) and process.is_alive():
            process.join()


def renew(manager: Any, strategy: Any = None) -> None:
    """Give a fork what it does not inherit: a queue of its own, and the thread of the strategy that reads it."""
    manager._final_q = FinalQueue()
    manager._callback_lock = threading.Lock()
    if strategy is None:
        return
    manager._workers[:] = [None] * len(manager._workers)
    strategy._final_q = manager._final_q
    strategy._results_lock = threading.Condition(threading.Lock())
    strategy._results_thread = threading.Thread(target=strategies.results_thread_main, args=(strategy,), daemon=True)
    strategy._results_thread.start()
