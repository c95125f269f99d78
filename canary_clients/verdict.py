# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate a run's ledger; pure, and fast enough for millions of messages.

Ledger ids count the messages of the whole run in the order of sending. So within a stream (one key of one producer
instance) they give the order in which the application sent.
  lost           acknowledged, and either a group that reads its topic did not receive it but received a later message
                 of that partition, or the audit did not find it. On the compacted topic: the newest value in the log
                 for a key is older than the newest acknowledged one.
  duplicated     one ledger id at two positions (partition and offset) of the log.
  redelivered    one position delivered twice to one group: normal when a consumer restarts.
  reordered      within a stream, a later ledger id at a lower offset.
  indeterminate  sent, neither acknowledged nor aborted.
  outstanding    acknowledged, not received, and nothing after it was received either: the run was cut short.
  slowest        the messages that waited longest: of a producer from sending to the acknowledgement, of a consumer from
                 the acknowledgement to receiving.
A producer's stall is the time in which a partition acknowledged nothing although a sent message was waiting. A
consumer's stall is the time in which a group received nothing from a partition although an acknowledged message was in
it. A stall belongs to the phase in which it began.
"""

from __future__ import annotations

from array import array
from typing import Any

from canary_clients.counts import HISTOGRAM_MS, Examples, Histogram, PhaseCount, Slowest
from canary_clients.ledger import AUDIT, OFFSET_BITS, OFFSET_MASK, OFFSET_UNKNOWN, Recording
from canary_clients.marks import Mark, Phases, steps_between

PASS, FAIL, INCOMPLETE = "pass", "fail", "incomplete"
EXIT_CODES = {PASS: 0, FAIL: 1, INCOMPLETE: 3}
EXAMPLES = 10
SLOWEST = 10
STALL_LISTED_MS = 500


def evaluate(recording: Recording, marks: list[Mark], running: bool = False) -> dict[str, Any]:
    """Return the verdict, as documented in canary_clients/README.md.

    `running`: the run's process is alive, so the ledger has no end yet.
    """
    return _Evaluation(recording, marks, running).result()


class _Evaluation:
    def __init__(self, recording: Recording, marks: list[Mark], running: bool) -> None:
        self.r = recording
        self.running = running
        self.marks = marks
        self.stopped = recording.meta.get("stopped")
        self.end_ms = end_ms(recording)
        self.phases = Phases(marks, recording.t0, self.end_ms)
        self.by_phase = [PhaseCount() for dummy in self.phases.names]
        self.sent = len(recording.sent_stream)
        self.partition_of, self.kind_of, self.key_of = recording.stream_tables()
        self.partitions = [("", -1), *map(tuple, recording.meta["partitions"])]
        self.ack_time = array("I", bytes(4 * self.sent))
        self.where = array("Q", bytes(8 * self.sent))
        self.seen = bytearray(self.sent)
        self.beyond = 0
        self.redelivered = 0
        self.received = 0
        self.examples = Examples()
        self.reasons: list[str] = []
        self.gaps: list[str] = []
        self.stalls: list[dict[str, Any]] = []
        self.worst = {"producer": [0] * len(self.partitions), "consumer": [0] * len(self.partitions)}
        self.worst_overall = {"producer": 0, "consumer": 0}
        self.slowest = {"producer": Slowest(SLOWEST), "consumer": Slowest(SLOWEST)}
        self.ack_latency = Histogram()
        self.end_to_end = [Histogram() for dummy in self.phases.names]
        # messages of a stream whose entry was cut off are ignored
        self.known = self.sent
        if self.sent and max(recording.sent_stream) >= len(self.kind_of):
            self.known = next(i for i, s in enumerate(recording.sent_stream) if s >= len(self.kind_of))

    def result(self) -> dict[str, Any]:
        self._acknowledged()
        duplicates = self._received()
        self._aborted()
        counts = self._lost_and_order()
        self._compacted(counts)
        errors, notes = self._errors()
        admin = self._admin()
        for ledger_id in duplicates:
            self._damage("duplicated", ledger_id)
        counts["duplicated"] = len(duplicates)
        verdict = self._verdict(counts, errors)
        return {
            "verdict": verdict,
            "reasons": self.reasons,
            "sent": self.known,
            "acked": self.acked,
            "received": self.received,
            "lost": counts["lost"],
            "duplicated": counts["duplicated"],
            "redelivered": self.redelivered,
            "reordered": counts["reordered"],
            "indeterminate": counts["indeterminate"],
            "indeterminate_received": counts["indeterminate_received"],
            "outstanding": counts["outstanding"],
            "expired": counts["expired"],
            "aborted": len(self.aborted),
            "aborted_visible": counts["aborted_visible"],
            "app_errors": errors,
            "notes": notes,
            "max_stall_ms": {side: max(worst) for side, worst in self.worst.items()},
            "stalls": {
                "overall_ms": self.worst_overall,
                "by_topic_ms": self._by_topic(),
                "longest": sorted(self.stalls, key=lambda stall: -stall["ms"])[:50],
            },
            "slowest": {side: self._slowest(slowest) for side, slowest in self.slowest.items()},
            "longest_wait_ms": {side: slowest.by_client for side, slowest in self.slowest.items()},
            "latency_ms": {"ack": self.ack_latency.summary(), "end_to_end": self._all_end_to_end().summary()},
            "by_phase": self._phases(),
            "admin": admin,
            "examples": vars(self.examples),
            "run": self._run(),
        }

    def _acknowledged(self) -> None:
        """Enter acknowledgements, producers' stalls and latencies."""
        sent_time, ack_time, where = self.r.sent_time, self.ack_time, self.where
        by_slot, by_phase = self.phases.by_slot, self.by_phase
        last = [0] * len(self.partitions)
        worst = self.worst["producer"]
        worst_phase = [0] * len(by_phase)
        count_phase = [0] * len(by_phase)
        histogram, max_latency = self.ack_latency.counts, 0
        before = overall = acked = 0
        known, slowest = self.known, self.slowest["producer"]
        kind_of, sent_stream = self.kind_of, self.r.sent_stream
        for ledger_id, at, packed in self.r.acked:
            if ledger_id >= known:
                self.beyond += 1
                continue
            acked += 1
            ack_time[ledger_id] = at
            where[ledger_id] = packed
            sent_at = sent_time[ledger_id]
            latency = at - sent_at
            if latency < HISTOGRAM_MS:
                histogram[latency] += 1
            else:
                histogram[HISTOGRAM_MS] += 1
            if latency > max_latency:
                max_latency = latency
            count_phase[by_slot[at // 100]] += 1
            index = packed >> OFFSET_BITS
            kind = kind_of[sent_stream[ledger_id]]
            if latency > slowest.least or latency > slowest.by_client.get(kind, -1):
                slowest.add(ledger_id, index, sent_at, latency, kind, "acknowledged")
            since = last[index]
            gap = at - since if since > sent_at else latency
            last[index] = at
            if gap > 20:
                phase = by_slot[(at - gap) // 100]
                if gap > worst_phase[phase]:
                    worst_phase[phase] = gap
                if gap > worst[index]:
                    worst[index] = gap
                if gap >= STALL_LISTED_MS:
                    self._stall("producer", index, at - gap, gap)
                together = at - before if before > sent_at else latency
                if together > overall:
                    overall = together
            before = at
        self.acked = acked
        self.ack_latency.max = max_latency
        self.worst_overall["producer"] = overall
        for phase, count in enumerate(by_phase):
            count.acked = count_phase[phase]
            count.max_producer_stall_ms = worst_phase[phase]
        self.last_ack = last

    def _stall(self, side: str, index: int, start: int, ms: int) -> None:
        """List a stall; partitions that stalled together share an entry."""
        topic, number = self.partitions[index]
        for stall in reversed(self.stalls[-64:]):
            if (
                stall["side"] == side
                and stall["topic"] == topic
                and start < stall["_end"]
                and stall["_start"] < start + ms
                and min(start + ms, stall["_end"]) - max(start, stall["_start"]) > ms // 2
            ):
                stall["partitions"].append(number)
                if ms > stall["ms"]:
                    self._set_stall(stall, start, ms)
                return
        stall = {"side": side, "topic": topic, "partitions": [number]}
        self._set_stall(stall, start, ms)
        self.stalls.append(stall)

    def _set_stall(self, stall: dict[str, Any], start: int, ms: int) -> None:
        stall.update(
            ms=ms, t=round(self.r.t0 + start / 1000, 3), phase=self.phases.name(start), _start=start, _end=start + ms
        )

    def _received(self) -> list[int]:
        """Enter what the groups received; return the ledger ids found at a second position."""
        duplicates: dict[tuple[int, int], None] = {}
        self.highest: dict[str, array] = {}
        self.bits: dict[str, int] = {}
        self.newest: dict[tuple[int, int], tuple[int, int]] = {}
        for number, (name, group) in enumerate(self.r.meta["groups"].items()):
            self.bits[name] = 1 << number
            self._received_by(name, group["measured"], duplicates)
        return [ledger_id for ledger_id, dummy in duplicates]

    def _received_by(self, name: str, measured: bool, duplicates: dict[tuple[int, int], None]) -> None:
        bit = self.bits[name]
        sent_time, ack_time, where, seen = self.r.sent_time, self.ack_time, self.where, self.seen
        sent_stream, newest = self.r.sent_stream, self.newest
        compacted = self._compacted_keys()
        by_slot = self.phases.by_slot
        last = [0] * len(self.partitions)
        highest = array("q", [-1]) * len(self.partitions)
        worst = self.worst["consumer"]
        worst_phase = [count.max_consumer_stall_ms for count in self.by_phase]
        histograms = [histogram.counts for histogram in self.end_to_end]
        latest = [histogram.max for histogram in self.end_to_end]
        first_time = 0
        before, overall = 0, self.worst_overall["consumer"]
        auditing = name == AUDIT
        slowest = self.slowest["consumer"]
        # deliveries at second positions; for the first position `seen` is enough
        known = self.known
        second: dict[tuple[int, int], bool] = {}
        for ledger_id, at, packed in self.r.received[name]:
            if ledger_id >= known:
                self.beyond += 1
                continue
            index = packed >> OFFSET_BITS
            offset = packed & OFFSET_MASK
            if offset > highest[index]:
                highest[index] = offset
            if auditing and sent_stream[ledger_id] in compacted:
                key = compacted[sent_stream[ledger_id]]
                if key not in newest or packed > newest[key][0]:
                    newest[key] = (packed, ledger_id)
            known_position = where[ledger_id]
            if known_position != packed:
                offset_unknown = known_position & OFFSET_MASK == OFFSET_UNKNOWN
                if not known_position or (offset_unknown and known_position >> OFFSET_BITS == index):
                    where[ledger_id] = packed
                else:
                    duplicates[ledger_id, packed] = None
                    if second.setdefault((ledger_id, packed), False):
                        self.redelivered += 1
                    second[ledger_id, packed] = True
                    continue
            flags = seen[ledger_id]
            if flags & bit:
                self.redelivered += 1
                continue
            if not flags:
                first_time += 1
                self.by_phase[by_slot[at // 100]].received += 1
            seen[ledger_id] = flags | bit
            if not measured:
                continue
            sent_at = sent_time[ledger_id]
            phase = by_slot[sent_at // 100]
            latency = at - sent_at
            histograms[phase][latency if latency < HISTOGRAM_MS else HISTOGRAM_MS] += 1
            if latency > latest[phase]:
                latest[phase] = latency
            available = ack_time[ledger_id] or sent_at
            waited = at - available
            if waited > slowest.least or waited > slowest.by_client.get(name, -1):
                slowest.add(ledger_id, index, available, waited, name, "received")
            since = last[index]
            gap = at - (since if since > available else available)
            last[index] = at
            if gap > 20:
                phase = by_slot[(at - gap) // 100]
                if gap > worst_phase[phase]:
                    worst_phase[phase] = gap
                if gap > worst[index]:
                    worst[index] = gap
                if gap >= STALL_LISTED_MS:
                    self._stall("consumer", index, at - gap, gap)
                together = at - (before if before > available else available)
                if together > overall:
                    overall = together
            before = at
        self.highest[name] = highest
        self.received += first_time
        if measured:
            self.worst_overall["consumer"] = overall
            for phase, count in enumerate(self.by_phase):
                count.max_consumer_stall_ms = worst_phase[phase]
                self.end_to_end[phase].max = latest[phase]

    def _aborted(self) -> None:
        """Enter aborted messages; a slow abort stalls its producer, as a slow commit does."""
        self.aborted = set()
        for ledger_id, at in self.r.aborted:
            if ledger_id < self.known:
                self.aborted.add(ledger_id)
                start, stream = self.r.sent_time[ledger_id], self.r.sent_stream[ledger_id]
                index = self.partition_of[stream]
                self.slowest["producer"].add(ledger_id, index, start, at - start, self.kind_of[stream], "aborted")
                self._producer_stall(index, start, at - start)

    def _lost_and_order(self) -> dict[str, int]:
        """One pass over all ledger ids in the order of sending."""
        counts = dict.fromkeys(
            (
                "lost",
                "reordered",
                "indeterminate",
                "indeterminate_received",
                "outstanding",
                "expired",
                "aborted_visible",
            ),
            0,
        )
        need = self._needed_by_stream()
        audited_from = self._audited_from()
        last_position = [0] * len(self.kind_of)
        aborted = self.aborted
        for ledger_id, (stream, acked, packed, flags) in enumerate(
            zip(self.r.sent_stream[: self.known], self.ack_time, self.where, self.seen)
        ):
            if packed:
                if packed > last_position[stream]:
                    # an unknown offset says nothing about the order
                    if packed & OFFSET_MASK != OFFSET_UNKNOWN:
                        last_position[stream] = packed
                else:
                    counts["reordered"] += 1
                    self._damage("reordered", ledger_id)
            if acked:
                if need[stream] & ~flags:
                    counts[self._missing(ledger_id, need[stream] & ~flags, audited_from)] += 1
            elif ledger_id in aborted:
                if flags:
                    counts["aborted_visible"] += 1
                    self._damage("aborted_visible", ledger_id)
            else:
                counts["indeterminate"] += 1
                if flags:
                    counts["indeterminate_received"] += 1
                self._unfinished(ledger_id)
        return counts

    def _needed_by_stream(self) -> list[int]:
        """Return by stream the bits of the groups that must receive its acknowledged messages."""
        audit_ran = bool(self._audited_from())
        need = []
        for index in self.partition_of:
            bits = 0
            for name, group in self.r.meta["groups"].items():
                # the cleaner may delete a compacted message before it is read
                if index in group["partitions"] and (name != AUDIT or audit_ran) and not self._compact(index):
                    bits |= self.bits[name]
            need.append(bits)
        return need

    def _compact(self, index: int) -> bool:
        return self.partitions[index][0].endswith(".compact")

    def _audited_from(self) -> dict[int, int]:
        """Return the first offset that the audit read, by partition index; {} if the audit did not finish."""
        audit = (self.stopped or {}).get("audit") or {}
        return {int(index): offset for index, offset in audit.get("from", {}).items()} if audit.get("done") else {}

    def _missing(self, ledger_id: int, missing: int, audited_from: dict[int, int]) -> str:
        """Classify an acknowledged message that at least one group did not receive."""
        packed = self.where[ledger_id]
        index, offset = packed >> OFFSET_BITS, packed & OFFSET_MASK
        groups, expired = [], False
        for name, bit in self.bits.items():
            if not missing & bit:
                continue
            if name == AUDIT:
                if offset < audited_from[index]:
                    expired = True
                else:
                    groups.append(name)
            elif self.highest[name][index] > offset or self._fenced(name, index):
                groups.append(name)
        if groups:
            self._damage("lost", ledger_id, groups=groups)
            return "lost"
        if missing == self.bits[AUDIT] and expired:
            return "expired"
        self._unfinished(ledger_id)
        return "outstanding"

    def _fenced(self, name: str, index: int) -> bool:
        fence = (self.stopped or {}).get("fences", {}).get(str(index))
        return fence is not None and fence < self.known and bool(self.seen[fence] & self.bits[name])

    def _unfinished(self, ledger_id: int) -> None:
        """Enter a stall up to the end for a message that was never acknowledged."""
        stream = self.r.sent_stream[ledger_id]
        index = self.partition_of[stream]
        acked, sent_at = self.ack_time[ledger_id], self.r.sent_time[ledger_id]
        if acked or not self.stopped:
            return
        end, kind = self.stopped["sending_ended"], self.kind_of[stream]
        self.slowest["producer"].add(ledger_id, index, sent_at, max(0, end - sent_at), kind, "not acknowledged")
        if kind == "txn":
            return
        start = max(self.last_ack[index], sent_at)
        self._producer_stall(index, start, end - start)

    def _slowest(self, slowest: Slowest) -> list[dict[str, Any]]:
        """Return the slowest messages with partition, time, phase and what happened to the cluster meanwhile."""
        listed = []
        for ledger_id, start, ms, client, outcome in slowest.listed():
            topic, number = self.partitions[self.partition_of[self.r.sent_stream[ledger_id]]]
            t = self.r.t0 + start / 1000
            listed.append(
                {
                    "topic": topic,
                    "partition": number,
                    "client": client,
                    "ms": ms,
                    "outcome": outcome,
                    "t": round(t, 3),
                    "phase": self.phases.name(start),
                    "step": steps_between(self.marks, t, t + ms / 1000),
                    "ledger_id": ledger_id,
                }
            )
        return listed

    def _producer_stall(self, index: int, start: int, ms: int) -> None:
        phase = self.by_phase[self.phases.index(start)]
        phase.max_producer_stall_ms = max(phase.max_producer_stall_ms, ms)
        self.worst["producer"][index] = max(self.worst["producer"][index], ms)
        if ms >= STALL_LISTED_MS:
            self._stall("producer", index, start, ms)

    def _compacted_keys(self) -> dict[int, tuple[int, int]]:
        """Return (partition index, key) of each stream on the compacted topic. A producer that replaces another one has
        its keys, so one key may have several streams."""
        return {
            stream: (index, self.key_of[stream])
            for stream, index in enumerate(self.partition_of)
            if self._compact(index)
        }

    def _compacted(self, counts: dict[str, int]) -> None:
        """Count keys whose newest value in the log is older than the newest acknowledged one."""
        if not self._audited_from():
            return
        newest_acked: dict[tuple[int, int], int] = {}
        compacted, ack_time = self._compacted_keys(), self.ack_time
        for ledger_id, stream in enumerate(self.r.sent_stream[: self.known]):
            if stream in compacted and ack_time[ledger_id]:
                newest_acked[compacted[stream]] = ledger_id
        for key, ledger_id in newest_acked.items():
            newest = self.newest.get(key)
            if newest is None or newest[1] < ledger_id:
                counts["lost"] += 1
                self._damage("lost", ledger_id, groups=[AUDIT], newest_found=newest[1] if newest else None)

    def _damage(self, kind: str, ledger_id: int, **more: Any) -> None:
        at = self.ack_time[ledger_id] or self.r.sent_time[ledger_id]
        phase = self.phases.index(at)
        count = self.by_phase[phase]
        setattr(count, kind, getattr(count, kind) + 1)
        examples = getattr(self.examples, kind)
        if len(examples) < EXAMPLES:
            packed = self.where[ledger_id]
            topic, number = self.partitions[packed >> OFFSET_BITS or self.partition_of[self.r.sent_stream[ledger_id]]]
            offset = packed & OFFSET_MASK
            examples.append(
                {
                    "ledger_id": ledger_id,
                    "topic": topic,
                    "partition": number,
                    "offset": offset if packed and offset != OFFSET_UNKNOWN else None,
                    "t": round(self.r.t0 + at / 1000, 3),
                    "phase": self.phases.names[phase],
                    **more,
                }
            )

    def _errors(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return errors by phase, client and text; notes (hundreds in a restart) by phase and code."""
        merged: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {"error": {}, "note": {}}
        for entry in self.r.errors:
            phase = self.phases.index(entry["first"])
            is_error = entry["severity"] == "error"
            name = self.phases.names[phase]
            key = (name, entry["code"], *((entry["where"], entry["text"]) if is_error else ()))
            line = {"phase": name, "where": entry["where"], "code": entry["code"], "text": entry["text"], "count": 0}
            line = merged[entry["severity"]].setdefault(key, line)
            line.setdefault("t", round(self.r.t0 + entry["first"] / 1000, 3))
            line["count"] += entry["count"]
            if is_error:
                self.by_phase[phase].errors += entry["count"]
        return list(merged["error"].values()), list(merged["note"].values())

    def _admin(self) -> dict[str, Any]:
        operations: dict[str, dict[str, Any]] = {}
        slowest: list[dict[str, Any]] = []
        for entry in self.r.admin:
            line = operations.setdefault(
                entry["operation"], {"ok": 0, "failed": 0, "skipped": 0, "retries": 0, "max_ms": 0, "_ms": []}
            )
            line[entry["outcome"]] += 1
            line["retries"] += entry["retries"]
            line["max_ms"] = max(line["max_ms"], entry["ms"])
            line["_ms"].append(entry["ms"])
            if entry["retries"] or entry["outcome"] == "failed":
                slowest.append(
                    {**entry, "t": round(self.r.t0 + entry["t"] / 1000, 3), "phase": self.phases.name(entry["t"])}
                )
        for line in operations.values():
            times = sorted(line.pop("_ms"))
            line["p50_ms"] = times[len(times) // 2]
        final = (self.stopped or {}).get("admin")
        return {"operations": operations, "repeated": slowest[:100], "final": final}

    def _verdict(self, counts: dict[str, int], errors: list[dict[str, Any]]) -> str:
        bad = self.reasons
        texts = {
            "lost": "acknowledged but missing",
            "duplicated": "at two offsets",
            "reordered": "out of their key's order",
            "aborted_visible": "of aborted transactions visible to read_committed",
        }
        for kind, text in texts.items():
            if counts[kind]:
                where = ", ".join(
                    f"{name}: {getattr(count, kind)}"
                    for name, count in zip(self.phases.names, self.by_phase)
                    if getattr(count, kind)
                )
                bad.append(f"{counts[kind]} {kind}: messages {text} ({where})")
        if errors:
            total = sum(error["count"] for error in errors)
            bad.append(
                f"{total} application errors, first: {errors[0]['where']}: {errors[0]['code']} {errors[0]['text']}"
            )
        final = (self.stopped or {}).get("admin") or {}
        for kind in ("missing", "unexpected", "differ"):
            if final.get(kind):
                bad.append(f"admin: {len(final[kind])} {kind} at the end, first: {final[kind][0]}")
        if bad:
            return FAIL
        bad += self._incomplete(counts)
        return INCOMPLETE if bad else PASS

    def _incomplete(self, counts: dict[str, int]) -> list[str]:
        why = []
        if self.running:
            why.append("the clients are still running")
        elif not self.stopped:
            why.append("the run was cut short (killed?): its last moments are not recorded")
        if self.r.torn and not self.running:
            why.append(f"incomplete last row: {', '.join(self.r.torn)}")
        if not self.acked:
            why.append("no message was acknowledged")
        for name in self.bits:
            if name != AUDIT and not self.r.received[name]:
                why.append(f"group {name} received nothing")
        if not self.stopped:
            return why
        if len(self.stopped["fences"]) < len(self.partitions) - 1:
            why.append("a partition did not acknowledge its closing message")
        for name, awaited in self.stopped["drain"].items():
            if awaited:
                why.append(f"group {name} did not reach the end of {awaited} partitions within drain_timeout_s")
        audit = self.stopped["audit"]
        if self.r.meta["config"]["audit"] and not audit["done"]:
            why.append(f"the audit did not reach the end of the log: {audit['error']}")
        if counts["outstanding"]:
            why.append(f"{counts['outstanding']} acknowledged messages were not received in time")
        final = self.stopped.get("admin")
        if final and final.get("error"):
            why.append(f"the result of the admin changes could not be read: {final['error']}")
        return why

    def _by_topic(self) -> dict[str, dict[str, int]]:
        topics: dict[str, dict[str, int]] = {}
        for index, (topic, dummy) in enumerate(self.partitions[1:], 1):
            line = topics.setdefault(topic, {"producer": 0, "consumer": 0})
            for side, worst in self.worst.items():
                line[side] = max(line[side], worst[index])
        for stall in self.stalls:
            stall.pop("_start", None)
            stall.pop("_end", None)
            stall["partitions"] = sorted(set(stall["partitions"]))
        return topics

    def _all_end_to_end(self) -> Histogram:
        total = Histogram()
        for histogram in self.end_to_end:
            total.add_all(histogram)
        return total

    def _phases(self) -> dict[str, dict[str, Any]]:
        lines = {}
        for name, count, histogram in zip(self.phases.names, self.by_phase, self.end_to_end):
            if not any(vars(count).values()):
                continue
            summary = histogram.summary()
            lines[name] = {**vars(count), "p50_latency_ms": summary["p50"], "p99_latency_ms": summary["p99"]}
            lines[name]["max_latency_ms"] = summary["max"]
        return lines

    def _run(self) -> dict[str, Any]:
        meta, stopped = self.r.meta, self.stopped or {}
        audit = stopped.get("audit") or {}
        sending = self.r.sent_time[-1] - self.r.sent_time[0] if self.sent else 0
        return {
            "run_id": meta["run_id"],
            "t0": meta["t0"],
            "seconds": round(self.end_ms / 1000, 1),
            "acked_per_second": round(self.acked / (sending / 1000), 1) if sending else 0.0,
            "cpu_seconds": stopped.get("cpu_seconds"),
            "audit": {key: audit.get(key) for key in ("done", "messages", "seconds", "error")},
            "member_restarts": stopped.get("member_restarts"),
            "foreign": stopped.get("foreign"),
        }


def end_ms(recording: Recording) -> int:
    """Return the last time in the ledger."""
    moments = [0]
    moments += recording.sent_time[-1:]
    moments += [rows.last_time() for rows in (recording.acked, recording.aborted, *recording.received.values())]
    moments += [error["last"] for error in recording.errors] + [entry["t"] for entry in recording.admin]
    if recording.meta.get("stopped"):
        moments.append(recording.meta["stopped"]["at"])
    return max(moments)
