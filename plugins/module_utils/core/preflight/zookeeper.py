# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of ZooKeeper's servers and content."""

from __future__ import annotations

import re
import shlex
from typing import Iterable, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    clean_up,
    kraft_config,
    zk_controller,
    zk_metadata,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import (
    Facts,
    group_by_value,
    partitions_of,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK, PREFIX
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses, config_values

OLDEST_ZOOKEEPER = (3, 5)
"""The oldest server that Kafka's docs support for the client of 3.9, ZooKeeper 3.8."""

NOTIFICATIONS = 1000
"""Measured: 1,245 of them, with three changes a second, keep a cluster of three brokers busy."""

SLOW_S = 30  # seconds of writes in a restart: half of services.STOP_S


def zookeeper(facts: Facts) -> Iterable[Finding]:
    """Yield a ZooKeeper that cannot be read, or whose chroot is not the brokers'."""
    own = facts.zookeeper.get("connect")
    for host, connect in sorted(_connects(facts).items()):
        if "," in _chroot(connect):
            yield Finding(
                f"zookeeper.connect of {host} is {connect}: ZooKeeper takes all after its first slash for the chroot",
                "write the chroot once, after the last host. A cluster below a chroot with a comma cannot be moved",
            )
            return
        if own and _chroot(connect) != _chroot(own):
            yield Finding(
                f"quorumshift_zookeeper_connect has the chroot {_chroot(own) or '/'}, zookeeper.connect of {host} has "
                f"{_chroot(connect) or '/'}",
                f"set quorumshift_zookeeper_connect to {connect}",
            )
            return
    yield from _loopback(facts)
    yield from _tls_of_jvm(facts)
    if not facts.zookeeper.get("reached"):
        yield Finding(
            f"ZooKeeper could not be read: {facts.zookeeper.get('error')}",
            "fix the connection, quorumshift_zookeeper_connect or quorumshift_zookeeper_client",
        )
    elif facts.metadata is None:
        yield Finding(
            f"ZooKeeper's metadata could not be read: {facts.metadata_error}",
            "fix the connection or quorumshift_zookeeper_client, or raise quorumshift_probe_timeout",
        )


def _connects(facts: Facts) -> dict[str, str]:
    """Return the connect strings of the brokers that have one."""
    found = {host: config_values.get(values_of(node), "zookeeper.connect") for host, node in facts.brokers.items()}
    return {host: connect for host, connect in found.items() if connect}


def _chroot(connect: str) -> str:
    path = connect.partition("/")[2].strip().rstrip("/")
    return f"/{path}" if path else ""


def is_loopback(connect: str) -> bool:
    """Return whether a connect string has a server that is another one on each host."""
    try:
        return any(addresses.is_loopback(server.host) for server in addresses.parse_zookeeper_connect(connect).servers)
    except addresses.AddressError:
        return False


def _loopback(facts: Facts) -> Iterable[Finding]:
    """Yield a connect string for controllers that is of a host of its own, where they do not all reach ZooKeeper so."""
    own, given = facts.zookeeper.get("connect") or "", facts.controller_config.get("zookeeper.connect")
    connects = {"quorumshift_controller_config": str(given)} if given else _connects(facts)
    hosts = [host for host, connect in sorted(connects.items()) if is_loopback(connect)]
    paths = [node.get("paths") or {} for node in facts.controllers.values()]
    reached = [
        (tried_paths.get("tried") or {}).get("zookeeper")
        and not any(target["kind"] == "zookeeper" for target in tried_paths.get("failed") or [])
        for tried_paths in paths
    ]
    if not hosts or (reached and all(reached)):
        return
    named = own if own and not is_loopback(own) else "the addresses of all ZooKeeper servers, with the chroot"
    yield Finding(
        f"zookeeper.connect of {format_names(hosts)} is {connects[hosts[0]]}, which is another server on each host. "
        "Controllers would take it",
        f"set zookeeper.connect in quorumshift_controller_config to {named}. The brokers' files stay as they are",
    )


def _tls_of_jvm(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers with settings of ZooKeeper's TLS in the JVM's options. Controllers take those of the file."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for host, node in facts.brokers.items():
        file, of_jvm = values_of(node), node.get("zookeeper_tls") or {}
        if file and config_values.is_true({**of_jvm, **file}, "zookeeper.ssl.client.enable"):
            found[host] = tuple((key, value) for key, value in sorted(of_jvm.items()) if key not in file)
    for hosts, settings in group_by_value(found).items():
        if settings:
            lines = [f"{key}={MASK if value.startswith(PREFIX) else value}" for key, value in settings]
            yield Finding(
                f"{format_names(hosts)} has settings of ZooKeeper's TLS in the JVM's options, and controllers take "
                "those of "
                f"the file: {format_names([f'-D{kraft_config.ZOOKEEPER_TLS[key]}' for key, _value in settings], 3)}",
                f"add to the properties file of each broker, without a restart: {' '.join(lines)}",
            )


def stale_migration(facts: Facts) -> Iterable[Finding]:
    """Yield the /migration of an earlier attempt: KRaft would skip the initial copy and delete ZooKeeper's metadata."""
    migration = facts.zookeeper.get("migration") or {}
    do = clean_up.migration_znode(facts.cluster)
    if migration.get("malformed"):
        yield Finding(f"/migration is malformed: {migration['malformed']}", do)
    elif (migration.get("kraft_metadata_offset") or -1) > 0:
        yield Finding(
            f"/migration has offset {migration['kraft_metadata_offset']} of an earlier initial copy: a new quorum "
            "would skip the initial copy and delete topics, ACLs and configs in ZooKeeper",
            do,
        )


def controller_epoch(facts: Facts) -> Iterable[Finding]:
    """Yield a /controller_epoch with which ZooKeeper's controller elects no leader, now or after a rollback: below that
    of a partition state, or written since the controller's election."""
    if not facts.zookeeper.get("reached"):
        return
    epoch = facts.zookeeper.get("controller_epoch") or {}
    highest = zk_metadata.max_controller_epoch(facts.metadata) if facts.metadata else None
    connect = shlex.quote(facts.zookeeper.get("connect") or "ZOOKEEPER/CHROOT")
    set_epoch = f"zookeeper-shell.sh {connect} set /controller_epoch {(highest or 0) + 1}"
    raise_epoch = f"raise it, then restart the controller's broker: {set_epoch}"
    if epoch.get("malformed"):
        yield Finding(f"/controller_epoch is malformed: {epoch['malformed']}", raise_epoch)
    elif not epoch.get("exists"):
        yield Finding("/controller_epoch does not exist", "restart the controller's broker: the election writes it")
    elif highest is not None and epoch["value"] < highest:
        yield Finding(
            f"/controller_epoch is {epoch['value']}, a partition state has {highest}: the controller elects no leader "
            "there",
            raise_epoch,
        )
    fenced = zk_controller.explain_fenced(facts.zookeeper)
    if fenced:
        yield Finding(fenced, f"start a new election: zookeeper-shell.sh {connect} delete /controller")


def notifications(facts: Facts) -> Iterable[Finding]:
    """Yield the directories with many change notifications: a broker reads all of them again with each new one."""
    for directory, count in sorted(facts.notifications.items()):
        if count >= NOTIFICATIONS:
            yield Finding(
                f"ZooKeeper has {count} change notifications in {directory}. Each new one makes every broker read all "
                "of them again (ZkNodeChangeNotificationListener), which slows restarts and requests",
                "find the client that changes configs, quotas, users, ACLs or tokens all the time. Pause it 15 minutes "
                "before the migration: a notification expires after this time",
            )


def ensemble(facts: Facts) -> Iterable[Finding]:
    """Yield the servers of the connect string that do not serve, are standalone, or are too old for Kafka's client."""
    down = {server: answer["error"] for server, answer in sorted(facts.ensemble.items()) if answer.get("error")}
    if down:
        errors = "; ".join(f"{server}: {error}" for server, error in down.items())
        yield Finding(
            f"{len(down)} of {len(facts.ensemble)} ZooKeeper servers do not serve ({errors})",
            "start them, or open their port for the probe host: migration and rollback stop if ZooKeeper loses its "
            "quorum",
            warns=True,
        )
    alone = [server for server, answer in sorted(facts.ensemble.items()) if answer.get("mode") == "standalone"]
    if alone and len(facts.ensemble) > 1:
        yield Finding(
            f"{format_names(alone)} of {len(facts.ensemble)} servers in the connect string is standalone, not a member "
            "of the ensemble",
            "correct the connect string or the server's configuration: a standalone server has data of its own",
        )
    for server, answer in sorted(facts.ensemble.items()):
        version = answer.get("version")
        if version and tuple(version) < OLDEST_ZOOKEEPER:
            yield Finding(
                f"{server} is ZooKeeper {'.'.join(map(str, version))}",
                f"upgrade it to {'.'.join(map(str, OLDEST_ZOOKEEPER))} or later: Kafka 3.9's client needs it",
            )


def permissions(facts: Facts) -> Iterable[Finding]:
    """Yield the znodes that a rollback writes or deletes, and that the tool's identity may not (PrepRequestProcessor).

    A write needs WRITE on the znode, a deletion needs DELETE on its parent.
    """
    rights = facts.zookeeper_rights
    if rights is None:
        return  # the check `zookeeper` reports it
    check = "check it with `getAcl` of zookeeper-shell.sh: without this right a rollback stops half-way"
    if rights.get("error"):
        yield Finding(f"the tool's rights in ZooKeeper could not be read: {rights['error']}", check, warns=True)
        return
    lacking: dict[str, list[str]] = {}
    unknown: dict[str, list[str]] = {}
    for path, acl in sorted(rights["acls"].items()):
        right = "DELETE" if path == "/" else "WRITE"
        allowed = is_allowed(acl, _PERMISSIONS[right], rights["identities"], rights["complete"])
        if allowed is not True:
            kind = "/controller and /migration" if path == "/" else path
            (unknown if allowed is None else lacking).setdefault(right, []).append(kind)
    known = ", ".join(":".join(identity) for identity in rights["identities"] if identity[0] != "ip")
    for right, paths in lacking.items():
        verb = "delete" if right == "DELETE" else "write"
        yield Finding(
            f"the tool may not {verb} {format_names(paths)} in ZooKeeper, as "
            f"{_masked(known) or 'an unauthenticated client'}: "
            f"no {right} in the ACL{' of the chroot' if right == 'DELETE' else ''}",
            "set quorumshift_zookeeper_client to the brokers' identity, or grant it the right with `setAcl` of "
            "zookeeper-shell.sh: a rollback writes there",
        )
    for right, paths in unknown.items():
        verb = "delete" if right == "DELETE" else "write"
        yield Finding(
            f"it is unknown whether the tool may {verb} {format_names(paths)} in ZooKeeper: the ACL names identities "
            "that cannot be compared",
            check,
            warns=True,
        )


def readable_secrets(facts: Facts) -> Iterable[Finding]:
    """Yield the znodes with secrets that every client may read, where brokers restrict what they create."""
    hosts = [host for host, node in sorted(facts.brokers.items()) if _restricts(values_of(node))]
    paths = (facts.zookeeper_rights or {}).get("readable_secrets") or []
    if hosts and paths:
        yield Finding(
            f"every client of ZooKeeper can read {len(paths)} znodes with credentials, though zookeeper.set.acl is "
            f"true on {format_names(hosts)}: {format_names(paths)}",
            "on a broker's host, with its login: zookeeper-security-migration.sh --zookeeper.acl secure "
            "--zookeeper.connect ZOOKEEPER/CHROOT. Then change the credentials, which may have been read",
        )


def files(facts: Facts) -> Iterable[Finding]:
    """Yield that no server's files can be read, which alone show what clients change before the initial copy."""
    if facts.zookeeper_files is None or any(
        answer.get("snapshot") is not None for answer in facts.zookeeper_files.values()
    ):
        return
    closes = "changes of clients between the last gate and the initial copy will keep gate after_copy closed"
    if not facts.zookeeper_files:
        yield Finding(
            f"the inventory's group zookeeper has no host: {closes}",
            "add ZooKeeper's servers to the group. Their transaction log shows these changes",
        )
        return
    errors = {host: str(answer.get("msg") or "no answer") for host, answer in facts.zookeeper_files.items()}
    listed = "; ".join(f"{format_names(hosts)}: {error}" for hosts, error in group_by_value(errors).items())
    yield Finding(
        f"no ZooKeeper server's files can be read, so {closes}: {listed}",
        "give the control node a login there, and the server's zoo.cfg as quorumshift_zookeeper_config_file",
    )


def _restricts(values: Mapping[str, str]) -> bool:
    return config_values.is_true(values, "zookeeper.set.acl")


_PERMISSIONS = {"WRITE": 2, "DELETE": 8}  # ZooDefs.Perms
_COMPARED = ("world", "digest", "sasl", "x509", "auth", "super")


def is_allowed(
    acl: Sequence[Mapping], permission: int, identities: Sequence[Sequence[str]], complete: bool
) -> bool | None:
    """Return whether an ACL gives a permission to one of these identities; None if that cannot be known.

    `complete`: whether these are all identities of the session.
    """
    if not acl or any(scheme == "super" for scheme, _name in identities):
        return True
    given = [entry for entry in acl if entry["perms"] & permission]
    mine = {*map(tuple, identities), ("world", "anyone")}
    if any((entry["scheme"], entry["id"]) in mine for entry in given):
        return True
    unsure = [
        entry for entry in given if entry["scheme"] not in _COMPARED or (not complete and _is_known_to_server(entry))
    ]
    return None if unsure else False


def _is_known_to_server(entry: Mapping) -> bool:
    """Return whether only the server knows if the session has this identity."""
    return entry["scheme"] in ("sasl", "x509")


def _masked(known: str) -> str:
    return re.sub(r"(digest:[^:,]*):[^,]*", r"\1", known)  # the hash of the password


def latency(facts: Facts) -> Iterable[Finding]:
    """Yield the servers that answer too slowly for the brokers' sessions, or for the writes of a restart.

    A restart writes the state of each of the broker's partitions twice: when leaders move away, and when replicas are
    in sync again. Kafka has `zookeeper.max.in.flight.requests` writes in flight (KafkaZkClient).
    """
    values = next((values_of(node) for node in facts.brokers.values() if values_of(node)), {})
    session_ms = config_values.number(values, "zookeeper.session.timeout.ms")
    in_flight = max(1, config_values.number(values, "zookeeper.max.in.flight.requests"))
    most = max((partitions_of(node) for node in facts.brokers.values()), default=0)
    for server, answer in sorted(facts.ensemble.items()):
        average, longest = answer.get("latency_ms") or (0, 0)
        written_s = 2 * most * average / in_flight / 1000
        if longest > session_ms / 3:
            yield Finding(
                f"{server} once took {longest / 1000:.1f} s to answer since its start; brokers' sessions expire after "
                f"{session_ms / 1000:g} s",
                "find the cause (slow disks: `fsync-ing the write ahead log` in its log), then reset the figure with "
                "the four letter word srst: a broker loses its leaders when its session expires",
            )
        elif written_s > SLOW_S:
            yield Finding(
                f"{server} takes {average:g} ms to answer on average: the restart of a broker with {most} partitions "
                f"writes for {written_s:.0f} s",
                "find the cause: a separate disk for dataLogDir helps most. Each restart of a broker takes that much "
                "longer",
            )


def unreadable(facts: Facts) -> Iterable[Finding]:
    """Yield the znodes on which the initial copy would fail, or that it would lose."""
    for problem in (facts.metadata or {}).get("problems", []):
        yield Finding(
            f"ZooKeeper {problem['path']}: {problem['reason']}",
            "fix or remove it: the initial copy would fail on it, or lose it",
        )


def encoder_secret(facts: Facts) -> Iterable[Finding]:
    """Yield the brokers without the secret that decrypts ZooKeeper's encrypted configs for the controllers."""
    if facts.metadata is None:
        return
    encrypted = sorted(
        f"{key} of broker {entity or 'default'}"
        for entity, values in facts.metadata["configs"]["broker"].items()
        for key, value in values.items()
        if value is None
    )
    if not encrypted:
        return
    for host, node in sorted(facts.brokers.items()):
        if values_of(node) and kraft_config.ENCODER_SECRET not in values_of(node):
            yield Finding(
                f"ZooKeeper holds encrypted configs ({format_names(encrypted, 3)}), and {host} has no "
                f"{kraft_config.ENCODER_SECRET}",
                f"set the {kraft_config.ENCODER_SECRET} that encrypted them: without it controllers would copy "
                "ciphertext",
            )
