# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clients a release does not answer any more (KIP-896), and whether that is known. Pure.

Two sources say it: the broker's counters of deprecated requests, by the client's name and version since the broker's
start, and its request log, which has address, client id and principal as well.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import (
    Facts,
    config_command,
    grouped,
    names,
    process_of,
    version_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding

FIRST_THAT_COUNTS = (3, 7)
LOGGED_LEVELS = ("INFO", "DEBUG", "TRACE", "ALL")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# RequestMetrics counts a fetch a second time, by who fetches
_COUNTED_TWICE = ("FETCH_CONSUMER", "FETCH_FOLLOWER")
# Of brokers and controllers, which send what both ends know. Of all other requests, brokers from 3.7 to 3.9 count each
# version that 4.0 does not answer (ApiKeys.isVersionDeprecated against oldestVersion, in the jars of these builds)
_OF_BROKERS = ("ALTER_PARTITION", "WRITE_TXN_MARKERS")
_MOST = 8


def find_old(facts: Facts, target: str) -> list[dict[str, Any]]:
    """Return the clients whose requests the target does not answer and the running release does.

    [{name, software, requests: {name: [versions]}, addresses, client_ids, principals, brokers, count}], by name and
    version of the client and by its address, '' where only a counter has seen it.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for host in sorted(facts.brokers):
        read, running = facts.hosts.get(host) or {}, version_of(facts, host)
        logged = (read.get("requests") or {}).get("clients") or []
        counted = (read.get("metrics") or {}).get("deprecated") or []
        seen = {(_request(entry), entry["version"], entry["name"], entry["software"]) for entry in logged}
        # What the log has with its address is not listed again without one
        entries = logged + [
            entry
            for entry in counted
            if (_request(entry), entry["version"], entry["name"], entry["software"]) not in seen
        ]
        for entry in entries:
            request = _request(entry)
            if request in (*_COUNTED_TWICE, *_OF_BROKERS) or not _is_refused(
                request, entry["version"], running, target
            ):
                continue
            key = entry["name"], entry["software"], entry.get("address", "")
            client = found.setdefault(
                key,
                {
                    "name": key[0],
                    "software": key[1],
                    "address": key[2],
                    "requests": {},
                    "client_ids": set(),
                    "principals": set(),
                    "brokers": set(),
                    "count": 0,
                },
            )
            client["requests"].setdefault(request, set()).add(entry["version"])
            client["client_ids"] |= {entry["client_id"]} if entry.get("client_id") else set()
            client["principals"] |= {entry["principal"]} if entry.get("principal") else set()
            client["brokers"].add(host)
            client["count"] += entry["count"]
    return [_listed(client) for _key, client in sorted(found.items())]


def old(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield the clients that the release does not answer any more."""
    for client in find_old(facts, target):
        who = f"{client['name'] or 'unknown'} {client['software'] or ''}".strip()
        requests = [f"{name} v{','.join(map(str, versions))}" for name, versions in client["requests"].items()]
        where = f" at {client['address']}" if client["address"] else ""
        ids = f", client id {names(client['client_ids'], 3)}" if client["client_ids"] else ""
        of = f", {names(client['principals'], 2)}" if client["principals"] else ""
        yield Finding(
            f"the client {who}{where}{ids}{of} sends {names(requests, _MOST)} to {names(client['brokers'], 3)}, which "
            "Kafka does not answer any more",
            "update it to Kafka's client 2.1 or later, or to one of the other clients that KIP-896 lists"
            + ("" if client["address"] else f". For its address: {_to_log(facts, client['brokers'])}"),
        )


def unknown(facts: Facts, target: str) -> Iterable[Finding]:
    """Yield the brokers of which it is not known whether they have clients that the release does not answer."""
    for hosts, why in grouped(find_unknown(facts, target)):
        yield Finding(
            f"whether clients of {hosts} send requests that Kafka does not answer any more is not known: {why}",
            "start these brokers with JMX_PORT set for some days, for the audit to read what they count, and audit "
            "again. "
            f"To log them with addresses: {_to_log(facts, hosts.split(', '))}",
        )


def find_unknown(facts: Facts, target: str) -> dict[str, str]:
    """Return {broker's host: why its clients are not known}.

    A broker that does not run has none. Once a broker runs a release that answers them as little, as half-way in an
    upgrade, they have met it already.
    """
    running = {host: version_of(facts, host) for host in facts.brokers if process_of(facts, host)}
    wait = {host for host, version in running.items() if not version or _refuses_more(target, version)}
    unread = {host for host in facts.brokers if "process" not in (facts.hosts.get(host) or {})}
    if running and len(wait) < len(running):
        return {}
    return {host: why for host in sorted(wait | unread) for why in [explain_unknown(facts, host)] if why}


def explain_unknown(facts: Facts, host: str) -> str:
    """Return why a broker's clients are not known, '' where counters or its log show them for long enough."""
    read = facts.hosts.get(host) or {}
    release = releases.parse_release(version_of(facts, host))
    if release is not None and release < FIRST_THAT_COUNTS:
        return f"Kafka {releases.format_release(release)} does not count them, 3.7 and later do"
    metrics = read.get("metrics") or {"why": "the host was not read"}
    if metrics.get("deprecated") is None or metrics.get("uptime_s") is None:
        metrics = {"why": metrics.get("why") or "its counters were not read"}
    if not metrics.get("why"):
        if metrics["uptime_s"] < facts.window_s:
            return f"it counts them for {_span(metrics['uptime_s'])} only, and {_span(facts.window_s)} are wanted"
        return ""
    requests = read.get("requests") or {}
    is_logged = requests.get("files") and not requests.get("why")
    if facts.window_s == 0 and is_logged and (facts.loggers.get(host) or "") in LOGGED_LEVELS:
        return ""
    return str(metrics["why"])


def connected(facts: Facts) -> list[dict[str, Any]]:
    """Return [{name, software, connections}] of the clients that brokers count now, by name and version (KIP-511)."""
    found: dict[tuple[str, str], int] = {}
    for read in facts.hosts.values():
        for client in ((read or {}).get("metrics") or {}).get("clients") or []:
            key = client["name"], client["software"]
            found[key] = found.get(key, 0) + client["connections"]
    return [{"name": key[0], "software": key[1], "connections": count} for key, count in sorted(found.items())]


def addresses(facts: Facts) -> dict[str, int]:
    """Return {IP address: established connections} to the brokers' listeners, without those of the nodes' own hosts."""
    own = {str(node.get("host_address") or "") for node in facts.nodes.values()}
    found: dict[str, int] = {}
    for read in facts.hosts.values():
        for peers in ((read or {}).get("addresses") or {}).values():
            for address, count in peers.items():
                if address not in own:
                    found[address] = found.get(address, 0) + count
    return dict(sorted(found.items()))


def _refuses_more(target: str, running: str) -> bool:
    """Return whether a release answers fewer versions of a request than the one that runs."""
    return any(
        accepted.oldest_request(target, request) > accepted.oldest_request(running, request)
        for request in accepted.changed_requests()
    )


def _is_refused(request: str, version: int, running: str, target: str) -> bool:
    return version < accepted.oldest_request(target, request) and version >= (
        accepted.oldest_request(running, request) if running else 0
    )


def _request(entry: Mapping[str, Any]) -> str:
    """Return the name of ApiKeys of a request that a counter names as ListOffsets, a log as LIST_OFFSETS."""
    name: str = entry["request"]
    return name if name.isupper() else _WORD.sub("_", name).upper()


def _to_log(facts: Facts, hosts: Iterable[str]) -> str:
    """Return the command that makes a broker log requests of old versions, for the first of these hosts."""
    ids = [facts.nodes[host].get("node_id") for host in hosts if host in facts.nodes]
    return config_command(
        facts, "broker-loggers", str(ids[0] if ids else "ID"), "--add-config kafka.request.logger=INFO"
    )


def _listed(client: dict[str, Any]) -> dict[str, Any]:
    requests = {name: sorted(versions) for name, versions in sorted(client["requests"].items())}
    lists = {name: sorted(client[name]) for name in ("client_ids", "principals", "brokers")}
    return {**client, **lists, "requests": requests}


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.0f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"
