#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_leftovers
short_description: List or remove what other applications left on the ensemble that Kafka moved to
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - The observers had the source's whole tree, so the destination has the data of its other applications too.
  - A leftover is a path outside of Kafka's chroot and of C(/zookeeper), with all below it.
  - It fails unless the servers are the destination's own ensemble. So the source, of which observers are a part, is
    never changed.
  - It removes nothing while a leftover has an ephemeral znode. Its session lives, so an application uses the
    destination.
options:
  state:
    description: V(listed) reads, V(absent) removes. V(checked) only requires that the servers are the destination's own
      ensemble, each of them with an id of its own.
    type: str
    choices: [checked, listed, absent]
    default: listed
  destination_servers:
    description: The address of each destination server by its id.
    type: dict
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Lists and checks the same. It removes nothing.}
  diff_mode: {support: full, description: Shows each leftover with its number of znodes and bytes.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Remove what other applications left
  quorumshift.kafka.zk_leftovers:
    state: absent
    zookeeper_connect: z4:2181,z5:2181,z6:2181/kafka
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    bootstrap_servers: b1:9094
"""

RETURN = r"""
leftovers:
  description: Each leftover, as it was found.
  type: list
  elements: dict
  returned: with O(state=listed) and O(state=absent)
  sample: [{"path": "/solr", "znodes": 812, "bytes": 90211}]
"""

import itertools

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import (
    ensemble_move,
    leftovers,
    zk_sessions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_servers, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import zk_writing

WINDOW = 500


def main():
    """List, and remove if asked."""
    module = ProbeModule(
        {
            "state": {"type": "str", "choices": ["checked", "listed", "absent"], "default": "listed"},
            "destination_servers": {"type": "dict", "required": True},
        }
    )
    module.run(lambda: run(module))


def run(module):
    """Return the result, or fail the module."""
    given, connections = module.params, module.connections
    connect = parse_zookeeper_connect(given["zookeeper_connect"])
    servers = ",".join(map(str, connect.servers))
    options = connections.zookeeper_client.kazoo()
    if given["state"] == "checked":
        require_own_servers(module, connect.servers)
        return {}
    with zookeeper.connect(servers, connections.timeout, **options) as client:
        require_own_ensemble(module, client, connect.servers)
        reader = zookeeper.Reader(client, timeout=connections.timeout)
        reader.zxid()  # a follower may be behind
        found = {top: list(reader.tree(top)) for top in find_tops(client, connect.chroot)}
        listed = [
            {"path": top, "znodes": len(nodes), "bytes": sum(len(node.data or b"") for node in nodes)}
            for top, nodes in sorted(found.items())
        ]
        if given["state"] == "listed":
            return {"leftovers": listed}
        require_no_session(module, itertools.chain.from_iterable(found.values()))
        if not module.check_mode:
            writer = Destination(module, client, connect.servers)
            remove(module, writer, [node.path for nodes in found.values() for node in nodes])
    lines = [f"{leftover['path']} ({leftover['znodes']} znodes, {leftover['bytes']} bytes)\n" for leftover in listed]
    diff = {"before_header": servers, "after_header": servers, "before": "".join(lines), "after": ""}
    return {"changed": bool(listed), "leftovers": listed, "diff": diff}


def find_tops(client, chroot):
    """Return the topmost paths that are leftovers."""
    names = chroot.strip("/").split("/")
    found = []
    for depth in range(len(names)):
        above = "/" + "/".join(names[:depth])
        paths = [f"{above.rstrip('/')}/{name}" for name in client.get_children(above)]
        found += [path for path in paths if leftovers.find_leftover(path, chroot) == path]
    return found


def require_own_ensemble(module, client, servers):
    """Fail the module unless these servers are the destination's own ensemble.

    Observers of the source say so. A server of the source has an id that the destination does not have.
    /zookeeper/config does not show it: a server that starts loads that from its snapshot, as it was before.
    """
    ids = {int(number) for number in module.params["destination_servers"]}
    creator = zk_sessions.creator_id(client.client_id[0])
    status = zk_servers.collect(servers, module.connections.zookeeper_client.ssl_context(), module.connections.timeout)
    modes = {server: answer["mode"] or "no server" for server, answer in status.items()}
    if creator not in ids or sorted(modes.values()) != [*["follower"] * (len(modes) - 1), "leader"]:
        module.fail_json(
            msg=f"these servers are not an ensemble of their own, with one leader and the ids {sorted(ids)}: "
            f"{advice.format_names([f'{server} is {mode}' for server, mode in sorted(modes.items())])}, and the "
            "session is of "
            f"server {creator}. Promote the destination first with quorumshift.kafka.zk_migrate, start its servers, "
            "and give them as zk_migrate_destination_connect. Nothing was removed. (QS-ZKMOVE-013)"
        )


def require_own_servers(module, servers):
    """Fail the module unless each of these servers leads or follows, and they have the destination's ids."""
    ids = {int(number) for number in module.params["destination_servers"]}
    security, timeout = module.connections.zookeeper_client, module.connections.timeout
    status = zk_servers.collect(servers, security.ssl_context(), timeout)
    found = [
        f"{server} of zk_migrate_destination_connect serves as {answer['mode'] or 'nothing'}"
        for server, answer in sorted(status.items())
        if answer["mode"] not in ("leader", "follower")
    ]
    if not found:
        creators = zk_servers.collect_creators(servers, security, timeout)
        found = [advice.sentences(finding.seen, finding.do) for finding in ensemble_move.foreign_servers(creators, ids)]
    if found:
        module.fail_json(
            msg=f"{'. '.join(found)}. Each server that the brokers know must be one of the new ensemble: another one "
            "could take their writes to the source. (QS-ZKMOVE-008)"
        )


def require_no_session(module, nodes):
    """Fail the module if a session owns one of these znodes."""
    owned = [(node.path, node.stat.ephemeralOwner) for node in nodes if node.stat.ephemeralOwner]
    if owned:
        path, session = owned[0]
        module.fail_json(
            msg=f"{len(owned)} leftovers are ephemeral, the first {path} of session 0x{session & (1 << 64) - 1:x}: an "
            "application uses the destination. Find it in cons of the destination's servers, connect it to the source, "
            "and run again. Nothing was removed. (QS-ZKMOVE-013)"
        )


class Destination(zk_writing.Writer):
    """A writer that compares the ensemble, since source and destination have the same cluster's id."""

    def __init__(self, module, client, servers):
        self._module, self._servers = module, servers
        super().__init__(client, "", module.connections.timeout)

    def compare(self):
        require_own_ensemble(self._module, self._client, self._servers)
        self._session = self._client.client_id


def remove(module, writer, paths):
    """Delete these znodes, children first. Fail the module with the first that stays."""
    left = reversed(paths)
    while batch := list(itertools.islice(left, WINDOW)):
        for path, answer in [(path, writer.delete(path)) for path in batch]:
            error = answer.exception if answer.wait(module.connections.timeout) else TimeoutError("no answer")
            if error is not None and type(error).__name__ != "NoNodeError":
                module.fail_json(
                    msg=f"{path} could not be removed ({type(error).__name__}). NoAuthError: give zookeeper_client an "
                    "account that may delete it, such as super. NotEmptyError: an application still writes there. "
                    "Run again: what is removed stays so. (QS-ZKMOVE-013)",
                    changed=True,
                )


if __name__ == "__main__":
    main()
