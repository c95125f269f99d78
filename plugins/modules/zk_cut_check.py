#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_cut_check
short_description: Check that destination servers have all of Kafka's writes on the source
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - With O(config_file) it runs on a source host, and reads the end of that server's transaction log. The result is
    exact. A transaction after a destination server's last one must not touch the chroot or a znode below it. The ends
    of sessions after the cut are expected.
  - Without it, it runs on a host that reaches the source's client ports, and compares the highest zxid in the Stats of
    Kafka's subtree, as Airbnb did. A change of an ACL alone is not seen then.
  - It fails unless every destination server has all writes, and reads only.
options:
  state:
    description:
      - V(settings) returns the settings of the source server on this host, which destination servers must share.
      - V(read) runs before the cut, on the source host. It proves that the check can be made there, and returns the
        owners of ephemeral znodes. The log of a source before 3.6 does not list the znodes of a session that ends.
      - V(cut) is the check. V(promoted) runs once the destination serves. It fails if a client wrote to Kafka's subtree
        of the source after all destination servers had been cut off. Both need O(hosts) and O(expected).
    type: str
    choices: [settings, read, cut, promoted]
    default: cut
  hosts:
    description: What M(quorumshift.kafka.zk_cut) returned of each destination host's cut, by host.
    type: dict
    default: {}
  expected:
    description: All destination hosts.
    type: list
    elements: str
    default: []
  voters:
    description: How many servers the destination has, with those that are dead. By default, as many as O(expected).
    type: int
    default: 0
  zookeeper_connect:
    description: All servers of the source, with Kafka's chroot.
    type: str
    required: true
  config_file:
    description: The C(zoo.cfg) of the source server on this host. Only V(cut) goes without it.
    type: path
  owners:
    description: What O(state=read) returned as RV(owners).
    type: dict
  owners_zxid:
    description: What O(state=read) returned as RV(owners_zxid).
    type: int
    default: 0
  accepted_zxid:
    description: With O(state=promoted), writes up to this zxid are no finding. An operator repeated them on the
      destination.
    type: int
    default: 0
  brokers:
    description: The brokers' listeners. The notes name those that no destination host could watch.
    type: list
    elements: str
    default: []
  on_broker_failure:
    description:
      - What to do if a broker's listener was reached before the cut, and is not any more. ZooKeeper mode's controller
        cannot see that until the cut has ended. V(heal) fails, so that the run heals the cut. V(proceed) goes on.
    type: str
    choices: [heal, proceed]
    default: heal
  left_s:
    description: How many seconds are left until the hosts undo the cut by themselves. The module takes no longer.
    type: float
    default: 8
  timeout:
    description: How long a server may take to answer, in seconds.
    type: float
    default: 1
extends_documentation_fragment:
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Check that no write is missing
  quorumshift.kafka.zk_cut_check:
    hosts: "{{ cuts }}"
    expected: [z4, z5, z6]
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    config_file: /etc/zookeeper/zoo.cfg
  delegate_to: z1
"""

RETURN = r"""
zxids:
  description: The zxid to which each destination host's files lead, by host.
  type: dict
  returned: with O(state=cut)
first:
  description: The hosts that are started first.
  type: list
  elements: str
  returned: with O(state=cut)
exact:
  description: Whether the source's log was read.
  type: bool
  returned: success
notes:
  description: What was seen and is no problem.
  type: list
  elements: str
  returned: success
read_s:
  description: How long reading the source took, in seconds.
  type: float
  returned: success
settings:
  description: Settings of the source server on this host.
  type: dict
  returned: with O(state=settings)
owners:
  description: The session of each ephemeral znode of Kafka, by path; null if the source's snapshot cannot be read.
  type: dict
  returned: with O(state=read)
owners_zxid:
  description: The zxid to which RV(owners) are known.
  type: int
  returned: with O(state=read)
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    ensemble_cut,
    kafka_writes,
    source_mark,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import (
    ZOOKEEPER_CLIENT_OPTIONS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import (
    own_zk_server,
    zk_host,
    zk_servers,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, ZkSecurity
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    AddressError,
    parse_zookeeper_connect,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.properties import PropertiesError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.zk_wire import NoNode, ZkConnection

HEAL = "The run heals the cut"
MARGIN_S = 2.0
ERRORS = (
    OSError,
    ValueError,
    KeyError,
    AddressError,
    PropertiesError,
    SecurityError,
    WireError,
    zk_log.ZooKeeperFileError,
    zk_log.EphemeralsNeeded,
)
LISTS_PATHS = (3, 6)  # CloseSessionTxn


def main():
    """Check, and fail with what is wrong."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["settings", "read", "cut", "promoted"], "default": "cut"},
            "hosts": {"type": "dict", "default": {}},
            "expected": {"type": "list", "elements": "str", "default": []},
            "voters": {"type": "int", "default": 0},
            "zookeeper_connect": {"type": "str", "required": True},
            "zookeeper_client": {"type": "dict", "options": ZOOKEEPER_CLIENT_OPTIONS},
            "config_file": {"type": "path"},
            "owners": {"type": "dict"},
            "owners_zxid": {"type": "int", "default": 0},
            "accepted_zxid": {"type": "int", "default": 0},
            "brokers": {"type": "list", "elements": "str", "default": []},
            "on_broker_failure": {"type": "str", "choices": ["heal", "proceed"], "default": "heal"},
            "left_s": {"type": "float", "default": 8},
            "timeout": {"type": "float", "default": 1},
        },
        required_if=[("state", state, ["config_file"]) for state in ("settings", "read", "promoted")],
        supports_check_mode=True,
    )
    work, failed = {
        "settings": (settings, "Nothing was changed"),
        "read": (read_owners, "Nothing was cut"),
        "cut": (check, HEAL),
        "promoted": (check_not_written, "The destination serves, and is not verified. Run again"),
    }[module.params["state"]]
    try:
        module.exit_json(changed=False, **work(module))
    except ERRORS as error:
        module.fail_json(msg=f"the source could not be read: {error_text(error)}. {failed}. (QS-ZKMOVE-014)")


def error_text(error):
    """Return an error as text."""
    if isinstance(error, zk_log.EphemeralsNeeded):
        return (
            "a session ended, and the log does not list its znodes, as before 3.6 or with "
            "closeSessionTxn.enabled=false; a snapshot that lists them could not be read before"
        )
    if isinstance(error, KeyError):
        return f"its zoo.cfg has no {error.args[0]}"
    return str(error) or type(error).__name__


def settings(module):
    """Return the settings of this host's server that destination servers must share."""
    config_file = module.params["config_file"]
    return {"settings": zk_host.settings(own_zk_server.read_values(config_file), zk_host.read_arguments(config_file))}


def read_owners(module):
    """Return the owners of Kafka's ephemeral znodes. Fail the module if the check could not be made on this host."""
    given = module.params
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    status = collect_servers(given, connect)
    leader_zxid(status)
    snapshots, logs = directories(given)
    try:
        zxid, owners = zk_files.ephemerals(snapshots, logs, connect.chroot)
    except zk_log.ZooKeeperFileError as error:
        versions = [tuple(answer["version"][:2]) for answer in status.values() if answer["version"]]
        if not versions or min(versions) < LISTS_PATHS:
            module.fail_json(
                msg="the source is older than ZooKeeper 3.6, whose log does not list the znodes of a session that "
                f"ends, and its snapshot cannot be read: {error}. Make another source host the first of the group "
                "zookeeper_source. Nothing was cut. (QS-ZKMOVE-011)"
            )
        return {"owners": None, "owners_zxid": 0}
    return {"owners": owners, "owners_zxid": zxid}


def check(module):
    """Return the verdict of a cut. Fail the module with all that is against the promotion."""
    given, began = module.params, time.monotonic()
    given["until"] = began + given["left_s"] - MARGIN_S
    problems = ensemble_cut.check_promotable(given["hosts"], given["expected"])
    notes = []
    lost = ensemble_cut.find_unreachable_brokers(given["hosts"])
    for broker, by in sorted(lost.items()):
        text = f"broker {broker} was reached before the cut, and not since, from {format_names(sorted(by))}"
        (problems if given["on_broker_failure"] == "heal" else notes).append(text)
    if problems:
        module.fail_json(msg=f"{'. '.join(problems)}. {HEAL}.")
    unwatched = ensemble_cut.find_unwatched_brokers(given["hosts"], given["brokers"])
    if unwatched:
        notes.append(
            f"no destination host reaches brokers {format_names(unwatched)}, so nothing shows whether they fail during "
            "the cut"
        )
    last = {host: int(given["hosts"][host]["last"]) for host in given["expected"]}
    found = find_lacking(given, last) if given["config_file"] else find_behind(given, last)
    if time.monotonic() >= given["until"]:
        # The hosts may serve as observers again, and what the source has logged since is no finding
        module.fail_json(
            msg=f"the check ended less than {MARGIN_S:.0f} s before the deadline: the control node or the network was "
            "too slow, or suspended. Each host undoes the cut by itself. Run again. (QS-ZKMOVE-014)"
        )
    if found:
        module.fail_json(msg=f"{'. '.join(found)}. {HEAL}.")
    order = kafka_writes.sort_by_progress(last)
    return {
        "zxids": last,
        "first": ensemble_cut.choose_first(order, last, given["voters"] or len(last)),
        "exact": bool(given["config_file"]),
        "notes": notes,
        "read_s": round(time.monotonic() - began, 3),
    }


def check_not_written(module):
    """Return that there is no problem. Fail the module with a write to the source that the destination lacks."""
    given = module.params
    chroot = parse_zookeeper_connect(given["zookeeper_connect"]).chroot
    last = max(int(given["hosts"][host]["last"]) for host in given["expected"])
    snapshots, logs = directories(given)
    # the ends of sessions are expected, so no owners are needed
    transactions = zk_log.transactions(logs, max(last, given["accepted_zxid"]), snapshots)
    found = [write for write in kafka_writes.writes(transactions, chroot, {}) if not write.ends_session]
    found = kafka_writes.without_mark(found, f"{chroot}{source_mark.PATH}")
    if found:
        module.fail_json(
            msg=f"a client wrote to the source after the promotion: {kafka_writes.format_write(found[0])}, and "
            f"{len(found) - 1} more. The destination lacks that. Find the client in the source's cons, move it to the "
            "destination, and repeat there what it did. Then run quorumshift.kafka.zk_migrate again with "
            f"-e zk_migrate_accepted_zxid={found[-1].zxid} (QS-ZKMOVE-017)"
        )
    return {"exact": True, "notes": []}


def find_lacking(given, last):
    """Return which of Kafka's writes in this source server's log a destination server lacks."""
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    snapshots, logs = directories(given)
    cut = leader_zxid(collect_servers(given, connect), zk_files.last_zxid(snapshots, logs))
    while True:  # a follower logs a transaction a moment later than its leader
        logged = zk_files.last_zxid(snapshots, logs)
        if logged >= cut or time.monotonic() >= given["until"]:
            break
        time.sleep(0.01)
    least, owners = min(last.values()), given["owners"]
    if owners is not None:
        least, owners = min(least, given["owners_zxid"]), {path: int(session) for path, session in owners.items()}
    transactions = zk_log.transactions(logs, least, snapshots)
    lacking = kafka_writes.find_lacking(kafka_writes.writes(transactions, connect.chroot, owners), last, cut, logged)
    problems = []
    for host, of in sorted(lacking.items()):
        if not of.is_read:
            problems.append(f"this source server's log reaches 0x{logged:x}, its leader 0x{cut:x}")
        if of.writes:
            first = kafka_writes.format_write(of.writes[0])
            problems.append(f"{host} lacks {len(of.writes)} writes of Kafka, the first {first}")
        if of.late:
            problems.append(
                f"a client wrote to the source after the cut: {kafka_writes.format_write(of.late[0])}. Find it in the "
                "source's cons, and move it to the destination"
            )
    return list(dict.fromkeys(problems))


def directories(given):
    """Return the `version-2` directories of this source server."""
    return own_zk_server.directories(own_zk_server.read_values(given["config_file"]))


def collect_servers(given, connect):
    """Return the status of all source servers."""
    return zk_servers.collect(connect.servers, security(given).ssl_context(), given["timeout"])


def security(given):
    """Return how to connect to the source."""
    return ZkSecurity.from_options(given["zookeeper_client"])


def leader_zxid(status, own=0):
    """Return the zxid that every destination server must have processed. `own`: that of this source server's files.
    Raises ValueError without a leader."""
    if not ensemble_cut.has_leader(status):
        errors = [f"{server}: {answer['error']}" for server, answer in sorted(status.items()) if answer["error"]]
        raise ValueError(
            "none of the source's servers answers as its leader from this host. Its client ports must be reachable, "
            f"without TLS if zookeeper_client has none{'; ' if errors else ''}{'; '.join(errors)} (QS-ZKMOVE-011)"
        )
    return ensemble_cut.leader_zxid(status) or own


def find_behind(given, last):
    """Return which destination servers are behind the subtree's highest zxid."""
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    leader = leader_zxid(collect_servers(given, connect))
    if all(zxid >= leader for zxid in last.values()):
        return []
    left = max(given["until"] - time.monotonic(), 0.1)
    with ZkConnection(connect, security(given), timeout=left) as client:
        client.sync()  # the server may be behind the leader
        stats = []
        todo = ["/"]
        while todo:
            path = todo.pop()
            stat = client.exists(path)
            if stat is None:
                continue
            stats.append((path, stat))
            try:
                children = client.children(path) if stat.num_children else []
            except NoNode:
                continue
            todo += [f"{path.rstrip('/')}/{name}" for name in children]
    if not stats:
        raise ValueError(
            f"{connect.chroot or '/'} does not exist on the source. Correct the chroot in its connect "
            "string (QS-ZKMOVE-011)"
        )
    newest = max(((max(znode.czxid, znode.mzxid, znode.pzxid), path) for path, znode in stats), default=(0, ""))
    found = kafka_writes.compare_bounds(last, newest[0], leader)
    return [
        f"{host} is at 0x{last[host]:x}, and {newest[1]} of the source has 0x{newest[0]:x}"
        for host, lacking in sorted(found.items())
        if not lacking.is_complete
    ]


if __name__ == "__main__":
    main()
