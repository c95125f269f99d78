# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands run as another user, with real processes."""

from __future__ import annotations

import getpass
import os
import pwd
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import as_user

US = getpass.getuser()


def shell(script, timeout=10, user=US, **more):
    return as_user.run(user, ["sh", "-c", script], timeout, **more)


def test_how_it_ended_and_what_it_printed():
    assert shell("echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")


def test_its_input_can_be_opened_by_name():
    assert shell("cat /dev/stdin", text="password=secret\n").output == "password=secret\n"
    assert shell("cat").output == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_it_runs_with_the_users_rights_and_groups():
    nobody = pwd.getpwnam("nobody")
    script = "id -u; id -G; cat /dev/stdin"
    user, groups, text = shell(script, user="nobody", text="for nobody alone").output.split("\n")
    assert (int(user), text) == (nobody.pw_uid, "for nobody alone")
    assert {int(one) for one in groups.split()} == set(os.getgrouplist("nobody", nobody.pw_gid))


def test_it_is_killed_at_its_bound():
    began = time.monotonic()
    assert shell("echo begun; exec sleep 60", timeout=0.3) == (None, "begun\n", "")
    assert time.monotonic() - began < 10


def test_it_is_killed_after_its_last_words_and_what_it_still_prints_is_kept():
    began = time.monotonic()
    script = "echo the thread exited >&2; echo because >&2; exec sleep 60"
    assert shell(script, 30, last_words="thread exited") == (None, "", "the thread exited\nbecause\n")
    assert time.monotonic() - began < 10


def test_what_cannot_be_run():
    with pytest.raises(KeyError):
        shell("true", user="nobody-of-that-name")
    with pytest.raises(FileNotFoundError):
        as_user.run(US, ["/nowhere/tool.sh"], 1)
    with pytest.raises(OSError, match="too long"):
        shell("true", text="x" * 2_000_000)


def test_nobody_but_root_becomes_somebody_else(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(PermissionError, match="not permitted"):
        shell("true")
