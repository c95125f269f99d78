# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate moves between ensembles with faults.

`python -m tools.cut_simulation [--schedules N] [--seed N] [--replay N]` prints each failing seed; --replay prints what
happens in it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter

from tools.cut_simulation import safeguards, schedule


def some(seeds: range) -> tuple:
    """Return how the schedules of these seeds ended, and the failing ones."""
    ended: Counter = Counter()
    failing = []
    for seed in seeds:
        outcome = schedule.run(seed)
        ended[outcome.served or "VIOLATED"] += 1
        if outcome.problem:
            failing.append((seed, outcome.problem, outcome.faults))
    return ended, failing


def unnoticed(schedules: int) -> int:
    """Remove each safeguard by itself; return how many are not noticed."""
    missed = 0
    for name, safeguard in safeguards.SAFEGUARDS.items():
        seed = safeguards.noticed(safeguard, schedules)
        missed += seed is None
        print(f"{name}: {'NOT noticed' if seed is None else f'noticed by seed {seed}'}", flush=True)
    return missed


def main() -> int:
    """Run the schedules, and print how they ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--replay", type=int, help="print what happens in one schedule")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--safeguards", action="store_true", help="remove each safeguard, which must be noticed")
    given = parser.parse_args()
    if given.safeguards:
        return unnoticed(given.schedules)
    if given.replay is not None:
        lines: list[str] = []
        outcome = schedule.run(given.replay, lines)
        print("\n".join(lines))
        print(outcome)
        return bool(outcome.problem)
    began = time.monotonic()
    size = 250
    parts = [
        range(first, min(first + size, given.seed + given.schedules))
        for first in range(given.seed, given.seed + given.schedules, size)
    ]
    total: Counter = Counter()
    problems: Counter = Counter()
    with multiprocessing.Pool(given.processes) as pool:
        for ended, failing in pool.imap_unordered(some, parts):
            total += ended
            for seed, problem, faults in failing:
                kind = "".join(character for character in problem if not character.isdigit())
                problems[kind[:70]] += 1
                if problems[kind[:70]] <= 3:
                    print(f"seed {seed}: {problem} ({'; '.join(faults)})", flush=True)
    seconds = time.monotonic() - began
    count = sum(problems.values())
    print(f"{given.schedules} schedules, {count} violations, {seconds:.0f} s; {dict(total)}")
    for kind, number in problems.most_common():
        print(f"{number:7} {kind}")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
