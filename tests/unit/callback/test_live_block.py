# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A block that is redrawn below what is printed: on a pseudo-terminal, with threads and forks as Ansible has them."""

from __future__ import annotations

import io
import os
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import live_block

from tools import terminal

BEGIN = """
import os, sys, threading, time
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import live_block
count = [0]
def render(columns):
    count[0] += 1
    return ["#" * (columns - 1) + "|", f"drawn {count[0]}"]
live_block.TICK_S = 0.01
block = live_block.LiveBlock(render)
"""


def shown(body, columns=40, limit_s=60.0):
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    seen = []
    code, screen, written = terminal.run(
        [sys.executable, "-c", BEGIN + body],
        environment,
        columns,
        limit_s,
        seen=lambda now, _pid: seen.append(now.text),
    )
    return code, screen, seen, written


def test_threads_that_print_to_both_streams_at_once_lose_nothing():
    code, screen, seen, _written = shown(
        """
def prints(name):
    for number in range(100):
        (sys.stderr if name == "c" else sys.stdout).write(f"{name} {number}\\n")
threads = [threading.Thread(target=prints, args=(name,)) for name in "abc"]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
time.sleep(0.1)
block.close()
print("the end")
"""
    )
    assert code == 0
    lines = screen.text.splitlines()
    assert sorted(lines[:-1]) == sorted(f"{name} {number}" for name in "abc" for number in range(100))
    assert lines[-1] == "the end"
    assert any(f"{'#' * 38}|\ndrawn " in text for text in seen)


def test_a_line_that_is_not_ended_is_not_drawn_over():
    code, screen, _seen, _written = shown(
        """
print("question? ", end="", flush=True); time.sleep(0.3); print("answer"); time.sleep(0.1); block.close()
"""
    )
    assert code == 0 and screen.text.splitlines() == ["question? answer"]


def test_a_fork_while_the_block_is_drawn_ends():
    """Ansible forks a process for each task, at any moment of the thread that draws."""
    code, screen, _seen, _written = shown(
        """
for number in range(200):
    pid = os.fork()
    if pid == 0:
        sys.stdout = __import__("io").StringIO()
        print("in the fork"); sys.stderr.flush()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
block.close()
print("the end")
"""
    )
    assert code == 0 and screen.text.splitlines() == ["the end"]


def test_a_rendering_that_fails_ends_the_block_alone():
    code, screen, _seen, _written = shown(
        """
render_ = block._render
block._render = lambda columns: 1 / 0
time.sleep(0.2); print("goes on"); block.close(); print(block.failure)
"""
    )
    assert code == 0 and screen.text.splitlines() == ["goes on", "ZeroDivisionError: division by zero"]


def test_an_exception_of_the_program_is_shown_whole():
    code, screen, _seen, _written = shown("import atexit; atexit.register(block.close); raise ValueError('why')", 200)
    assert code == 1 and "ValueError: why" in screen.text and "####" not in screen.text


class OfTerminal(io.StringIO):
    def __init__(self, handle):
        super().__init__()
        self.handle = handle

    def fileno(self):
        return self.handle


@pytest.mark.parametrize(
    ("environment", "draws"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "CI": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": ""}, False),
        ({}, False),
        ({"TERM": "xterm", "CI": "true"}, False),
        ({"TERM": "xterm", "JOB_ID": "7"}, False),
        ({"TERM": "xterm", "AWX_JOB_ID": "7"}, False),
        ({"TERM": "xterm", "AWX_ISOLATED_DATA_DIR": "/runner"}, False),
    ],
)
def test_where_it_draws(environment, draws):
    control, own = os.openpty()
    try:
        assert live_block.can_draw(OfTerminal(own), environment) is draws
    finally:
        os.close(control)
        os.close(own)


def test_a_file_or_a_stream_without_a_descriptor_is_no_terminal(tmp_path):
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        assert not live_block.can_draw(stream, {"TERM": "xterm"})
    assert not live_block.can_draw(io.StringIO(), {"TERM": "xterm"})
