# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recording shows each line of the terminal for the time in which it was seen, and nothing else."""

from __future__ import annotations

import os
import re
import sys
from xml.etree import ElementTree

import pytest

from tools import recording
from tools.checkout import ROOT

TEXT = "{http://www.w3.org/2000/svg}text"
EVENTS = [
    (0.0, "$ run\r\n"),
    (1.0, "b1 is up\r\nbroker 1 of 2"),
    (2.0, "\r\x1b[J<b2> & more\r\nbroker 2 of 2"),
    (50.0, "\r\x1b[J"),
]


def made(events=EVENTS, columns=40):
    return recording.Recording("run", columns, events)


def test_each_line_has_its_time():
    assert recording.lines_of(made()) == [
        recording.Line(0, "$ run", 0.0, None),
        recording.Line(1, "b1 is up", 1.0, None),
        recording.Line(2, "<b2> & more", 2.0, None),
        recording.Line(2, "broker 1 of 2", 1.0, 2.0),
        recording.Line(3, "broker 2 of 2", 2.0, 50.0),
    ]


def test_the_picture_is_well_formed_and_has_each_line_as_text():
    picture = ElementTree.fromstring(recording.svg(made()))
    shown = ["".join(element.itertext()) for element in picture.iter(TEXT)]
    assert shown[0] == "50 s, shown 2.5 times as fast"
    assert sorted(set(shown[1:])) == ["$ run", "<b2> & more", "b1 is up", "broker 1 of 2", "broker 2 of 2"]
    assert shown.count("broker 1 of 2") == 1, "the end, for those who asked for less motion, has the last lines alone"
    seconds = [float(text) for text in re.findall(r"begin\+([\d.]+)s", recording.svg(made()))]
    assert max(seconds) < recording.SHOWN_S


def test_pictures_of_one_page_have_clocks_of_their_own():
    other = recording.Recording("other", 40, EVENTS)
    ids = [re.findall(r'id="([^"]+)"', recording.svg(each)) for each in (made(), other)]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]


def test_a_cast_is_read_as_it_was_written(tmp_path):
    recording.write_cast(made(), tmp_path / "run.cast")
    assert recording.read_cast(tmp_path / "run.cast") == made()
    assert recording.main([str(tmp_path / "run.cast"), str(tmp_path / "run.svg")]) == 0
    assert (tmp_path / "run.svg").read_text() == recording.svg(made())


def test_what_a_program_writes_is_recorded():
    program = "import sys; print('one'); sys.stdout.flush(); print('two', end='\\r'); print('TWO')"
    code, found = recording.record("run", [sys.executable, "-c", program], dict(os.environ), 40)
    assert code == 0 and [line.text for line in recording.lines_of(found) if line.end is None] == [
        "$ run",
        "one",
        "TWO",
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "recordings").glob("*.cast")), ids=lambda path: path.stem)
def test_the_pictures_of_the_docs_are_made_of_their_casts(path):
    assert path.with_suffix(".svg").read_text(encoding="utf-8") == recording.svg(recording.read_cast(path))
    assert path.with_suffix(".svg").stat().st_size < 200_000
