# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence of a round: another cut of the log asked for and answered, /migration waited for, each of them bounded."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper as probe
from quorumshift_spark import fence as fences
from quorumshift_spark import job as jobs
from quorumshift_spark.recheck import Fence
from quorumshift_spark.views.metadata_log import LogSource

AT, ZXID, END = 100, 7000, 101


class ZooKeeper:
    """/migration as it is seen by each look, the last one for ever."""

    def __init__(self, *seen):
        self.seen = list(seen)

    def migration(self):
        found = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def run(tmp_path):
    def make(fence=None, zookeeper=None, log=True, **bounds):
        bounds = jobs.Bounds(**{"fence_s": 0.3, **bounds})
        job = jobs.Job(str(tmp_path), "n", "after_copy", None, "C", str(tmp_path), b"", fence or {}, {}, bounds)
        views = {"zookeeper": zookeeper} if zookeeper else {}
        if log:
            views["metadata_log"] = SimpleNamespace(source=LogSource(END, directory="/first"))
        return fences.Fencing(job, views)

    return make


GIVEN = {"migration_offset": AT, "migration_zxid": ZXID}


def test_fence_of_the_job_holds_for_its_own_cut(run):
    made = run(GIVEN, ZooKeeper((AT, ZXID)))
    assert made.advance() == Fence(ZXID, False)
    assert made.advance() == Fence(ZXID, False)


def test_without_a_fence_nothing_is_before_it(run):
    assert run({}, ZooKeeper((AT, ZXID))).advance() == Fence(None, False)


def test_fence_that_was_read_after_the_cut_does_not_count(run):
    assert run({**GIVEN, "migration_offset": END}, ZooKeeper((END, 1))).advance().zxid is None


def test_zookeeper_is_waited_for_and_not_for_ever(run):
    assert run(GIVEN, ZooKeeper((AT - 2, 1), (AT - 1, 2), (AT, 3)), fence_s=30).advance() == Fence(ZXID, False)
    behind = run(GIVEN, ZooKeeper((AT - 2, 1))).advance()
    assert behind.zxid is None
    assert "/migration stands at offset 98 and has not passed 100 within 0.3 s" in behind.said


def test_gates_without_one_of_the_two(run):
    assert run(GIVEN, ZooKeeper((AT, ZXID)), log=False).advance() == Fence(None, False)
    assert run({}).advance() == Fence(None, False)


def test_zookeeper_that_fails_is_named(run):
    with pytest.raises(jobs.ViewError, match="view zookeeper could not be read again: it is gone"):
        run(GIVEN, ZooKeeper(probe.ZooKeeperError("it is gone"))).advance()


def answering(directory, number, answer):
    """Answers the request of a round as the role does."""

    def wait():
        request = directory / fences.REQUEST
        while not request.exists() or json.loads(request.read_text())["round"] != number:
            pass
        part = directory / "part"
        part.write_text(json.dumps(answer))
        part.rename(directory / fences.ANSWER.format(number))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_another_cut_has_the_fence_that_was_read_before_it(run, tmp_path):
    made = run(GIVEN, ZooKeeper((110, 7100), (111, 7101), (120, 7200)), log_refresh_s=5, fence_s=30)
    log = {"directory": "/second", "end_offset": 121}
    thread = answering(tmp_path, 1, {"nonce": "n", "round": 1, **log})
    assert made.advance() == Fence(7100, True)
    thread.join(5)
    request = json.loads((tmp_path / fences.REQUEST).read_text())
    assert request == {"nonce": "n", "round": 1, "above": 110}
    assert made._views["metadata_log"].source == LogSource(121, directory="/second")
    thread = answering(tmp_path, 2, {"nonce": "n", "round": 2, "error": "no leader"})
    again = made.advance()
    thread.join(5)
    # what is at hand is the second cut still, with its own fence
    assert (again.zxid, again.cut_again) == (7100, False)
    assert "no leader" in again.said


@pytest.mark.parametrize("answer", [{"nonce": "other", "round": 1}, {"nonce": "n", "round": 2}])
def test_foreign_answer_is_no_cut(run, tmp_path, answer):
    made = run(GIVEN, ZooKeeper((AT, ZXID)), log_refresh_s=5)
    answering(tmp_path, 1, {**answer, "directory": "/second", "end_offset": 121}).join(0)
    fence = made.advance()
    assert fence.cut_again is False and "answers another request" in fence.said
    assert made._views["metadata_log"].source.directory == "/first"


def test_no_answer_is_waited_for_so_long(run):
    fence = run(GIVEN, ZooKeeper((AT, ZXID)), log_refresh_s=0.3).advance()
    assert fence == Fence(ZXID, False, "no other cut of the log came within 0.3 s")


def test_late_answer_is_not_taken_for_a_later_request(run, tmp_path):
    made = run(GIVEN, ZooKeeper((AT, ZXID)), log_refresh_s=0.3)
    made.advance()
    late = {"nonce": "n", "round": 1, "directory": "/second", "end_offset": 121}
    (tmp_path / fences.ANSWER.format(1)).write_text(json.dumps(late))
    assert made.advance().cut_again is False


def test_answer_without_an_end_offset_is_refused(run, tmp_path):
    made = run(GIVEN, ZooKeeper((AT, ZXID)), log_refresh_s=5)
    answering(tmp_path, 1, {"nonce": "n", "round": 1, "directory": "/second"})
    with pytest.raises(jobs.JobError, match="end_offset is missing"):
        made.advance()
