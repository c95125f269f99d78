# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture: a self-contained SVG of the verdict and the marks."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from canary_clients.marks import Mark
from canary_clients.picture import WIDTH, draw
from canary_clients.timeline import COLUMNS_AT_MOST, build
from tests.unit.canary_clients.client_ledgers import T0, LedgerBuilder

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recording(tmp_path):
    run = LedgerBuilder()
    run.messages(300)
    waiting = run.send(0)
    run.now += 4000
    packed = run.place(waiting)
    run.ack(waiting, packed, after=0)
    run.deliver(waiting, packed, after=10)
    run.messages(300)
    run.stop()
    return run.write(tmp_path)


def test_phases_restarts_and_stalls_are_drawn(recording):
    marks = [
        Mark(T0 - 5, "phase", "zk"),
        Mark(T0 + 2, "phase", "<hybrid> & co"),
        Mark(T0 + 3, "restart", "roll", "kafka1", T0 + 7),
        Mark(T0 + 4, "event", "elected"),
        Mark(T0 + 900, "restart", "roll", "later", T0 + 901),
    ]
    root = ElementTree.fromstring(draw(recording, marks))
    labels = [element.text for element in root.iter(f"{SVG}text") if element.text]
    for label in ("PASS", "zk", "<hybrid> & co", "kafka1", "elected", "4.0 s"):
        assert label in labels
    assert "later" not in labels
    bars = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "restart"]
    phases = [r for r in root.iter(f"{SVG}rect") if r.get("class") in ("band", "band2")]
    assert (len(bars), len(phases)) == (1, 2)
    assert all(0 <= float(r.get("x")) <= WIDTH for r in (*bars, *phases))


def test_picture_loads_nothing(recording):
    text = draw(recording, []).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in text
    assert "href" not in text


def test_timeline_counts_each_message_once(recording):
    timeline = build(recording)
    seconds = timeline.bucket_ms / 1000
    assert sum(timeline.acked) * seconds == len(recording.acked) == 604
    assert sum(timeline.received) * seconds == 604
    assert max(value for value in timeline.latency_max if value is not None) == 4010
    assert len(timeline.acked) <= COLUMNS_AT_MOST + 2


def test_empty_run_has_a_picture(tmp_path):
    run = LedgerBuilder()
    assert "INCOMPLETE" in draw(run.write(tmp_path), [])
