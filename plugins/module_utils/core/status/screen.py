# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen that `status` prints: the phase, one line a node, and the next step. Pure."""

from __future__ import annotations

import time
from typing import Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import lost_logs, phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rollback import rollback
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import feature_screen
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice, durations, sizes
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import ClusterFacts, NodeFacts, RunLock


class Next(NamedTuple):
    """The next step. `playbook`: the playbook that does it (None: no playbook); `token`: whether it needs
    quorumshift_finalize_token; `watch`: what to watch until then; `target`: of a rollback (None: it is no rollback)."""

    text: str
    playbook: str | None
    token: bool
    watch: tuple[str, ...] = ()
    target: str | None = None


_STEPS = {
    phase.ZK: ("bring up the controllers", "migrate"),
    phase.CONTROLLERS_STARTING: ("finish bringing up the controllers", "migrate"),
    phase.CONTROLLERS_READY: ("restart brokers in migration mode", "migrate"),
    phase.BROKERS_JOINING: (
        "finish restarting brokers in migration mode; the last restart starts the initial copy",
        "migrate",
    ),
    phase.COPYING: ("wait for the initial copy", "migrate"),
    phase.HYBRID: ("restart brokers in KRaft mode", "migrate"),
    phase.FINALIZING: ("finish finalizing the controllers", "migrate"),
    phase.FINALIZED: ("nothing: the migration is done", None),
    phase.KRAFT_NATIVE: ("nothing: this cluster was created in KRaft mode", None),
    phase.UNKNOWN: ("find the cause: evidence is missing or contradicts itself", None),
}
TO_PROVE = Next("finish the rollback: it was interrupted before its last gate", "rollback", False, target=rollback.ZK)
_AGAIN = "run {run} did not reach its end: fix the cause, then run {playbook} again"
_NO_MIGRATION = (phase.ZK, phase.FINALIZED, phase.KRAFT_NATIVE)


def next_after_failure(now: str, newest: RunLock | None, alive: bool | None) -> Next | None:
    """Return the next step where the newest run failed or was killed, and the phase alone cannot name it: a restart, an
    upgrade, a reassignment, a move between ensembles. None where the phase does, as within a migration. `now`: the
    phase; `alive`: whether the process of a lock that is open is at work, None if unknown."""
    if newest is None or now not in _NO_MIGRATION or not run_lock.is_interrupted(newest, alive):
        return None
    if newest["direction"] not in run_lock.PLAIN or not newest.get("playbook"):
        return None
    advice_given = newest.get("advice")
    if advice_given:
        return Next(advice_given[0].lower() + message_ids.drop_full_stop(advice_given[1:]), None, False)
    return Next(_AGAIN.format(**newest), newest["playbook"], False)


def find_given_again(playbook: str | None, newest: RunLock | None, alive: bool | None) -> Mapping[str, str]:
    """Return the variables that the newest run had on its command line, where the next step's playbook repeats it."""
    if newest is None or newest.get("playbook") != playbook or not run_lock.is_interrupted(newest, alive):
        return {}
    return newest.get("given") or {}


_JOINING = (phase.CONTROLLERS_READY, phase.BROKERS_JOINING, phase.COPYING, phase.HYBRID)
_MIRRORING = (phase.HYBRID, phase.DUAL_WRITE, phase.FINALIZING)  # in later phases /migration does not move
_WATCH = (
    "under-replicated and offline partitions stay at 0; clients see no new errors and no higher latency",
    "the lag of every node and of ZooKeeper stays near 0: a rollback needs ZooKeeper up to date",
    "ERROR lines in the logs of brokers and controllers",
    "a restart of any node begins the soak again; a broker's restart changes the confirmation token",
)


def next_step(facts: ClusterFacts, detected: phase.PhaseResult, soak_s: float, gap_s: float | None = None) -> Next:
    """Return the next step from the detected phase; `soak_s` in seconds, `gap_s` as in soak.measure."""
    if phase.find_restoring(facts):
        return Next(
            "finish the restore: the playbook shows what is left and prints its token", "restore_zookeeper", False
        )
    if detected.phase == phase.REVERTING and rollback.find_migration_lock(facts):
        return Next(
            "see the damage of the initial copy: the playbook changes nothing without its token",
            "restore_zookeeper",
            False,
        )
    target = rollback.ZK if detected.phase == phase.REVERTING else rollback.find_unfinished_target(facts, detected)
    if target:
        return Next(_next_after_unfinished(facts, "finish the rollback"), "rollback", False, target=target)
    if any(block.id == lost_logs.BLOCK for block in detected.blocks):
        return Next("bring back the controllers that lost their metadata log", None, False)
    if detected.phase != phase.DUAL_WRITE:
        text, playbook = _STEPS[detected.phase]
        text = _next_after_unfinished(facts, text) if playbook else text
        to_start = phase.find_startable(facts, detected.phase)
        ended = detected.phase in (phase.FINALIZED, phase.KRAFT_NATIVE)
        if ended and any(block.id == "controllers_down" for block in detected.blocks):
            return Next("bring back the controllers that are down", "migrate" if to_start else None, False)
        text = f"start {', '.join(to_start)}, then {text}" if to_start and playbook else text
        return Next(text, playbook, detected.phase == phase.FINALIZING)
    histories = soak.find_histories(facts["nodes"], phase.cluster_id(facts))
    sound = gates.measure_soak(facts, gap_s)
    left_s = soak_s - min(gates.soaked_s(facts), facts["time"] - sound.since)
    watch = (*_WATCH, _describe_samples(sound, bool(histories)))
    if left_s <= 0:
        return Next("finalize: the soak is over. It cannot be undone", "migrate", True, watch)
    until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(facts["time"] + left_s))
    return Next(
        f"soak until {until} ({durations.format_duration(left_s)} to go), then finalize", "migrate", True, watch
    )


def _describe_samples(sound: soak.Sound, kept: bool) -> str:
    """Return what the samples of the soak say, as a line of what to watch."""
    if not kept:
        return "no sample of the soak is kept: run the playbook watch_soak every few minutes"
    apart = f", at most {durations.format_duration(sound.apart_s)} apart" if sound.samples > 1 else ""
    before = f"; before that, {sound.why}" if sound.why else ""
    return f"{sound.samples} good samples of the soak{apart}{before}"


def _next_after_unfinished(facts: ClusterFacts, text: str) -> str:
    hosts = phase.find_unfinished(facts)
    return f"finish the interrupted restart on {', '.join(hosts)}, then {text}" if hosts else text


def node_lines(facts: ClusterFacts) -> dict[str, dict]:
    """Return {host: {role, id, mode, next, state (KIP-500: offline, fenced, online, stopping), version, lag}}.

    `lag` is in offsets behind the quorum's high watermark, None where the node is no replica of the metadata log.
    """
    quorum = facts.get("quorum") or {}
    ends = {
        replica["id"]: replica["log_end_offset"] for replica in quorum.get("voters", []) + quorum.get("observers", [])
    }
    registered = phase.registrations(facts)
    lines = {}
    for host, node in facts["nodes"].items():
        number = node.get("node_id")
        lag = max(0, quorum["high_watermark"] - ends[number]) if quorum.get("reached") and number in ends else None
        lines[host] = {
            "role": node["role"],
            "id": number,
            "mode": node.get("running") or "-",
            "next": node.get("next") or "-",
            "state": _state(node, registered.get(str(number))),
            "version": node.get("version") or "-",
            "lag": lag,
        }
    return lines


def metadata_lines(facts: ClusterFacts, phase_now: str) -> list[str]:
    """Return which brokers the quorum knows while they join, and how old and large each controller's newest snapshot of
    the metadata log is. Kafka writes one each hour (metadata.log.max.snapshot.interval.ms), or after 20 MiB."""
    lines = []
    if phase_now in _JOINING:
        known = phase.registrations(facts)
        brokers = {host: node for host, node in sorted(facts["nodes"].items()) if node["role"] == "broker"}
        absent = [host for host, node in brokers.items() if str(node.get("node_id")) not in known]
        of_those = f", not {advice.format_names(absent)}" if absent else ""
        lines.append(f"registered in the quorum: {len(brokers) - len(absent)} of {len(brokers)} brokers{of_those}")
    seen, without = [], []
    for host, node in sorted(phase.controllers(facts).items()):
        log = node.get("metadata_log") or {}
        newest = log.get("checkpoint") or {}
        if "bytes" in newest and "time" in node:
            age = durations.format_duration(max(0, node["time"] - newest["time"]))
            seen.append(f"{host} {age} old, {sizes.format_bytes(newest['bytes'])}")
        elif "checkpoint" in log and not newest:
            without.append(host)
    if without:
        seen.append(f"{', '.join(without)} none yet")
    return lines + ([f"snapshots of the metadata log: {'; '.join(seen)}"] if seen else [])


def _state(node: NodeFacts, registration: Mapping | None) -> str:
    if not node.get("running"):
        return "offline"
    if node["role"] == "broker" and registration and node["running"] != phase.ZK:
        if registration.get("in_controlled_shutdown"):
            return "stopping"
        if registration.get("fenced"):
            return "fenced"
    return "online"


def _select_this_attempt(passed: list[str], now: str) -> list[str]:
    """Return the passed gates that lead to this phase, each once: others are of an attempt that was rolled back.

    An attempt begins with gate before_controllers. Gates of a move to another ZooKeeper ensemble lead to no phase.
    """
    passed = [name for name in passed if name in gates.GATES]
    if "before_controllers" in passed:
        passed = passed[len(passed) - 1 - passed[::-1].index("before_controllers") :]
    if now not in phase.FORWARD:
        return list(dict.fromkeys(passed))
    reached = phase.FORWARD[: phase.FORWARD.index(now) + 1]
    forward = [name for name in dict.fromkeys(passed) if not gates.GATES[name].rollback]
    return [name for name in forward if gates.GATES[name].phases[0] in reached]


def render(
    state: Mapping,
    passed: list[str],
    command: str | None,
    run: str | None = None,
    doubts: Sequence[str] = (),
    reassignments: str | None = None,
    metadata: Sequence[str] = (),
) -> list[str]:
    """Return the screen of `status` as lines.

    `state`: the result of migration_state; `passed`: names of the gates passed so far; `command`: the next command;
    `run`: the line about the newest other run that changed something; `doubts`: contradictions in the journals;
    `reassignments`: the line about these; `metadata`: metadata_lines.
    """
    phases = "  ".join(f"[{name}]" if name == state["phase"] else name for name in phase.FORWARD)
    lines = [f"Cluster {state['cluster_id'] or '?'}: {state['phase']}", f"  {phases}", ""]
    width = max((len(host) for host in state["nodes"]), default=4)
    lines.append(
        f"  {'node':<{width}}  {'id':>4}  {'runs as':<20}  {'starts as':<20}  {'state':<8}  {'version':<8}  lag"
    )
    for host, node in sorted(state["nodes"].items(), key=lambda item: (item[1]["role"], item[0])):
        lag = "-" if node["lag"] is None else node["lag"]
        number = "-" if node["id"] is None else node["id"]
        lines.append(
            f"  {host:<{width}}  {number:>4}  {node['mode']:<20}  {node['next']:<20}  {node['state']:<8}  "
            f"{node['version']:<8}  {lag}"
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
        reason = "none yet" if state["phase"] == phase.ZK else f"no leader ({quorum.get('error')})"
        lines += ["", f"  quorum: {reason}"]
    lines += [f"  {line}" for line in (*metadata, *feature_screen.lines(state["features"]))]
    lines += [f"  {reassignments}"] if reassignments else []
    mirrored = state["mirrored_offset"]
    if state["phase"] in _MIRRORING and mirrored is not None and mirrored >= 0 and quorum.get("reached"):
        behind = max(0, quorum["high_watermark"] - 1 - mirrored)
        lines.append(f"  ZooKeeper: written up to offset {mirrored}, lag {behind}")
    lines.append(
        "  gates passed: "
        + (", ".join(_select_this_attempt(passed, state["phase"])) or "none in the run artifacts here")
    )
    if run:
        lines.append(f"  {run}")
    lines += [f"  journal: {doubt}" for doubt in doubts]
    for block in state["blocks"]:
        lines.append(f"  ! {advice.sentences(block['text'], block['do'])}.")
    targets, obstacles = state["rollback_readiness"]["targets"], state["rollback_readiness"]["obstacles"]
    if targets and not state["steps"]:
        lines.append(
            f"  rollback to {' or '.join(targets)}: {'remove the obstacles first' if obstacles else 'possible'}"
        )
    lines += [f"  ! rollback: {text}." for text in obstacles]
    lines += [f"  rollback: {'done' if step['done'] else 'to do':<6} {step['step']}" for step in state["steps"]]
    lines += [f"  watch: {text}" for text in state["next"]["watch"]]
    lines += ["", f"  next: {state['next']['text']}"] + ([f"        {command}"] if command else [])
    return [message_ids.move_to_end(line) for line in lines]
