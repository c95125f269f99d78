#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal_znodes
short_description: Read a cluster's znodes for a rehearsal, and write the rehearsal's own
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads the cluster from ZooKeeper or from a backup (M(quorumshift.kafka.zk_backup)), and never writes to it.
  - Writes into the rehearsal's own ensemble alone, which has no znodes but those of the rehearsal.
  - Passwords are left out, and SCRAM credentials are replaced by random ones.
  - Runs on a host with kazoo, confluent-kafka and access to both.
options:
  state:
    description:
      - V(read) reads the cluster, plans the rehearsal's nodes, and writes its znodes into the file O(path).
      - V(written) writes the znodes of that file into O(rehearsal_servers).
      - V(released) waits for the brokers, allows the election of a controller, and waits for all replicas in sync.
    type: str
    choices: [read, written, released]
    required: true
  path:
    description:
      - The file with the znodes of the rehearsal, in the format of M(quorumshift.kafka.zk_backup). It has no secret.
    type: path
    required: true
  backup:
    description:
      - A backup of the cluster. Without one, O(state=read) reads the cluster at O(zookeeper_connect).
    type: path
  hosts:
    description: How many hosts the rehearsal has.
    type: int
    default: 3
  rehearsal_servers:
    description: The rehearsal's ZooKeeper servers, as C(host:port,host:port). Required unless O(state=read).
    type: str
  rehearsal_bootstrap:
    description: The rehearsal's brokers, each as C(host:port). Required with O(state=released).
    type: list
    elements: str
    default: []
  rehearsal_id:
    description: The rehearsal's cluster id. Required unless O(state=read).
    type: str
  brokers:
    description: The rehearsal's brokers. Required unless O(state=read).
    type: list
    elements: int
    default: []
  wait_s:
    description: How long each wait may take.
    type: float
    default: 600
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Writes nothing into ZooKeeper.}
  diff_mode: {support: none, description: Data of znodes may be secret.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the cluster
  quorumshift.kafka.rehearsal_znodes:
    state: read
    path: /tmp/quorumshift-rehearsal-8w7/zookeeper.jsonl.gz
    bootstrap_servers: [b1:9092]
    zookeeper_connect: zk1:2181,zk2:2181,zk3:2181/kafka
"""

RETURN = r"""
source:
  description: What the rehearsal has to know of the cluster (cluster id, brokers, endpoints, numbers).
  type: dict
  returned: O(state=read)
plan:
  description: The ids of the rehearsal's brokers and controllers, and the most replicas that a broker gets.
  type: dict
  returned: O(state=read)
settings:
  description: The settings of one of the cluster's brokers that the rehearsal takes over, {} where none answered.
  type: dict
  returned: O(state=read)
left:
  description: What is left out or replaced, and how often.
  type: dict
  returned: O(state=read)
blocks:
  description: What would stop the cluster's own migration and is not rehearsed, and how often.
  type: dict
  returned: O(state=read)
znodes:
  description: How many znodes were written.
  type: int
  returned: O(state=written)
data_bytes:
  description: Bytes of their data.
  type: int
  returned: O(state=written)
registered_s:
  description: After how many seconds the brokers were registered.
  type: float
  returned: O(state=released)
in_sync_s:
  description: After how many more seconds all replicas were in sync.
  type: float
  returned: O(state=released)
seconds:
  description: How long the module took.
  type: float
  returned: success
"""

import os
import tempfile
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import tree
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import rehearsal_id
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import topics
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_ports
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, importing, taking
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write.zk_writing import WriteError

_TOOL = "quorumshift.kafka rehearsal"
_CONNECT_S = 15.0
_ANSWER_S = 60.0
_POLL_S = 1.0


def main():
    """Read, write or release."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["read", "written", "released"]},
            "path": {"type": "path", "required": True},
            "backup": {"type": "path"},
            "hosts": {"type": "int", "default": 3},
            "rehearsal_servers": {"type": "str"},
            "rehearsal_bootstrap": {"type": "list", "elements": "str", "default": []},
            "rehearsal_id": {"type": "str"},
            "brokers": {"type": "list", "elements": "int", "default": []},
            "wait_s": {"type": "float", "default": 600},
        },
        required_if=[
            ("state", "written", ["rehearsal_servers", "rehearsal_id", "brokers"]),
            ("state", "released", ["rehearsal_servers", "rehearsal_id", "brokers", "rehearsal_bootstrap"]),
        ],
    )
    work = {"read": _read, "written": _write, "released": _release}[module.params["state"]]
    began = time.monotonic()

    def timed():
        return {**work(module), "seconds": round(time.monotonic() - began, 1)}

    try:
        module.run(timed)
    except backup_file.BackupError as error:
        module.fail_json(msg=str(error))
    except znodes.ZnodeError as error:
        module.fail_json(
            msg=f"ZooKeeper's {error}. The preflight checks name such znodes: run quorumshift.kafka.preflight "
            "(QS-REHEARSE-003)"
        )
    except WriteError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename or module.params['path']}: {error.strerror} (QS-HOST-002)")


def _read(module):
    given = module.params
    if given["backup"]:
        return _transform(module, given["backup"])
    # What it has of secrets is on no disk any more when this ends
    with tempfile.TemporaryDirectory(prefix="quorumshift-", dir=os.path.dirname(given["path"])) as directory:
        path = os.path.join(directory, "zookeeper.jsonl.gz")
        _take(module, path)
        return _transform(module, path)


def _transform(module, path):
    given = module.params
    backup = backup_file.Backup(path).check()
    source = tree.survey(backup.znodes())
    if not source.brokers:
        module.fail_json(
            msg=f"{given['backup'] or given['zookeeper_connect']} has no broker and no topic: there is nothing to "
            "rehearse. Check the chroot of quorumshift_zookeeper_connect (QS-REHEARSE-003)"
        )
    plan = tree.plan(source, given["hosts"])
    rehearsal = tree.Rehearsal(source, plan.brokers, rehearsal_id.new(os.urandom), os.urandom)
    made = importing.save(rehearsal.nodes(backup.znodes()), given["path"], rehearsal.cluster_id)
    known = source._asdict()
    known.pop("replication")
    return {
        "changed": True,
        "source": {**known, "znodes": backup.trailer["znodes"], "taken_at": backup.header["taken_at"]},
        "plan": {
            **plan._asdict(),
            **made,
            "replicas": max(rehearsal.replicas.values(), default=0),
            "rehearsal_id": rehearsal.cluster_id,
        },
        "settings": {} if given["backup"] else _settings(module, source),
        "left": dict(sorted(rehearsal.left.items())),
        "blocks": dict(sorted(rehearsal.blocks.items())),
    }


def _take(module, path):
    connections = module.connections
    servers = connections.zookeeper
    if servers is None:
        module.fail_json(
            msg="quorumshift_zookeeper_connect is not set, and rehearse_backup names no file: there is nothing to "
            "rehearse. Set one of them (QS-REHEARSE-003)"
        )
    with zookeeper.connect(str(servers), timeout=_CONNECT_S, **connections.zookeeper_client.kazoo()) as client:
        taking.take(client, path, str(servers), _TOOL, timeout=_ANSWER_S)


def _settings(module, source):
    """Return the comparable settings of the first of the cluster's brokers that answers, {} where none does."""
    connections = module.connections
    for broker in source.registered:
        try:
            found = topics.read_broker_configs(connections.bootstrap, connections.client, broker, connections.timeout)
        except topics.KafkaException:
            continue
        return tree.comparable(found)
    return {}


def _write(module):
    given = module.params
    made = backup_file.Backup(given["path"]).check()
    if made.header["cluster_id"] != given["rehearsal_id"]:
        module.fail_json(msg=f"{given['path']} is of another rehearsal. Run rehearse again (QS-REHEARSE-003)")
    if module.check_mode:
        return {"changed": True}
    with zookeeper.connect(given["rehearsal_servers"], timeout=_CONNECT_S) as client:
        importing.create_root(client, given["rehearsal_id"], _ANSWER_S)
    with zookeeper.connect(given["rehearsal_servers"] + importing.CHROOT, timeout=_CONNECT_S) as client:
        written = importing.write(client, made.znodes(), given["rehearsal_id"], _ANSWER_S)
    return {"changed": True, **written}


def _release(module):
    given = module.params
    if module.check_mode:
        return {"changed": True}
    with zookeeper.connect(given["rehearsal_servers"] + importing.CHROOT, timeout=_CONNECT_S) as client:
        registered_s = importing.wait_registered(client, given["brokers"], _ANSWER_S, given["wait_s"])
        importing.release(client, given["rehearsal_id"], _ANSWER_S)
    bootstrap = parse_host_ports(given["rehearsal_bootstrap"])
    began = time.monotonic()
    while True:
        seen = topics.read(bootstrap, Security.from_options(None, "client"), _ANSWER_S)
        if seen["reached"] and seen["cluster_id"] not in (None, given["rehearsal_id"]):
            module.fail_json(
                msg=f"the brokers at {', '.join(map(str, bootstrap))} are of cluster {seen['cluster_id']}, and not of "
                f"the rehearsal {given['rehearsal_id']}. Nothing more was done. Set rehearse_broker_port to a "
                "port that no other broker has (QS-REHEARSE-004)"
            )
        wanted = len(given["brokers"])
        partitions = [entry for topic in seen.get("partitions", {}).values() for entry in topic.values()]
        missing = [entry for entry in partitions if entry["leader"] < 0 or len(entry["isr"]) < len(entry["replicas"])]
        took = time.monotonic() - began
        if seen["reached"] and len(seen["brokers"]) == wanted and partitions and not missing:
            return {"changed": True, "registered_s": round(registered_s, 1), "in_sync_s": round(took, 1)}
        if took > given["wait_s"]:
            now = seen.get("error") or (
                f"{len(seen['brokers'])} brokers, {len(missing)} of {len(partitions)} partitions not in sync"
            )
            module.fail_json(
                msg=f"waited {took:.0f} s until all replicas of the rehearsal are in sync. Last seen: {now}. Read "
                "logs/broker.log below rehearse_dir on the hosts of the rehearsal (QS-REHEARSE-004)"
            )
        time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
