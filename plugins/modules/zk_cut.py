#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_cut
short_description: Cut a ZooKeeper observer off from its source and make it a voter of its own ensemble
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on each host of the destination ensemble. A detached worker does the steps, each at an order, so that no
    connection is needed in between.
  - O(state=begun) fences the client port for all clients and arms a timer of systemd. At O(deadline_s) the timer undoes
    fence and cut, unless the host was promoted. Neither the control node nor the worker is needed for that.
  - O(state=cut) resets the connections to the source's quorum and election ports, waits until the server no longer
    serves, and returns the zxid to which its files lead.
  - O(state=promoted) makes the server a voter and restarts it. From then on the host does not undo anything by itself.
  - O(state=open) says that all hosts accepted their promotion, and waits until the server serves and its client port is
    open. Without it, the port is opened once this server leads and all others follow, or another server says that of
    itself.
  - While a promotion is under way, two fences keep clients away. The firewall rules reject them. A policy rule of
    C(ip) keeps the server's answers on this host, also where something loads the filter table anew. Missing ones
    are made again. Where both were gone, the server is stopped, and the host is suspended.
  - O(state=healed) undoes cut and fence on a host that was not promoted.
  - O(state=rehearsed) does the same at the end of a cut that was begun with O(rehearsed=true), by an order as
    O(state=promoted) would be. O(state=observing) then waits until the server is an observer of the source again.
  - O(state=resumed) goes on with a promotion that all hosts accepted, for example after a reboot.
  - O(state=suspended) keeps a promotion from going on, so that it opens no client port. O(state=taken_back) then undoes
    it, if Kafka wrote nothing to the server. It moves the server's data away, because they are of an ensemble of its
    own, and leaves the server stopped.
  - O(state=verified) notes that a run has verified the destination.
  - O(state=reserved) says that this run is about to restart brokers. A run that has read the host before begins no cut
    any more. It fails while a cut is under way.
  - O(state=cleaned) stops the server of a host that returned after it was named dead, moves its data away, and removes
    all that is left of a cut.
  - O(state=added) makes an empty server a voter of an ensemble that was promoted without it, and waits until it
    follows.
  - O(state=located) returns what O(state=read) does, and changes nothing at all.
  - O(state=read) changes nothing but firewall rules for addresses of no host, which it removes at once. It proves so
    that the real ones can be made.
options:
  state:
    description: What to do.
    type: str
    required: true
    choices: [read, located, begun, cut, promoted, open, verified, healed, rehearsed, observing, resumed, suspended,
      taken_back, reserved, cleaned, added]
  id:
    description: The id of this cut. Orders with another id are ignored.
    type: str
    default: ''
  host:
    description: This host's name in the inventory. The action plugin fills it in.
    type: str
    required: true
  config_file:
    description: The server's C(zoo.cfg).
    type: path
    required: true
  service:
    description: The server's service.
    type: str
    default: zookeeper
  myid:
    description: The id of this host's server.
    type: int
    required: true
  destination_servers:
    description: The address of each destination server by its id, as C(host:quorum port:election port).
    type: dict
    required: true
  destination_connect:
    description: The client ports of all destination servers, as in C(zookeeper.connect).
    type: str
    required: true
  source_addresses:
    description: Further host names or addresses of source servers, for example of another address family. Those in the
      server lines of O(config_file) are always cut off.
    type: list
    elements: str
    default: []
  brokers:
    description: The brokers' listeners, as C(host:port). The worker watches those that it reaches before the cut.
    type: list
    elements: str
    default: []
  deadline_s:
    description: After how many seconds the host undoes fence and cut by itself.
    type: float
    default: 12
  zxids:
    description: With O(state=promoted), the zxid to which each host's files lead, by host, as checked.
    type: dict
    default: {}
  first:
    description: With O(state=promoted), the hosts that start first. The others start once there is a leader.
    type: list
    elements: str
    default: []
  first_s:
    description: With O(state=promoted), how long the others wait at most, in seconds. A server that starts first may be
      down, and then the others elect without it.
    type: float
    default: 60
  rehearsed:
    description: With O(state=begun), whether this cut is a rehearsal. The host then refuses to be promoted.
    type: bool
    default: false
  dead:
    description: The id of each destination host that the operator named dead, by host. O(state=read) returns which of
      their addresses answer. O(state=begun) notes that the promotion goes without them. O(state=taken_back) notes those
      that may have accepted the promotion. The action plugin fills it in.
    type: dict
    default: {}
  source_snapshots:
    description: With O(state=begun), what M(quorumshift.kafka.zk_tree_snapshot) read of source servers before the cut,
      C({host, snapshot, zxid}) each. The host keeps it for a later run that verifies the destination.
    type: list
    elements: dict
    default: []
  one_promoted:
    description: With O(state=resumed), whether another destination server was promoted. A suspended host goes on only
      then.
    type: bool
    default: false
  rolls_back:
    description: With O(state=healed) and O(state=suspended), whether a rollback begins. It is counted on the host.
    type: bool
    default: false
  moves:
    description: With O(state=begun) and O(state=reserved), how many runs had begun to move brokers when this one read
      the host. It fails if there are more now.
    type: int
  reason:
    description: With O(state=healed), why.
    type: str
    default: ''
  timeout_s:
    description: How long to wait for the worker, in seconds.
    type: float
    default: 10
extends_documentation_fragment:
  - quorumshift.kafka.host_record
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Shows no differences.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Fence the client port
  quorumshift.kafka.zk_cut:
    state: begun
    id: "{{ cut_id }}"
    config_file: /etc/zookeeper/zoo.cfg
    myid: 44
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    destination_connect: z4:2181,z5:2181,z6:2181/kafka
    deadline_s: 12
"""

RETURN = r"""
cut:
  description: >-
    Of this host: C(state), C(id), C(reason), C(last) (the zxid to which its files lead), C(steps) with their times,
    C(waits) (what the worker waits for, as it was seen last),
    C(brokers_watched), C(brokers_lost), C(works) (whether a worker runs), C(rules) (how many rules it has),
    C(verified), C(dead) (the hosts that were named dead when the cut began), O(source_snapshots). With O(state=read),
    and where it is so,
    C(opens) (the run said that all hosts accepted), C(written) (what Kafka wrote since), C(moves) (how many runs
    began to move brokers), C(taken_back_without) (hosts that were dead when this promotion was taken back), C(clean)
    (there is nothing of a cut, no data and no server).
  type: dict
  returned: success
server:
  description: >-
    Of its server: C(mode), C(zxid), C(znodes), C(timeouts_ms) (of the sessions' on it), C(observes), C(votes) (whether
    its configuration makes it an observer, or a voter of the destination), C(entries) (of O(destination_connect), that
    are addresses of this server), C(ids) (of O(destination_servers), whose addresses are of this host), C(answering)
    (addresses of hosts in O(dead) that accept a connection from this host).
  type: dict
  returned: with O(state=read) and O(state=located)
moved:
  description: Where the server's data was moved; empty if there was none.
  type: str
  returned: with O(state=taken_back) and O(state=cleaned)
moves:
  description: How many runs began to move brokers, with this one.
  type: int
  returned: with O(state=reserved)
problems:
  description: What prevents a cut on this host, each with its remedy.
  type: list
  elements: list
  returned: with O(state=read) and O(state=located)
"""

import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    cut_host,
    ensemble_cut,
    ensemble_move,
    zk_observer,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import rules as firewall
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import state as cut_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import ZooKeeperFileError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_host_port,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.properties import PropertiesError
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError

ERRORS = (
    cut_host.CutError,
    AddressError,
    PropertiesError,
    ZooKeeperFileError,
    service.ServiceError,
    RestartError,
    OSError,
    ValueError,
    KeyError,
)
_ZXID = re.compile(r"^Zxid: 0x([0-9a-f]+)", re.MULTILINE)


def main():
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "required": True,
                "choices": list(WORK),
            },
            "id": {"type": "str", "default": ""},
            **host_state.OPTIONS,
            "host": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "default": "zookeeper"},
            "myid": {"type": "int", "required": True},
            "destination_servers": {"type": "dict", "required": True},
            "destination_connect": {"type": "str", "required": True},
            "source_addresses": {"type": "list", "elements": "str", "default": []},
            "brokers": {"type": "list", "elements": "str", "default": []},
            "deadline_s": {"type": "float", "default": 12},
            "zxids": {"type": "dict", "default": {}},
            "first": {"type": "list", "elements": "str", "default": []},
            "first_s": {"type": "float", "default": 60},
            "rehearsed": {"type": "bool", "default": False},
            "dead": {"type": "dict", "default": {}},
            "source_snapshots": {"type": "list", "elements": "dict", "default": []},
            "one_promoted": {"type": "bool", "default": False},
            "rolls_back": {"type": "bool", "default": False},
            "moves": {"type": "int"},
            "reason": {"type": "str", "default": ""},
            "timeout_s": {"type": "float", "default": 10},
        },
        supports_check_mode=True,
    )
    given = module.params
    if module.check_mode and given["state"] not in ("read", "located"):
        module.exit_json(changed=True, cut={})
    try:
        module.exit_json(**WORK[given["state"]](given))
    except ERRORS as error:
        text = f"{type(error).__name__}: {error}" if isinstance(error, (KeyError, ValueError)) else str(error)
        module.fail_json(msg=f"{message_ids.drop_full_stop(text)}.", cut=read_known(given))


def read_known(given):
    """Return what is known of the cut on this host."""
    directory = cut_state.path_of(given)
    rules = firewall.count_rules(ensemble_cut.CUT_COMMENT, ensemble_cut.FENCE_COMMENT)
    return {
        **cut_state.read_record(directory),
        "state": cut_state.read_state(directory),
        "works": cut_state.is_worker_running(),
        "rules": rules,
        "verified": cut_state.is_verified(directory),
    }


def read_dead(given):
    """Return what the decision needs where a destination host is dead, was, or is there again."""
    directory = cut_state.path_of(given)
    record, order = cut_state.read_record(directory), cut_state.read_order(directory)
    state = cut_state.read_state(directory)
    return {
        "opens": bool(record.get("id")) and order.get("id") == record["id"] and order.get("name") == "all",
        "written": steps.carry_out(given, cut_host.what_was_written) if state == ensemble_cut.SUSPENDED else "",
        "moves": cut_state.read_moves(directory),
        "taken_back_without": cut_state.read_taken_back_without(directory),
        "clean": steps.carry_out(given, lambda _spec: cut_host.is_clean()),
    }


def located(given):
    """Return the host's state, and what prevents a cut as far as that is known without any change."""
    return read(given, tries_rules=False)


def read(given, tries_rules=True):
    """Return the host's state, and what prevents a cut."""
    cut_seen, values = {**read_known(given), **read_dead(given)}, own_zk_server.read_values(given["config_file"])
    members = steps.read_members(given["config_file"])
    destination = {int(number) for number in given["destination_servers"]}
    source = [number for number in members if number not in destination]
    own = members.get(given["myid"])
    server = {
        "mode": own_zk_server.read_mode(values),
        "zxid": None,
        "znodes": 0,
        "timeouts_ms": [],
        "observes": bool(own and own.observes and source),
        "votes": bool(own and not own.observes and not source),
        "entries": steps.find_own_entries(parse_zookeeper_connect(given["destination_connect"]).servers, values),
        "ids": [
            int(number)
            for number, address in given["destination_servers"].items()
            if steps.is_local(parse_host_port(zk_observer.quorum_address(zk_observer.Member(address))).host)
        ],
        "answering": steps.find_answering(given, values),
    }
    problems = []
    dead = {host: int(number) for host, number in given["dead"].items()}
    servers = {int(number): address for number, address in given["destination_servers"].items()}
    found = list(ensemble_move.check_dead_hosts(dead, servers, {given["host"]: server["answering"]}))
    found += ensemble_cut.find_leftovers(given["host"], cut_seen["state"], cut_seen["rules"], cut_seen["works"])
    problems += [[finding.seen, finding.do] for finding in found]
    if server["mode"]:
        answers = {word: own_zk_server.ask(values, word) for word in ("srvr", "mntr", "cons")}
        forbidden = [word for word, answer in answers.items() if "not in the whitelist" in answer]
        if forbidden:
            problems.append(
                [
                    f"{given['config_file']} on {given['host']} forbids four-letter words: {', '.join(forbidden)}",
                    "add them to its 4lw.commands.whitelist, and restart the server",
                ]
            )
        zxid = _ZXID.search(answers["srvr"])
        server["zxid"] = int(zxid[1], 16) if zxid else None
        server["znodes"] = ensemble_cut.count_znodes(answers["mntr"])
        server["timeouts_ms"] = [client["timeout_ms"] for client in ensemble_cut.parse_clients(answers["cons"])]
    if server["observes"]:
        why = service.explain_no_systemd()
        if why:
            seen_there = f"{given['host']} has no usable systemd, which runs the worker and its deadline: {why}"
            problems.append([seen_there, "start destination servers with systemd"])
        elif tries_rules:
            prepared = steps.prepare(given)
            rules = [ensemble_cut.Rule(*rule) for rule in (*prepared["fence"], *prepared["cut"])]
            why = firewall.explain_no_rules(rules)
            if why:
                problems.append(
                    [f"the firewall rules of the cut cannot be made on {given['host']}: {why}", "fix that on the host"]
                )
    if len(destination) < 3:
        problems.append([f"destination_servers has {len(destination)} servers", "an ensemble needs at least 3"])
    return {"changed": False, "cut": cut_seen, "server": server, "problems": problems}


def begun(given):
    """Fence."""
    steps.carry_out(given, cut_host.begin)
    directory = cut_state.path_of(given)
    return await_state(given, directory, (ensemble_cut.FENCED, ensemble_cut.HEALED), ensemble_cut.FENCED)


def reject_order(given):
    """Refuse an order: the action plugin gives it."""
    raise cut_host.CutError(
        f"the state {given['state']} is reached by the action plugin alone. Nothing was changed (QS-ZKMOVE-014)"
    )


def healed(given):
    """Undo cut and fence."""
    before = read_known(given)
    steps.carry_out(given, cut_host.heal)
    return {"changed": bool(before["rules"]), "cut": read_known(given)}


def observing(given):
    """Wait until the server is an observer again after a rehearsed cut."""
    deadline = time.monotonic() + given["timeout_s"]
    while True:
        found = read_known(given)
        if any(step["name"] == cut_host.OBSERVES for step in found.get("steps") or ()) and not found["rules"]:
            return {"changed": False, "cut": found}
        if time.monotonic() >= deadline:
            raise cut_host.CutError(
                f"{given['host']} is no observer {given['timeout_s']:.0f} s after its rehearsed cut was healed: it "
                f"serves as {own_zk_server.read_mode(own_zk_server.read_values(given['config_file'])) or 'nothing'}, "
                f"and has {found['rules']} rules of the cut. See its server's log (QS-ZKMOVE-014)"
            )
        time.sleep(cut_host.POLL_S)


def resumed(given):
    """Finish a promotion."""
    steps.carry_out(given, cut_host.resume)
    return {"changed": True, "cut": read_known(given)}


def suspended(given):
    """Keep a promotion from going on."""
    steps.carry_out(given, cut_host.suspend)
    return {"changed": True, "cut": read_known(given)}


def taken_back(given):
    """Undo a promotion."""
    return {"changed": True, "moved": steps.carry_out(given, cut_host.take_back), "cut": read_known(given)}


def verified(given):
    """Note that the destination was verified."""
    before = read_known(given)
    steps.carry_out(given, cut_host.verify)
    return {"changed": not before["verified"], "cut": read_known(given)}


def await_state(given, directory, wanted, *good):
    """Wait for a state; return the result, or raise CutError if it is not a good one."""
    state = cut_state.wait_state(directory, wanted, given["timeout_s"])
    found = read_known(given)
    if state in good:
        return {"changed": True, "cut": found}
    log = "" if found["works"] else f". Its worker has ended: journalctl -u {ensemble_cut.UNIT}"
    raise cut_host.CutError(
        f"{given['host']} is in state {state} after {given['timeout_s']:.0f} s, not {good[0]}: "
        f"{found.get('reason') or found.get('waits') or 'no reason is known'}{log} (QS-ZKMOVE-014)"
    )


def cleaned(given):
    """Leave nothing of a cut."""
    return {"changed": True, "moved": steps.carry_out(given, cut_host.clean), "cut": read_known(given)}


def reserved(given):
    """Keep other runs that have read this host from a cut."""
    steps.carry_out(given, cut_host.reserve)
    return {"changed": True, "cut": read_known(given), "moves": given["moves"] + 1}


def added(given):
    """Join the ensemble that serves."""
    steps.carry_out(given, cut_host.add)
    return {"changed": True, "cut": read_known(given)}


WORK = {
    "read": read,
    "located": located,
    "begun": begun,
    "cut": reject_order,
    "promoted": reject_order,
    "open": reject_order,
    "verified": verified,
    "healed": healed,
    "rehearsed": reject_order,
    "observing": observing,
    "resumed": resumed,
    "suspended": suspended,
    "taken_back": taken_back,
    "reserved": reserved,
    "cleaned": cleaned,
    "added": added,
}

if __name__ == "__main__":
    main()
