# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence of a round (see recheck): a new snapshot of the log where possible, and ZooKeeper past its end.

The job requests a new snapshot where bounds.log_refresh_s allows it. It writes log_request.json {"nonce", "round",
"above": offset} beside job.json and waits for log_answer.<round>.json. The answer holds {"nonce", "round"} and the keys
of views.metadata_log, for a log cut at a high watermark above that offset, or "error": why there is none.
A high watermark read after the request covers every record that ZooKeeper had when /migration was read before it.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper as probe

from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark import rules
from quorumshift_spark.recheck import Fence
from quorumshift_spark.views import View

REQUEST, ANSWER = "log_request.json", "log_answer.{}.json"
_POLL_S = 0.2


class Fencing:
    """The fences of one job. A new snapshot replaces `source` of the view `metadata_log`."""

    def __init__(self, job: jobs.Job, views: Mapping[str, View]) -> None:
        self._job = job
        self._views = views
        self._requests = 0
        self._fence = job.fence  # of the current snapshot

    def advance(self) -> Fence:
        """Return the fence of a round. Raises ViewError (ZooKeeper cannot be read) and JobError (unusable answer)."""
        try:
            return self._fenced()
        except probe.ZooKeeperError as error:
            raise jobs.ViewError(
                f"view zookeeper could not be read again: {error}. Run the playbook again (QS-VERIFY-003)"
            ) from error

    def _fenced(self) -> Fence:
        zookeeper, log = self._views.get(rules.ZOOKEEPER), self._views.get(rules.LOG)
        if log is None:
            return Fence(None, False)
        fence = self._fence
        if zookeeper is not None and self._job.bounds.log_refresh_s:
            offset, zxid = zookeeper.migration()
            fence = {"migration_offset": offset, "migration_zxid": zxid}
        cut_again, error = self._cut_again(log, fence.get("migration_offset", log.source.end_offset - 1))
        if zookeeper is None:
            return Fence(None, cut_again, error)
        if cut_again:
            self._fence = fence
        behind = self._wait_until_passed(zookeeper, log.source.end_offset)
        if behind:
            return Fence(None, cut_again, behind, passed=False)
        # ZooKeeper had the records up to the offset of /migration at that zxid; the log ends after them
        is_older = self._fence.get("migration_offset", log.source.end_offset) < log.source.end_offset
        return Fence(self._fence.get("migration_zxid") if is_older else None, cut_again, error)

    def _wait_until_passed(self, zookeeper, end_offset):
        """Wait until ZooKeeper has all records below `end_offset`. Return "", or why it does not have them."""
        end = time.monotonic() + self._job.bounds.fence_s
        while True:
            offset, _zxid = zookeeper.migration()
            if offset >= end_offset - 1:
                return ""
            if time.monotonic() > end:
                return (
                    f"/migration is at offset {offset} and did not reach {end_offset - 1} within "
                    f"{self._job.bounds.fence_s:g} s: dual-write is behind or stalled"
                )
            time.sleep(_POLL_S)

    def _cut_again(self, log: Any, above: int) -> Tuple[bool, str]:
        """Request the log cut at a high watermark above an offset. Return whether it came, and why not."""
        seconds = self._job.bounds.log_refresh_s
        if not seconds:
            return False, ""
        # An own number a request: a late answer to an earlier one is older than this round's fence
        self._requests = number = self._requests + 1
        request = {"nonce": self._job.nonce, "round": number, "above": above}
        with results.replacing(os.path.join(self._job.directory, REQUEST)) as part, open(part, "w") as file:
            json.dump(request, file)
        answer_file = os.path.join(self._job.directory, ANSWER.format(number))
        end = time.monotonic() + seconds
        while not os.path.exists(answer_file):
            if time.monotonic() > end:
                return False, f"no new snapshot of the log within {seconds:g} s"
            time.sleep(_POLL_S)
        with open(answer_file) as file:
            answer = json.load(file)
        if answer.get("nonce") != self._job.nonce or answer.get("round") != number:
            return False, f"{ANSWER.format(number)} answers another request"
        if answer.get("error"):
            return False, f"no new snapshot of the log: {answer['error']}"
        jobs.check(answer, "log")
        source = jobs.log_source(answer)
        least = max(above + 1, log.source.end_offset)
        if source.end_offset < least:
            # A leader that was just elected may report a high watermark of before. What changed since is not in that
            # log: it would agree with a ZooKeeper, or a broker, that missed it
            return False, f"the new snapshot of the log ends at offset {source.end_offset}, short of {least}"
        log.source = source
        return True, ""
