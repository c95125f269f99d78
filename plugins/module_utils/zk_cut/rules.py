# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall rules of a cut on this host. Standard library only."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, List

from ..core import ensemble_cut
from .state import CutError


def read_rules(given: List[Any]) -> List[ensemble_cut.Rule]:
    """Return rules that were read from JSON: [[command, [argument, ...]], ...]."""
    return [ensemble_cut.Rule(command, list(rule)) for command, rule in given]


def insert(rules: List[ensemble_cut.Rule]) -> None:
    """Put rules before all others. Raises CutError."""
    for rule in rules:
        command = ensemble_cut.inserted(rule)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CutError(f"{' '.join(command)} failed: {done.stderr.strip()}")


def remove(*comments: str) -> None:
    """Remove the rules with these comments. Raises CutError."""
    script = ensemble_cut.remove_script(*comments)
    done = subprocess.run(
        ["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode or rules_left(*comments):
        raise CutError(f"firewall rules could not be removed: {done.stderr.strip()}")


def rules_left(*comments: str) -> int:
    """Return how many rules with these comments the host has."""
    count = 0
    for command in ensemble_cut.IPTABLES:
        if shutil.which(command):
            done = subprocess.run(
                [command, "-w", "-S"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            count += sum(any(comment in line for comment in comments) for line in done.stdout.splitlines())
    return count


def why_no_rules(rules: List[ensemble_cut.Rule]) -> str:
    """Return why the rules of a cut cannot be made on this host, '' if they can: each is made for an address of no
    host, and removed."""
    comment = "quorumshift-trial"
    missing = [command for command in {rule.command for rule in rules} if not shutil.which(command)]
    if missing:
        return f"{', '.join(sorted(missing))} is missing. Install it: apt-get install iptables"
    trial = []
    for rule in rules:
        words = [comment if one in (ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT) else one for one in rule.rule]
        nowhere = "192.0.2.1" if rule.command == "iptables" else "2001:db8::1"
        # a source and a destination of no host, so that the trial rejects nothing
        if "!" in words:
            at = words.index("!")
            words[at : at + 3] = []
        if "-d" in words:
            words[words.index("-d") + 1] = nowhere
        else:
            words[1:1] = ["-d", nowhere]
        trial.append(ensemble_cut.Rule(rule.command, words))
    try:
        insert(trial)
        return ""
    except CutError as error:
        return str(error)
    finally:
        remove(comment)
