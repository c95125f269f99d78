# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall rules of a cut on this host, and the policy rule that is the second fence. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, List, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.cut_host import CutError


def read_rules(given: List[Any]) -> List[ensemble_cut.Rule]:
    """Return rules that were read from JSON: [[command, [argument, ...]], ...]."""
    return [ensemble_cut.Rule(command, list(rule)) for command, rule in given]


def insert(rules: List[ensemble_cut.Rule]) -> None:
    """Put rules before all others. Raises CutError."""
    for rule in rules:
        _run(ensemble_cut.insert_command(rule))


def find_missing(rules: List[ensemble_cut.Rule]) -> List[ensemble_cut.Rule]:
    """Return the rules that this host does not have."""
    return [rule for rule in rules if _done([rule.command, "-w", "-C", *rule.rule]).returncode]


def remove(*comments: str) -> None:
    """Remove the rules with these comments, and with the fence the policy rule. Raises CutError."""
    done = _done(["/bin/sh", "-c", f"{ensemble_cut.remove_script(*comments)}removed"])
    if done.returncode:
        raise CutError(f"firewall rules could not be removed: {done.stderr.strip()} (QS-ZKMOVE-015)")


def count_rules(*comments: str) -> int:
    """Return how many rules with these comments the host has; with the fence's, the policy rules too."""
    count = 0
    for command in ensemble_cut.IPTABLES:
        if shutil.which(command):
            lines = _done([command, "-w", "-S"]).stdout.splitlines()
            count += sum(any(comment in line for comment in comments) for line in lines)
    if ensemble_cut.FENCE_COMMENT in comments:
        count += sum(len(_blocked(family)) for family in _families())
    return count


def block(ports: Sequence[str]) -> None:
    """Add the policy rules that keep the answers of these client ports on this host. Raises CutError."""
    for family in _families():
        there = _blocked(family)
        for port in ports:
            if port not in there:
                _run(ensemble_cut.ip_rule("add", port, family))


def is_blocked(ports: Sequence[str]) -> bool:
    """Return whether all policy rules are there."""
    return all(set(ports) <= set(_blocked(family)) for family in _families())


def explain_no_rules(rules: List[ensemble_cut.Rule]) -> str:
    """Return why the rules of a cut cannot be made on this host, '' if they can: each is made for an address of no
    host, and removed."""
    comment = "quorumshift-trial"
    absent = [command for command in {rule.command for rule in rules} if not shutil.which(command)]
    if absent:
        return f"{', '.join(sorted(absent))} is missing. Install it: apt-get install iptables (QS-ZKMOVE-011)"
    if not shutil.which("ip"):
        return "ip is missing. Install it: apt-get install iproute2 (QS-ZKMOVE-011)"
    trial = []
    for rule in rules:
        words = [
            comment if argument in (ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT) else argument
            for argument in rule.rule
        ]
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
        for family in _families():
            address = "192.0.2.1" if family == "-4" else "2001:db8::1"
            for action in ("add", "del"):
                _run([*ensemble_cut.ip_rule(action, "2181", family), "to", address])
        return ""
    except CutError as error:
        return str(error)
    finally:
        remove(comment)


def _families() -> List[str]:
    return ["-4", "-6"] if os.path.exists("/proc/net/if_inet6") else ["-4"]


def _blocked(family: str) -> List[str]:
    if not shutil.which("ip"):
        return []
    return ensemble_cut.parse_blocked_ports(
        _done(["ip", family, "rule", "show", "pref", ensemble_cut.BLOCK_PREF]).stdout
    )


def _run(command: List[str]) -> None:
    done = _done(command)
    if done.returncode:
        raise CutError(f"{' '.join(command)} failed: {done.stderr.strip()} (QS-RESTART-016)")


def _done(command: List[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
