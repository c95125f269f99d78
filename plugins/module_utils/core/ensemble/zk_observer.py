# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a ZooKeeper server becomes an observer of another ensemble: its configuration, and what prevents it. Pure.

Source: org.apache.zookeeper.server.quorum.{QuorumPeerConfig,QuorumPeer,FastLeaderElection,QuorumCnxManager,Leader}.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values

LARGEST_ID = 254  # EphemeralType: the top byte 255 marks a TTL
DEFAULT_MAXBUFFER = 0xFFFFF  # BinaryInputArchive
_SERVER = re.compile(r"server\.([0-9]+)")
_ROLE = re.compile(r":(participant|observer)$", re.IGNORECASE)
_WILDCARDS = ("0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]")


class Member(NamedTuple):
    """A server of an ensemble. `address`: host:quorum port:election port, from 3.6 on several of them with `|`."""

    address: str
    observes: bool = False


class Ensemble(NamedTuple):
    """The content of /zookeeper/config. `version` is 0 where no server has reconfigEnabled (Leader.lead)."""

    members: Dict[int, Member]
    version: int = 0


class Host(NamedTuple):
    """The destination host. `values`: its zoo.cfg; `settings`: zk_host.settings; `files`: snapshots and logs in
    its data directories; `last`: the zxid to which they lead; `configured`: the members in its present configuration,
    with its own as `myid` (None without a myid file); `unreachable`: probes.host.paths.check_connectivity."""

    config_file: str
    values: Mapping[str, str]
    settings: Mapping[str, str]
    files: List[str]
    last: int
    configured: Mapping[int, Member]
    myid: int | None
    unreachable: List[dict]


class Source(NamedTuple):
    """The source ensemble. `status`: zookeeper.zk_servers.collect; `settings`: {host: zookeeper.zk_host.settings}."""

    ensemble: Ensemble
    status: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Mapping[str, str]]

    @property
    def leader(self) -> str | None:
        """The client address of the leader, as in `status`; None if it is not among them."""
        return next((server for server, answer in self.status.items() if answer["mode"] == "leader"), None)


def parse_ensemble(values: Mapping[str, str]) -> Ensemble:
    """Return the members in the properties of /zookeeper/config, of a dynamic file, or of a zoo.cfg."""
    own = config_values.parse_zoo_cfg(values)
    found = ((_SERVER.fullmatch(key), value) for key, value in own.items())
    members = {int(name[1]): parse_member(value) for name, value in found if name}
    version = own.get("version", "")
    return Ensemble(members, int(version, 16) if re.fullmatch("[0-9a-fA-F]+", version) else 0)


def parse_member(value: str) -> Member:
    """Return the member in the value of a server line."""
    address = value.partition(";")[0].strip()
    role = _ROLE.search(address)
    return Member(_ROLE.sub("", address), role is not None and role[1].lower() == "observer")


def election_address(member: Member) -> str:
    """Return host:port of a member's election; that of the first address."""
    host, _quorum, port = member.address.partition("|")[0].rsplit(":", 2)
    return f"{host}:{port}"


def quorum_address(member: Member) -> str:
    """Return host:port on which a member listens while it leads."""
    return member.address.partition("|")[0].rpartition(":")[0]


def server_lines(source: Ensemble, destination: Mapping[int, str]) -> Dict[str, str]:
    """Return the server lines of an observer: the source's members, and all destination servers as observers."""
    of_source = {
        f"server.{number}": f"{member.address}:{'observer' if member.observes else 'participant'}"
        for number, member in source.members.items()
        if number not in destination
    }
    return {**of_source, **{f"server.{number}": f"{address}:observer" for number, address in destination.items()}}


OF_OBSERVERS = {"peerType": "observer", "fastleader.maxNotificationInterval": "1000"}
"""What zoo.cfg says of a destination server that is an observer. One that looks for its leader asks at intervals that
double, up to 60 s by default (FastLeaderElection): after a healed cut of 9 s the next question came 4 s later, and
sessions ended."""


def plan_changes(
    values: Mapping[str, str], config_file: str, source: Ensemble, destination: Mapping[int, str]
) -> Tuple[Dict[str, str | None], str, bytes | None]:
    """Return the changes to zoo.cfg that make its server an observer, and path and content of its dynamic file (None if
    it needs none).

    A source with reconfigEnabled has a version above 0, and its servers elect with no server of a lower version. Its
    observers have the same version as the suffix of a dynamic file, and reconfigEnabled off: with it on, ZooKeeper
    would rewrite the file without them.
    """
    servers = server_lines(source, destination)
    dynamic = f"{config_file}.dynamic.{source.version:x}"
    wanted: Dict[str, str | None] = {key: None for key in values if _SERVER.fullmatch(config_values.trim(key))}
    wanted.update({**OF_OBSERVERS, "reconfigEnabled": "false"})
    if source.version:
        wanted["dynamicConfigFile"] = dynamic
        return wanted, dynamic, "".join(f"{key}={value}\n" for key, value in servers.items()).encode()
    wanted["dynamicConfigFile"] = None
    wanted.update(servers)
    return wanted, dynamic, None


def is_observer_of(host: Host, myid: int, source: Ensemble) -> bool:
    """Return whether the host is configured as this observer of this source already, in whatever version."""
    own = host.configured.get(myid)
    known = {member.address for member in source.members.values()}
    others = {member.address for member in host.configured.values() if not member.observes}
    observes = own is not None and own.observes and host.values.get("peerType", "").lower() == "observer"
    return observes and host.myid == myid and bool(known & others)


def findings(host: Host, source: Source, myid: int, destination: Mapping[int, str]) -> Iterator[Finding]:
    """Yield what prevents that the host joins the source as an observer, all at once."""
    yield from _check_source(source)
    yield from _check_ids(source.ensemble, myid, destination)
    yield from _check_data(host, source, myid)
    yield from check_settings(host.settings, host.config_file, source.settings)
    for connection in host.unreachable:
        # a server that does not run refuses, and only the leader listens on its quorum port
        if connection["reason"] != "refused" or connection["kind"] == "leader":
            yield Finding(
                f"{connection['address']} of server {connection['to']} cannot be reached from this host: "
                f"{connection['error']} (QS-ZKMOVE-001)",
                "open the port in the firewalls between the hosts; if the server is down for good, give the others as "
                "source_servers",
            )


def _check_source(source: Source) -> Iterator[Finding]:
    down = sorted(server for server, answer in source.status.items() if answer["error"])
    if down:
        yield Finding(
            f"source servers {format_names(down)} do not answer: {source.status[down[0]]['error']} (QS-ZKMOVE-001)",
            "start them, or correct zookeeper_connect",
        )
    silent = sorted(server for server, answer in source.status.items() if not answer["error"] and not answer["mode"])
    if silent:
        yield Finding(
            f"source servers {format_names(silent)} forbid srvr, so their version and leader are unknown "
            "(QS-ZKMOVE-001)",
            "allow it in their 4lw.commands.whitelist",
        )
    standalone = sorted(server for server, answer in source.status.items() if answer["mode"] == "standalone")
    if standalone:
        yield Finding(
            f"the source {standalone[0]} is standalone, and a standalone server has no observers (QS-ZKMOVE-001)",
            "set standaloneEnabled=false and its server line in its zoo.cfg, restart it, and run again",
        )
        return
    for server, answer in sorted(source.status.items()):
        version = tuple(answer["version"] or ())
        # ZOOKEEPER-2959: an older leader counts observers as voters in an election
        if version and (version < (3, 4, 13) or (3, 5, 0) <= version < (3, 5, 4)):
            yield Finding(
                f"source server {server} is ZooKeeper {'.'.join(map(str, version))}, which loses data with observers "
                "(ZOOKEEPER-2959) (QS-ZKMOVE-001)",
                "upgrade the source to 3.4.13, 3.5.4 or later",
            )
    if source.leader is None and not down and not silent:
        yield Finding(
            f"none of {format_names(sorted(source.status))} is the source's leader (QS-ZKMOVE-001)",
            "name all source servers in zookeeper_connect",
        )
    if not source.ensemble.members:
        yield Finding(
            "the source's /zookeeper/config names no servers (QS-ZKMOVE-001)",
            "give source_servers with the server lines of its zoo.cfg",
        )
    wildcards = sorted(
        number for number, member in source.ensemble.members.items() if member.address.startswith(_WILDCARDS)
    )
    if wildcards:
        yield Finding(
            f"the source's configuration has server {wildcards[0]} at {source.ensemble.members[wildcards[0]].address}, "
            "which is no address that this host can reach (QS-ZKMOVE-001)",
            "give source_servers with the addresses of all source servers",
        )


def _check_ids(source: Ensemble, myid: int, destination: Mapping[int, str]) -> Iterator[Finding]:
    own = destination.get(myid)
    if own is None:
        yield Finding(
            f"destination_servers has no server {myid} (QS-ZKMOVE-002)", "add this host's server, or correct myid"
        )
    elif own.startswith(_WILDCARDS):
        yield Finding(
            f"destination_servers has server {myid} at {own}, which other servers cannot reach (QS-ZKMOVE-002)",
            "give an address of this host that all servers reach",
        )
    # observers that were added to the source with reconfig are no others
    members = {
        number: member
        for number, member in source.members.items()
        if not (member.observes and member.address == destination.get(number))
    }
    taken = sorted(number for number in destination if number in members)
    known = {member.address for member in members.values()}
    largest = max(members, default=0)
    low = sorted(number for number in destination if number <= largest)
    if taken:
        yield Finding(
            f"the id {taken[0]} is of a source server as well ({source.members[taken[0]].address}) (QS-ZKMOVE-002)",
            f"choose destination ids from {largest + 1} to {LARGEST_ID}: write them to the myid files",
        )
    elif low:
        # a source server with a larger id closes the connection and connects to the observer itself
        yield Finding(
            f"the destination id {low[0]} is lower than the largest source id {largest} (QS-ZKMOVE-002)",
            f"choose destination ids from {largest + 1} to {LARGEST_ID}: write them to the myid files",
        )
    high = sorted(number for number in destination if number > LARGEST_ID)
    if high:
        yield Finding(
            f"the destination id {high[0]} is larger than {LARGEST_ID}, so its sessions would look like "
            "TTLs (QS-ZKMOVE-002)",
            f"choose destination ids from {largest + 1} to {LARGEST_ID}: write them to the myid files",
        )
    addresses = list(destination.values())
    twice = sorted({address for address in addresses if addresses.count(address) > 1 or address in known})
    if twice:
        yield Finding(f"the address {twice[0]} is of two servers (QS-ZKMOVE-002)", "correct destination_servers")


def _check_data(host: Host, source: Source, myid: int) -> Iterator[Finding]:
    if not host.files:
        return
    if not is_observer_of(host, myid, source.ensemble):
        yield Finding(
            f"{host.files[0]} exists, but this host is no observer of the source: its data would be "
            "mixed (QS-ZKMOVE-003)",
            "if nothing needs them, stop the server and move the directories version-2 away",
        )
        return
    leader = source.status[source.leader]["zxid"] if source.leader else None
    if leader is not None and host.last > leader:
        yield Finding(
            f"this host's files lead to zxid 0x{host.last:x}, beyond 0x{leader:x} of the source's leader: they are of "
            "an ensemble of its own (QS-ZKMOVE-003)",
            "stop the server, move the directories version-2 away, and run again",
        )


def _is_on(settings: Mapping[str, str], key: str, default: str = "false") -> bool:
    return settings.get(key, default).strip().lower() == "true"


def check_settings(
    settings: Mapping[str, str], config_file: str, of_source: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield the settings with which this host must not be an observer, alone and beside the source's."""
    if not _is_on(settings, "observer.syncEnabled", settings.get("syncEnabled", "true")):
        yield Finding(
            f"syncEnabled is false in {config_file}, so the observer would keep nothing on disk (QS-ZKMOVE-004)",
            "remove it from the file and from the JVM's options",
        )
    if _is_on(settings, "localSessionsEnabled"):
        yield Finding(
            f"localSessionsEnabled is true in {config_file}, and local sessions do not survive the "
            "move (QS-ZKMOVE-004)",
            "remove it from the file",
        )
    yield from _check_kerberos("this host", settings)
    for name, theirs in sorted(of_source.items()):
        yield from _check_differences(settings, config_file, name, theirs)


def _check_kerberos(where: str, settings: Mapping[str, str]) -> Iterator[Finding]:
    if _is_on(settings, "quorum.auth.enableSasl") and settings.get("quorum.auth.kerberos.servicePrincipal"):
        yield Finding(
            f"{where} authenticates its quorum with Kerberos: the source rejects servers that its own configuration "
            "does not list (QS-ZKMOVE-004)",
            "this move is not possible without a change of the source: add the destination servers to its zoo.cfg as "
            "observers, and restart it",
        )


_SAME = ("quorum.auth.enableSasl", "sslQuorum", "skipACL", "DigestAuthenticationProvider.superDigest")


def _check_differences(
    own: Mapping[str, str], config_file: str, name: str, settings: Mapping[str, str]
) -> Iterator[Finding]:
    yield from _check_kerberos(f"source host {name}", settings)
    ours, theirs = (int(side.get("jute.maxbuffer") or str(DEFAULT_MAXBUFFER), 0) for side in (own, settings))
    if ours < theirs:
        yield Finding(
            f"jute.maxbuffer is {ours} on this host and {theirs} on source host {name}: larger znodes cannot "
            "be read (QS-ZKMOVE-004)",
            f"set -Djute.maxbuffer={theirs} in the JVM's options of this host",
        )
    providers = {key for side in (own, settings) for key in side if key.startswith("authProvider.")}
    for key in (*_SAME, *sorted(providers)):
        ours_, theirs_ = own.get(key), settings.get(key)
        if (ours_ or "false").lower() != (theirs_ or "false").lower() and (key in _SAME or ours_ is None):
            yield Finding(
                f"{key} differs between this host and source host {name} (QS-ZKMOVE-004)",
                f"set it in {config_file} as in the source's zoo.cfg or JVM options",
            )
    for key, ticks in (("minSessionTimeout", 2), ("maxSessionTimeout", 20)):
        ours, theirs = (_session_ms(side, key, ticks) for side in (own, settings))
        if ours != theirs:
            yield Finding(
                f"{key} is {ours} ms on this host and {theirs} ms on source host {name} (QS-ZKMOVE-004)",
                f"set {key}={theirs} in {config_file}",
            )


def _session_ms(settings: Mapping[str, str], key: str, ticks: int) -> int:
    """Return a limit of session timeouts in ms; by default some ticks, also for -1 (QuorumPeer)."""
    given = int(settings.get(key) or -1)
    return given if given != -1 else int(settings.get("tickTime") or 3000) * ticks


def required_zxid(leader: int, status: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the zxid of the last transaction that a server must have processed. `leader`: the leader's zxid.

    A leader that was just elected has the zxid 0 of its epoch, which is no transaction (Leader.lead). Its learners keep
    the last one before, until there is a new one. So the followers' zxid counts, by `status` of the servers.
    """
    if leader & 0xFFFFFFFF:
        return leader
    return max((answer["zxid"] or 0 for answer in status.values() if answer["mode"] == "follower"), default=0)


def explain_unjoined(status: Mapping[str, Any], wanted: int) -> str:
    """Return why a server is no observer that serves and has caught up with the zxid `wanted`; '' if it is."""
    if status["error"]:
        return f"it does not serve: {status['error']} (QS-ZKMOVE-005)"
    if status["mode"] != "observer":
        return f"its mode is {status['mode'] or 'unknown, because 4lw.commands.whitelist forbids srvr'} (QS-ZKMOVE-005)"
    if status["zxid"] is None or status["zxid"] < wanted:
        return f"it is at zxid 0x{status['zxid'] or 0:x}, the source's leader was at 0x{wanted:x} (QS-ZKMOVE-005)"
    return ""


def find_hints(log: Iterable[str]) -> str:
    """Return what an observer's log says of why it does not join, '' if nothing is known."""
    text = "\n".join(log)
    for sign, hint in (
        ("is not authorized to connect", "the source's quorum uses Kerberos and rejects servers that it does not list"),
        ("restarting leader election", "the source's configuration has a newer version: run again"),
        ("Unreasonable length", "jute.maxbuffer is smaller than on the source"),
        ("Follower is ahead of the leader", "the dynamic file's version is higher than the source's: run again"),
    ):
        if sign in text:
            return hint
    return ""
