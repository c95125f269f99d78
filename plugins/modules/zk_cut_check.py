#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_cut_check
short_description: Check that destination servers have all of Kafka's writes on the source
version_added: 0.1.0
description:
  - With O(config_file) it runs on a source host, and reads the end of that server's transaction log. The result is
    exact. A transaction after a destination server's last one must not touch the chroot or a znode below it. The ends
    of sessions after the cut are expected.
  - Without it, it runs on a host that reaches the source's client ports, and compares the highest zxid in the Stats of
    Kafka's subtree, as Airbnb did. A change of an ACL alone is not seen then.
  - It fails unless every destination server has all writes, and reads only.
options:
  hosts:
    description: What M(quorumshift.kafka.zk_cut) returned of each destination host's cut, by host.
    type: dict
    required: true
  expected:
    description: All destination hosts.
    type: list
    elements: str
    required: true
  zookeeper_connect:
    description: All servers of the source, with Kafka's chroot.
    type: str
    required: true
  config_file:
    description: The C(zoo.cfg) of the source server on this host.
    type: path
  promoted:
    description:
      - Whether the destination serves already. The module then fails if a client wrote to Kafka's subtree of the source
        after all destination servers had been cut off. Needs O(config_file).
    type: bool
    default: false
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
  returned: success
first:
  description: The hosts that are started first.
  type: list
  elements: str
  returned: success
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
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.addresses import AddressError, parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import ensemble_cut, kafka_writes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.advice import shown
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import zookeeper_files, zookeeper_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.properties import PropertiesError
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import own_zk_server, zk_servers
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zk_wire import NoNode, ZkConnection

HEAL = "The run heals the cut"
MARGIN_S = 2.0


def main():
    """Check, and fail with what is wrong."""
    module = AnsibleModule(
        argument_spec={
            "hosts": {"type": "dict", "required": True},
            "expected": {"type": "list", "elements": "str", "required": True},
            "zookeeper_connect": {"type": "str", "required": True},
            "config_file": {"type": "path"},
            "promoted": {"type": "bool", "default": False},
            "on_broker_failure": {"type": "str", "choices": ["heal", "proceed"], "default": "heal"},
            "left_s": {"type": "float", "default": 8},
            "timeout": {"type": "float", "default": 1},
        },
        supports_check_mode=True,
    )
    given = module.params
    if given["promoted"]:
        still_written(module)
    began = time.monotonic()
    given["until"] = began + given["left_s"] - MARGIN_S
    problems = ensemble_cut.not_promotable(given["hosts"], given["expected"])
    notes = []
    lost = ensemble_cut.unreachable_brokers(given["hosts"])
    for broker, by in sorted(lost.items()):
        text = f"broker {broker} was reached before the cut, and not since, from {shown(sorted(by))}"
        (problems if given["on_broker_failure"] == "heal" else notes).append(text)
    if problems:
        module.fail_json(msg=f"{'. '.join(problems)}. {HEAL}.")
    last = {host: int(given["hosts"][host]["last"]) for host in given["expected"]}
    try:
        found = exact(given, last) if given["config_file"] else bounded(given, last)
    except (
        OSError,
        ValueError,
        AddressError,
        PropertiesError,
        WireError,
        zookeeper_log.ZooKeeperFileError,
        zookeeper_log.EphemeralsNeeded,
    ) as error:
        module.fail_json(msg=f"the source could not be read: {error or type(error).__name__}. {HEAL}.")
    if time.monotonic() >= given["until"]:
        # The hosts may serve as observers again, and what the source has logged since is no finding
        module.fail_json(
            msg=f"the check ended less than {MARGIN_S:.0f} s before the deadline: the control node or the network was "
            "too slow, or suspended. Each host undoes the cut by itself. Run again."
        )
    problems += found
    if problems:
        module.fail_json(msg=f"{'. '.join(problems)}. {HEAL}.")
    order = kafka_writes.by_progress(last)
    module.exit_json(
        changed=False,
        zxids=last,
        first=ensemble_cut.first_to_start(order, last),
        exact=bool(given["config_file"]),
        notes=notes,
        read_s=round(time.monotonic() - began, 3),
    )


def still_written(module):
    """Exit with no problem, or fail with a write to the source that the destination lacks."""
    given = module.params
    chroot = parse_zookeeper_connect(given["zookeeper_connect"]).chroot
    last = max(int(given["hosts"][host]["last"]) for host in given["expected"])
    try:
        snapshots, logs = own_zk_server.directories(own_zk_server.values_of(given["config_file"]))
        writes = kafka_writes.writes(zookeeper_log.transactions(logs, last, snapshots), chroot)
        found = [one for one in writes if not one.ends_session]
    except (OSError, PropertiesError, zookeeper_log.ZooKeeperFileError, zookeeper_log.EphemeralsNeeded) as error:
        module.fail_json(msg=f"the source could not be read after the promotion: {error or type(error).__name__}.")
    if found:
        module.fail_json(
            msg=f"a client wrote to the source after the promotion: {text_of(found[0])}, and {len(found) - 1} more. "
            "The destination lacks that. Find the client in the source's cons, move it to the destination, and repeat "
            "there what it did."
        )
    module.exit_json(changed=False, zxids={}, first=[], exact=True, notes=[], read_s=0)


def exact(given, last):
    """Return which of Kafka's writes in this source server's log a destination server lacks."""
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    snapshots, logs = own_zk_server.directories(own_zk_server.values_of(given["config_file"]))
    cut = leader_zxid(given, connect)
    while True:  # a follower logs a transaction a moment later than its leader
        logged = zookeeper_files.last_zxid(snapshots, logs)
        if logged >= cut or time.monotonic() >= given["until"]:
            break
        time.sleep(0.01)
    transactions = zookeeper_log.transactions(logs, min(last.values()), snapshots)
    lacking = kafka_writes.lacking(kafka_writes.writes(transactions, connect.chroot), last, cut, logged)
    problems = []
    for host, of in sorted(lacking.items()):
        if not of.is_read:
            problems.append(f"this source server's log reaches 0x{logged:x}, its leader 0x{cut:x}")
        if of.writes:
            problems.append(f"{host} lacks {len(of.writes)} writes of Kafka, the first {text_of(of.writes[0])}")
        if of.late:
            problems.append(
                f"a client wrote to the source after the cut: {text_of(of.late[0])}. Find it in the source's cons, and "
                "move it to the destination"
            )
    return list(dict.fromkeys(problems))


def leader_zxid(given, connect):
    """Return the zxid of the source's leader. Raises ValueError without one."""
    status = zk_servers.gather(connect.servers, None, given["timeout"])
    for one in status.values():
        if one["mode"] == "leader" and one["zxid"]:
            return one["zxid"]
    raise ValueError("none of the source's servers answers as its leader")


def text_of(write):
    """Return a write as text."""
    path, what = next(iter(write.paths.items()))
    return f"0x{write.zxid:x} ({', '.join(what)} of {path}, session 0x{write.session & (1 << 64) - 1:x})"


def bounded(given, last):
    """Return which destination servers are behind the subtree's highest zxid."""
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    leader = leader_zxid(given, connect)
    if all(zxid >= leader for zxid in last.values()):
        return []
    left = max(given["until"] - time.monotonic(), 0.1)
    with ZkConnection(connect, timeout=left) as client:
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
    newest = max(((max(one.czxid, one.mzxid, one.pzxid), path) for path, one in stats), default=(0, ""))
    found = kafka_writes.bounded(last, newest[0], leader)
    return [
        f"{host} is at 0x{last[host]:x}, and {newest[1]} of the source has 0x{newest[0]:x}"
        for host, one in sorted(found.items())
        if not one.is_complete
    ]


if __name__ == "__main__":
    main()
