# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `status` prints: one line a node, the next step, one screen in all. Pure: facts and judgements in, text out."""

from __future__ import annotations

from typing import Mapping

from . import phase

_MIGRATE = "ansible-playbook quorumshift.kafka.migrate"
_STEPS = {
    phase.ZK: ("bring up the controllers", _MIGRATE),
    phase.CONTROLLERS_STARTING: ("finish bringing up the controllers", _MIGRATE),
    phase.CONTROLLERS_READY: ("restart brokers in migration mode", _MIGRATE),
    phase.BROKERS_JOINING: ("finish restarting brokers in migration mode; the last one starts the copy", _MIGRATE),
    phase.COPYING: ("wait for the copy", _MIGRATE),
    phase.HYBRID: ("restart brokers in KRaft mode", _MIGRATE),
    phase.DUAL_WRITE: ("soak, then finalize", _MIGRATE + " -e quorumshift_finalize=WORD"),
    phase.FINALIZING: ("finish finalizing the controllers", _MIGRATE + " -e quorumshift_finalize=WORD"),
    phase.FINALIZED: ("nothing: the migration is done", ""),
    phase.KRAFT_NATIVE: ("nothing: this cluster was born in KRaft mode", ""),
    phase.REVERTING: ("finish the rollback", ""),
    phase.UNKNOWN: ("look: the evidence contradicts itself or lacks a witness", ""),
}


def next_step(judged: phase.Judgement, soak: str) -> dict:
    """Return {text, command} of the next step."""
    text, command = _STEPS[judged.phase]
    if judged.phase == phase.DUAL_WRITE:
        text = f"soak for {soak}, then finalize"
    return {"text": text, "command": command}


def node_lines(facts: Mapping) -> dict[str, dict]:
    """Return {host: {role, id, mode, next, state (KIP-500: offline, fenced, online, stopping), version, lag}}.

    `lag` is in offsets behind the quorum's high watermark, None where the node is no replica of the metadata log.
    """
    quorum = facts.get("quorum") or {}
    ends = {one["id"]: one["log_end_offset"] for one in quorum.get("voters", []) + quorum.get("observers", [])}
    registered = phase.registrations(facts)
    told = {}
    for host, node in facts["nodes"].items():
        number = node.get("node_id")
        lag = max(0, quorum["high_watermark"] - ends[number]) if quorum.get("reached") and number in ends else None
        told[host] = {
            "role": node["role"],
            "id": number,
            "mode": node.get("running") or "-",
            "next": node.get("next") or "-",
            "state": _state(node, registered.get(str(number))),
            "version": node.get("version") or "-",
            "lag": lag,
        }
    return told


def _state(node: Mapping, registration: Mapping | None) -> str:
    if not node.get("running"):
        return "offline"
    if node["role"] == "broker" and registration and node["running"] != phase.ZK:
        if registration.get("in_controlled_shutdown"):
            return "stopping"
        if registration.get("fenced"):
            return "fenced"
    return "online"


def render(state: Mapping, passed: list[Mapping]) -> list[str]:
    """Return the screen of `status` as lines. `state`: the result of migration_state; `passed`: gate passes so far."""
    way = "  ".join(f"[{one}]" if one == state["phase"] else one for one in phase.FORWARD)
    lines = [f"Cluster {state['cluster_id'] or '?'}: {state['phase']}", f"  {way}", ""]
    width = max((len(host) for host in state["nodes"]), default=4)
    lines.append(
        f"  {'node':<{width}}  {'id':>4}  {'runs as':<20}  {'starts as':<20}  {'state':<8}  {'version':<8}  lag"
    )
    for host, one in sorted(state["nodes"].items(), key=lambda item: (item[1]["role"], item[0])):
        lag = "-" if one["lag"] is None else one["lag"]
        number = "-" if one["id"] is None else one["id"]
        lines.append(
            f"  {host:<{width}}  {number:>4}  {one['mode']:<20}  {one['next']:<20}  {one['state']:<8}  "
            f"{one['version']:<8}  {lag}"
        )
    quorum = state["quorum"]
    if quorum.get("reached"):
        voters = ", ".join(str(voter["id"]) for voter in quorum["voters"])
        lines += [
            "",
            f"  quorum: leader {quorum['leader_id']}, epoch {quorum['leader_epoch']}, voters {voters}, "
            f"high watermark {quorum['high_watermark']}",
        ]
    else:
        lines += ["", f"  quorum: none ({quorum.get('error')})"]
    lines.append("  gates passed: " + (", ".join(one["gate"] for one in passed) or "none in the evidence here"))
    for block in state["blocks"]:
        lines.append(f"  ! {block['text']}. {block['do'][:1].upper()}{block['do'][1:]}.")
    command = state["next"]["command"].replace("WORD", state["word"] or "WORD")
    lines += ["", f"  next: {state['next']['text']}"] + ([f"        {command}"] if command else [])
    return lines
