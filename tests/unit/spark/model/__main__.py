# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play random histories of the model: ``python -m tests.unit.spark.model [--first SEED] [--histories N]``.

Prints how the gates decided, and each seed at which one said what it must not, shortened. Exit code 1 if there is one.
A seed is played again with ``make model SEED=N``.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import traceback
from typing import Counter, Tuple

from tests.unit.spark.model import history

Played = Tuple[int, history.Outcome | None, str]


def played(seed: int) -> Played:
    """Return the outcome of a seed, or the error."""
    try:
        return seed, history.play(history.history(seed)), ""
    except Exception:
        return seed, None, traceback.format_exc()


def main() -> int:
    """Play the histories and return the exit code."""
    parser = argparse.ArgumentParser(description="Play random histories of a migration through the gates.")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    verdicts: Counter[Tuple[bool, str]] = collections.Counter()
    reasons: Counter[Tuple[str, str]] = collections.Counter()
    excused: Counter[str] = collections.Counter()
    failed, errors = [], []
    with multiprocessing.Pool(given.processes) as pool:
        seeds = range(given.first, given.first + given.histories)
        for seed, outcome, error in pool.imap_unordered(played, seeds, 10):
            if outcome is None:
                errors.append((seed, error))
                continue
            for (_gate, is_diverged, verdict), number in outcome.verdicts.items():
                verdicts[is_diverged, verdict] += number
            reasons.update(outcome.incomplete)
            excused.update(outcome.excused)
            if outcome.failed:
                failed.append(seed)
    print(f"{given.histories} histories, {sum(verdicts.values())} gates")
    for (is_diverged, verdict), number in sorted(verdicts.items()):
        print(f"{'with a fault' if is_diverged else 'equal'}: {verdict}: {number}")
    for (reason, then), number in reasons.most_common():
        print(f"incomplete: {number} {reason}; {then}")
    print(f"excused: {', '.join(f'{number} {excuse}' for excuse, number in excused.most_common())}")
    print(f"{len(failed)} histories failed, {len(errors)} ended with an error")
    for seed in sorted(failed)[:10]:
        events = history.shortened(history.history(seed))
        print(f"seed {seed}, shortened:")
        for number, event in enumerate(events):
            print(f"  {number} {event}")
        for failure in history.play(events).failed:
            print(f"  {failure.text()}")
    for seed, error in errors[:3]:
        print(f"seed {seed}: {error}")
    return bool(failed or errors)


if __name__ == "__main__":
    sys.exit(main())
