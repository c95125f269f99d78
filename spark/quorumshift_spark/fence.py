# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence of a round (see settling): another cut of the log where one can be had, and ZooKeeper past it.

The job may ask for another cut of the log (bounds.log_refresh_s): it writes log_request.json
{"nonce", "round", "above": offset} beside job.json and waits for log_answer.<round>.json {"nonce", "round"} with the
keys of views.metadata_log, a log cut at a high watermark above that offset; an answer {"nonce", "round", "error"} says
why there is none.
A high watermark that is read after the request holds every record that ZooKeeper had when /migration was read before.
"""

from __future__ import annotations

import json
import os
import time
from typing import Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper as probe

from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark import rules
from quorumshift_spark.recheck import Fence
from quorumshift_spark.views import View

REQUEST, ANSWER = "log_request.json", "log_answer.{}.json"
_POLL_S = 0.2


class Fencing:
    """The fences of one job. Another cut replaces `source` of the view `metadata_log`."""

    def __init__(self, job: jobs.Job, views: Mapping[str, View]) -> None:
        self._job = job
        self._views = views
        self._requests = 0
        self._fence = job.fence  # of the log that is at hand

    def advance(self) -> Fence:
        """The fence of a round. Raises ViewError where ZooKeeper cannot be read, JobError for an unusable answer."""
        try:
            return self._fenced()
        except probe.ZooKeeperError as error:
            raise jobs.ViewError(f"view zookeeper could not be read again: {error}; run the gate again") from error

    def _fenced(self) -> Fence:
        zookeeper, log = self._views.get(rules.ZOOKEEPER), self._views.get(rules.LOG)
        if log is None:
            return Fence(None, False)
        fence = self._fence
        if zookeeper is not None and self._job.bounds.log_refresh_s:
            offset, zxid = zookeeper.migration()
            fence = {"migration_offset": offset, "migration_zxid": zxid}
        cut_again, trouble = self._cut_again(fence.get("migration_offset", log.source.end_offset - 1))
        if zookeeper is None:
            return Fence(None, cut_again, trouble)
        if cut_again:
            self._fence = fence
        behind = self._passed(zookeeper, log.source.end_offset)
        if behind:
            return Fence(None, cut_again, behind)
        # Records up to the offset of /migration were in ZooKeeper at that zxid, and the log was cut after them
        is_older = self._fence.get("migration_offset", log.source.end_offset) < log.source.end_offset
        return Fence(self._fence.get("migration_zxid") if is_older else None, cut_again, trouble)

    def _passed(self, zookeeper, end_offset):
        """Wait until ZooKeeper has all records below `end_offset`; why not, if it does not come to that."""
        end = time.monotonic() + self._job.bounds.fence_s
        while True:
            offset, _zxid = zookeeper.migration()
            if offset >= end_offset - 1:
                return ""
            if time.monotonic() > end:
                return (
                    f"/migration stands at offset {offset} and has not passed {end_offset - 1} within "
                    f"{self._job.bounds.fence_s:g} s: dual write is behind or stuck"
                )
            time.sleep(_POLL_S)

    def _cut_again(self, above: int) -> Tuple[bool, str]:
        """Ask for the log cut at a high watermark above an offset; whether it came, and what went wrong if not."""
        seconds = self._job.bounds.log_refresh_s
        if not seconds:
            return False, ""
        # A late answer to an earlier request is of no use: its cut is older than this round's fence
        self._requests = number = self._requests + 1
        request = {"nonce": self._job.nonce, "round": number, "above": above}
        with results.replacing(os.path.join(self._job.directory, REQUEST)) as part, open(part, "w") as file:
            json.dump(request, file)
        answer_file = os.path.join(self._job.directory, ANSWER.format(number))
        end = time.monotonic() + seconds
        while not os.path.exists(answer_file):
            if time.monotonic() > end:
                return False, f"no other cut of the log came within {seconds:g} s"
            time.sleep(_POLL_S)
        with open(answer_file) as file:
            answer = json.load(file)
        if answer.get("nonce") != self._job.nonce or answer.get("round") != number:
            return False, f"{ANSWER.format(number)} answers another request"
        if answer.get("error"):
            return False, f"no other cut of the log: {answer['error']}"
        self._views[rules.LOG].source = jobs.log_source(answer)
        return True, ""
