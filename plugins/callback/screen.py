# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""screen: ordinary tasks are silent, progress is redrawn in place. The log gets what the callback `default` shows."""

from __future__ import annotations

DOCUMENTATION = """
name: screen
type: stdout
author: Quorumshift contributors (@quorumshift)
short_description: shows an operator how far a run is
version_added: 0.1.0
description:
  - On a terminal, the last lines are redrawn in place. They show the phase, the step, the broker or controller that
    is restarted, a bar, the clock, the time that the planned restarts still take, and what is waited for.
  - Where the output is no terminal, as in AWX or in a file, the same appears as plain lines, without control
    characters.
  - Ordinary tasks are silent. Failures, warnings, differences of C(--diff), messages of C(debug) and lines of the
    collection's actions appear whole. Of a failure of the collection's own modules the screen has the message, once;
    the log has the task's whole result.
  - The log of E(ANSIBLE_LOG_PATH) gets what the callback P(ansible.builtin.default#callback) writes there.
  - With C(-v) or more the output is that of P(ansible.builtin.default#callback), without lines in place.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - set as stdout in configuration
"""

import atexit
import contextlib
import json
import os
import sys
import threading
import time
from typing import Any, Iterator

from ansible import constants as C
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.display import Display
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import planning
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import live_block, screen_lines, waits
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import duration
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.task_results import host_of, returned_by, task_of

_PLAN = "plan.json"  # of the run artifacts
_OWN = "quorumshift.kafka."
_PROMPTS = ("pause", "ansible.builtin.pause", "ansible.legacy.pause")


class _Only:
    """Ansible's display for either the log or the screen. Warnings reach both."""

    def __init__(self, display: Display, part: str) -> None:
        self._real, self._part = display, part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def display(self, msg: str, *args: Any, **options: Any) -> None:
        """Show a text, unless it is for the other part."""
        other = "log_only" if self._part == "screen_only" else "screen_only"
        if not options.get(other):
            self._real.display(msg, *args, **{**options, self._part: True})

    def banner(self, msg: str, color: str | None = None, cows: bool = True) -> None:
        """Show a heading with stars."""
        Display.banner(self, msg, color, cows)  # type: ignore[arg-type]

    def _error(self, *args: Any, **options: Any) -> None:
        """Show the error of a task, which is shown apart from its result since ansible-core 2.19."""
        Display._error(self, *args, **options)  # type: ignore[arg-type]


class _Journal:
    """The run's journal and plans, read again when they have grown."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        above, run = os.path.split(directory)
        self._artifacts = RunArtifacts(os.path.dirname(above), os.path.basename(above), run)
        own = self._artifacts.events()
        self._earlier = [event for event in self._artifacts.all_events() if event not in own]
        self._size = -1
        self.events: list[dict] = []
        self.run_plan: dict | None = None
        self.times = planning.Times({}, {})

    def refresh(self) -> None:
        """Read what is new."""
        size = os.path.getsize(self._artifacts.journal) if os.path.exists(self._artifacts.journal) else 0
        if size == self._size:
            return
        self._size, self.events = size, self._artifacts.events()
        text = self._artifacts.read(_PLAN)
        self.run_plan = json.loads(text) if text else None
        self.times = planning.times([*self._earlier, *self.events])


class CallbackModule(Default):
    """Shows a run to an operator."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "quorumshift.kafka.screen"
    _display: Any

    def __init__(self) -> None:
        super().__init__()
        self._began = time.time()
        self._block: live_block.LiveBlock | None = None
        self._feed: waits.Feed | None = None
        self._lock = threading.Lock()  # of what the block's thread reads too
        self._waits: dict[str, str] = {}
        self._journal: _Journal | None = None
        self._plan: dict[str, Any] | None = None
        self._planned_at = 0  # so many events had the journal
        self._node_s: dict[str, float] = {}  # planning.Times.nodes
        self._title, self._task, self._heading = "", "", ""
        self._is_step = False  # whether the play is a step, which may have nothing to do
        self._shown_banner: str | None = None  # the task of which the screen has the banner
        self._failures: list[str] = []  # the messages that the screen has

    # What the screen shows ------------------------------------------------------------------------------------------

    @property
    def _is_default(self) -> bool:
        return self._display.verbosity > 0

    @contextlib.contextmanager
    def _only(self, part: str) -> Iterator[None]:
        real = self._display
        self._display = _Only(real, part)
        try:
            yield
        finally:
            self._display = real

    def _log(self, method: str, *args: Any, **options: Any) -> None:
        """Let the callback `default` show something in the log alone."""
        with self._only("log_only") if not self._is_default else contextlib.nullcontext():
            getattr(super(), method)(*args, **options)

    def _show(self, method: str, result: Any, **options: Any) -> None:
        """Let the callback `default` show something, below the name of its task."""
        task = task_of(result)
        if not self._is_default and self._last_task_banner == task._uuid != self._shown_banner:
            with self._only("screen_only"):  # the log has it
                self._print_task_banner(task)
        self._shown_banner = task._uuid
        getattr(super(), method)(result, **options)

    def _say(self, text: str, color: str | None = None) -> None:
        if not self._is_default:
            for line in text.split("\n"):
                self._display.display(escape_invisible(line), color=color, screen_only=True)

    def _head(self, title: str) -> None:
        """Show the name of a step once."""
        if title and title != self._heading:
            self._heading = title
            self._say(title, C.COLOR_HIGHLIGHT)

    def _view(self) -> screen_lines.View:
        """Return what the block shows now."""
        with self._lock:
            if self._feed:
                self._waits.update(self._feed.read())
            journal, found = self._journal, None
            if journal:
                journal.refresh()
                if self._plan:
                    events = journal.events[self._planned_at :]
                    times = journal.times._replace(nodes=self._node_s)
                    found = screen_lines.restarts(self._plan, events, journal.run_plan, times)
            phase = screen_lines.phase_of(journal.events) if journal else ""
            return screen_lines.View(self._title, self._began, phase, found, dict(self._waits), self._task)

    def _render(self, columns: int) -> list[str]:
        return screen_lines.block(self._view(), time.time(), columns)

    def _tell_progress(self) -> None:
        """Show the progress as a line where nothing is redrawn."""
        if self._block or self._is_default or not self._plan:
            return
        found = self._view().restarts
        if found and found.now:
            self._say(f"    {screen_lines.plain(found, time.time())}")

    def _draw(self) -> None:
        if self._block is None and not self._is_default and live_block.can_draw(sys.stdout, os.environ):
            self._feed = waits.Feed()
            self._block = live_block.LiveBlock(self._render)
            atexit.register(self._undraw)

    def _undraw(self) -> None:
        block, feed = self._block, self._feed
        self._block = self._feed = None
        if block:
            block.close()
        if feed:
            feed.close()
        if block and block.failure:
            self._display.warning(f"The progress is not shown in place any more: {block.failure}")

    def _forget_waits(self, host: str | None = None) -> None:
        """Drop what a host, or every host, waited for: its task is over."""
        with self._lock:
            if self._feed:
                self._waits.update(self._feed.read())
            for name in [host] if host else list(self._waits):
                self._waits.pop(name, None)

    # Playbook, plays, tasks -----------------------------------------------------------------------------------------

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self._log("v2_playbook_on_start", playbook)

    def v2_playbook_on_vars_prompt(self, *_args: Any, **_options: Any) -> None:
        self._undraw()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._log("v2_playbook_on_play_start", play)
        self._forget_waits()
        title = play.get_name().strip()
        if title != self._title and self._plan:
            found = self._view().restarts
            if not found or found.done == found.total:
                self._plan = None
        self._title, self._task, self._is_step = title, "", False
        self._draw()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._log("v2_playbook_on_task_start", task, is_conditional)
        self._start(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._log("v2_playbook_on_handler_task_start", task)
        self._start(task)

    def _start(self, task: Any) -> None:
        self._forget_waits()
        if not task.action.endswith("validate_argument_spec"):  # which Ansible adds to a role
            self._task = str(task.name or task.action)
        if task.action in _PROMPTS:
            self._undraw()
        else:
            self._draw()
        self._is_step = self._is_step or task.action == f"{_OWN}run_step"
        if not self._is_step:
            self._head(self._title)

    def v2_playbook_on_include(self, included_file: Any) -> None:
        self._log("v2_playbook_on_include", included_file)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._log("v2_playbook_on_no_hosts_matched")

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        self._log("v2_playbook_on_no_hosts_remaining")

    def v2_playbook_on_notify(self, handler: Any, host: Any) -> None:
        self._log("v2_playbook_on_notify", handler, host)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._undraw()
        self._log("v2_playbook_on_stats", stats)
        by_host = {host: stats.summarize(host) for host in sorted(stats.processed)}
        parts = [
            f"{name}: {', '.join(hosts)}"
            for name in ("failures", "unreachable")
            if (hosts := [host for host, counts in by_host.items() if counts[name]])
        ]
        took = duration(time.time() - self._began)
        changed = sum(bool(counts["changed"]) for counts in by_host.values())
        if parts:
            self._say(f"Ended after {took}; {'; '.join(parts)}", C.COLOR_ERROR)
        else:
            self._say(f"Ended after {took} without a failure; changed {changed} of {len(by_host)} hosts", C.COLOR_OK)

    # Results --------------------------------------------------------------------------------------------------------

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._log("v2_runner_on_start", host, task)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._learn(result)
        if task_of(result).action in C._ACTION_DEBUG:
            self._show("v2_runner_on_ok", result)
        else:
            self._log("v2_runner_on_ok", result)

    def _learn(self, result: Any) -> None:
        """Keep which run this is, and the plan of its roll."""
        self._forget_waits(host_of(result).get_name())
        returned = returned_by(result)
        if task_of(result).action == f"{_OWN}run_step" and task_of(result).args.get("state") == "begun":
            self._head(self._title)
            self._tell_progress()
        if task_of(result).action == f"{_OWN}rolling_restart" and task_of(result).args.get("state") == "planned":
            with self._lock:
                self._plan, self._node_s = returned.get("plan"), returned.get("node_s") or {}
                self._planned_at = len(self._journal.events) if self._journal else 0
        session = (returned.get("ansible_facts") or {}).get("quorumshift_session") or {}
        directory = session.get("artifacts")
        if directory and (self._journal is None or self._journal.directory != directory):
            with self._lock:
                self._journal = _Journal(directory)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._forget_waits(host_of(result).get_name())
        text = str(returned_by(result).get("msg") or "")
        if self._is_default or ignore_errors or not text or not self._explains_itself(result):
            self._show("v2_runner_on_failed", result, ignore_errors=ignore_errors)
            return
        task = task_of(result)
        is_end = task.action == f"{_OWN}run_step"
        where = "" if is_end else f"{task.name or task.action} on {self.host_label(result)}"
        self._say(screen_lines.failure(where, text, self._failures), C.COLOR_ERROR)
        self._failures.append(text)
        self._log("v2_runner_on_failed", result)

    def _explains_itself(self, result: Any) -> bool:
        """Return whether the message of a failed task says all: of the collection's own, without a traceback."""
        own = task_of(result).action.startswith(_OWN) and not task_of(result).loop
        return own and "Traceback" not in str(returned_by(result).get("exception"))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._forget_waits(host_of(result).get_name())
        self._show("v2_runner_on_unreachable", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._forget_waits(host_of(result).get_name())
        self._log("v2_runner_on_skipped", result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if task_of(result).action in C._ACTION_DEBUG:
            self._show("v2_runner_item_on_ok", result)
        else:
            self._log("v2_runner_item_on_ok", result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._show("v2_runner_item_on_failed", result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        self._log("v2_runner_item_on_skipped", result)

    def v2_on_file_diff(self, result: Any) -> None:
        parts = [returned_by(result), *(returned_by(result).get("results") or [])]
        # else `default` shows nothing, not even the name of the task
        has_any = any(part.get("diff") and part.get("changed") for part in parts if isinstance(part, dict))
        (self._show if has_any else self._log)("v2_on_file_diff", result)

    def v2_runner_retry(self, result: Any) -> None:
        self._log("v2_runner_retry", result)

    def v2_runner_on_async_poll(self, result: Any) -> None:
        self._log("v2_runner_on_async_poll", result)

    def v2_runner_on_async_ok(self, result: Any) -> None:
        self._log("v2_runner_on_async_ok", result)
