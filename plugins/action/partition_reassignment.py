# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment: wait in slices with progress; in a run, journal what moves and under which throttle."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

# A worker of Ansible outlives its control process, by one slice: until another run takes the move over, it may send on
SLICE_S = 15.0
_BEGUN = ("results", "diff", "undo", "throttle_bytes_s")


class ActionModule(QuorumshiftAction):
    """Moves, awaits or cancels. Alone, outside of a run of this collection, it fills in and journals nothing."""

    def refusal(self):
        """A playbook of its own may be cut down by tags or limits."""
        return super().refusal() if self.session.get("run") else None

    def act(self, args):
        args = self.fill(args)
        state = args.get("state", "present")
        if self._task.check_mode or state == "cancelled" or not args.get("wait", True):
            return self._journaled(state, args, self.module(args))
        if state == "present":
            self._note("reassigning", throttle=args.get("throttle_bytes_s"))
        first = result = self.module({"wait_s": SLICE_S, **args})
        while not result.get("failed") and not result["done"]:
            self.say_wait(result["text"])
            # What is not sent yet is sent by the next slices
            further = state if result["carry"].get("queued") else "awaited"
            result = self.module({"wait_s": SLICE_S, **args, "state": further, "carry": result["carry"]})
        kept = {key: first[key] for key in _BEGUN if key in first}
        return self._journaled(state, args, {**result, **kept})

    def _journaled(self, state, args, result):
        """Journal and return a result."""
        if result.get("failed") or self._task.check_mode:
            return result
        name = {"cancelled": "reassignments_cancelled"}.get(state, "reassigned" if result["done"] else "reassigning")
        more = {key: result[key] for key in ("gone", "throttles_left", "waited_s") if result.get(key)}
        moved = [f"{moved_partition['topic']}-{moved_partition['partition']}" for moved_partition in result["results"]]
        self._note(name, partitions=len(moved), first=moved[:5], throttle=args.get("throttle_bytes_s"), **more)
        return result

    def _note(self, name, **more):
        if self.session.get("run") and not self._task.check_mode:
            self.artifacts().note("event", name, **more)
