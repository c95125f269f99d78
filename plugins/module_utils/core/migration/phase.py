# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phase of a cluster's migration, detected from collected facts alone (probes.cluster.cluster.collect). Pure.

Sources: KIP-866; Kafka 3.9's ZkMigrationState, KRaftMigrationDriver and ZkMigrationLeadershipState (the initial copy is
done when `/migration`'s kraft_metadata_offset is above 0). Nothing is remembered from earlier runs. Evidence that
contradicts itself, or a missing source of the whole cluster, is the phase `unknown`.
"""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    clean_up,
    lost_logs,
    restart_token,
    same_cluster,
    strays,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import (
    ClusterFacts,
    MetadataLog,
    NodeFacts,
    Quorum,
    RunLock,
)

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

# The phases of a migration in order. `kraft_native`, `reverting` and `unknown` are outside of it.
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
    """What blocks the next step: a stable id, what is seen, and what to do about it."""

    id: str
    text: str
    do: str


class Evidence(NamedTuple):
    """One value seen, and its source."""

    what: str
    value: object
    source: str


class PhaseResult(NamedTuple):
    """`steps` is filled for `reverting` alone: what a rollback has done and has still to do, in order."""

    phase: str
    blocks: list[Block]
    evidence: list[Evidence]
    steps: list[dict]


def detect(facts: ClusterFacts) -> PhaseResult:
    """Return the phase, its evidence and what blocks the next step."""
    seen = _Seen(facts)
    blocks: list[Block] = []
    phases = {_phase(seen, assumed) for assumed in (BROKER_MODES if seen.modeless else (None,))}
    phase, why = phases.pop() if len(phases) == 1 else (UNKNOWN, _modeless_text(seen))
    if phase == UNKNOWN:
        known = {_STALE: lambda: _stale(facts), _SKIPPED: _skipped}
        blocks.append(known[why]() if why in known else Block("unknown", why, _LOOK))
    blocks += _blocks(seen, phase)
    return PhaseResult(phase, blocks, _evidence(seen), _revert_steps(seen) if phase == REVERTING else [])


_LOOK = (
    "read the evidence that `status` prints, fix what contradicts, and run again. Until then no run changes anything"
)
_STALE = "migration_stale"
_SKIPPED = "copy_skipped"


def _stale(facts: ClusterFacts) -> Block:
    return Block(
        "migration_stale",
        "/migration says that the initial copy is done (kraft_metadata_offset > 0), yet brokers run under ZooKeeper's "
        "controller. A new quorum would skip the copy and delete topics, ACLs and configs in ZooKeeper (QS-PHASE-008)",
        clean_up.migration_znode(facts),
    )


def _skipped() -> Block:
    return Block(
        "copy_skipped",
        "/migration says that the initial copy is done, yet the KRaft controllers' log has none. The controllers "
        "delete in ZooKeeper what their log lacks: topics, ACLs and configs (QS-PHASE-017)",
        "see at once what was deleted: run quorumshift.kafka.restore_zookeeper. It changes nothing without its token",
    )


def _restoring(restore: RunLock) -> Block:
    end = f'it ended at "{restore["how"]}"' if restore["closed"] else "it is at work, or was interrupted"
    return Block(
        "restore_unfinished",
        f"brokers are down for a restore, {run_lock.holder(restore)}: {end} (QS-PHASE-013)",
        "start no broker or controller by hand. When no process of that run is left, repeat its command: "
        "quorumshift.kafka.restore_zookeeper",
    )


_FIRST_WITH_MIGRATIONS = 8  # MetadataVersion.IBP_3_4_IV0 (isMigrationSupported)


class _Seen:
    """The facts, reduced to what the rules use."""

    def __init__(self, facts: ClusterFacts):
        self.facts = facts
        self.nodes: Mapping[str, NodeFacts] = facts.get("nodes", {})
        self.zookeeper: Mapping = facts.get("zookeeper", {})
        self.quorum: Quorum = facts.get("quorum", {})
        self.brokers = {host: node for host, node in self.nodes.items() if node["role"] == "broker"}
        self.controllers = {host: node for host, node in self.nodes.items() if node["role"] == "controller"}
        self.modes = {host: node.get("running") or node.get("next") for host, node in self.brokers.items()}
        self.modeless = [host for host, mode in self.modes.items() if mode not in BROKER_MODES]
        self.logs = metadata_logs(self.controllers.values())
        self.log = longest_log(self.controllers)
        self.state = self.log.get("zk_migration_state")
        controller = self.zookeeper.get("controller") or {}
        self.owner = None
        if controller.get("exists"):
            self.owner = "zookeeper" if controller.get("ephemeral") else "kraft"
        migration = self.zookeeper.get("migration") or {}
        self.migration_malformed = migration.get("malformed")
        self.offset = migration.get("kraft_metadata_offset") if migration.get("exists") else None

    def knows_no_migration(self) -> bool:
        """Return whether the log cannot have a state of a migration.

        A metadata.version below 3.4-IV0 has no record of it, and Kafka lowers none across it. A controller of Kafka 4
        or later drops the state from the log with its next checkpoint.
        """
        if (self.log.get("metadata_version") or _FIRST_WITH_MIGRATIONS) < _FIRST_WITH_MIGRATIONS:
            return True
        found = [releases.parse_release(node.get("version") or "") for node in self.controllers.values()]
        return any(release is not None and release > releases.WANTED for release in found)

    def joining(self) -> list[str]:
        """Return the ids of the brokers that run, or while they are down will start, in migration mode."""
        return [str(self.brokers[host].get("node_id")) for host, mode in self.modes.items() if mode == "zk_migration"]


def metadata_logs(nodes: Iterable[NodeFacts]) -> list[MetadataLog]:
    """Return the metadata logs of nodes, without those that could not be read."""
    logs = (node.get("metadata_log") for node in nodes)
    return [log for log in logs if log and not log.get("error")]


def _phase(seen: _Seen, assumed: str | None) -> tuple[str, str]:
    """Return (phase, reason of `unknown`). `assumed` is taken for each mode that was not seen."""
    modes = {assumed if host in seen.modeless else mode for host, mode in seen.modes.items()}
    if not modes:
        return UNKNOWN, "the inventory's group kafka_broker is empty (QS-PHASE-001)"
    if modes == {"kraft"} and (seen.state == "NONE" or (seen.state is None and seen.knows_no_migration())):
        return KRAFT_NATIVE, ""
    if seen.state == "POST_MIGRATION":
        return _detect_under_final(seen, modes)
    if any(node.get("service", {}).get("masked") for node in seen.controllers.values()):
        return REVERTING, ""
    if not seen.zookeeper.get("reached"):
        return UNKNOWN, f"ZooKeeper could not be read: {seen.zookeeper.get('error', 'no reason given')} (QS-PHASE-001)"
    if seen.owner == "kraft":
        return _detect_under_kraft(seen, modes)
    return _detect_under_zookeeper(seen, modes)


def _detect_under_final(seen: _Seen, modes: set) -> tuple[str, str]:
    controllers = {host: _controller_modes(node) for host, node in seen.controllers.items()}
    if modes != {"kraft"} or any(reported - {"controller_final"} for reported in controllers.values()):
        return FINALIZING, ""
    blind = sorted(host for host, reported in controllers.items() if not reported)
    if blind:
        return (
            UNKNOWN,
            f"neither mode nor file of {', '.join(blind)} could be read, so not every controller is known to "
            "be final (QS-PHASE-001)",
        )
    return FINALIZED, ""


def _detect_under_kraft(seen: _Seen, modes: set) -> tuple[str, str]:
    if "zk" in modes:
        plain = sorted(host for host, mode in seen.modes.items() if mode == "zk")
        return (
            UNKNOWN,
            f"/controller is KRaft's, yet {', '.join(plain)} run or will start in plain ZooKeeper mode (QS-PHASE-001)",
        )
    if seen.offset is None and not seen.migration_malformed:
        return UNKNOWN, "/controller is KRaft's, yet /migration does not exist (QS-PHASE-001)"
    if (seen.offset or -1) <= 0:
        if "kraft" in modes:
            return (
                UNKNOWN,
                "/migration says that the initial copy is not done, yet brokers run or will start in KRaft "
                "mode (QS-PHASE-001)",
            )
        return COPYING, ""
    if not seen.logs:
        return (
            UNKNOWN,
            "no controller's metadata log could be read, and only it shows whether the migration is "
            "over (QS-PHASE-001)",
        )
    if seen.state == "PRE_MIGRATION":
        return UNKNOWN, _SKIPPED
    if seen.state != "MIGRATION":
        return (
            UNKNOWN,
            f"/migration says that the initial copy is done, the controllers' log says {seen.state} (QS-PHASE-001)",
        )
    if modes == {"kraft"}:
        leaving = any("controller_final" in _controller_modes(node) for node in seen.controllers.values())
        # The log has how a controller that does not answer registered last
        leaving |= any(not reported["zk_migration_ready"] for reported in (seen.log.get("controllers") or {}).values())
        return (FINALIZING if leaving else DUAL_WRITE), ""
    return HYBRID, ""


def _detect_under_zookeeper(seen: _Seen, modes: set) -> tuple[str, str]:
    if (seen.offset or -1) > 0:
        return UNKNOWN, _STALE
    if "kraft" in modes:
        return UNKNOWN, "/controller is not KRaft's, yet brokers run or will start in KRaft mode (QS-PHASE-001)"
    if seen.state == "MIGRATION":
        return (
            UNKNOWN,
            "the controllers' log has the initial copy committed, yet /controller is not KRaft's (QS-PHASE-001)",
        )
    if "zk_migration" in modes:
        return BROKERS_JOINING, ""
    if not any(_has_begun(node) for node in seen.controllers.values()):
        return ZK, ""
    return (
        CONTROLLERS_STARTING
        if check_quorum_ready(seen.controllers, seen.quorum, seen.log, seen.offset)
        else CONTROLLERS_READY
    ), ""


def check_quorum_ready(
    controllers: Mapping[str, NodeFacts], quorum: Quorum, log: Mapping, offset: int | None, joining: Iterable[str] = ()
) -> list[str]:
    """Return what a quorum in pre-migration still lacks, as sentences; nothing when it is ready for the brokers.

    `joining`: ids of the brokers that run or will start in migration mode, which may be registered already. An old
    registration of any other broker counts for the trigger all the same (KRaftMigrationDriver, WAIT_FOR_BROKERS).

    Both the tag in every controller's ApiVersions and the registrations in the log are checked: with a dynamic quorum
    the migration driver's own check is vacuous (QuorumFeatures, an empty set of voter ids).
    """
    lacks = []
    for host, node in sorted(controllers.items()):
        if node.get("running") != "controller_migration":
            lacks.append(
                f"{host} does not answer as a controller in migration mode: "
                f"{node.get('running_error') or node.get('running') or 'down'} (QS-PHASE-015)"
            )
    if not quorum.get("reached"):
        return [*lacks, "no controller answers as the quorum's leader (QS-PHASE-015)"]
    voters = quorum.get("voters") or []
    if len(voters) != len(controllers):
        lacks.append(
            f"the quorum has {len(voters)} voters, the group kafka_controller {len(controllers)} hosts (QS-PHASE-015)"
        )
    behind = [str(voter["id"]) for voter in voters if voter["log_end_offset"] < quorum["high_watermark"]]
    if behind:
        lacks.append(
            f"voter {', '.join(behind)} is behind the high watermark {quorum['high_watermark']} (QS-PHASE-015)"
        )
    if log.get("zk_migration_state") != "PRE_MIGRATION":
        lacks.append(f"the metadata log's state is {log.get('zk_migration_state')}, not PRE_MIGRATION (QS-PHASE-015)")
    for node in controllers.values():
        messages = (log.get("controllers") or {}).get(str(node.get("node_id")))
        if not (messages and messages.get("zk_migration_ready")):
            lacks.append(
                f"controller {node.get('node_id')} is not registered as ready for the migration (QS-PHASE-015)"
            )
    if offset != -1:
        lacks.append(f"/migration's kraft_metadata_offset is {offset}, not -1 (QS-PHASE-015)")
    plain = sorted(set(log.get("brokers") or {}) - set(joining))
    if plain:
        lacks.append(
            f"brokers {', '.join(plain)} are registered already, though they run plain ZooKeeper mode (QS-PHASE-015)"
        )
    return lacks


def find_left_registered(facts: ClusterFacts) -> list[int]:
    """Return the ids of brokers that are registered in the quorum and run in plain mode, before the initial copy. A
    broker that reverted leaves its registration, and an old one counts for the trigger (see `check_quorum_ready`)."""
    seen = _Seen(facts)
    if seen.state != "PRE_MIGRATION" or seen.owner != "zookeeper" or seen.offset != -1:
        return []
    registered = seen.log.get("brokers") or {}
    plain = [node for node in seen.brokers.values() if {node.get("running"), node.get("next")} - {None} == {ZK}]
    return sorted(ids(node for node in plain if str(node.get("node_id")) in registered))


def find_unfinished(facts: ClusterFacts) -> list[str]:
    """Return the hosts with an unfinished restart: its worker is gone or still at work, or it failed and the broker is
    down. Controllers that are being brought up are not among them: that step continues by itself."""
    hosts = []
    rollback = any((node.get("service") or {}).get("masked") for node in controllers(facts).values())
    for host, node in sorted(facts["nodes"].items()):
        node_restart = node.get("node_restart") or {}
        if rollback and node.get("next") != ZK:
            continue  # the rollback restarts it: its quorum is masked for good
        if (
            not node_restart.get("id")
            or node_restart.get("kind") == "controller"
            or (node.get("service") or {}).get("masked")
        ):
            continue
        down = node["role"] == "broker" and not node.get("running")
        if not node_restart.get("outcome") or (node_restart["outcome"] == "failed" and down):
            hosts.append(host)
    return hosts


def find_startable(facts: ClusterFacts, phase: str) -> list[str]:
    """Return the hosts of controllers that are down, as the host itself says, and were formatted before. A run starts
    them, in the mode of their files, before a gate waits for them.

    Before the initial copy a start could begin it, so the quorum must have its leader already. Then it needs no other.
    """
    if phase not in (BROKERS_JOINING, COPYING, HYBRID, DUAL_WRITE, FINALIZING, FINALIZED) or find_restoring(facts):
        return []
    if phase in (BROKERS_JOINING, COPYING) and not facts["quorum"].get("reached"):
        return []
    return [
        host for host, node in sorted(controllers(facts).items()) if not node.get("running") and _is_startable(node)
    ]


def _is_startable(node: NodeFacts) -> bool:
    service = node.get("service")
    if not (node.get("reached") and service) or service.get("masked") or not restart_token.is_stopped(service):
        return False
    begun = any(directory.get("meta") for directory in node.get("log_dirs") or [])
    return begun and str(node.get("next")).startswith("controller_")


def find_restoring(facts: ClusterFacts) -> RunLock | None:
    """Return the newest run lock where it is that of a restore at work, interrupted or failed, with brokers down or
    masked: they are stopped on purpose, while ZooKeeper is restored in part. None otherwise."""
    newest = run_lock.find_newest(facts["nodes"], cluster_id(facts))
    if not newest or newest["direction"] != run_lock.RESTORE or run_lock.has_ended_well(newest):
        return None
    brokers = [node for node in facts["nodes"].values() if node["role"] == "broker"]
    down = any(
        node.get("reached") and (not node.get("running") or (node.get("service") or {}).get("masked"))
        for node in brokers
    )
    return newest if down else None


def find_silent_controllers(facts: ClusterFacts) -> list[str]:
    """Return a sentence for each controller that does not answer."""
    return [
        f"controller {host} does not answer: {node.get('running_error') or node.get('error') or 'down'}"
        for host, node in sorted(controllers(facts).items())
        if not node.get("running")
    ]


def _controller_modes(node: NodeFacts) -> set:
    """Return the modes in which a controller runs and will start, those that were seen."""
    return {node.get("running"), node.get("next")} - {None}


def _has_begun(node: NodeFacts) -> bool:
    formatted = any(directory.get("meta") for directory in node.get("log_dirs", []))
    return formatted or bool(node.get("metadata_log")) or bool(node.get("running"))


def _blocks(seen: _Seen, phase: str) -> list[Block]:
    blocks = [Block("clusters_differ", text, same_cluster.CORRECT) for text in same_cluster.troubles(seen.facts)]
    restore = find_restoring(seen.facts)
    if restore:
        blocks.append(_restoring(restore))
    by_error: dict[str | None, list[str]] = {}
    for host, node in sorted(seen.nodes.items()):
        if not node.get("reached"):
            by_error.setdefault(node.get("error"), []).append(host)
    for error, hosts in by_error.items():
        verb = "was" if len(hosts) == 1 else "were"
        blocks.append(
            Block(
                "unreached",
                f"{advice.format_names(hosts)} {verb} not reached: {error} (QS-PHASE-006)",
                "fix that and run again",
            )
        )
    for host, node in sorted(seen.nodes.items()):
        if not node.get("reached"):
            continue
        if node["role"] == "broker" and not node.get("running") and not restore:
            why = f"{node.get('running_error')}{advice.quote_last_error(node)}"
            blocks.append(
                Block(
                    "broker_down",
                    f"broker {host} does not answer: {why} (QS-PHASE-012)",
                    "start it, in the mode that its file has",
                )
            )
        elif node.get("running") and node.get("next") and node["running"] != node["next"]:
            blocks.append(
                Block(
                    "file_differs",
                    f"{host} runs in mode {node['running']}, its file starts it in mode {node['next']} (QS-PHASE-014)",
                    "run again: the rolling restart restarts it",
                )
            )
    for find in (strays.find_lost, strays.find_left):
        blocks += [Block("stray_directories", *finding) for finding in find(seen.facts)]
    begun = phase in (CONTROLLERS_READY, BROKERS_JOINING, COPYING, HYBRID, DUAL_WRITE, FINALIZED, KRAFT_NATIVE)
    down = [host for host, node in sorted(seen.controllers.items()) if not node.get("running")]
    lost = lost_logs.find(seen.controllers, down if begun else [])
    if lost.hosts:
        do = lost_logs.advise(seen.facts, lost, cluster_id(seen.facts) or "CLUSTER_ID")
        text = f"controllers down, without a metadata log: {', '.join(lost.hosts)} (QS-PHASE-011)"
        blocks.append(Block(lost_logs.BLOCK, text, do))
        down = [host for host in down if host not in lost.hosts]
    if begun and down:
        unit = next((unit for host in down if (unit := (seen.controllers[host].get("service") or {}).get("name"))), "")
        do = f"start them. On each: systemctl start {unit or 'SERVICE'}"
        if not set(down) - set(find_startable(seen.facts, phase)):
            do = "run again: the run starts them. They have the metadata"
        blocks.append(Block("controllers_down", f"controllers down: {', '.join(down)} (QS-PHASE-011)", do))
    if phase in (ZK, CONTROLLERS_STARTING, CONTROLLERS_READY, BROKERS_JOINING) and seen.owner is None:
        blocks.append(
            Block(
                "no_controller",
                "no broker owns /controller in ZooKeeper (QS-PHASE-010)",
                "wait for an election, or start brokers",
            )
        )
    if seen.migration_malformed:
        blocks.append(
            Block(
                "migration_malformed",
                f"/migration is malformed: {seen.migration_malformed} (QS-PHASE-009)",
                clean_up.migration_znode(seen.facts),
            )
        )
    if phase == COPYING and seen.state == "MIGRATION":
        blocks.append(
            Block(
                "copy_not_acknowledged",
                "the initial copy is committed in the metadata log, and /migration does not have its "
                "offset (QS-PHASE-018)",
                "read the active controller's log: it cannot write to ZooKeeper",
            )
        )
    metrics = sorted(seen.log.get("client_metrics") or {})
    if metrics and phase in (COPYING, HYBRID, DUAL_WRITE, FINALIZING) and seen.state == "MIGRATION":
        blocks.append(
            Block(
                "client_metrics",
                f"client metrics are configured ({', '.join(metrics)}). ZooKeeper cannot store them: the next active "
                "controller will stop writing to ZooKeeper (QS-PHASE-020)",
                "delete them until the migration is finalized: kafka-client-metrics.sh --delete --name NAME",
            )
        )
    if phase in (CONTROLLERS_STARTING, BROKERS_JOINING):
        left = [str(broker_id) for broker_id in find_left_registered(seen.facts)]
        if left:
            blocks.append(
                Block(
                    "left_registered",
                    f"broker {', '.join(left)} is registered in the quorum, though it runs or will start in plain "
                    "ZooKeeper mode (QS-PHASE-016)",
                    "run again: the run removes the registration first",
                )
            )
        blocks += [
            Block("quorum_not_ready", text, "wait, or read that controller's log")
            for text in check_quorum_ready(
                seen.controllers, seen.quorum, seen.log, seen.offset, [*seen.joining(), *left]
            )
        ]
    if phase in (COPYING, HYBRID):
        blocks += [
            Block(
                "flag_missing",
                f"{host} runs or will start without the migration flag, while brokers run in a ZooKeeper mode. As the "
                "quorum's leader it would end the migration for them (QS-PHASE-021)",
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
                        f"{host} runs in mode {mode} under a finalized quorum and serves stale metadata (QS-PHASE-022)",
                        "restart it in KRaft mode now: run quorumshift.kafka.migrate",
                    )
                )
    return blocks


def _evidence(seen: _Seen) -> list[Evidence]:
    zookeeper = seen.zookeeper
    evidence = [
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
        evidence.append(
            Evidence(f"mode of {host}", node.get("running") or node.get("running_error") or "not asked", "ApiVersions")
        )
        evidence.append(
            Evidence(
                f"mode of {host} at its next start",
                node.get("next") or node.get("error"),
                (node.get("file") or {}).get("path") or "its file",
            )
        )
    return evidence


class RevertStep:
    """Steps of a rollback that others wait for, by the names that `status` prints."""

    MIGRATION_GONE = "/migration gone"
    BROKERS_PLAIN = "brokers plain"


def _revert_steps(seen: _Seen) -> list[dict]:
    """Return the steps of a rollback; one that could not be read is not done."""
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
    return (
        f"the mode of {', '.join(sorted(seen.modeless))} could not be read, and the phase depends on it (QS-PHASE-001)"
    )


def cluster_id(facts: ClusterFacts) -> str | None:
    """Return the cluster's id: ZooKeeper's, or where it cannot be read the one in the nodes' meta.properties."""
    reported = (facts.get("zookeeper", {}).get("cluster_id") or {}).get("value")
    directories = [log_dir for node in facts.get("nodes", {}).values() for log_dir in node.get("log_dirs") or []]
    stored = {(directory.get("meta") or {}).get("cluster.id") for directory in directories} - {None, ""}
    return reported or (stored.pop() if len(stored) == 1 else None)


def longest_log(nodes: Mapping[str, NodeFacts]) -> MetadataLog:
    """Return the summary of the longest metadata log among nodes; {} when none could be read."""
    logs = metadata_logs(nodes.values())
    logs.sort(key=lambda log: (log.get("last_epoch") or 0, log.get("log_end_offset") or 0))
    return logs[-1] if logs else {}


def registrations(facts: ClusterFacts) -> Mapping[str, Mapping]:
    """Return the brokers' registrations in the controllers' longest log, by broker id as str.

    A broker's replica of the log counts only where no controller's could be read: after a rollback brokers keep that of
    the earlier attempt, which may be longer.
    """
    return (longest_log(controllers(facts)) or longest_log(facts["nodes"])).get("brokers") or {}


def controllers(facts: ClusterFacts) -> dict[str, NodeFacts]:
    """Return the nodes of the group kafka_controller."""
    return {host: node for host, node in facts["nodes"].items() if node["role"] == "controller"}


def find_followers(facts: ClusterFacts) -> list[int]:
    """Return the ids of the brokers that follow the metadata log: those that run in migration or KRaft mode.

    The quorum's leader lists a broker that went back to plain mode for five more minutes (LeaderState,
    OBSERVER_SESSION_TIMEOUT_MS).
    """
    nodes = [node for node in facts["nodes"].values() if node["role"] == "broker"]
    return sorted(ids(node for node in nodes if node.get("running") in ("zk_migration", "kraft")))


def broker_ids(facts: ClusterFacts) -> list[int]:
    """Return the known ids of the brokers in the inventory."""
    return sorted(ids(node for node in facts["nodes"].values() if node["role"] == "broker"))


def ids(nodes: Iterable[NodeFacts]) -> list[int]:
    """Return the known ids of nodes."""
    found = (node.get("node_id") for node in nodes)
    return [node_id for node_id in found if node_id is not None]
