# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapes of what probes read and core decides on. All of them are JSON-able.

node.node.collect makes NodeFacts on a host, action plugins add where it is reached, and cluster.cluster.collect adds
what the running cluster says and makes ClusterFacts. Times are in epoch seconds, sizes in bytes. A key that is missing
was not read; None means that there is nothing.
"""

from __future__ import annotations

from typing import Any, Mapping, TypedDict


class Service(TypedDict, total=False):
    """A unit as systemd shows it (host.service.read_state). Without systemd the first five keys alone."""

    manager: str
    name: str
    active: bool
    main_pid: int  # 0 while it is down
    masked: bool
    exists: bool
    sub_state: str
    active_state: str
    result: str
    restart: str
    timeout_stop: str
    unit_file_state: str
    starts_with: str | None
    invocation: str
    restarts: int
    started_at: float | None


class Clock(TypedDict, total=False):
    """A host's clock since its boot (probes.host.clock). `error` alone where it cannot be read."""

    boot_id: str
    uptime_s: float
    error: str


class Host(TypedDict):
    """A host without Kafka (probes.host.host.read); `first_process`: the name of process 1; `systemd`: why it cannot be
    used, '' if it can."""

    system: str
    machine_id: str | None
    first_process: str | None
    systemd: str


class PropertiesFile(TypedDict, total=False):
    """A node's properties file; secrets are sealed under the run's key (seal.seal)."""

    path: str
    exists: bool
    sha256: str | None
    error: str | None
    mode: str | None  # in which it starts a node: kraft_config.mode_at_next_start
    properties: dict[str, str]
    variables: list[dict]  # of config providers in the values: config_providers.Variable
    resolved: dict[str, str]  # the values with these variables, as the node gets them


class LogDirectory(TypedDict, total=False):
    """One log directory; `meta` is meta.properties."""

    path: str
    exists: bool
    in_use: bool | None
    meta: dict[str, str] | None
    error: str | None
    partitions: int
    stray: list[str]
    free_bytes: int
    total_bytes: int
    empty: bool


class BrokerRegistration(TypedDict):
    """A broker in the metadata log (RegisterBrokerRecord and its changes)."""

    epoch: int
    incarnation_id: str
    is_migrating_zk_broker: bool
    fenced: bool
    in_controlled_shutdown: bool
    end_points: list[dict]
    rack: str | None
    log_dirs: list[str]
    features: dict[str, list[int]]
    registered_offset: int
    changed_offset: int


class ControllerRegistration(TypedDict):
    """A controller in the metadata log (RegisterControllerRecord)."""

    incarnation_id: str
    zk_migration_ready: bool
    end_points: list[dict]
    features: dict[str, list[int]]
    registered_offset: int


class MetadataLog(TypedDict, total=False):
    """The summary of a metadata log (formats.metadata.metadata_summary). `error` alone where it cannot be read.

    `log_end_offset`: exclusive, of what was read. `last_no_op_or_any_timestamp_ms`: of the last record of any type;
    `last_change_offset`: of the last record that is no NoOp; None for an empty log. `zk_migration_state`: KIP-866's
    name of it, None without such a record. `client_metrics`: {name: [key]} of KIP-714's configs.
    `scram_losses`: {restart: what this node loses when it loads the log, new: what a broker without a log does}, each
    as scram_loading.losses. `checkpoint`: the newest one, its offset, epoch, bytes, and time by the host's clock.
    `zk_migration_transactions`: metadata_log.Transaction as a dict, of those of the initial copy.
    """

    dir: str
    error: str
    quorum_state: dict | None
    log_start_offset: int
    log_end_offset: int
    last_epoch: int
    last_no_op_or_any_timestamp_ms: int | None
    last_change_offset: int | None
    checkpoint: dict | None
    metadata_version: int | None
    zk_migration_state: str | None
    zk_migration_state_offset: int | None
    features: dict[str, int]
    brokers: dict[str, BrokerRegistration]
    controllers: dict[str, ControllerRegistration]
    scram_losses: dict[str, dict[str, list[str]]]
    client_metrics: dict[str, list[str]]
    open_transaction: dict | None
    zk_migration_transactions: list[dict]


class RunLock(TypedDict, total=False):
    """Who may act on a cluster, as one node keeps it (core.run.run_lock). `error` alone where it cannot be read."""

    number: int
    run: str
    direction: str
    target: str | None
    excluded: list[str]
    user: str
    host: str
    job: str | None
    process: dict | None
    since: float
    closed: bool
    how: str
    playbook: str  # the name of the one that the run is of
    given: dict[str, str]  # variables of its command line, which the command that repeats it gives again
    advice: str  # the next step that a failed run gave the operator; '' where its playbook is run again
    error: str


class RestartSpec(TypedDict, total=False):
    """What the worker of a restart needs (restart_worker.begin). `changes` or `content`, or neither for a repair.

    `kind`: migration.transitions.KINDS; `mode`: that the node is to run in; `changes`: {key: value, or None to remove
    it}; `content`: the whole file; `format`: argv that formats an empty log directory; `registered`: ids, as text, of
    the brokers registered in the quorum.
    """

    id: str
    kind: str | None
    mode: str | None
    run: str
    role: str
    node_id: int
    cluster_id: str
    state_dir: str
    service: str
    config_file: str
    changes: dict[str, str | None] | None
    content: dict[str, str] | None
    owner: str
    format: list[str] | None
    log_file: str
    kafka_home: str
    stop_timeout_s: float
    start_timeout_s: float
    registered: list[str]
    only_start: bool
    release: dict[str, str] | None
    run_key: str


class RestartStep(TypedDict):
    """One step of a restart, and when it was begun."""

    name: str
    at: float


class OldLayout(TypedDict):
    """Files of an earlier version, which kept one set for each host (host.host_state.find_old_layout). `service` and
    `config_file` are of the record of a restart among them, '' without one; `is_of_another`: whether that is
    another properties file than that of the node that asked; `is_held`: whether that restart is running."""

    path: str
    names: list[str]
    service: str
    config_file: str
    is_of_another: bool
    is_held: bool


class RestartRecord(TypedDict, total=False):
    """A node's record of its newest restart (restart_record.Record). `outcome` is None while it goes on; `unit` is the
    worker's, '' without systemd; `earlier`: what the node had before, where the restart changes a release or a file."""

    id: str
    kind: str
    mode: str
    run: str
    service: str
    config_file: str
    unit: str
    steps: list[RestartStep]
    outcome: str | None
    progress: str
    message: str
    changed: bool
    times: dict[str, float]
    diff: dict[str, str]
    earlier: dict[str, str | None]
    unclean_stop: str | None  # what the node's log says where its controlled shutdown failed
    ended_at: float


class Features(TypedDict):
    """What a running node supports, [lowest, highest] level of each feature; which finalized levels it serves, and at
    which epoch (KIP-584)."""

    supported: dict[str, list[int]]
    finalized: dict[str, int]
    epoch: int


class Pause(TypedDict):
    """Why no restart begins on a host: host.pause_file. `since` in seconds since 1970 by the host's clock."""

    path: str
    since: float
    why: str


class NodeFacts(TypedDict, total=False):
    """One broker or controller. Of a host that was not reached: role, reached, error, node_id and addresses.

    `copy`: the counts of the initial copy that a backup host keeps (host_state.COPY); `version`: of the running Kafka,
    or of the jars in its home while it is down; `log_dirs` without a properties file: the inventory's. `space`,
    `runs_with`, `starts_with`, `limits` and `memory` are what node.node reads, `paths` what the module node_facts
    returns.
    """

    role: str
    reached: bool
    error: str
    time: float
    asked: list[float]  # when, by the control node's clock, the reading was asked for and arrived
    hostname: str
    host: Host
    service: Service
    file: PropertiesFile
    runs_with: dict | None
    zookeeper_tls: dict[str, str]  # in the options of its JVM (kraft_config.zookeeper_tls); secrets are sealed
    starts_with: dict | None
    node_id: int | None
    log_dirs: list[LogDirectory]
    space: dict[str, dict | None]
    metadata_log: MetadataLog | None
    node_restart: RestartRecord | None
    copy: dict | None
    run_locks: dict[str, RunLock]  # by cluster id, as old_layout, journals and digest_keys
    old_layout: dict[str, OldLayout]
    journals: dict[str, dict]  # host_state.read_journal
    digest_keys: dict[str, str]  # sealed
    paused: Pause | None
    soak: dict[str, dict]  # the history of the soak that a backup host keeps, by cluster id (core.gates.soak)
    backups: dict[str, list[dict]]  # of ZooKeeper, {path, time}, the oldest first
    version: str | None
    last_error: str | None  # the newest in the node's own log (own_log.read_last_error)
    storage_tool: str  # the path of kafka-storage.sh, '' where there is none
    limits: dict | None
    memory: dict
    # added by action plugins
    clock: Clock  # the newest reading: a task may read it alone
    host_address: str
    address: str
    twice: bool
    paths: dict | None
    # added by probes.cluster.cluster.collect
    next: str | None
    running: str | None
    running_error: str
    running_reason: str  # that of socket_wire.Unreachable, or `answer`
    metadata_version: int | None
    features: Features
    lacking: list[str]  # requests of core.releases.oldest that a broker does not offer


class LastStart(TypedDict):
    """How long a node's last start took by its own log, and the stop before it, None if the log has none."""

    start_s: float
    stop_s: float | None


class Replica(TypedDict):
    """A voter or observer as the quorum's leader sees it (DescribeQuorum)."""

    id: int
    log_end_offset: int
    caught_up_ms: int


class Quorum(TypedDict, total=False):
    """The quorum as its leader describes it. `error` where no leader answers."""

    reached: bool
    error: str
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[Replica]
    observers: list[Replica]


class Partition(TypedDict):
    """A partition as brokers serve it; a leader of -1 is none."""

    leader: int
    replicas: list[int]
    isr: list[int]


Partitions = Mapping[str, Mapping[str, Partition]]
"""Partitions by topic and number; numbers are text as keys, as in JSON."""


class Topics(TypedDict, total=False):
    """The brokers' metadata (probes.cluster.topics.read). Broker ids are text as keys, as in JSON.

    `differ`: where brokers of different modes serve different in-sync replicas; `single`: partitions that have one
    replica without the excluded hosts, and more with them (core.rollback.excluded).
    """

    reached: bool
    error: str
    brokers: dict[str, str]
    controller_id: int
    cluster_id: str | None
    partitions: dict[str, dict[str, Partition]]
    differ: dict
    single: list[str]


class ZooKeeperFacts(TypedDict, total=False):
    """What ZooKeeper has of the migration (zookeeper.zookeeper.read_migration_znodes). `error` where it cannot be read.

    Each of the znodes is {exists, malformed (None, or the reason), ...its values}.
    """

    reached: bool
    error: str
    connect: str
    tls: bool
    zxid: int
    controller: dict[str, Any]
    controller_epoch: dict[str, Any]
    migration: dict[str, Any]
    cluster_id: dict[str, Any]
    broker_ids: dict[str, dict]
    delete_topics: list[str]
    reassign_partitions: dict[str, Any]
    preferred_replica_election: dict[str, Any]


class ClusterFacts(TypedDict, total=False):
    """Everything from which a phase is detected and a gate decided. `excluded`: hosts without which it was read."""

    time: float
    nodes: dict[str, NodeFacts]
    zookeeper: ZooKeeperFacts
    quorum: Quorum
    topics: Topics
    excluded: dict[str, NodeFacts]
