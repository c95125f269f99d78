# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The waits that actions give to the callback `screen`."""

from __future__ import annotations

import os
import stat

import pytest
from ansible import constants
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base, waits


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))


@pytest.fixture
def shown(monkeypatch):
    """Return what an action shows, as (text, whether in the log alone)."""
    found = []
    monkeypatch.setattr(
        base.display, "display", lambda text, log_only=False, **_options: found.append((text, log_only))
    )
    return found


def say_wait(host, text):
    action = base.QuorumshiftAction.__new__(base.QuorumshiftAction)
    action.vars = {"inventory_hostname": host}
    action.say_wait(text)


def test_without_a_screen_a_wait_is_a_line_as_any_other(shown):
    say_wait("b1", "b1 stops")
    assert shown == [("    b1 stops", False)]
    assert not os.path.exists(waits.path())


def test_a_screen_gets_the_wait_and_the_log_the_line(shown):
    feed = waits.Feed()
    say_wait("b1", "b1 stops")
    say_wait("b2", "names a \x1b[2J secret password=hunter2 of b2")
    assert [log_only for _text, log_only in shown] == [True, True]
    found = feed.read()
    assert found[0] == ("b1", "b1 stops") and found[1][0] == "b2"
    assert found[1][1] == shown[1][0].strip() and "\x1b" not in found[1][1] and "hunter2" not in found[1][1]
    assert feed.read() == []
    feed.close()
    say_wait("b1", "b1 starts")
    assert shown[-1] == ("    b1 starts", False)


def test_only_its_owner_reads_it_and_what_an_earlier_one_left_is_dropped():
    waits.Feed()
    waits.note("b1", "old")
    feed = waits.Feed()
    assert feed.read() == [] and stat.S_IMODE(os.stat(waits.path()).st_mode) == 0o600


def test_a_line_that_is_being_written_is_read_once_it_is_complete():
    feed = waits.Feed()
    with open(waits.path(), "a", encoding="utf-8") as stream:
        stream.write('["b1", "b1 st')
        stream.flush()
        assert feed.read() == []
        stream.write('arts"]\n17\n{"of": "a full disk\n["b2", "b2 stops"]\n')
    assert feed.read() == [("b1", "b1 starts"), ("b2", "b2 stops")]
