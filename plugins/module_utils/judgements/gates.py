# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates before each step that is harder to undo: what each expects, and the pass that it leaves.

A changing step on a host takes its gate's pass as a parameter and refuses without it (`refusal`), so that no
--limit, --tags or --start-at-task gets around a gate.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Mapping, NamedTuple

from . import phase
from .phase import (
    BROKERS_JOINING,
    CONTROLLERS_READY,
    CONTROLLERS_STARTING,
    DUAL_WRITE,
    FINALIZED,
    FINALIZING,
    HYBRID,
    ZK,
)


class Gate(NamedTuple):
    """`phases` in which the gate may open; `moment` for people."""

    phases: tuple[str, ...]
    moment: str


GATES = {
    "before_controllers": Gate(
        (ZK, CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING), "before controllers are formatted or started"
    ),
    "before_trigger": Gate((CONTROLLERS_READY, BROKERS_JOINING), "before brokers are restarted in migration mode"),
    "after_copy": Gate((HYBRID, DUAL_WRITE), "the metadata is copied and mirrored to ZooKeeper"),
    "before_kraft": Gate((HYBRID,), "before brokers are restarted in KRaft mode"),
    "after_kraft": Gate((DUAL_WRITE,), "every broker runs in KRaft mode: the soak begins"),
    "before_finalize": Gate((DUAL_WRITE, FINALIZING), "before controllers leave migration mode, for good"),
    "after_finalize": Gate((FINALIZED,), "every controller is final"),
}

# Which gate's pass the turn of each kind takes.
GATE_OF_TURN = {
    "controller": "before_controllers",
    "zk_migration": "before_trigger",
    "kraft": "before_kraft",
    "final": "before_finalize",
}


def closed_by(name: str, judgement: phase.Judgement, health: list[str]) -> list[str]:
    """Return why the gate is closed, as sentences; nothing when it is open."""
    gate = GATES[name]
    told = []
    if judgement.phase not in gate.phases:
        told.append(f"the phase is {judgement.phase}, {name} opens in {' or '.join(gate.phases)}")
    told += [
        f"{block.text}. {block.do[:1].upper()}{block.do[1:]}" for block in judgement.blocks if block.id in _CLOSING
    ]
    return told + health


# Blocks that close every gate; the others are what the next step itself mends (a file that differs, for one).
_CLOSING = (
    "unreached",
    "unknown",
    "migration_stale",
    "migration_malformed",
    "controllers_down",
    "zookeeper_broker_left",
)


def make_pass(name: str, cluster_id: str, phase_seen: str, run: str, evidence: object) -> dict:
    """Return a gate pass {gate, cluster_id, phase, run, digest}; the digest covers all of it and the evidence."""
    told = {"gate": name, "cluster_id": cluster_id, "phase": phase_seen, "run": run}
    text = json.dumps([told, evidence], sort_keys=True, default=str)
    return {**told, "digest": hashlib.sha256(text.encode()).hexdigest()}


def refusal(kind: str, given: Mapping | None, cluster_id: str, run: str) -> str | None:
    """Return why a turn of this kind may not begin with the gate pass it was given; None when it may."""
    wanted = GATE_OF_TURN[kind]
    if not given:
        return f"no pass of gate {wanted} was given: run the whole playbook, without --start-at-task or --tags"
    if given.get("gate") != wanted:
        return f"the pass given is of gate {given.get('gate')}, a turn of kind {kind} takes one of {wanted}"
    if given.get("cluster_id") != cluster_id:
        return f"the pass given is for cluster {given.get('cluster_id')}, this host belongs to {cluster_id}"
    if given.get("run") != run:
        return f"the pass given is of run {given.get('run')}, this is run {run}"
    return None


def finalize_word(cluster_id: str, digest: str) -> str:
    """Return what an operator types to finalize: the cluster id and the first 6 of after_kraft's digest."""
    return f"{cluster_id}:{digest[:6]}"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str | float) -> float:
    """Return a duration (`24h`, `90m`, `30s`, `2d`, or a number of seconds) in seconds. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", str(duration))
    if not match:
        raise ValueError(f"{duration!r} is not a duration: write 24h, 90m, 30s or a number of seconds")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]
