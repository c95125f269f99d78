#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_source_mark
short_description: Mark Kafka's old data on the ensemble that it left, or take the mark off
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - After a move, a broker with the old connect string would find its cluster on the source, and serve it from old
    metadata. With O(state=marked), C(/cluster/id) names where the cluster is, so that such a broker ends at its start.
    The ACL of C(/brokers/ids) lets no account register a broker, so that one with empty directories ends as well.
  - What was there before is in the znode C(/quorumshift-moved) below the chroot. O(state=unmarked) gives it back.
  - It fails unless the destination is an ensemble of its own and has the cluster's id, the source's servers are none of
    the destination's, and no broker is registered on the source. It never writes to the destination.
options:
  state:
    description: What to do.
    type: str
    required: true
    choices: [marked, unmarked]
  source_connect:
    description: All servers of the source, with Kafka's chroot.
    type: str
    required: true
  destination_servers:
    description: The address of each destination server by its id.
    type: dict
    required: true
  wait_s:
    description: How long to wait until the old sessions of brokers have ended on the source, in seconds.
    type: float
    default: 60
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Checks the same. It changes nothing.}
  diff_mode: {support: full, description: Shows C(/cluster/id) and the ACL of C(/brokers/ids).}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Mark Kafka's old data
  quorumshift.kafka.zk_source_mark:
    state: marked
    source_connect: z1:2181,z2:2181,z3:2181/kafka
    zookeeper_connect: z4:2181,z5:2181,z6:2181/kafka
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    bootstrap_servers: b1:9094
"""

RETURN = r"""
shown_id:
  description: The cluster id that the source shows now.
  type: str
  returned: success
before:
  description: The mark, with what was there before it. Null where the source has none.
  type: dict
  returned: success
"""

import json
import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    ensemble_move,
    source_mark,
    zk_sessions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names, sentences
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_writing


def main():
    """Mark, or take the mark off."""
    module = ProbeModule(
        {
            "state": {"type": "str", "required": True, "choices": ["marked", "unmarked"]},
            "source_connect": {"type": "str", "required": True},
            "destination_servers": {"type": "dict", "required": True},
            "wait_s": {"type": "float", "default": 60},
        }
    )
    module.run(lambda: run(module))


def run(module):
    """Return the result, or fail the module."""
    given, connections = module.params, module.connections
    source = parse_zookeeper_connect(given["source_connect"])
    require_servers(module, source)
    with zookeeper.connect(
        given["zookeeper_connect"], connections.timeout, **connections.zookeeper_client.kazoo()
    ) as destination:
        own_id = znodes.cluster_id(destination.get(source_mark.CLUSTER_ID)[0])
    if module.params["cluster_id"] and own_id != module.params["cluster_id"]:
        module.fail_json(
            msg=f"/cluster/id is {own_id} on the destination, and the brokers have {given['cluster_id']}. "
            "The source was not changed. (QS-ZKMOVE-020)"
        )
    with zookeeper.connect(
        given["source_connect"], connections.timeout, **connections.zookeeper_client.kazoo()
    ) as client:
        try:
            return {"marked": mark, "unmarked": unmark}[given["state"]](module, client, own_id)
        except zk_writing.WriteError as error:
            module.fail_json(
                msg=f"{error}. What was there before is in {source_mark.PATH}, if it exists. Run again. (QS-ZKMOVE-020)"
            )


def require_servers(module, source):
    """Fail the module unless the destination is an ensemble of its own, and the source's servers are none of it."""
    given, connections = module.params, module.connections
    security, timeout = connections.zookeeper_client, connections.timeout
    ids = [int(number) for number in given["destination_servers"]]
    servers = parse_zookeeper_connect(given["zookeeper_connect"]).servers
    status = zk_servers.collect(servers, security.ssl_context(), timeout)
    modes = sorted(answer["mode"] or "no server" for answer in status.values())
    if modes != [*["follower"] * (len(modes) - 1), "leader"]:
        module.fail_json(
            msg=f"the destination is no ensemble of its own with one leader: its servers are {', '.join(modes)}. End "
            "the move first with quorumshift.kafka.zk_migrate. The source was not changed. (QS-ZKMOVE-020)"
        )
    for finding in ensemble_move.foreign_servers(zk_servers.collect_creators(servers, security, timeout), ids):
        module.fail_json(msg=f"{sentences(finding.seen, finding.do)}. The source was not changed. (QS-ZKMOVE-020)")
    why = source_mark.check_own_servers(zk_servers.collect_creators(source.servers, security, timeout), ids)
    if why:
        module.fail_json(msg=f"{why}. Correct zk_migrate_source_connect. The source was not changed. (QS-ZKMOVE-020)")


class Source(zk_writing.Writer):
    """A writer that compares the session's server, since source and destination have the same data."""

    def __init__(self, module, client, own_id):
        self._module = module
        super().__init__(client, own_id, module.connections.timeout)

    def compare(self):
        creator = zk_sessions.creator_id(self._client.client_id[0])
        if creator in [int(number) for number in self._module.params["destination_servers"]]:
            raise zk_writing.WriteError(
                f"the session is of server {creator}, which is one of the destination (QS-ZKMOVE-020)"
            )
        shown = znodes.cluster_id(self._client.get(source_mark.CLUSTER_ID)[0])
        mark_ = read_mark(self._module, self._client)
        if shown != self._cluster_id and (mark_ is None or mark_.cluster_id != self._cluster_id):
            raise zk_writing.WriteError(
                f"/cluster/id is {shown} there, and {self._cluster_id} on the destination (QS-ZKMOVE-020)"
            )
        self._session = self._client.client_id


def read_mark(module, client):
    """Return the mark on the source, None without one."""
    if not client.exists(source_mark.PATH):
        return None
    try:
        return source_mark.parse_mark(client.get(source_mark.PATH)[0])
    except source_mark.MarkError as error:
        module.fail_json(msg=f"{error}. The source was not changed. (QS-ZKMOVE-020)")


def read_acl(client, path):
    """Return a znode's ACL and its version."""
    entries, stat = client.get_acls(path)
    return [source_mark.Acl(entry.perms, entry.id.scheme, entry.id.id) for entry in entries], stat.aversion


def mark(module, client, own_id):
    """Mark the source. What was there before is written first."""
    given = module.params
    await_unused(module, client)
    before = read_mark(module, client)
    acl, version = read_acl(client, source_mark.BROKER_IDS)
    data, stat = client.get(source_mark.CLUSTER_ID)
    wanted_data, to = source_mark.id_data(given["zookeeper_connect"]), given["zookeeper_connect"]
    kept = before or source_mark.Mark(own_id, to, data.decode(), acl)
    kept = kept._replace(to=to)
    wanted_acl = source_mark.without_writes(kept.acl)
    if not source_mark.can_be_given_back(wanted_acl):
        module.fail_json(
            msg=f"no account may change the ACL of {source_mark.BROKER_IDS} on the source, so it could not be given "
            f"back. The source was not changed. (QS-ZKMOVE-020)"
        )
    result = {
        "changed": before != kept or acl != wanted_acl or data != wanted_data,
        "shown_id": same_cluster.moved_id(to),
        "before": kept._asdict(),
        "diff": source_mark.diff(
            {source_mark.CLUSTER_ID: data.decode(), source_mark.BROKER_IDS: format_acl(acl)},
            {source_mark.CLUSTER_ID: wanted_data.decode(), source_mark.BROKER_IDS: format_acl(wanted_acl)},
        ),
    }
    if not result["changed"] or module.check_mode:
        return result
    writer = Source(module, client, own_id)
    write_mark(client, writer, kept, module.connections.timeout)
    with zk_writing.writing(f"the ACL of {source_mark.BROKER_IDS}"):
        writer.set_acl(source_mark.BROKER_IDS, kazoo_acl(wanted_acl), version).get(module.connections.timeout)
    there = client.get_children(source_mark.BROKER_IDS)
    if there:  # it came between the reading and the ACL
        with zk_writing.writing(f"the ACL of {source_mark.BROKER_IDS}"):
            writer.set_acl(source_mark.BROKER_IDS, kazoo_acl(kept.acl)).get(module.connections.timeout)
            writer.delete(source_mark.PATH).get(module.connections.timeout)
        module.fail_json(msg=explain_registered(there))
    if data != wanted_data:
        with zk_writing.writing(source_mark.CLUSTER_ID):
            writer.set(source_mark.CLUSTER_ID, wanted_data, stat.version).get(module.connections.timeout)
    return result


def unmark(module, client, own_id):
    """Give back what the mark has, and remove it."""
    kept = read_mark(module, client)
    shown = znodes.cluster_id(client.get(source_mark.CLUSTER_ID)[0])
    if kept is None:
        return {"changed": False, "shown_id": shown, "before": None}
    acl, version = read_acl(client, source_mark.BROKER_IDS)
    data = client.get(source_mark.CLUSTER_ID)[0].decode()
    result = {
        "changed": True,
        "shown_id": kept.cluster_id,
        "before": kept._asdict(),
        "diff": source_mark.diff(
            {source_mark.CLUSTER_ID: data, source_mark.BROKER_IDS: format_acl(acl)},
            {source_mark.CLUSTER_ID: kept.data, source_mark.BROKER_IDS: format_acl(kept.acl)},
        ),
    }
    if module.check_mode:
        return result
    writer, timeout = Source(module, client, own_id), module.connections.timeout
    write_mark(client, writer, kept, module.connections.timeout)
    with zk_writing.writing(source_mark.PATH):
        writer.set(source_mark.CLUSTER_ID, kept.data.encode()).get(timeout)
        writer.set_acl(source_mark.BROKER_IDS, kazoo_acl(kept.acl), version).get(timeout)
        writer.delete(source_mark.PATH).get(timeout)
    return result


def write_mark(client, writer, kept, timeout):
    """Write the mark's znode, in the session that writes the rest: the check of the source's log knows it by that."""
    data = source_mark.format_mark(kept)
    with zk_writing.writing(source_mark.PATH):
        if client.exists(source_mark.PATH):
            writer.set(source_mark.PATH, data).get(timeout)
        else:
            acl = client.get_acls(source_mark.CLUSTER_ID)[0]
            writer.create(source_mark.PATH, data, acl).get(timeout)


def await_unused(module, client):
    """Wait until no broker and no controller is registered on the source. Fail the module if one stays."""
    deadline = time.monotonic() + module.params["wait_s"]
    while True:
        there = client.get_children(source_mark.BROKER_IDS)
        if not there:
            return
        if time.monotonic() >= deadline or module.check_mode:
            module.fail_json(msg=explain_registered(there))
        time.sleep(0.5)


def explain_registered(there):
    """Return that brokers are registered on the source."""
    return (
        f"brokers {format_names(sorted(there))} are registered on the source: their sessions have not ended there, or "
        "they use the old connect string. Give them the destination's, restart them, and run again. The source was "
        "not changed. (QS-ZKMOVE-020)"
    )


def kazoo_acl(acl):
    """Return an ACL as kazoo takes it."""
    from kazoo.security import ACL, Id  # zookeeper.connect says where kazoo is missing

    return [ACL(entry.perms, Id(entry.scheme, entry.id)) for entry in acl]


def format_acl(acl):
    """Return an ACL as text; the secret of a digest is none that can be used, and is left out all the same."""
    return json.dumps(
        [f"{entry.scheme}:{entry.id.partition(':')[0]}:{entry.perms}" for entry in acl], separators=(", ", ":")
    )


if __name__ == "__main__":
    main()
