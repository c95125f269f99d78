# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence of a round: requesting a new snapshot of the log and waiting for /migration, both bounded."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper as probe
from quorumshift_spark import fence as fences
from quorumshift_spark import job as jobs
from quorumshift_spark.recheck import Fence
from quorumshift_spark.views.metadata_log import LogSource

AT, ZXID, END = 100, 7000, 101


class ZooKeeper:
    """/migration with one value a read; the last one stays."""

    def __init__(self, *values):
        self.values = list(values)

    def migration(self):
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        if isinstance(value, Exception):
            raise value
        return value


@pytest.fixture
def run(tmp_path):
    def create(fence=None, zookeeper=None, log=True, **bounds):
        bounds = jobs.Bounds(**{"fence_s": 0.3, **bounds})
        job = jobs.Job(str(tmp_path), "n", "after_copy", None, "C", str(tmp_path), b"", fence or {}, {}, bounds)
        views = {"zookeeper": zookeeper} if zookeeper else {}
        if log:
            views["metadata_log"] = SimpleNamespace(source=LogSource(END, directory="/first"))
        return fences.Fencing(job, views)

    return create


JOB_FENCE = {"migration_offset": AT, "migration_zxid": ZXID}


def test_fence_of_the_job_is_valid_for_its_snapshot(run):
    fencing = run(JOB_FENCE, ZooKeeper((AT, ZXID)))
    assert fencing.advance() == Fence(ZXID, False)
    assert fencing.advance() == Fence(ZXID, False)


def test_job_without_a_fence_has_no_zxid(run):
    assert run({}, ZooKeeper((AT, ZXID))).advance() == Fence(None, False)


def test_fence_read_after_the_snapshot_is_ignored(run):
    assert run({**JOB_FENCE, "migration_offset": END}, ZooKeeper((END, 1))).advance().zxid is None


def test_waiting_for_zookeeper_is_bounded(run):
    assert run(JOB_FENCE, ZooKeeper((AT - 2, 1), (AT - 1, 2), (AT, 3)), fence_s=30).advance() == Fence(ZXID, False)
    behind = run(JOB_FENCE, ZooKeeper((AT - 2, 1))).advance()
    assert behind.zxid is None
    assert "/migration is at offset 98 and did not reach 100 within 0.3 s" in behind.error


def test_gate_without_log_or_zookeeper_has_no_fence(run):
    assert run(JOB_FENCE, ZooKeeper((AT, ZXID)), log=False).advance() == Fence(None, False)
    assert run({}).advance() == Fence(None, False)


def test_zookeeper_that_fails_is_named(run):
    with pytest.raises(jobs.ViewError, match="view zookeeper could not be read again: no session"):
        run(JOB_FENCE, ZooKeeper(probe.ZooKeeperError("no session"))).advance()


def answering(directory, number, answer):
    """Answer the request of a round as the role does."""

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


def test_new_snapshot_has_the_fence_read_before_its_request(run, tmp_path):
    fencing = run(JOB_FENCE, ZooKeeper((110, 7100), (111, 7101), (120, 7200)), log_refresh_s=5, fence_s=30)
    log = {"directory": "/second", "end_offset": 121}
    thread = answering(tmp_path, 1, {"nonce": "n", "round": 1, **log})
    assert fencing.advance() == Fence(7100, True)
    thread.join(5)
    request = json.loads((tmp_path / fences.REQUEST).read_text())
    assert request == {"nonce": "n", "round": 1, "above": 110}
    assert fencing._views["metadata_log"].source == LogSource(121, directory="/second")
    thread = answering(tmp_path, 2, {"nonce": "n", "round": 2, "error": "no leader"})
    again = fencing.advance()
    thread.join(5)
    # the second snapshot stays in use, with its own fence
    assert (again.zxid, again.log_cut_again) == (7100, False)
    assert "no leader" in again.error


@pytest.mark.parametrize("answer", [{"nonce": "other", "round": 1}, {"nonce": "n", "round": 2}])
def test_answer_to_another_request_is_ignored(run, tmp_path, answer):
    fencing = run(JOB_FENCE, ZooKeeper((AT, ZXID)), log_refresh_s=5)
    answering(tmp_path, 1, {**answer, "directory": "/second", "end_offset": 121}).join(0)
    fence = fencing.advance()
    assert fence.log_cut_again is False and "answers another request" in fence.error
    assert fencing._views["metadata_log"].source.directory == "/first"


@pytest.mark.parametrize(("mirrored", "end"), [(AT - 5, END - 1), (AT + 9, AT + 9)])
def test_a_snapshot_that_is_older_than_the_request_is_not_used(run, tmp_path, mirrored, end):
    """A ZooKeeper that rejected what the log has since would agree with it."""
    fencing = run(JOB_FENCE, ZooKeeper((mirrored, ZXID), (AT + 9, ZXID)), log_refresh_s=5)
    answering(tmp_path, 1, {"nonce": "n", "round": 1, "directory": "/older", "end_offset": end})
    fence = fencing.advance()
    assert fence.log_cut_again is False and f"ends at offset {end}, short of" in fence.error
    assert fencing._views["metadata_log"].source == LogSource(END, directory="/first")


def test_waiting_for_an_answer_is_bounded(run):
    fence = run(JOB_FENCE, ZooKeeper((AT, ZXID)), log_refresh_s=0.3).advance()
    assert fence == Fence(ZXID, False, "no new snapshot of the log within 0.3 s")


def test_late_answer_is_not_used_for_a_later_request(run, tmp_path):
    fencing = run(JOB_FENCE, ZooKeeper((AT, ZXID)), log_refresh_s=0.3)
    fencing.advance()
    late = {"nonce": "n", "round": 1, "directory": "/second", "end_offset": 121}
    (tmp_path / fences.ANSWER.format(1)).write_text(json.dumps(late))
    assert fencing.advance().log_cut_again is False


def test_answer_without_an_end_offset_is_rejected(run, tmp_path):
    fencing = run(JOB_FENCE, ZooKeeper((AT, ZXID)), log_refresh_s=5)
    answering(tmp_path, 1, {"nonce": "n", "round": 1, "directory": "/second"})
    with pytest.raises(jobs.JobError, match="'end_offset' is missing"):
        fencing.advance()
