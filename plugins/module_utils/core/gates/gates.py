# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates before each step that is harder to undo: what each requires, and the token that it returns.

A step that changes a host takes its gate's token as a parameter and fails without it (`refusal`), so that no --limit,
--tags or --start-at-task gets around a gate.
"""

from __future__ import annotations

import hashlib
import json
from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import cluster_health, soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    kraft_config,
    lost_logs,
    phase,
    restart_token,
    transitions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.phase import (
    BROKERS_JOINING,
    CONTROLLERS_READY,
    CONTROLLERS_STARTING,
    COPYING,
    DUAL_WRITE,
    FINALIZED,
    FINALIZING,
    HYBRID,
    KRAFT_NATIVE,
    REVERTING,
    ZK,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import Clock, ClusterFacts, NodeFacts, Quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import is_secret

# Views of the metadata, as the Spark job metadata_parity names them.
ZOOKEEPER, METADATA_LOG, BROKER, BASELINE = "zookeeper", "metadata_log", "broker", "baseline"
# The Spark jobs, and what they compare
METADATA_PARITY, DATA_FINGERPRINT = "metadata_parity", "data_fingerprint"
WHAT = {METADATA_PARITY: "the metadata was", DATA_FINGERPRINT: "the records were"}
# Records are compared with those of before any change: once, at the end
DATA_GATES = ("before_controllers", "after_finalize")


class Gate(NamedTuple):
    """`phases`: in which the gate may open; `moment`: for people; `needs`: the views of the metadata that must be
    compared before it opens; `takes`: those that are compared as well where they exist; `by_hand`: phases in which
    the playbook `verify` compares this gate's views; `rollback`: whether it is one of a rollback."""

    phases: tuple[str, ...]
    moment: str
    needs: tuple[str, ...]
    takes: tuple[str, ...] = (BASELINE,)
    by_hand: tuple[str, ...] = ()
    rollback: bool = False


_ZOOKEEPER_RULES, _LOG_RULES = (ZOOKEEPER, BROKER), (ZOOKEEPER, METADATA_LOG, BROKER)
# The baseline is never needed: a gate may be the first that is verified, and artifacts go with their control node.
GATES = {
    "before_controllers": Gate(
        (ZK, CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING),
        "before controllers are formatted or started",
        _ZOOKEEPER_RULES,
        by_hand=(ZK, CONTROLLERS_STARTING),
    ),
    "before_trigger": Gate(
        (CONTROLLERS_READY, BROKERS_JOINING),
        "before brokers are restarted in migration mode",
        _ZOOKEEPER_RULES,
        by_hand=(CONTROLLERS_READY, BROKERS_JOINING),
    ),
    "after_copy": Gate(
        (HYBRID, DUAL_WRITE), "the metadata is copied and mirrored to ZooKeeper", _LOG_RULES, by_hand=(HYBRID,)
    ),
    "before_kraft": Gate((HYBRID, FINALIZING), "before brokers are restarted in KRaft mode", _LOG_RULES),
    "after_kraft": Gate(
        (DUAL_WRITE,), "every broker runs in KRaft mode: the soak begins", _LOG_RULES, by_hand=(DUAL_WRITE,)
    ),
    "before_finalize": Gate(
        (DUAL_WRITE, FINALIZING),
        "before controllers leave migration mode, for good",
        _LOG_RULES,
        by_hand=(FINALIZING,),
    ),
    "before_revert": Gate(
        (CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING, COPYING, HYBRID, DUAL_WRITE, FINALIZING, REVERTING),
        "before a migration is rolled back",
        _ZOOKEEPER_RULES,
        (METADATA_LOG, BASELINE),
        by_hand=(REVERTING,),
        rollback=True,
    ),
    "after_revert": Gate(
        (REVERTING, ZK), "every broker runs in plain ZooKeeper mode again", _ZOOKEEPER_RULES, rollback=True
    ),
    "after_finalize": Gate((FINALIZED,), "every controller is final", (METADATA_LOG, BROKER), by_hand=(FINALIZED,)),
}

# Before plain restarts, which are no step of a migration: only admissions make this token
RESTART = "restart"
PLAIN_PHASES = (ZK, FINALIZED, KRAFT_NATIVE)
_RESTART = Gate(PLAIN_PHASES, "before nodes are restarted in the mode in which they run", ())

# A token of no gate: every broker was seen running in plain ZooKeeper mode after a rollback's last roll
BROKERS_PLAIN = "brokers_plain"
WIPE = "wipe"

# By the host's clock, from the reading before the admission to the change. A slow machine takes 20 s.
TOKEN_LIFE_S = 60.0
# How often a role asks for a new token in place of one that expired on its way
RENEWALS = 5
# The outcome of a task whose token expired, and the journal's event
EXPIRED, TOKEN_EXPIRED = "expired", "gate token expired"


def choose_gate_to_verify(phase_seen: str) -> str | None:
    """Return the gate whose views the playbook `verify` compares in a phase, None where there is nothing to compare."""
    return next((name for name, gate in GATES.items() if phase_seen in gate.by_hand), None)


def views_to_compare(name: str, phase_seen: str) -> list[str]:
    """Return the views of the metadata that are compared before a gate opens in a phase; none for another name.

    Until the initial copy has ended, the metadata log has nothing of ZooKeeper's metadata: a gate that only takes the
    log is about ZooKeeper then.
    """
    gate = GATES.get(name)
    if gate is None:
        return []
    return [*gate.needs, *(view for view in gate.takes if view != METADATA_LOG or phase_seen not in _WITHOUT_COPY)]


_WITHOUT_COPY = (CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING, COPYING)


def explain_closed(
    name: str, phase_result: phase.PhaseResult, health: list[str], excused: Iterable[str] = ()
) -> list[str]:
    """Return why the gate is closed, as sentences; nothing when it is open. `health`: further reasons; `excused`: ids
    of blocks that do not close it now."""
    gate = _RESTART if name == RESTART else GATES[name]
    reasons = []
    if phase_result.phase not in gate.phases:
        reasons.append(f"the phase is {phase_result.phase}, {name} opens in {' or '.join(gate.phases)} (QS-GATE-002)")
    closing = _CLOSING + (("quorum_not_ready",) if name == "before_trigger" else ())
    closing += ("zookeeper_broker_left",) if name != "before_kraft" else ()  # the restart in KRaft mode fixes it
    closing += ("flag_missing",) if not gate.rollback else ()  # a rollback stops the controllers
    # A broker that is down closes no gate by itself: its restart may be due. Where health closes it, it is the reason.
    closing += ("broker_down",) if health else ()
    reasons += [
        advice.sentences(block.text, block.do)
        for block in phase_result.blocks
        if block.id in set(closing) - set(excused)
    ]
    return reasons + health


def find_trailing(
    quorum: Quorum, broker_ids: Iterable[int], bound_s: float, accepted: Iterable[str] | None = None
) -> list[str]:
    """Return a sentence for each voter and broker that has not caught up with the quorum's leader for `bound_s`. Such a
    broker serves stale metadata.

    `accepted`: tokens of what may stay degraded (None: nothing may). All that trail are accepted by one token.
    `quorum`: DescribeQuorum of the leader. The leader reports itself as caught up now, so its clock alone counts. A
    replica that has not caught up in this epoch has -1 (LeaderState.describeReplicaState).
    """
    voters, observers = quorum.get("voters") or [], quorum.get("observers") or []
    now = next((voter.get("caught_up_ms", -1) for voter in voters if voter["id"] == quorum.get("leader_id")), -1)
    if now < 0:
        return []
    followers = [("voter", voter) for voter in voters]
    following = set(broker_ids)
    followers += [("broker", observer) for observer in observers if observer["id"] in following]
    # LeaderState drops an observer that has not fetched for five minutes (OBSERVER_SESSION_TIMEOUT_MS).
    unlisted = [
        f"{BROKER} {broker_id}"
        for broker_id in sorted(following - {replica["id"] for replica in (*voters, *observers)})
    ]
    reasons = {
        name: f"{name} does not fetch the metadata log: the quorum's leader does not list it (QS-GATE-009)"
        for name in unlisted
    }
    for role, replica in followers:
        follower = f"{role} {replica['id']}"
        behind = max(0, quorum["high_watermark"] - replica["log_end_offset"])
        if replica["caught_up_ms"] < 0:
            reasons[follower] = (
                f"{follower} has not caught up with the quorum's leader since the leader was elected (QS-GATE-009)"
            )
        elif now - replica["caught_up_ms"] > bound_s * 1000:
            since = (now - replica["caught_up_ms"]) / 1000
            reasons[follower] = (
                f"{follower} has not caught up with the quorum's leader for {since:.0f} s, {behind} offsets "
                "behind (QS-GATE-009)"
            )
    if accepted is None or not reasons:
        return list(reasons.values())
    trail = {cluster_health.TRAILING: list(reasons)}
    return (
        [] if cluster_health.token(trail) in accepted else [*reasons.values(), cluster_health.explain_acceptance(trail)]
    )


def expected_voters(name: str, facts: ClusterFacts) -> Quorum:
    """Return DescribeQuorum with the voters that must have caught up before a gate.

    Under before_controllers these are the voters that run: the next step starts the controllers that are down.
    """
    quorum = facts["quorum"]
    if name != "before_controllers" or not quorum.get("voters"):
        return quorum
    down = {node.get("node_id") for node in phase.controllers(facts).values() if not node.get("running")}
    down.discard(quorum.get("leader_id"))  # by its clock the others are measured
    return {**quorum, "voters": [voter for voter in quorum["voters"] if voter["id"] not in down]}


def required_jobs(name: str, verify: bool, topics: Iterable[str]) -> list[str]:
    """Return the Spark jobs that must pass before a gate. `topics`: patterns of those whose records are compared."""
    if not verify:
        return []
    return [METADATA_PARITY, *([DATA_FINGERPRINT] if name in DATA_GATES and list(topics) else [])]


def explain_unverified(name: str, run: str, asked: Iterable[str], results: Iterable[Mapping]) -> str | None:
    """Return why the verification does not count for a gate; None when it does, or when no job is required.

    `asked`: names of the required jobs; `results`: of Spark jobs (spark/quorumshift_spark/result.schema.json), {} of
    one that did not run.
    """
    for job in asked:
        found = [result for result in results if result.get("job") == job]
        result = next(
            (
                verification
                for verification in found
                if (verification.get("gate"), verification.get("run")) == (name, run)
            ),
            None,
        )
        if not found:
            return (
                f"{WHAT[job]} not compared for gate {name}. Run the whole playbook, without --start-at-task or "
                "--tags (QS-VERIFY-002)"
            )
        if result is None:
            gate, other = found[0].get("gate"), found[0].get("run")
            return (
                f"the comparison is of gate {gate} and run {other}, this is gate {name} and run {run} (QS-VERIFY-002)"
            )
        if result.get("verdict") != "pass":
            return f"the Spark job {job} ended with {result.get('verdict')} (QS-VERIFY-001)"
    return None


# Blocks that close every gate. The next step itself fixes most others, such as a file that differs.
_CLOSING = (
    "clusters_differ",
    "unreached",
    "unknown",
    "migration_stale",
    "migration_malformed",
    "no_controller",
    "controllers_down",
    lost_logs.BLOCK,
)


def find_lasting(detected: phase.PhaseResult) -> list[str]:
    """Return the blocks that no wait removes, as sentences without their last full stop."""
    return [advice.sentences(block.text, block.do) for block in detected.blocks if block.id == lost_logs.BLOCK]


def make_token(
    name: str, phase_seen: str, run: str, facts: ClusterFacts, hosts: Iterable[str] = (), only_start: bool = False
) -> dict:
    """Return a gate token {gate, cluster_id, phase, run, digest, hosts, only_start, clocks}.

    `hosts`: those whose node may be changed with it. A gate of a rolling restart has none: each admission names its
    host. `only_start`: see core.migration.restart_token.

    `clocks`: {boot id: seconds since that boot}, the newest reading of each host's clock before the admission. Hosts
    that share a kernel share its clock.
    The digest covers the gate, the cluster, the phase and the incarnation of every registered broker. It is the
    same for the same processes, wherever it is computed, and differs once a broker was restarted.
    """
    cluster_id, brokers = phase.cluster_id(facts), phase.registrations(facts)
    incarnations = sorted((broker_id, reported["incarnation_id"]) for broker_id, reported in brokers.items())
    text = json.dumps([name, cluster_id, phase_seen, incarnations])
    digest = hashlib.sha256(text.encode()).hexdigest()
    clocks: dict[str, float] = {}
    for clock in (node.get("clock") or {} for node in facts["nodes"].values()):
        if clock.get("boot_id"):
            clocks[clock["boot_id"]] = max(clock["uptime_s"], clocks.get(clock["boot_id"], 0))
    common = {"gate": name, "cluster_id": cluster_id, "phase": phase_seen, "run": run, "digest": digest}
    nodes = {host: facts["nodes"][host] for host in hosts}
    admitted = {host: node_key.node_key(node["role"], node.get("node_id")) for host, node in nodes.items()}
    return {**common, "hosts": admitted, "only_start": only_start, "clocks": clocks}


def refusal(kind: str, given: Mapping | None, cluster_id: str, run: str, host: str, key: str) -> str | None:
    """Return why a restart of this kind, or a controller's `wipe`, may not begin with the gate token given; None
    when it may. `host`: this host's inventory name; `key`: of its node (core.run.node_key)."""
    wanted = BROKERS_PLAIN if kind == WIPE else transitions.KINDS[kind].gate
    if not given:
        return (
            f"no token of gate {wanted} was given. Run the whole playbook, without --start-at-task or "
            "--tags (QS-RESTART-009)"
        )
    if given.get("gate") != wanted:
        return (
            f"the gate token is of gate {given.get('gate')}, a restart of kind {kind} needs one of "
            f"{wanted} (QS-RESTART-009)"
        )
    if given.get("cluster_id") != cluster_id:
        return (
            f"the gate token is of cluster {given.get('cluster_id')}, this host belongs to "
            f"{cluster_id} (QS-RESTART-009)"
        )
    if given.get("run") != run:
        return f"the gate token is of run {given.get('run')}, this is run {run} (QS-RESTART-009)"
    return restart_token.check_host(given, host, key)


def check_expiry(given: Mapping, clock: Clock) -> str | None:
    """Return why a gate token is not of the last minute by this host's clock; None while it is.

    `clock`: host.clock. A control node that slept, or a host that was restarted since the admission, proves nothing
    about the cluster as it is now.
    """
    if clock.get("error"):
        return f"this host has no clock to time its gate token: {clock['error']} (QS-RESTART-009)"
    read = (given.get("clocks") or {}).get(clock["boot_id"])
    if read is None:
        return f"the gate token has no reading of this host's clock since its boot {clock['boot_id']} (QS-RESTART-009)"
    age = clock["uptime_s"] - float(read)
    if not 0 <= age <= TOKEN_LIFE_S:
        return (
            f"the gate token is {age:.0f} s old by this host's clock, and expires after {TOKEN_LIFE_S:.0f} "
            "s (QS-RESTART-009)"
        )
    return None


def rejection(
    kind: str, given: Mapping | None, cluster_id: str, run: str, host: str, key: str, clock: Clock
) -> dict[str, str]:
    """Return {} where this host accepts the gate token given for a restart of this kind or for `wipe`; otherwise {msg},
    and {outcome} as well where the token is too old and a new one may be asked for. Arguments as for `refusal` and
    `check_expiry`."""
    refused = refusal(kind, given, cluster_id, run, host, key)
    late = None if refused or given is None else check_expiry(given, clock)
    if late and not clock.get("error"):
        return {"msg": late, "outcome": EXPIRED}
    return {"msg": refused or late} if refused or late else {}


def finalize_token(facts: ClusterFacts) -> str:
    """Return the confirmation token of finalization: the cluster id and the first 6 of after_kraft's digest.

    The live cluster gives it at any time. A saved job template cannot hold it: a broker's restart changes it, and
    begins the soak anew.
    """
    return f"{phase.cluster_id(facts)}:{make_token('after_kraft', DUAL_WRITE, '', facts)['digest'][:6]}"


def finalize_troubles(
    facts: ClusterFacts, detected: phase.PhaseResult, token: str, soak_s: float, gap_s: float | None = None
) -> list[str]:
    """Return why controllers may not leave migration mode, as sentences. It cannot be undone (KIP-866).

    `gap_s`: how far two samples of the soak may be apart (soak.measure)."""
    reasons = []
    wanted = finalize_token(facts)
    if token.partition(":")[0] != wanted.partition(":")[0] or (detected.phase == DUAL_WRITE and token != wanted):
        reasons.append(
            f"quorumshift_finalize_token is {token!r}, which is not this cluster's as it runs now. The playbook "
            "quorumshift.kafka.status prints it (QS-GATE-012)"
        )
    zookeeper = facts["zookeeper"]
    left = sorted(zookeeper.get("broker_ids") or {})
    if not zookeeper.get("reached"):
        reasons.append(
            f"whether brokers are registered in ZooKeeper could not be read: {zookeeper.get('error')} (QS-GATE-012)"
        )
    elif left:
        reasons.append(f"brokers are registered in ZooKeeper: {', '.join(left)} (QS-GATE-012)")
    registered = phase.registrations(facts)
    for broker_id in phase.broker_ids(facts):
        registration = registered.get(str(broker_id))
        if not registration:
            reasons.append(f"broker {broker_id} is not registered in the quorum (QS-GATE-012)")
        elif registration["fenced"] or registration["is_migrating_zk_broker"]:
            reasons.append(
                f"broker {broker_id} is "
                f"{'fenced' if registration['fenced'] else 'registered as a ZooKeeper broker'} (QS-GATE-012)"
            )
    reasons += _explain_differences(facts)
    if detected.phase == DUAL_WRITE and soak_s > 0:
        unseen = sorted(host for host, node in facts["nodes"].items() if not _started_at(node))
        soaked = soaked_s(facts)
        if unseen:
            reasons.append(f"when {', '.join(unseen)} started could not be read, so its soak is unknown (QS-GATE-012)")
        elif soaked < soak_s:
            reasons.append(f"the last restart was {soaked:.0f} s ago, the soak is {soak_s:.0f} s (QS-GATE-012)")
        sound = measure_soak(facts, gap_s)
        if facts["time"] - sound.since < soak_s:
            reasons.append(
                f"the soak is {soak_s:.0f} s, and was sound for the last {facts['time'] - sound.since:.0f} s alone: "
                f"{sound.why} (QS-GATE-013)"
            )
    return reasons


def measure_soak(facts: ClusterFacts, gap_s: float | None, sample: soak.Sample | None = None) -> soak.Sound:
    """Return since when the soak is sound, by the samples that hosts keep of this cluster, and the one taken now."""
    histories = soak.find_histories(facts["nodes"], phase.cluster_id(facts))
    if sample:
        kept = histories or {"": {}}
        histories = {
            host: history if history.get("error") else soak.add(history, sample, gap_s)
            for host, history in kept.items()
        }
    return soak.measure(histories, facts["time"], gap_s)


def soaked_s(facts: ClusterFacts) -> float:
    """Return how many seconds ago the last of all brokers and controllers started, among those that were read."""
    return facts["time"] - max((_started_at(node) for node in facts["nodes"].values()), default=0)


def _started_at(node: NodeFacts) -> float:
    return (node.get("service") or {}).get("started_at") or 0


def _explain_differences(facts: ClusterFacts) -> list[str]:
    """Return a sentence on the keys in which controllers differ, except those that each host has for itself."""
    values = {
        host: (node.get("file") or {}).get("properties") or {}
        for host, node in sorted(phase.controllers(facts).items())
        if node.get("next") == "controller_migration"
    }
    keys = sorted({key for properties in values.values() for key in properties} - {kraft_config.MIGRATION_FLAG})
    shared = [key for key in keys if not kraft_config.OF_A_HOST.fullmatch(key)]
    differing = [key for key in shared if len({properties.get(key) for properties in values.values()}) > 1]
    return (
        [f"controllers differ in {', '.join(_format_by_host(key, values) for key in differing)} (QS-GATE-012)"]
        if differing
        else []
    )


def _format_by_host(key: str, values: Mapping[str, Mapping[str, str]]) -> str:
    """Return a key with each host's value, without secrets."""
    if is_secret(key):
        return key
    return f"{key} ({', '.join(f'{host} {properties.get(key)!r}' for host, properties in values.items())})"
