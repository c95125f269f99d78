# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: what ZooKeeper holds."""

from __future__ import annotations

from typing import Iterable

from .. import clean_up, kraft_config, zk_controller, zk_metadata
from ..advice import shown
from .facts import Facts, Finding, partitions_of, values_of

OLDEST_ZOOKEEPER = (3, 5)
"""The oldest server of which Kafka's docs say that the client of 3.9, ZooKeeper 3.8, speaks to it."""

NOTIFICATIONS = 1000
"""From here on they cost: 1,245 of them, with three changes a second, kept a cluster of three brokers busy."""

SLOW_S = 30  # of writing in a restart: half of what a stop without it is given (services.STOP_S)


def zookeeper(facts: Facts) -> Iterable[Finding]:
    """ZooKeeper can be read, and it is the brokers' own."""
    ours = facts.zookeeper.get("connect")
    theirs = {host: values_of(node).get("zookeeper.connect") for host, node in facts.brokers.items()}
    for host, text in sorted(theirs.items()):
        if ours and text and _chroot(text) != _chroot(ours):
            yield Finding(
                f"quorumshift_zookeeper_connect has the chroot {_chroot(ours) or '/'}, zookeeper.connect of {host} has "
                f"{_chroot(text) or '/'}",
                f"set quorumshift_zookeeper_connect to {text}",
            )
            return
    if not facts.zookeeper.get("reached"):
        yield Finding(
            f"ZooKeeper could not be read: {facts.zookeeper.get('error')}",
            "mend the connection, quorumshift_zookeeper_connect or quorumshift_zookeeper_client",
        )
    elif facts.metadata is None:
        yield Finding(
            f"ZooKeeper's metadata could not be read: {facts.metadata_error}",
            "mend the connection or quorumshift_zookeeper_client, or raise quorumshift_probe_timeout",
        )


def _chroot(connect: str) -> str:
    return connect.partition("/")[2].strip().rstrip("/") and "/" + connect.partition("/")[2].strip().rstrip("/")


def stale_migration(facts: Facts) -> Iterable[Finding]:
    """No trace of an earlier attempt in ZooKeeper: with it the copy is skipped and ZooKeeper's metadata deleted."""
    migration = facts.zookeeper.get("migration") or {}
    do = clean_up.migration_znode(facts.cluster)
    if migration.get("malformed"):
        yield Finding(f"/migration is malformed: {migration['malformed']}", do)
    elif (migration.get("kraft_metadata_offset") or -1) > 0:
        yield Finding(
            f"/migration says that a copy was done up to offset {migration['kraft_metadata_offset']}, yet the cluster "
            "runs in ZooKeeper mode: a new quorum would skip the copy and delete topics, ACLs and configs in ZooKeeper",
            do,
        )


def controller_epoch(facts: Facts) -> Iterable[Finding]:
    """/controller_epoch is above every partition state's, and as the controller's election left it: else ZooKeeper's
    controller elects no leader, now or after a way back."""
    if not facts.zookeeper.get("reached"):
        return
    epoch = facts.zookeeper.get("controller_epoch") or {}
    highest = zk_metadata.max_controller_epoch(facts.metadata) if facts.metadata else None
    above = f"set it to {(highest or 0) + 1} with zookeeper-shell.sh, then restart the broker that is the controller"
    if epoch.get("malformed"):
        yield Finding(f"/controller_epoch is malformed: {epoch['malformed']}", above)
    elif not epoch.get("exists"):
        yield Finding(
            "/controller_epoch does not exist", "restart the broker that is the controller: it is written then"
        )
    elif highest is not None and epoch["value"] < highest:
        yield Finding(
            f"/controller_epoch is {epoch['value']}, a partition's state has {highest}: no leader is elected there",
            above,
        )
    fenced = zk_controller.fenced_sentence(facts.zookeeper)
    if fenced:
        yield Finding(fenced, "delete /controller with zookeeper-shell.sh: a broker is elected that can")


def notifications(facts: Facts) -> Iterable[Finding]:
    """Few change notifications: a broker reads all of a directory again with each new one."""
    for directory, count in sorted(facts.notifications.items()):
        if count >= NOTIFICATIONS:
            yield Finding(
                f"ZooKeeper has {count} change notifications in {directory}. Each new one makes every broker read all "
                "of them again (ZkNodeChangeNotificationListener), which slows restarts and requests",
                "find the client that changes configs, quotas, users, ACLs or tokens all the time, and pause it 15 "
                "minutes before the migration: that is how long a notification stays",
            )


def ensemble(facts: Facts) -> Iterable[Finding]:
    """Every server of the connect string serves, and is one that Kafka's client speaks to."""
    lost = {server: one["error"] for server, one in sorted(facts.ensemble.items()) if one.get("error")}
    if lost:
        reported = "; ".join(f"{server}: {error}" for server, error in lost.items())
        yield Finding(
            f"{len(lost)} of {len(facts.ensemble)} servers of ZooKeeper do not serve ({reported})",
            "start them, or open the way from the probe host to them: until the migration is done, losing ZooKeeper "
            "stops it and the way back",
            warns=True,
        )
    alone = [server for server, one in sorted(facts.ensemble.items()) if one.get("mode") == "standalone"]
    if alone and len(facts.ensemble) > 1:
        yield Finding(
            f"{shown(alone)} of {len(facts.ensemble)} servers in the connect string is a ZooKeeper of its own, no "
            "member of an ensemble",
            "correct the connect string, or the server's configuration: it holds other data than the others",
        )
    for server, one in sorted(facts.ensemble.items()):
        version = one.get("version")
        if version and tuple(version) < OLDEST_ZOOKEEPER:
            yield Finding(
                f"{server} is ZooKeeper {'.'.join(map(str, version))}",
                f"upgrade it to {'.'.join(map(str, OLDEST_ZOOKEEPER))} at least, which Kafka 3.9's client wants",
            )


def latency(facts: Facts) -> Iterable[Finding]:
    """ZooKeeper answers fast enough for sessions to live and for what a restart changes to be written.

    A restart changes the state of each of the broker's partitions twice, when its leaders move away and when its
    replicas are back; Kafka has `zookeeper.max.in.flight.requests` of them under way (KafkaZkClient).
    """
    values = next((values_of(node) for node in facts.brokers.values() if values_of(node)), {})
    session_ms = _number(values.get("zookeeper.session.timeout.ms"), 18000)
    in_flight = _number(values.get("zookeeper.max.in.flight.requests"), 10)
    most = max((partitions_of(node) for node in facts.brokers.values()), default=0)
    for server, one in sorted(facts.ensemble.items()):
        average, longest = one.get("latency_ms") or (0, 0)
        written_s = 2 * most * average / in_flight / 1000
        if longest > session_ms / 3:
            yield Finding(
                f"{server} took {longest / 1000:.1f} s to answer once since it was started; sessions of brokers end "
                f"after {session_ms / 1000:g} s without an answer",
                "see why (its log says `fsync-ing the write ahead log` of slow disks), and reset the figure with the "
                "four letter word srst: a broker whose session ends has its leaders moved away",
            )
        elif written_s > SLOW_S:
            yield Finding(
                f"{server} takes {average:g} ms to answer on average: what the restart of a broker with {most} "
                f"partitions changes takes {written_s:.0f} s to be written",
                "see why: a disk of its own for dataLogDir helps most. The rolls take that much longer, a broker each",
            )


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.strip().isdigit() and int(text) else default


def unreadable(facts: Facts) -> Iterable[Finding]:
    """ZooKeeper holds nothing that the copy would fail on, or lose."""
    for problem in (facts.metadata or {}).get("problems", []):
        yield Finding(
            f"ZooKeeper {problem['path']}: {problem['reason']}",
            "mend or remove it: the copy would fail on it, or lose it",
        )


def encoder_secret(facts: Facts) -> Iterable[Finding]:
    """Encrypted dynamic configs can be decrypted by the controllers."""
    if facts.metadata is None:
        return
    encrypted = sorted(
        f"{key} of broker {entity or 'default'}"
        for entity, values in facts.metadata["configs"]["broker"].items()
        for key, value in values.items()
        if isinstance(value, dict)
    )
    if not encrypted:
        return
    for host, node in sorted(facts.brokers.items()):
        if values_of(node) and kraft_config.ENCODER_SECRET not in values_of(node):
            yield Finding(
                f"ZooKeeper holds encrypted configs ({shown(encrypted, 3)}), and {host} has no "
                f"{kraft_config.ENCODER_SECRET}",
                f"set {kraft_config.ENCODER_SECRET} as where they were written: controllers would copy ciphertext",
            )
