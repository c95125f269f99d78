# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a KRaft quorum may be changed: made dynamic, a controller added, replaced, removed or unregistered. Pure.

Each plan returns what is to be changed, or raises why it may not be. `quorum` and `nodes`: as in core.admin.quorum.
Sources: KIP-853, AddVoterHandler, RemoveVoterHandler, VoterSet.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import registrations
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.quorum import (
    BOOTSTRAP,
    DYNAMIC,
    GONE_S,
    PLAYBOOK,
    REMOVE,
    STATIC,
    TO_DYNAMIC,
    UNKNOWN,
    UNREGISTER,
    VOTERS,
    Replica,
    configuration,
    describe_lag,
    directory_of,
    fetched_s,
    has_caught_up,
    hosts_by_id,
    hosts_configured,
    how_to_unregister,
    is_dynamic,
    properties_of,
    registered_endpoints,
    unregisters_controllers,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.transitions import CONTROLLER
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases as table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import KRAFT_VERSION, Range
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import confirmation
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError

AUTO_JOIN = "controller.quorum.auto.join.enable"


class QuorumError(ValueError):
    """A change of the quorum that may not be made, or of which that is not known."""


class Joining(NamedTuple):
    """An observer that becomes a voter. `endpoints`: (listener, host, port) that it registered."""

    node_id: int
    directory_id: str
    endpoints: Tuple[Tuple[str, str, int], ...]


class Change(NamedTuple):
    """What a run is to change, after the checks. `joins`: of a controller that is added; `voter`: (id, directory) of
    one that is removed; `unregisters`: the id of a controller; `levels`: whether kraft.version rises; `files`: hosts
    whose file is not that of a dynamic quorum; `lines`: what will happen, as sentences without a full stop; `token`:
    what accepts it, '' where nothing is lost for good."""

    lines: Tuple[str, ...] = ()
    token: str = ""
    joins: Joining | None = None
    voter: Tuple[int, str] | None = None
    unregisters: int | None = None
    levels: bool = False
    files: Tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.joins or self.voter or self.levels or self.files) and self.unregisters is None


def plan_dynamic(
    quorum: Mapping[str, Any],
    nodes: Mapping[str, NodeFacts],
    finalized: Mapping[str, int],
    supported: Mapping[str, Mapping[str, Range]],
    cluster_id: str,
) -> Change:
    """Return what makes a static quorum dynamic: kraft.version 0 -> 1, then the files. Raises QuorumError.

    `supported`: {node: {feature: Range}} of every live node. Each voter has to be a host that was read, and to have
    caught up: once the log has the voters, only they elect a leader.
    """
    raises = not finalized.get(KRAFT_VERSION, 0)
    _require_read(nodes)
    _require_hosts(quorum, nodes)
    if raises:
        _require_release(supported)
        _require_same_voters(quorum, nodes)
        _require_registered_addresses(quorum, nodes)
    elif not is_dynamic(quorum):
        raise QuorumError(
            f"{KRAFT_VERSION} is {finalized[KRAFT_VERSION]}, and the leader names no directory of its voters: Kafka "
            "before 4.1 raises it and moves no voters. Upgrade the controllers first: see quorumshift.kafka.upgrade "
            "(QS-QUORUM-002)"
        )
    _require_caught_up(quorum)
    files = tuple(hosts_configured(nodes, STATIC))
    for host in files:
        _voters_in_file(nodes, host)
    lines = []
    if raises:
        lines.append(
            f"{KRAFT_VERSION} rises from 0 to 1, and Kafka never lowers it. The metadata log then has the voters"
        )
    if files:
        listed = ", ".join(files)
        lines.append(f"{BOOTSTRAP} replaces {VOTERS}, controllers before brokers, each by a restart: {listed}")
    needed = confirmation.make_token(cluster_id, TO_DYNAMIC, [0, 1, _keys(quorum)]) if raises else ""
    return Change(tuple(lines), needed, levels=raises, files=files)


def plan_add(
    quorum: Mapping[str, Any], nodes: Mapping[str, NodeFacts], finalized: Mapping[str, int], host: str, answers: bool
) -> Change:
    """Return what makes the controller on a host a voter: nothing where it is one. Raises QuorumError.

    `answers`: whether the controller answered at its address. It must be an observer with the directory that its host
    has, and must have caught up.
    """
    _require_dynamic(quorum, finalized)
    node = _controller(nodes, host)
    node_id, directory = int(node["node_id"] or 0), directory_of(node)
    if not directory:
        raise QuorumError(
            f"the id of the metadata directory of {host} is unknown: its meta.properties has none, or was not read. "
            f"{_how_to_join(node, host)} (QS-QUORUM-005)"
        )
    if configuration(node) != DYNAMIC:
        raise QuorumError(
            f"the file of {host} does not have {BOOTSTRAP} alone, so it does not join a dynamic quorum. "
            f"{_how_to_join(node, host)} (QS-QUORUM-005)"
        )
    voter = _find(quorum["voters"], node_id)
    if voter and voter["directory_id"] == directory:
        return Change()
    if voter:
        raise QuorumError(
            f"controller {node_id} is a voter with directory {voter['directory_id']}, and {host} has directory "
            f"{directory}: its disk was replaced. Replace it: {PLAYBOOK} -e quorum_replace={host} (QS-QUORUM-006)"
        )
    observer = _find(quorum["observers"], node_id, directory)
    if observer is None or not answers:
        why = "the leader has no observer with this id and directory" if observer is None else "it does not answer"
        raise QuorumError(
            f"controller {node_id} on {host}, directory {directory}, cannot be added: {why}. "
            f"{_how_to_join(node, host)} (QS-QUORUM-005)"
        )
    if not has_caught_up(observer, quorum):
        raise QuorumError(
            f"controller {node_id} on {host} has not caught up: {describe_lag(observer, quorum)}. Wait until it has, "
            "then run again (QS-QUORUM-005)"
        )
    endpoints = registered_endpoints(nodes, node_id)
    if not endpoints:
        raise QuorumError(
            f"the registration of controller {node_id} is in no metadata log that was read, so its addresses are "
            "unknown. Run again once it is registered (QS-QUORUM-005)"
        )
    _require_majority_with(quorum)
    at = ", ".join(f"{name}://{address}:{port}" for name, address, port in endpoints)
    line = f"controller {node_id} on {host}, directory {directory}, becomes a voter at {at}"
    return Change((line,), joins=Joining(node_id, directory, endpoints))


def plan_remove(
    quorum: Mapping[str, Any],
    nodes: Mapping[str, NodeFacts],
    finalized: Mapping[str, int],
    which: str,
    cluster_id: str,
) -> Change:
    """Return what removes a voter, given its id or host: nothing where it is none. Raises QuorumError."""
    _require_dynamic(quorum, finalized)
    node_id, host = find_controller(nodes, which)
    voter = _find(quorum["voters"], node_id)
    if voter is None:
        return Change()
    runs = host and nodes[host].get("reached") and (nodes[host].get("service") or {}).get("active")
    if runs and config_values.is_true(properties_of(nodes[host]), AUTO_JOIN):
        raise QuorumError(
            f"controller {node_id} on {host} has {AUTO_JOIN}=true, and would join again by itself. Stop it first, or "
            "restart it without that key (QS-QUORUM-007)"
        )
    return _removal(quorum, voter, cluster_id, host)


def plan_replace(
    quorum: Mapping[str, Any],
    nodes: Mapping[str, NodeFacts],
    finalized: Mapping[str, int],
    host: str,
    answers: bool,
    cluster_id: str,
) -> Change:
    """Return what replaces a voter whose disk was lost by the controller with the new directory on its host: first the
    removal of the old one, without which Kafka adds no voter of the same id (VoterSet.addVoter); then, planned again,
    the addition. Raises QuorumError.
    """
    _require_dynamic(quorum, finalized)
    node = _controller(nodes, host)
    voter, directory = _find(quorum["voters"], int(node["node_id"] or 0)), directory_of(node)
    if voter is None or voter["directory_id"] == directory:
        return plan_add(quorum, nodes, finalized, host, answers)
    others = {**quorum, "voters": [each for each in quorum["voters"] if each is not voter]}
    added = plan_add(others, nodes, finalized, host, answers)
    removed = _removal(quorum, voter, cluster_id, host)
    return removed._replace(lines=(*removed.lines, *added.lines), joins=added.joins)


def plan_unregister(
    quorum: Mapping[str, Any],
    nodes: Mapping[str, NodeFacts],
    finalized: Mapping[str, int],
    which: str,
    answers_at: str,
    cluster_id: str,
) -> Change:
    """Return what unregisters a controller that is gone, given its id: nothing where it is not registered. Raises
    QuorumError.

    A controller that runs registers again, and one that is a voter may elect a leader (KAFKA-20865): neither is
    unregistered. `answers_at`: the address that it registered, if a controller answers there, else ''.
    """
    node_id, host = find_controller(nodes, which)
    if host:
        raise QuorumError(
            f"controller {node_id} is {host} of the inventory. Only a controller that is gone is unregistered: take "
            "its host out of the group kafka_controller first (QS-QUORUM-008)"
        )
    known = registrations.find_gone(nodes)
    if known is None:
        raise QuorumError(
            "no metadata log could be read, so it is unknown who is registered. Run on hosts whose log can be read "
            "(QS-QUORUM-008)"
        )
    gone = next((each for each in known if each.role == CONTROLLER and each.node_id == node_id), None)
    if gone is None:
        return Change()
    if _find(quorum["voters"], node_id):
        raise QuorumError(
            f"controller {node_id} is a voter. Remove it first: {PLAYBOOK} -e quorum_remove={node_id} (QS-QUORUM-008)"
        )
    if answers_at:
        raise QuorumError(
            f"a controller answers at {answers_at}, the address that controller {node_id} registered. Stop it, and "
            f"run again {GONE_S:.0f} s later (QS-QUORUM-008)"
        )
    observer = _find(quorum["observers"], node_id)
    seen = fetched_s(observer, quorum) if observer else None
    if observer and (seen is None or seen < GONE_S):
        when = "at an unknown time" if seen is None else f"{seen:.0f} s ago"
        raise QuorumError(
            f"controller {node_id} fetched the metadata log {when}, so it may run. Stop it, and run again "
            f"{GONE_S:.0f} s later (QS-QUORUM-008)"
        )
    if not unregisters_controllers(finalized):
        raise QuorumError(f"controller {node_id}: {how_to_unregister(gone, finalized)} (QS-QUORUM-008)")
    line = (
        f"the registration of controller {node_id} (record {gone.offset} of the metadata log) is removed. Levels may "
        "then rise above what it supports"
    )
    return Change((line,), confirmation.make_token(cluster_id, UNREGISTER, [node_id, gone.offset]), unregisters=node_id)


def find_controller(nodes: Mapping[str, NodeFacts], which: str) -> Tuple[int, str]:
    """Return (id, host) of a controller, given its id or its host; the host is '' where the inventory has none. Raises
    QuorumError for the name of no host."""
    text = str(which).strip()
    by_id = hosts_by_id(nodes, CONTROLLER)
    for node_id, host in by_id.items():
        if text == host:
            return node_id, host
    if not text.isdecimal():
        raise QuorumError(
            f"{text!r} is neither a host of the group kafka_controller nor a controller's id. Hosts: "
            f"{format_names(sorted(by_id.values())) or 'none'} (QS-QUORUM-003)"
        )
    return int(text), by_id.get(int(text), "")


def expect(
    change: Change, quorum: Mapping[str, Any], finalized: Mapping[str, int], nodes: Mapping[str, NodeFacts]
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return ({voters}, {finalized}) as a change leads to them from these."""
    hosts = hosts_by_id(nodes, CONTROLLER)
    voters = [dict(voter) for voter in quorum["voters"] if (voter["id"], voter["directory_id"]) != change.voter]
    if change.levels:
        for voter in voters:
            voter["directory_id"] = voter["directory_id"] or directory_of(nodes[hosts[voter["id"]]])
    if change.joins:
        voters.append({"id": change.joins.node_id, "directory_id": change.joins.directory_id})
    return {"voters": voters}, {"finalized": {**finalized, **({KRAFT_VERSION: 1} if change.levels else {})}}


def explain_token(change: Change, given: str) -> str:
    """Return that a change needs its token, which was not given."""
    wrong = f"The token given is {given}. " if given else ""
    return f"{'; '.join(change.lines)}. {wrong}To accept it, add -e quorum_confirm={change.token} (QS-QUORUM-001)"


def _removal(quorum: Mapping[str, Any], voter: Replica, cluster_id: str, host: str) -> Change:
    rest = [each for each in quorum["voters"] if each is not voter]
    majority = len(rest) // 2 + 1
    ready = [each for each in rest if has_caught_up(each, quorum)]
    if not rest:
        raise QuorumError(
            f"controller {voter['id']} is the only voter, and stays. Add another one first (QS-QUORUM-007)"
        )
    if len(ready) < majority:
        late = _describe_late(rest, quorum)
        raise QuorumError(
            f"without controller {voter['id']}, {len(ready)} of {len(rest)} voters have caught up, and a majority is "
            f"{majority}: {late}. Start or replace those first (QS-QUORUM-007)"
        )
    where = f" on {host}" if host else ""
    left = ", ".join(str(each["id"]) for each in rest)
    line = (
        f"controller {voter['id']}{where}, directory {voter['directory_id']}, is removed. The voters are then {left}, "
        f"{len(ready)} of which have caught up, and a majority is {majority}"
    )
    lines = [line]
    if voter["id"] == quorum["leader_id"]:
        lines.append("it leads the quorum, and resigns once its removal is committed: another one is elected")
    if len(rest) < 3:
        lines.append(f"with {len(rest)} voters, the quorum bears the loss of none")
    state = [voter["id"], voter["directory_id"], _keys(quorum)]
    return Change(
        tuple(lines), confirmation.make_token(cluster_id, REMOVE, state), voter=(voter["id"], voter["directory_id"])
    )


def _keys(quorum: Mapping[str, Any]) -> List[List[Any]]:
    return sorted([voter["id"], voter["directory_id"] or ""] for voter in quorum["voters"])


def _find(replicas: Iterable[Replica], node_id: int, directory: str | None = None) -> Replica | None:
    found = (each for each in replicas if each["id"] == node_id and directory in (None, each["directory_id"]))
    return next(found, None)


def _controller(nodes: Mapping[str, NodeFacts], host: str) -> NodeFacts:
    node = nodes.get(host)
    if node is None or node["role"] != CONTROLLER:
        listed = format_names(sorted(hosts_by_id(nodes, CONTROLLER).values())) or "none"
        raise QuorumError(f"{host!r} is no host of the group kafka_controller. Its hosts: {listed} (QS-QUORUM-003)")
    if not node.get("reached") or not isinstance(node.get("node_id"), int):
        raise QuorumError(f"{host} could not be read: {node.get('error') or 'its id is unknown'} (QS-QUORUM-003)")
    return node


def _how_to_join(node: NodeFacts, host: str) -> str:
    path = (node.get("file") or {}).get("path") or "FILE"
    return (
        f"On {host}: set {BOOTSTRAP} without {VOTERS} in {path}, format with kafka-storage.sh format "
        f"--cluster-id=CLUSTER_ID --no-initial-controllers --config {path}, start it, and run again"
    )


def _require_dynamic(quorum: Mapping[str, Any], finalized: Mapping[str, int]) -> None:
    if not finalized.get(KRAFT_VERSION, 0) or not is_dynamic(quorum):
        raise QuorumError(
            f"the quorum is static ({KRAFT_VERSION} {finalized.get(KRAFT_VERSION, 0)}), and Kafka adds and removes no "
            f"voter of it. Make it dynamic first: {PLAYBOOK} -e quorum_to=dynamic (QS-QUORUM-002)"
        )


def _require_read(nodes: Mapping[str, NodeFacts]) -> None:
    unread = [
        f"{host}: {node.get('error') or 'its properties file'}"
        for host, node in sorted(nodes.items())
        if not node.get("reached") or not properties_of(node)
    ]
    if unread:
        raise QuorumError(
            f"these hosts could not be read, and their files must change: {'; '.join(unread)}. Correct that, or leave "
            "out hosts that are gone for good with quorumshift_exclude_hosts (QS-QUORUM-004)"
        )
    lost = [host for host, node in sorted(nodes.items()) if configuration(node) == UNKNOWN]
    if lost:
        raise QuorumError(
            f"the files of {format_names(lost)} have neither {VOTERS} nor {BOOTSTRAP}. Correct quorumshift_broker_"
            "config_file or quorumshift_controller_config_file (QS-QUORUM-004)"
        )


def _require_hosts(quorum: Mapping[str, Any], nodes: Mapping[str, NodeFacts]) -> None:
    voters, hosts = {voter["id"] for voter in quorum["voters"]}, hosts_by_id(nodes, CONTROLLER)
    strangers = sorted(voters - set(hosts))
    if strangers:
        raise QuorumError(
            f"these voters are no hosts of the group kafka_controller: {', '.join(map(str, strangers))}. Add their "
            "hosts to the inventory (QS-QUORUM-004)"
        )


def _require_release(supported: Mapping[str, Mapping[str, Range]]) -> None:
    unfit = [
        name
        for name, levels in sorted(supported.items())
        for release in [core_features.release_of(levels)]
        if release is None or not table.RELEASES[release]["moves_voters"]
    ]
    if unfit:
        raise QuorumError(
            "Kafka makes a static quorum dynamic from 4.1 on, and these nodes are older, or of a release that this "
            f"collection does not know: {format_names(unfit)}. Upgrade them first with quorumshift.kafka.upgrade "
            "(QS-QUORUM-002)"
        )


def _require_same_voters(quorum: Mapping[str, Any], nodes: Mapping[str, NodeFacts]) -> None:
    """A file that names other voters than the leader has shows a change that was left half done."""
    voters = {voter["id"] for voter in quorum["voters"]}
    for host, node in sorted(nodes.items()):
        if configuration(node) != STATIC:
            continue
        named = {voter_id for voter_id, _address in _voters_in_file(nodes, host)}
        if named != voters:
            raise QuorumError(
                f"{VOTERS} of {host} names {sorted(named)}, and the quorum's voters are {sorted(voters)}. Correct the "
                "file, and restart the node (QS-QUORUM-004)"
            )


def _require_registered_addresses(quorum: Mapping[str, Any], nodes: Mapping[str, NodeFacts]) -> None:
    """Once the log has the voters, it has the addresses that controllers advertise, no longer those of the files."""
    for voter in quorum["voters"]:
        ends = registered_endpoints(nodes, voter["id"])
        if not ends:
            raise QuorumError(
                f"controller {voter['id']} has no registration in the metadata logs that were read. Run again once it "
                "has registered: from metadata.version 3.7-IV0 on, controllers do (QS-QUORUM-004)"
            )
        at = voter["endpoint"]
        if at and at not in {f"{address}:{port}" for _name, address, port in _bracketed(ends)}:
            shown = ", ".join(f"{name}://{address}:{port}" for name, address, port in _bracketed(ends))
            raise QuorumError(
                f"controller {voter['id']} is reached at {at} now, and advertises {shown}, which would replace it in "
                "the metadata log. Set advertised.listeners in its file to the address that every node reaches, and "
                "restart it with quorumshift.kafka.restart (QS-QUORUM-004)"
            )


def _voters_in_file(nodes: Mapping[str, NodeFacts], host: str) -> List[Tuple[int, str]]:
    """Return (id, host:port) of each voter in the file of a host."""
    try:
        return kraft_config.static_voters(properties_of(nodes[host]))
    except AddressError as error:
        path = (nodes[host].get("file") or {}).get("path")
        raise QuorumError(f"{path} on {host}: {error}. Correct it, then run again (QS-QUORUM-004)") from None


def _bracketed(ends: Iterable[Tuple[str, str, int]]) -> List[Tuple[str, str, int]]:
    return [(name, f"[{address}]" if ":" in address else address, port) for name, address, port in ends]


def _require_majority_with(quorum: Mapping[str, Any]) -> None:
    """One more voter raises the majority: it must have caught up with the new one."""
    voters = quorum["voters"]
    ready = sum(has_caught_up(voter, quorum) for voter in voters) + 1
    majority = (len(voters) + 1) // 2 + 1
    if ready < majority:
        raise QuorumError(
            f"with the new one, {ready} of {len(voters) + 1} voters have caught up, and a majority is {majority}: "
            f"{_describe_late(voters, quorum)}. Start or remove those first (QS-QUORUM-005)"
        )


def _require_caught_up(quorum: Mapping[str, Any]) -> None:
    late = _describe_late(quorum["voters"], quorum)
    if late:
        raise QuorumError(
            f"every voter must have caught up, and these have not: {late}. Start them, or wait, then run again "
            "(QS-QUORUM-004)"
        )


def _describe_late(replicas: Iterable[Replica], quorum: Mapping[str, Any]) -> str:
    """Return how far each of these that has not caught up is behind, "" where all have."""
    late = [replica for replica in replicas if not has_caught_up(replica, quorum)]
    return "; ".join(f"controller {replica['id']}: {describe_lag(replica, quorum)}" for replica in late)
