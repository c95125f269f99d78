# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase of a cluster's migration, judged from collected facts alone (probes.cluster.collect gives their shape).

Sources: KIP-866; Kafka 3.9's ZkMigrationState, KRaftMigrationDriver and ZkMigrationLeadershipState (a copy is done
when `/migration`'s kraft_metadata_offset is above 0). Nothing is remembered from earlier runs, nothing is guessed:
evidence that contradicts itself, or a missing witness of the whole cluster, is the phase `unknown`.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from . import clean_up, run_lock

ZK = "zk"
CONTROLLERS_STARTING = "controllers_starting"
CONTROLLERS_READY = "controllers_ready"
BROKERS_JOINING = "brokers_joining"
COPYING = "copying"
HYBRID = "hybrid"
DUAL_WRITE = "dual_write"
FINALIZING = "finalizing"
FINALIZED = "finalized"
KRAFT_NATIVE = "kraft_native"
REVERTING = "reverting"
UNKNOWN = "unknown"

# The forward way, in order. `kraft_native`, `reverting` and `unknown` are beside it.
FORWARD = (
    ZK,
    CONTROLLERS_STARTING,
    CONTROLLERS_READY,
    BROKERS_JOINING,
    COPYING,
    HYBRID,
    DUAL_WRITE,
    FINALIZING,
    FINALIZED,
)

BROKER_MODES = ("zk", "zk_migration", "kraft")


class Block(NamedTuple):
    """Something that stands in the way of the next step: a stable id, what is seen, and what to do about it."""

    id: str
    text: str
    do: str


class Evidence(NamedTuple):
    """One thing seen, and where it was seen."""

    what: str
    value: object
    source: str


class PhaseResult(NamedTuple):
    """`steps` is filled for `reverting` alone: what a rollback has done and has still to do, in order."""

    phase: str
    blocks: list[Block]
    evidence: list[Evidence]
    steps: list[dict]


def detect(facts: Mapping) -> PhaseResult:
    """Return the phase with its evidence and with what blocks the next step."""
    seen = _Seen(facts)
    blocks: list[Block] = []
    phases = {_phase(seen, assumed) for assumed in (BROKER_MODES if seen.modeless else (None,))}
    phase, why = phases.pop() if len(phases) == 1 else (UNKNOWN, _modeless_text(seen))
    if phase == UNKNOWN:
        known = {_STALE: lambda: _stale(facts), _SKIPPED: _skipped}
        blocks.append(known[why]() if why in known else Block("unknown", why, _LOOK))
    blocks += _blocks(seen, phase)
    return PhaseResult(phase, blocks, _evidence(seen), _revert_steps(seen) if phase == REVERTING else [])


_LOOK = "look at the evidence of `status`, mend what contradicts, and run again: nothing is changed meanwhile"
_STALE = "migration_stale"
_SKIPPED = "copy_skipped"


def _stale(facts: Mapping) -> Block:
    return Block(
        "migration_stale",
        "/migration says that a copy was done (kraft_metadata_offset > 0), yet brokers run under ZooKeeper's "
        "controller: a new quorum would skip the copy and delete topics, ACLs and configs in ZooKeeper",
        clean_up.migration_znode(facts),
    )


def _skipped() -> Block:
    return Block(
        "copy_skipped",
        "KRaft's controllers write to ZooKeeper over a /migration that says that a copy was done, yet their log never "
        "had one: what their log lacks they delete in ZooKeeper, topics, ACLs and configs",
        "see at once what it has cost, which changes nothing: playbooks/restore_zookeeper.yml",
    )


def _restoring(restore: Mapping) -> Block:
    end = f'it ended at "{restore["how"]}"' if restore["closed"] else "it is at work, or was cut off"
    return Block(
        "restore_unfinished",
        f"brokers are down for a restore, {run_lock.who(restore)}: {end}",
        "start no broker or controller by hand. When that run is gone, type its command again: restore_zookeeper",
    )


class _Seen:
    """The facts, folded into what the rules ask for."""

    def __init__(self, facts: Mapping):
        self.facts = facts
        self.nodes: Mapping[str, Mapping] = facts.get("nodes", {})
        self.zookeeper: Mapping = facts.get("zookeeper", {})
        self.quorum: Mapping = facts.get("quorum", {})
        self.brokers = {host: node for host, node in self.nodes.items() if node["role"] == "broker"}
        self.controllers = {host: node for host, node in self.nodes.items() if node["role"] == "controller"}
        self.modes = {host: node.get("running") or node.get("next") for host, node in self.brokers.items()}
        self.modeless = [host for host, mode in self.modes.items() if mode not in BROKER_MODES]
        self.logs = [node["metadata_log"] for node in self.controllers.values() if usable_log(node)]
        self.log = longest_log(self.controllers)
        self.state = self.log.get("zk_migration_state")
        controller = self.zookeeper.get("controller") or {}
        self.owner = None
        if controller.get("exists"):
            self.owner = "zookeeper" if controller.get("ephemeral") else "kraft"
        migration = self.zookeeper.get("migration") or {}
        self.migration_malformed = migration.get("malformed")
        self.offset = migration.get("kraft_metadata_offset") if migration.get("exists") else None

    def joining(self) -> list[str]:
        """Return the ids of the brokers that run, or while they are down will start, in migration mode."""
        return [str(self.brokers[host].get("node_id")) for host, mode in self.modes.items() if mode == "zk_migration"]


def usable_log(node: Mapping) -> bool:
    """Say whether a node's metadata log was there and could be read."""
    log = node.get("metadata_log")
    return bool(log) and not log.get("error")


def _phase(seen: _Seen, assumed: str | None) -> tuple[str, str]:
    """Return (phase, reason; the reason counts for `unknown`). `assumed` stands for each mode that nobody could see."""
    modes = {assumed if host in seen.modeless else mode for host, mode in seen.modes.items()}
    if not modes:
        return UNKNOWN, "there is no broker in the inventory's group kafka_broker"
    if seen.state == "NONE" and modes == {"kraft"}:
        return KRAFT_NATIVE, ""
    if seen.state == "POST_MIGRATION":
        return _under_final(seen, modes)
    if any(node.get("service", {}).get("masked") for node in seen.controllers.values()):
        return REVERTING, ""
    if not seen.zookeeper.get("reached"):
        return UNKNOWN, f"ZooKeeper could not be read: {seen.zookeeper.get('error', 'no reason given')}"
    if seen.owner == "kraft":
        return _under_kraft(seen, modes)
    return _under_zookeeper(seen, modes)


def _under_final(seen: _Seen, modes: set) -> tuple[str, str]:
    controllers = {host: _controller_modes(node) for host, node in seen.controllers.items()}
    if modes != {"kraft"} or any(reported - {"controller_final"} for reported in controllers.values()):
        return FINALIZING, ""
    blind = sorted(host for host, reported in controllers.items() if not reported)
    if blind:
        return UNKNOWN, f"neither mode nor file of {', '.join(blind)} could be seen: is every controller final?"
    return FINALIZED, ""


def _under_kraft(seen: _Seen, modes: set) -> tuple[str, str]:
    if "zk" in modes:
        plain = sorted(host for host, mode in seen.modes.items() if mode == "zk")
        return UNKNOWN, f"/controller is KRaft's, yet {', '.join(plain)} run or will start in plain ZooKeeper mode"
    if seen.offset is None and not seen.migration_malformed:
        return UNKNOWN, "/controller is KRaft's, yet /migration does not exist"
    if (seen.offset or -1) <= 0:
        if "kraft" in modes:
            return UNKNOWN, "/migration says that no copy was done, yet brokers run or will start in KRaft mode"
        return COPYING, ""
    if not seen.logs:
        return UNKNOWN, "no controller's metadata log could be read, and it alone tells whether the migration is over"
    if seen.state == "PRE_MIGRATION":
        return UNKNOWN, _SKIPPED
    if seen.state != "MIGRATION":
        return UNKNOWN, f"/migration says that the copy is done, the controllers' log says {seen.state}"
    if modes == {"kraft"}:
        leaving = any("controller_final" in _controller_modes(node) for node in seen.controllers.values())
        # of a controller that nobody sees the log still tells how it came up last
        leaving |= any(not reported["zk_migration_ready"] for reported in (seen.log.get("controllers") or {}).values())
        return (FINALIZING if leaving else DUAL_WRITE), ""
    return HYBRID, ""


def _under_zookeeper(seen: _Seen, modes: set) -> tuple[str, str]:
    if (seen.offset or -1) > 0:
        return UNKNOWN, _STALE
    if "kraft" in modes:
        return UNKNOWN, "/controller is not KRaft's, yet brokers run or will start in KRaft mode"
    if seen.state == "MIGRATION":
        return UNKNOWN, "the controllers' log says that the copy was committed, yet /controller is not KRaft's"
    if "zk_migration" in modes:
        return BROKERS_JOINING, ""
    if not any(_has_begun(node) for node in seen.controllers.values()):
        return ZK, ""
    return (
        CONTROLLERS_STARTING if not_ready(seen.controllers, seen.quorum, seen.log, seen.offset) else CONTROLLERS_READY
    ), ""


def not_ready(
    controllers: Mapping, quorum: Mapping, log: Mapping, offset: int | None, joining: Iterable[str] = ()
) -> list[str]:
    """Return what a quorum in pre-migration still lacks, as sentences; nothing when it is ready for the brokers.

    `joining`: ids of the brokers that run in migration mode or start in it, which may be registered already; an old
    registration of any other one counts for the trigger all the same (KRaftMigrationDriver, WAIT_FOR_BROKERS).

    The readiness tag of every controller's ApiVersions is asked for as well as the registrations in the log, since
    the migration driver's own check is vacuous with a dynamic quorum (QuorumFeatures, an empty set of voter ids).
    """
    lacks = []
    for host, node in sorted(controllers.items()):
        if node.get("running") != "controller_migration":
            lacks.append(
                f"{host} does not answer as a controller in migration mode: "
                f"{node.get('running_error') or node.get('running') or 'down'}"
            )
    if not quorum.get("reached"):
        return [*lacks, "no controller answers as the quorum's leader"]
    voters = quorum.get("voters") or []
    if len(voters) != len(controllers):
        lacks.append(f"the quorum has {len(voters)} voters, the group kafka_controller {len(controllers)} hosts")
    behind = [str(voter["id"]) for voter in voters if voter["log_end_offset"] < quorum["high_watermark"]]
    if behind:
        lacks.append(f"voter {', '.join(behind)} is behind the high watermark {quorum['high_watermark']}")
    if log.get("zk_migration_state") != "PRE_MIGRATION":
        lacks.append(f"the metadata log's state is {log.get('zk_migration_state')}, not PRE_MIGRATION")
    for node in controllers.values():
        messages = (log.get("controllers") or {}).get(str(node.get("node_id")))
        if not (messages and messages.get("zk_migration_ready")):
            lacks.append(f"controller {node.get('node_id')} is not registered as ready for the migration")
    if offset != -1:
        lacks.append(f"/migration's kraft_metadata_offset is {offset}, not -1")
    plain = sorted(set(log.get("brokers") or {}) - set(joining))
    if plain:
        lacks.append(f"brokers {', '.join(plain)} are registered already, though they run plain ZooKeeper mode")
    return lacks


def left_registered(facts: Mapping) -> list[int]:
    """Return the ids of brokers that are registered in the quorum and run plain, before any copy: an attempt to join
    that was put back left them, and an old registration counts for the trigger (see `not_ready`)."""
    seen = _Seen(facts)
    if seen.state != "PRE_MIGRATION" or seen.owner != "zookeeper" or seen.offset != -1:
        return []
    registered = seen.log.get("brokers") or {}
    plain = [node for node in seen.brokers.values() if {node.get("running"), node.get("next")} - {None} == {ZK}]
    return sorted(node["node_id"] for node in plain if str(node.get("node_id")) in registered)


def unfinished(facts: Mapping) -> list[str]:
    """Return the hosts on which a turn was left half done: its worker is gone or still at work, or it failed and its
    broker is down. Controllers that are being brought up are no such hosts: bringing them up goes on by itself."""
    messages = []
    rollback = any((node.get("service") or {}).get("masked") for node in controllers(facts).values())
    for host, node in sorted(facts["nodes"].items()):
        node_restart = node.get("node_restart") or {}
        if rollback and node.get("next") != ZK:
            continue  # the roll back takes it up: its quorum is gone for good
        if (
            not node_restart.get("id")
            or node_restart.get("kind") == "controller"
            or (node.get("service") or {}).get("masked")
        ):
            continue
        down = node["role"] == "broker" and not node.get("running")
        if not node_restart.get("outcome") or (node_restart["outcome"] == "failed" and down):
            messages.append(host)
    return messages


def restoring(facts: Mapping) -> Mapping | None:
    """Return the newest claim where it is that of a restore at work, cut off or failed, with brokers down: they stand
    still on purpose, over a ZooKeeper that is filled in part. None otherwise."""
    newest = run_lock.newest_in(facts["nodes"], cluster_id(facts))
    if not newest or newest["direction"] != run_lock.RESTORE or run_lock.ended_well(newest):
        return None
    brokers = [node for node in facts["nodes"].values() if node["role"] == "broker"]
    down = any(node.get("reached") and not node.get("running") for node in brokers)
    return newest if down else None


def silent_controllers(facts: Mapping) -> list[str]:
    """Return which controllers do not answer, as a sentence each."""
    return [
        f"controller {host} does not answer: {node.get('running_error') or node.get('error') or 'down'}"
        for host, node in sorted(controllers(facts).items())
        if not node.get("running")
    ]


def _controller_modes(node: Mapping) -> set:
    """Return the modes in which a controller runs and will start, as far as they were seen."""
    return {node.get("running"), node.get("next")} - {None}


def _has_begun(node: Mapping) -> bool:
    formatted = any(directory.get("meta") for directory in node.get("log_dirs", []))
    return formatted or bool(node.get("metadata_log")) or bool(node.get("running"))


def _blocks(seen: _Seen, phase: str) -> list[Block]:
    blocks = []
    restore = restoring(seen.facts)
    if restore:
        blocks.append(_restoring(restore))
    for host, node in sorted(seen.nodes.items()):
        if not node.get("reached"):
            blocks.append(
                Block(
                    "unreached",
                    f"{host} was not reached: {node.get('error')}",
                    "mend the connection to the host and run again",
                )
            )
        elif node["role"] == "broker" and not node.get("running") and not restore:
            blocks.append(
                Block(
                    "broker_down",
                    f"broker {host} does not answer: {node.get('running_error')}",
                    "start it: it is to start in the mode that its file says",
                )
            )
        elif node.get("running") and node.get("next") and node["running"] != node["next"]:
            blocks.append(
                Block(
                    "file_differs",
                    f"{host} runs in mode {node['running']}, its file starts it as {node['next']}",
                    "run again: the roll restarts it",
                )
            )
    begun = phase in (CONTROLLERS_READY, BROKERS_JOINING, COPYING, HYBRID, DUAL_WRITE, FINALIZED, KRAFT_NATIVE)
    down = [host for host, node in sorted(seen.controllers.items()) if not node.get("running")]
    if begun and down:
        blocks.append(
            Block("controllers_down", f"controllers down: {', '.join(down)}", "start them: they hold the metadata")
        )
    if phase in (ZK, CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING) and seen.owner is None:
        blocks.append(
            Block("no_controller", "no broker owns /controller in ZooKeeper", "wait for an election, or start brokers")
        )
    if seen.migration_malformed:
        blocks.append(
            Block(
                "migration_malformed",
                f"/migration is malformed: {seen.migration_malformed}",
                clean_up.migration_znode(seen.facts),
            )
        )
    if phase == COPYING and seen.state == "MIGRATION":
        blocks.append(
            Block(
                "copy_not_acknowledged",
                "the copy is committed in the metadata log, /migration does not say so",
                "look at the active controller's log: it cannot write to ZooKeeper",
            )
        )
    metrics = sorted(seen.log.get("client_metrics") or {})
    if metrics and phase in (COPYING, HYBRID, DUAL_WRITE, FINALIZING) and seen.state == "MIGRATION":
        blocks.append(
            Block(
                "client_metrics",
                f"client metrics are configured ({', '.join(metrics)}), for which ZooKeeper has no place: the next "
                "active controller will write nothing there",
                "delete them until the migration is finalized: kafka-client-metrics.sh --delete --name NAME",
            )
        )
    if phase in (CONTROLLERS_STARTING, BROKERS_JOINING):
        left = [str(one) for one in left_registered(seen.facts)]
        if left:
            blocks.append(
                Block(
                    "left_registered",
                    f"broker {', '.join(left)} is registered in the quorum, though it runs or will start in plain "
                    "ZooKeeper mode",
                    "run again: the registration is removed first of all",
                )
            )
        blocks += [
            Block("quorum_not_ready", text, "wait, or look at that controller's log")
            for text in not_ready(seen.controllers, seen.quorum, seen.log, seen.offset, [*seen.joining(), *left])
        ]
    if phase in (COPYING, HYBRID):
        blocks += [
            Block(
                "flag_missing",
                f"{host} runs or will start without the migration flag, while brokers run in a ZooKeeper mode: as the "
                "quorum's leader it would end the migration over them",
                "put zookeeper.metadata.migration.enable=true back into its file and restart it",
            )
            for host, node in sorted(seen.controllers.items())
            if "controller_final" in _controller_modes(node)
        ]
    if phase == FINALIZING:
        for host, mode in sorted(seen.modes.items()):
            if mode != "kraft":
                blocks.append(
                    Block(
                        "zookeeper_broker_left",
                        f"{host} runs in mode {mode} under a finalized quorum and serves stale metadata",
                        "roll it to KRaft mode now",
                    )
                )
    return blocks


def _evidence(seen: _Seen) -> list[Evidence]:
    zookeeper = seen.zookeeper
    messages = [
        Evidence("owner of /controller", seen.owner, "ZooKeeper /controller"),
        Evidence(
            "controller epoch", (zookeeper.get("controller_epoch") or {}).get("value"), "ZooKeeper /controller_epoch"
        ),
        Evidence("offset mirrored to ZooKeeper", seen.offset, "ZooKeeper /migration"),
        Evidence(
            "brokers registered in ZooKeeper", sorted(zookeeper.get("broker_ids") or {}), "ZooKeeper /brokers/ids"
        ),
        Evidence("migration state", seen.state, "metadata log, ZkMigrationStateRecord"),
        Evidence(
            "brokers registered in the quorum",
            sorted(seen.log.get("brokers") or {}),
            "metadata log, RegisterBrokerRecord",
        ),
        Evidence(
            "quorum",
            {key: seen.quorum.get(key) for key in ("leader_id", "leader_epoch", "high_watermark")},
            "DescribeQuorum",
        ),
    ]
    for host, node in sorted(seen.nodes.items()):
        messages.append(
            Evidence(f"mode of {host}", node.get("running") or node.get("running_error") or "not asked", "ApiVersions")
        )
        messages.append(
            Evidence(
                f"mode of {host} at its next start",
                node.get("next") or node.get("error"),
                (node.get("file") or {}).get("path") or "its file",
            )
        )
    return messages


class RevertStep:
    """Steps of a rollback on which others wait, by the names that `status` shows."""

    MIGRATION_GONE = "/migration gone"
    BROKERS_PLAIN = "brokers plain"


def _revert_steps(seen: _Seen) -> list[dict]:
    """What nobody could look at is not done."""
    asked, controllers = bool(seen.zookeeper.get("reached")), seen.controllers.values()
    gathered = all(node.get("reached") for node in controllers)
    up = any(node.get("running") or (node.get("service") or {}).get("active") for node in controllers)
    formatted = any(directory.get("meta") for node in controllers for directory in node.get("log_dirs", []))
    done = {
        "controllers down": gathered and not up,
        "/controller of KRaft gone": asked and seen.owner != "kraft",
        "ZooKeeper controller elected": seen.owner == "zookeeper",
        RevertStep.MIGRATION_GONE: asked and not (seen.zookeeper.get("migration") or {}).get("exists"),
        RevertStep.BROKERS_PLAIN: set(seen.modes.values()) == {"zk"},
        "controllers wiped": gathered and not formatted,
    }
    return [{"step": step, "done": is_done} for step, is_done in done.items()]


def _modeless_text(seen: _Seen) -> str:
    return f"the mode of {', '.join(sorted(seen.modeless))} could not be seen, and the phase depends on it"


def cluster_id(facts: Mapping) -> str | None:
    """Return the cluster's id: ZooKeeper's, or once that is gone the one in the nodes' meta.properties."""
    reported = (facts.get("zookeeper", {}).get("cluster_id") or {}).get("value")
    stored = {
        directory["meta"]["cluster.id"]
        for node in facts.get("nodes", {}).values()
        for directory in node.get("log_dirs") or []
        if (directory.get("meta") or {}).get("cluster.id")
    }
    return reported or (stored.pop() if len(stored) == 1 else None)


def longest_log(nodes: Mapping[str, Mapping]) -> Mapping:
    """Return the summary of the metadata log that reaches furthest among nodes; {} when none could be read."""
    logs = [node["metadata_log"] for node in nodes.values() if usable_log(node)]
    return max(logs, key=lambda log: (log.get("last_epoch") or 0, log.get("log_end_offset") or 0), default={})


def registrations(facts: Mapping) -> Mapping[str, Mapping]:
    """Return the brokers' registrations in the quorum, by broker id as str, as the controllers' longest log has them.

    A broker's replica counts only where no controller's could be read: after a rollback brokers keep that of the
    earlier attempt, which may well be longer.
    """
    return (longest_log(controllers(facts)) or longest_log(facts["nodes"])).get("brokers") or {}


def controllers(facts: Mapping) -> dict[str, Mapping]:
    """Return the nodes of the group kafka_controller."""
    return {host: node for host, node in facts["nodes"].items() if node["role"] == "controller"}


def following(facts: Mapping) -> list[int]:
    """Return the ids of the brokers that follow the metadata log: those that run in migration or KRaft mode.

    The quorum's leader tells of one that went back to plain mode for five minutes more (LeaderState,
    OBSERVER_SESSION_TIMEOUT_MS).
    """
    nodes = [node for node in facts["nodes"].values() if node["role"] == "broker" and node.get("node_id") is not None]
    return sorted(node["node_id"] for node in nodes if node.get("running") in ("zk_migration", "kraft"))


def broker_ids(facts: Mapping) -> list[int]:
    """Return the ids of the brokers in the inventory, as far as they are known."""
    ids = (node.get("node_id") for node in facts["nodes"].values() if node["role"] == "broker")
    return sorted(one for one in ids if one is not None)
