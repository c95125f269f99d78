# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make this host's ZooKeeper server an observer of the source: read, decide, write the files, start it, wait until it
has caught up. Standard library only."""

from __future__ import annotations

import os
import stat
from typing import Any, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut, zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import steps as zk_cut_steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import paths
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_host, zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    HostPort,
    is_wildcard,
    parse_host_port,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.zk_wire import NoNode, ZkConnection
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_steps

CONFIG = "/zookeeper/config"


class JoinError(Exception):
    """The host cannot join, or did not; the text says why and what to do."""


class File(NamedTuple):
    """A file as it is (None if missing) and as it must be."""

    path: str
    before: bytes | None
    after: bytes

    @property
    def differs(self) -> bool:
        return self.before != self.after


class Plan(NamedTuple):
    """What makes the host an observer. `address`: of its client port; `context`: that port's SSLContext or None."""

    files: list[File]
    active: bool
    leader: HostPort
    address: HostPort
    context: Any
    own_context: Any

    @property
    def changed(self) -> bool:
        return not self.active or any(file.differs for file in self.files)


def plan(given: Mapping[str, Any]) -> Plan:
    """Return what must be done on this host. Raises JoinError with all that prevents it, OSError, WireError,
    SecurityError, AddressError, ZooKeeperFileError, PropertiesError."""
    security = ZkSecurity.from_options(given["zookeeper_client"])
    context = security.ssl_context()
    config_file, myid = given["config_file"], given["myid"]
    destination = {int(number): address for number, address in given["destination_servers"].items()}
    data = _content(config_file)
    if data is None:
        raise JoinError(
            f"{config_file} does not exist. Install ZooKeeper on this host with a zoo.cfg that has dataDir and "
            "clientPort, or correct config_file (QS-ZKMOVE-001)"
        )
    values = config_values.parse_zoo_cfg(properties.parse(data, path=config_file))
    # before the leader's zxid, which must then be at least as new
    host = _host(given, values)
    source = _source(given, security, context)
    targets = [
        target for target in _targets(source, destination, myid) if target["to"] not in map(str, given["dead_ids"])
    ]
    host = host._replace(unreachable=paths.check_connectivity(targets, given["timeout"]))
    found = list(zk_observer.findings(host, source, myid, destination))
    if found:
        raise JoinError(". ".join(sentences(finding.seen, finding.do) for finding in found))
    edits, dynamic_file, dynamic = zk_observer.plan_changes(values, config_file, source.ensemble, destination)
    files = [File(_myid_file(values, config_file), None if host.myid is None else b"%d\n" % host.myid, b"%d\n" % myid)]
    if dynamic is not None:
        files.append(File(dynamic_file, _content(dynamic_file), dynamic))
    # last: it refers to the others
    files.append(File(config_file, data, properties.edit(data, edits, "Observer of the source ensemble (Quorumshift)")))
    active = not restart_steps.is_stopped(service.read_state(given["service"]))
    address, is_secure = _client_address(values, config_file)
    leader = parse_host_port(source.leader or "")
    return Plan(files, active, leader, address, context, context if is_secure else None)


def carry_out(given: Mapping[str, Any], planned: Plan) -> None:
    """Write the files while the server is stopped, and start it. Raises JoinError, OSError, ServiceError, RestartError.

    A run that ends in between leaves a stopped server, which the next run starts with the files as they must be.
    """
    differs = [file for file in planned.files if file.differs]
    if differs and planned.active:
        _require_another(given, planned)
        service.begin("stop", given["service"])
        restart_steps.await_stopped(given)
    status = os.stat(given["config_file"])
    for file in differs:
        mode = stat.S_IMODE(status.st_mode)
        safe_files.replace(file.path, file.after, mode, (status.st_uid, status.st_gid))
    if planned.changed:
        service.begin("start", given["service"])


def _require_another(given: Mapping[str, Any], planned: Plan) -> None:
    """Raise JoinError if the sessions on this observer would not outlive its restart."""
    if _status(planned.address, planned.own_context, given["timeout"])["mode"] != "observer":
        return  # no client of the source uses it

    def asked(word: str) -> str:
        return zk_wire.four_letter(planned.address, word, given["timeout"], planned.own_context)

    timeouts = [client["timeout_ms"] for client in ensemble_cut.parse_clients(asked("cons"))]
    connect = given["destination_connect"]
    servers = parse_zookeeper_connect(connect).servers if connect else ()
    status = zk_servers.collect(servers, planned.own_context, given["timeout"])
    own = set(zk_cut_steps.find_own_entries(servers, _values(given["config_file"])))
    others = {server: answer["mode"] for server, answer in status.items() if server not in own}
    found = list(ensemble_cut.check_restartable(timeouts, ensemble_cut.count_znodes(asked("mntr")), others))
    if found:
        raise JoinError(f"{sentences(found[0].seen, found[0].do)}. Nothing was changed on this host (QS-ZKMOVE-001)")


def await_joined(given: Mapping[str, Any], planned: Plan) -> dict:
    """Wait until the server serves as an observer and has processed what the source's leader had when this began.

    Return {zxid, leader_zxid}. Raises JoinError after `join_timeout_s` without progress of its zxid or its files.
    """
    wanted = _leader_zxid(given, planned)
    seen: dict[str, Any] = {"why": "", "status": {}, "progress": None}

    def joined() -> bool:
        seen["status"] = _status(planned.address, planned.own_context, given["timeout"])
        seen["why"] = zk_observer.explain_unjoined(seen["status"], wanted)
        return not seen["why"]

    def advances() -> bool:
        before, seen["progress"] = seen["progress"], (seen["status"].get("zxid"), _bytes(given["config_file"]))
        return before is not None and before != seen["progress"]

    try:
        restart_steps.wait(joined, restart_steps.Bound(given["join_timeout_s"]), lambda: "", advances)
    except restart_steps.RestartError:
        hint = zk_observer.find_hints(service.read_journal(given["service"], 200))
        raise JoinError(
            f"{given['service']} runs and did not join the source for {given['join_timeout_s']:.0f} s: "
            f"{seen['why']}{f' ({hint})' if hint else ''}. See its log: journalctl -u {given['service']}. Run "
            "again (QS-ZKMOVE-005)"
        ) from None
    settings = zk_host.settings(_values(given["config_file"]), zk_host.read_arguments(given["config_file"]))
    # the JVM's options are known once it runs
    found = list(zk_observer.check_settings(settings, given["config_file"], given["source_settings"]))
    if found:
        texts = ". ".join(sentences(finding.seen, finding.do) for finding in found)
        raise JoinError(f"{texts}. Then restart it: systemctl restart {given['service']} (QS-ZKMOVE-004)")
    return {"zxid": seen["status"]["zxid"], "leader_zxid": wanted}


def _source(given: Mapping[str, Any], security: ZkSecurity, context: Any) -> zk_observer.Source:
    connect = parse_zookeeper_connect(given["zookeeper_connect"])._replace(chroot="")
    status = zk_servers.collect(connect.servers, context, given["timeout"])
    try:
        with ZkConnection(connect, security, given["timeout"]) as client:
            ensemble = zk_observer.parse_ensemble(properties.parse(client.get(CONFIG)[0]))
    except NoNode:  # before 3.5
        ensemble = zk_observer.Ensemble({})
    if given["source_servers"]:
        members = {int(number): zk_observer.parse_member(value) for number, value in given["source_servers"].items()}
        ensemble = ensemble._replace(members=members)
    return zk_observer.Source(ensemble, status, given["source_settings"])


def _host(given: Mapping[str, Any], values: Mapping[str, str]) -> zk_observer.Host:
    config_file = given["config_file"]
    directories = [os.path.join(directory, "version-2") for directory in _directories(values, config_file)]
    present = [directory for directory in dict.fromkeys(directories) if os.path.isdir(directory)]
    files = sorted(
        os.path.join(directory, name)
        for directory in present
        for name in os.listdir(directory)
        if name.startswith(("log.", "snapshot.")) or name in ("currentEpoch", "acceptedEpoch")
    )
    last = zk_files.last_zxid(directories[0], directories[-1]) if len(present) == len(set(directories)) else 0
    dynamic = _content(values.get("dynamicConfigFile", ""))
    servers = properties.parse(dynamic, path=values["dynamicConfigFile"]) if dynamic else values
    number = _content(_myid_file(values, config_file))
    myid = int(number) if number is not None and number.strip().isdigit() else None
    settings = zk_host.settings(values, zk_host.read_arguments(config_file))
    return zk_observer.Host(
        config_file, values, settings, files, last, zk_observer.parse_ensemble(servers).members, myid, []
    )


def _targets(source: zk_observer.Source, destination: Mapping[int, str], myid: int) -> list[dict]:
    """Return the addresses to which an observer connects, and those of the other destination servers."""
    members = {number: member for number, member in source.ensemble.members.items() if number not in destination}
    of_source = [
        {"kind": "source", "to": str(n), "address": zk_observer.election_address(m)} for n, m in members.items()
    ]
    leader = source.leader and parse_host_port(source.leader).host
    leading = [
        {"kind": "leader", "to": str(number), "address": zk_observer.quorum_address(member)}
        for number, member in members.items()
        if len([m for m in members.values() if _host_of(m) == leader]) == 1 and _host_of(member) == leader
    ]
    others = [
        {"kind": "destination", "to": str(number), "address": address(zk_observer.Member(text))}
        for number, text in destination.items()
        for address in (zk_observer.election_address, zk_observer.quorum_address)
        if number != myid
    ]
    return of_source + leading + others


def _host_of(member: zk_observer.Member) -> str:
    return parse_host_port(zk_observer.quorum_address(member)).host


def _leader_zxid(given: Mapping[str, Any], planned: Plan) -> int:
    status = _status(planned.leader, planned.context, given["timeout"])
    if status["zxid"] is None:
        raise JoinError(
            f"the source's leader {planned.leader} gives no zxid: {status['error'] or 'no srvr'}. Run "
            "again (QS-ZKMOVE-001)"
        )
    servers = parse_zookeeper_connect(given["zookeeper_connect"]).servers
    return zk_observer.required_zxid(status["zxid"], zk_servers.collect(servers, planned.context, given["timeout"]))


def _status(address: HostPort, context: Any, timeout: float) -> dict:
    return zk_servers.collect([address], context, timeout)[str(address)]


def _directories(values: Mapping[str, str], config_file: str) -> tuple[str, str]:
    data = values.get("dataDir", "")
    if not data:
        raise JoinError(f"{config_file} has no dataDir. Add it: dataDir=/var/lib/zookeeper (QS-ZKMOVE-001)")
    return data, values.get("dataLogDir") or data


def _myid_file(values: Mapping[str, str], config_file: str) -> str:
    return os.path.join(_directories(values, config_file)[0], "myid")


def _client_address(values: Mapping[str, str], config_file: str) -> tuple[HostPort, bool]:
    """Return the address of this server's client port on this host, and whether it is TLS."""
    for prefix, is_secure in (("clientPort", False), ("secureClientPort", True)):
        port = values.get(prefix, "")
        if port.isdigit():
            host = values.get(f"{prefix}Address", "")
            return HostPort("127.0.0.1" if is_wildcard(host) else host.strip("[]"), int(port)), is_secure
    raise JoinError(f"{config_file} has no clientPort. Add it: clientPort=2181 (QS-ZKMOVE-001)")


def _bytes(config_file: str) -> int:
    """Return the size of the data directories' files, which grows while the server loads."""
    total = 0
    for directory in set(_directories(_values(config_file), config_file)):
        for parent, _directories_, names in os.walk(directory):
            total += sum(_size(os.path.join(parent, name)) for name in names)
    return total


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # renamed meanwhile


def _values(config_file: str) -> Mapping[str, str]:
    return config_values.parse_zoo_cfg(properties.parse(_content(config_file) or b"", path=config_file))


def _content(path: str) -> bytes | None:
    """Return a file's bytes, None if it does not exist."""
    try:
        return safe_files.read(path) if path else None
    except FileNotFoundError:
        return None
