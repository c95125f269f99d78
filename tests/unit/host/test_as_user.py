# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands run as another user, with real processes."""

from __future__ import annotations

import getpass
import os
import pwd
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import as_user

US = getpass.getuser()


def shell(script, timeout=10, user=US, **more):
    return as_user.run(user, ["sh", "-c", script], timeout, **more)


def test_run_returns_exit_code_and_output():
    assert shell("echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")


def test_command_can_open_its_input_by_name():
    assert shell("cat /dev/stdin", data=b"password=secret\n").output == "password=secret\n"
    assert shell("cat").output == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_command_runs_with_the_users_rights_and_groups():
    nobody = pwd.getpwnam("nobody")
    script = "id -u; id -G; cat /dev/stdin"
    user, groups, text = shell(script, user="nobody", data=b"secret").output.split("\n")
    assert (int(user), text) == (nobody.pw_uid, "secret")
    assert {int(group) for group in groups.split()} == set(os.getgrouplist("nobody", nobody.pw_gid))


def test_command_is_killed_after_its_timeout():
    began = time.monotonic()
    assert shell("echo begun; exec sleep 60", timeout=0.3) == (None, "begun\n", "")
    assert time.monotonic() - began < 10


def test_command_is_killed_after_its_stop_text_and_later_output_is_kept():
    began = time.monotonic()
    script = "echo the thread exited >&2; echo because >&2; exec sleep 60"
    assert shell(script, 30, stop_text="thread exited") == (None, "", "the thread exited\nbecause\n")
    assert time.monotonic() - began < 10


def test_command_that_cannot_be_started_is_an_error():
    with pytest.raises(KeyError):
        shell("true", user="no-such-user")
    with pytest.raises(FileNotFoundError):
        as_user.run(US, ["/nowhere/tool.sh"], 1)
    with pytest.raises(OSError, match="too long"):
        shell("true", data=b"x" * 2_000_000)


def test_only_root_becomes_another_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(PermissionError, match="not permitted"):
        shell("true")
