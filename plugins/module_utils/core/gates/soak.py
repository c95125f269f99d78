# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of a soak: samples of the cluster in dual-write, and since when all of them are good. Pure.

A sample is what the gate `before_finalize` would find at that moment, apart from verification, token and time. Samples
that say the same are kept as one episode, so that a day without a problem is one line. Two hosts keep the history; each
has a copy of every sample that reached it.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations

VERSION = 1
MOST = 500
"""Episodes that a host keeps; the oldest go first."""


History = Dict[str, Any]
"""{version, episodes}, or {error} of a file that cannot be read."""


class Sample(NamedTuple):
    """`at`: seconds since 1970 by the probe host's clock; `problems`: sentences, none in a good sample."""

    at: float
    phase: str
    problems: List[str]


class Sound(NamedTuple):
    """`since`: from when on every sample is good, in seconds since 1970, 0 where each one is; `why`: what was before,
    as a sentence without its full stop; `samples`: how many there are since; `apart_s`: the longest time between two
    of them."""

    since: float
    why: str
    samples: int
    apart_s: float


def parse_soak(length: str | float, gap: str | float) -> tuple[float, float | None]:
    """Return quorumshift_soak and quorumshift_soak_gap in seconds; the latter is None where it is empty. Raises
    ValueError with the variable's name."""
    try:
        soak_s = durations.parse_duration(length)
    except ValueError as error:
        raise ValueError(f"quorumshift_soak: {error}") from None
    try:
        return soak_s, durations.parse_duration(gap) if gap != "" else None
    except ValueError as error:
        raise ValueError(f"quorumshift_soak_gap: {error}") from None


def find_histories(nodes: Mapping[str, Mapping[str, Any]], cluster_id: str | None) -> Dict[str, History]:
    """Return, by host, the history of the soak that it keeps of a cluster."""
    kept = {host: (node.get("soak") or {}).get(cluster_id or "") for host, node in nodes.items()}
    return {host: history for host, history in kept.items() if history}


def add(history: History | None, sample: Sample, gap_s: float | None) -> History:
    """Return a history with one more sample. One that is more than `gap_s` seconds from the one before, or before it by
    the clock, begins an episode of its own."""
    episodes = [dict(episode) for episode in (history or {}).get("episodes") or ()]
    last = episodes[-1] if episodes else None
    apart = sample.at - last["to"] if last else 0
    same = last and (last["phase"], last["problems"]) == (sample.phase, sample.problems)
    if last and same and 0 <= apart <= (apart if gap_s is None else gap_s):
        last.update(to=sample.at, samples=last["samples"] + 1, apart_s=max(last["apart_s"], round(apart, 3)))
    else:
        new = {"from": sample.at, "to": sample.at, "samples": 1, "apart_s": 0.0}
        episodes.append({**new, "phase": sample.phase, "problems": list(sample.problems)})
    return {"version": VERSION, "episodes": episodes[-MOST:]}


def measure(histories: Mapping[str, History], now: float, gap_s: float | None) -> Sound:
    """Return since when the soak is sound, from the histories by host.

    Without `gap_s`, it is so since the last bad sample. With it, no two samples may be further apart than these seconds
    either, nor the last one from now. What a history had that cannot be read is not known, so nothing is sound before
    now.
    """
    broken = [f"{host}: {history['error']}" for host, history in sorted(histories.items()) if history.get("error")]
    episodes = [episode for history in histories.values() for episode in history.get("episodes") or ()]
    good = [episode for episode in episodes if not _is_bad(episode)]
    since, why = 0.0, ""
    if broken:
        since, why = now, f"the history of the soak could not be read: {'; '.join(broken)}"
    bad = max((episode for episode in episodes if _is_bad(episode)), key=lambda episode: episode["to"], default=None)
    if bad and bad["to"] > since:
        since, why = bad["to"], _explain(bad)
    if gap_s is not None:
        covered = _covered_since(good, now, gap_s)
        if covered > since:
            since, why = (
                covered,
                f"no sample was taken in the {durations.format_duration(gap_s)} before {_clock(covered)}",
            )
    counted = [episode for episode in good if episode["to"] > since]
    by_host = [
        [episode for episode in history.get("episodes") or () if episode in counted] for history in histories.values()
    ]
    samples = max((sum(episode["samples"] for episode in kept) for kept in by_host), default=0)
    return Sound(since, why, samples, max((episode["apart_s"] for episode in counted), default=0.0))


def lines(taken: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the screen says of a sample (the result of the module soak_sample)."""
    sample, left_s = taken["sample"], taken["left_s"]
    yield f"{_clock(sample['at'])}: phase {sample['phase']}, {_count(len(sample['problems']), 'problem')}"
    if left_s is None:
        return
    if left_s > 0:
        yield f"the soak takes {durations.format_duration(left_s)} more"
    else:
        over = durations.format_duration(-left_s)
        yield f"the soak has been over for {over}: finalize or roll back (quorumshift.kafka.status)"


def news(histories: Mapping[str, History], sample: Sample, left_s: float | None) -> List[Dict[str, str]]:
    """Return the events, {event, text}, of what a sample says that the one before it did not say: `sample_bad`,
    `sample_good` after a bad one, `soak_over`."""
    episodes = [episode for history in histories.values() for episode in history.get("episodes") or ()]
    last = max(episodes, key=lambda episode: episode["to"], default=None)
    found = []
    if sample.problems and (not last or list(last["problems"]) != list(sample.problems)):
        found.append({"event": "sample_bad", "text": _first_of(sample.problems)})
    if not sample.problems and last and last["problems"]:
        found.append({"event": "sample_good", "text": "the cluster is as it must be again; the soak counts from here"})
    if left_s is not None and left_s <= 0 and (not last or last["to"] < sample.at + left_s):
        found.append(
            {"event": "soak_over", "text": "the soak is over: finalize or roll back (quorumshift.kafka.status)"}
        )
    return found


def _covered_since(good: Iterable[Mapping[str, Any]], now: float, gap_s: float) -> float:
    """Return from when on samples are at most `gap_s` apart, up to now. The time before the oldest of them counts for
    as long as two samples may be apart."""
    since, is_covered = now, False
    usable = sorted((episode for episode in good if episode["apart_s"] <= gap_s), key=lambda episode: -episode["to"])
    for episode in usable:
        if episode["to"] < since - gap_s:
            break
        since, is_covered = min(since, episode["from"]), True
    return since - gap_s if is_covered else now


def _is_bad(episode: Mapping[str, Any]) -> bool:
    return bool(episode["problems"]) or episode["phase"] != phase.DUAL_WRITE


def _explain(episode: Mapping[str, Any]) -> str:
    """Return what was wrong in an episode, as a sentence without its full stop."""
    problems = episode["problems"] or [f"the phase was {episode['phase']}"]
    between = f" to {_clock(episode['to'])}" if episode["samples"] > 1 else ""
    return f"from {_clock(episode['from'])}{between}: {_first_of(problems)}"


def _first_of(problems: Sequence[str]) -> str:
    return f"{problems[0]} and {len(problems) - 1} more" if len(problems) > 1 else problems[0]


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
