# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator sees of a playbook with the callback `screen`, on a terminal and without one, and what the log gets.

ansible-playbook runs as it is, on localhost.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest

from tests.playbook import PROGRAM
from tools import terminal
from tools.checkout import ROOT

PLAY = """
- name: Restart the brokers
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say nothing
      ansible.builtin.command: "true"
    - name: Skip
      ansible.builtin.command: "true"
      when: false
    - name: Show the token
      ansible.builtin.debug:
        msg: -e quorumshift_finalize_token=abc:123456
    - name: Take a while
      ansible.builtin.command: sleep {seconds}
    - name: Show what changes
      ansible.builtin.copy:
        content: after
        dest: "{directory}/changed"
    - name: Show no change
      ansible.builtin.copy:
        content: after
        dest: "{directory}/changed"
    - name: Deny the change
      ansible.builtin.copy:
        content: "\n"
        dest: "{directory}/changed"
      changed_when: false
      check_mode: true
      diff: true
    - name: Fail and go on
      ansible.builtin.command: "false"
      ignore_errors: true
    - name: Warn
      ansible.builtin.debug:
        msg: "{{{{ lookup('ansible.builtin.file', 'missing', errors='warn') }}}}"
    - name: Begin what fails
      block:
        - name: Restart the node
          ansible.builtin.fail:
            msg: "b7 did not come up: its log ends with OutOfMemoryError (QS-RESTART-003)"
      rescue:
        - name: Clean up
          ansible.builtin.command: "true"
        - name: Fail
          ansible.builtin.fail:
            msg: "The run ended. Report: /tmp/index.html (QS-RUN-004)"
"""
SHOWN = (
    "-e quorumshift_finalize_token=abc:123456",
    "-before",
    "+after",
    "TASK [Fail and go on]",
    "...ignoring",
    "[WARNING]",
    "TASK [Restart the node]",
    "b7 did not come up: its log ends with OutOfMemoryError (QS-RESTART-003)",
    "The run ended. Report: /tmp/index.html (QS-RUN-004)",
    "failures: localhost",
)
CLOCK = re.compile(r"^Restart the brokers +\d+:\d\d$", re.MULTILINE)
SILENT = (
    "TASK [Say nothing]",
    "TASK [Show no change]",
    "TASK [Deny the change]",
    "TASK [Skip]",
    "TASK [Clean up]",
    "PLAY",
    "RECAP",
    "changed: [",
    "skipping: [",
)


@pytest.fixture
def given(tmp_path):
    """Return the command and environment of a play in a directory."""

    def prepare(*words, playbook=PLAY, seconds=0, **more):
        (tmp_path / "changed").write_text("before")
        (tmp_path / "play.yml").write_text(playbook.format(directory=tmp_path, seconds=seconds))
        command = [str(PROGRAM), "-i", "localhost,", "-c", "local", str(tmp_path / "play.yml"), *words]
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "JOB_ID")}
        environment |= {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_STDOUT_CALLBACK": "quorumshift.kafka.screen",
            "TERM": "xterm",
            **more,
        }
        return command, environment

    return prepare


def piped(command, environment):
    ran = subprocess.run(
        command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_without_a_terminal_plain_lines_show_what_must_be_read(given):
    code, text = piped(*given("--diff"))
    assert code == 2
    assert [part for part in SHOWN if part not in text] == []
    assert [part for part in SILENT if part in text] == []
    assert "Restart the brokers\n" in text
    assert "\r" not in text and "\x1b" not in text


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_the_block_is_gone_in_the_end_and_the_rest_stays_whole(given, columns):
    command, environment = given("--diff", seconds=2)
    seen = []
    code, shown, _written = terminal.run(
        command, environment, columns, seen=lambda now, _pid: seen.append(now.text), cwd=ROOT
    )
    assert code == 2 and shown.unknown == []
    text = shown.text.replace("\n", "")  # the terminal wraps what is longer
    assert [part for part in SHOWN if part.replace("\n", "") not in text] == []
    assert [part for part in SILENT if part in text] == []
    blocks = [line for text in seen for line in text.splitlines() if CLOCK.match(line)]
    assert blocks, "the clock was never seen"
    assert any("\n  Take a while" in text for text in seen)
    assert not CLOCK.search(shown.text), "a block was left behind"
    # a terminal wraps in its last column
    assert all(len(line) < columns for line in blocks)


def test_a_terminal_shows_every_word_that_a_file_gets(given):
    _code, shown, _written = terminal.run(*given(seconds=1), columns=1000, cwd=ROOT)
    _code, text = piped(*given(seconds=1))

    def words(given_text):
        """Return the text at its blanks, without times and lines of stars, sorted: warnings have another stream."""
        return sorted(re.sub(r"\d+", "", word) for word in given_text.split() if set(word) != {"*"})

    assert words(shown.text) == words(text)


def test_no_color_on_a_terminal(given):
    _code, _shown, written = terminal.run(*given("--diff", NO_COLOR="1"), cwd=ROOT)
    assert "\x1b[0;3" not in written and "\x1b[J" in written


def test_a_pseudo_terminal_that_no_person_looks_at_gets_no_control_characters(given):
    """As in a container of AWX."""
    _code, _shown, written = terminal.run(*given("--diff", NO_COLOR="1", JOB_ID="7"), cwd=ROOT)
    assert "\x1b" not in written
    assert [part for part in SHOWN if part not in written.replace("\r\n", "\n")] == []


def test_output_in_a_file_while_errors_go_to_the_terminal(given, tmp_path):
    command, environment = given(ANSIBLE_NOCOLOR="1")
    inner = " ".join(command) + f" > {tmp_path}/out"
    code, _shown, written = terminal.run(["/bin/sh", "-c", inner], environment, cwd=ROOT)
    assert code == 2 and "\x1b" not in written and "\x1b" not in (tmp_path / "out").read_text()


def test_the_c_locale_gets_ascii_alone(given):
    more = {"LANG": "C", "ANSIBLE_NOCOLOR": "1"}
    command, environment = given("--diff", seconds=1, **more)
    environment = {name: value for name, value in environment.items() if not name.startswith("LC_")}
    code, shown, written = terminal.run(command, environment, cwd=ROOT)
    assert code == 2 and written.isascii()
    assert [part for part in SHOWN if part not in shown.text.replace("\n", "")] == []


def test_more_verbose_it_is_the_default_callback(given):
    stamp = re.compile(r"\d+|\*+")

    def text(callback):
        _code, _shown, written = terminal.run(
            *given("-v", ANSIBLE_STDOUT_CALLBACK=callback, NO_COLOR="1"), columns=400, cwd=ROOT
        )
        return [stamp.sub("", line) for line in written.splitlines()]

    expected = text("ansible.builtin.default")
    assert len(expected) > 30
    assert text("quorumshift.kafka.screen") == expected


def test_check_mode_shows_differences(given, tmp_path):
    code, text = piped(*given("--check", "--diff"))
    assert code == 2 and "-before" in text and "+after" in text
    assert (tmp_path / "changed").read_text() == "before"


@pytest.mark.parametrize("on_terminal", [False, True])
def test_the_log_gets_what_the_default_callback_writes(given, tmp_path, on_terminal):
    moment = re.compile(r"^.*? INFO\| |^.*?\| |\d\d:\d\d:\d\d\.\d+|\d{4}-\d\d-\d\d|0:00:\d\d\.\d+")

    def log(callback):
        path = tmp_path / f"{callback}.log"
        command, environment = given("--diff", ANSIBLE_STDOUT_CALLBACK=callback, ANSIBLE_LOG_PATH=str(path))
        if on_terminal:
            terminal.run(command, environment, cwd=ROOT)
        else:
            piped(command, environment)
        return [moment.sub("", line) for line in path.read_text().splitlines()]

    expected = log("ansible.builtin.default")
    assert len(expected) > 40
    assert log("quorumshift.kafka.screen") == expected


def test_an_interrupted_run_leaves_no_block(given):
    command, environment = given(seconds=60)
    first, sent = [], []

    def interrupt(now, pid):
        """Interrupt the task once it runs. Ansible loses a signal that comes while it forks, whatever the callback."""
        if "Take a while" in now.text:
            first.append(time.monotonic())
            if not sent and time.monotonic() - first[0] > 3:
                sent.append(os.kill(pid, signal.SIGINT))

    code, shown, _written = terminal.run(command, environment, seen=interrupt, limit_s=50, cwd=ROOT)
    assert sent and code == 99
    assert "User interrupted execution" in shown.text
    assert not CLOCK.search(shown.text) and "Take a while" not in shown.text


MORE_HOSTS = """
- name: Read every node
  hosts: all
  gather_facts: false
  tasks:
    - name: Reach the host
      ansible.builtin.command: "true"
    - name: Retry
      ansible.builtin.command: "false"
      register: tried
      until: tried.rc == 0
      retries: 1
      delay: 0
      delegate_to: localhost
      when: inventory_hostname == 'b2'
    - name: Loop
      ansible.builtin.command: "{{{{ item }}}}"
      loop: ["true", "false"]
"""


def test_several_hosts_of_which_some_fail_and_one_is_unreachable(given, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "b1 ansible_connection=local\nb2 ansible_connection=local\nb3 ansible_connection=ssh ansible_host=127.0.0.1 "
        "ansible_port=1 ansible_ssh_retries=0\n"
    )
    command, environment = given("-i", str(hosts), playbook=MORE_HOSTS)
    del command[1:5]
    for code, text in (piped(command, environment), terminal.run(command, environment, 400, cwd=ROOT)[:2]):
        text = getattr(text, "text", text)
        assert code != 0
        assert "fatal: [b3]: UNREACHABLE!" in text and "TASK [Reach the host]" in text
        assert "fatal: [b2 -> localhost]: FAILED!" in text and "failed: [b1] (item=false)" in text
        assert "failures: b1, b2; unreachable: b3" in text
        assert "changed: [b1]" not in text
