# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger's files: rows are read as written and in order."""

from __future__ import annotations

import json
import threading

import pytest

from canary_clients import ledger
from canary_clients.errors import ClientsError
from canary_clients.ledger import RECEIVED, Clock, LedgerWriter, position


@pytest.fixture
def writer(tmp_path):
    written = LedgerWriter(tmp_path, Clock(), ["g"])
    (tmp_path / "run.json").write_text(json.dumps({"t0": 0, "groups": {"g": {}}}))
    yield written
    if not written._stop.is_set():
        written.close()


def test_rows_are_read_as_written(writer, tmp_path):
    first = writer.new_streams("long", 7, [5, 6], [1, 2])
    ledger_id, at = writer.sent(first + 1)
    writer.acked(ledger_id, position(2, 40), at + 3)
    writer.aborted(ledger_id)
    writer.received("g", RECEIVED.pack(ledger_id, at + 9, position(2, 40)))
    writer.error("here", "CODE", "text")
    writer.error("here", "CODE", "text")
    writer.admin({"t": 1, "operation": "x"})
    writer.close()
    read = ledger.read(tmp_path)
    assert list(read.sent_stream) == [1]
    assert list(read.acked) == [(0, at + 3, 2 << 48 | 40)]
    assert [row[0] for row in read.aborted] == [0]
    assert list(read.received["g"]) == [(0, at + 9, 2 << 48 | 40)]
    assert [(e["code"], e["count"]) for e in read.errors] == [("CODE", 2)]
    assert read.admin == [{"t": 1, "operation": "x"}]
    assert list(read.stream_tables()[0]) == [1, 2]
    assert read.torn == []


def test_ids_given_to_many_threads_are_consecutive(writer, tmp_path):
    def send():
        for dummy in range(2000):
            writer.sent(0)

    threads = [threading.Thread(target=send) for dummy in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    read = ledger.read(tmp_path)
    assert len(read.sent_time) == 8000
    assert writer.sent(0)[0] == 8000


def test_unknown_offset_keeps_its_partition():
    assert position(3, -1001) >> 48 == 3
    for unknown in (-1001, None):
        assert position(3, unknown) == 3 << 48 | ledger.OFFSET_UNKNOWN
        assert ledger.ACKED.unpack(ledger.ACKED.pack(1, 2, position(3, unknown)))[2] == position(3, unknown)


def test_directory_without_run_is_an_error(tmp_path):
    with pytest.raises(ClientsError, match="no run"):
        ledger.read(tmp_path)
