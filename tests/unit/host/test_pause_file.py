# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is in the place of the pause file, restarts are paused while something is there."""

from __future__ import annotations

import os
import threading
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import pause_file


def test_without_the_file_restarts_begin(tmp_path):
    assert pause_file.read(str(tmp_path)) is None
    assert pause_file.read(str(tmp_path / "no directory")) is None
    (tmp_path / "a file").write_text("")
    assert pause_file.read(str(tmp_path / "a file")) is None


def test_its_first_line_says_why(tmp_path):
    (tmp_path / "pause").write_text("disk alert on b3\nmore\n")
    found = pause_file.read(str(tmp_path))
    assert found["why"] == "disk alert on b3" and found["path"] == str(tmp_path / "pause")
    assert abs(found["since"] - time.time()) < 60
    (tmp_path / "pause").write_bytes(b"\xff" * 100_000)
    assert len(pause_file.read(str(tmp_path))["why"]) <= 200


@pytest.mark.parametrize("kind", ["empty", "directory", "pipe", "dangling link"])
def test_anything_in_its_place_is_a_pause(tmp_path, kind):
    path = tmp_path / "pause"
    if kind == "empty":
        path.write_text("")
    elif kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/nowhere")
    assert pause_file.read(str(tmp_path))["why"] == ""


def test_a_place_that_cannot_be_read_is_a_pause(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read" in pause_file.read(str(tmp_path / "loop"))["why"]


def test_the_wait_ends_with_the_pause_or_its_bound(tmp_path):
    path = tmp_path / "pause"
    path.write_text("")
    began = time.monotonic()
    assert pause_file.await_end(str(tmp_path), 0.6) and time.monotonic() - began >= 0.6
    assert pause_file.await_end(str(tmp_path), 0)
    threading.Timer(0.3, path.unlink).start()
    assert pause_file.await_end(str(tmp_path), 60) is None and time.monotonic() - began < 30
