#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_decommission
short_description: Archive a ZooKeeper server's data, and stop the server for good
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=read) reads the host of a server, also of one that is stopped.
  - O(state=planned) runs on the probe host. It fails unless the cluster's own metadata says that it does not use
    ZooKeeper, and unless the hosts are exactly the servers of the connect string. It returns the order of the stops.
  - O(state=archived) archives the server's snapshot, its log and its settings, and reads the archive back. An archive
    that has all data of the server stays as it is.
  - O(state=stopped) masks and stops the service, once the confirmation token is that of the archives, the archive is
    still the one of the token and has all data, and no client is connected. It waits until nothing listens.
  - Nothing of the server is deleted. A server that is stopped already, by the record of this module, stays so.
options:
  state:
    description: What to do.
    type: str
    choices: [read, planned, archived, stopped]
    required: true
  config_file:
    description: The server's C(zoo.cfg). Required on the server's host.
    type: path
  service:
    description: The server's service. Required on the server's host.
    type: str
  zookeeper_connect:
    description: All servers of the ensemble, with Kafka's chroot at the end.
    type: str
    required: true
  cluster_id:
    description: Kafka's cluster id. C(/cluster/id) in the archive must be this one.
    type: str
    required: true
  hosts:
    description: With O(state=planned), what O(state=read) returned on each host, by host.
    type: dict
    default: {}
  phase:
    description: With O(state=planned), the phase of the cluster.
    type: str
    default: ""
  nodes:
    description: With O(state=planned), the facts of brokers and controllers. The action plugin fills it.
    type: dict
    default: {}
  modes:
    description: With O(state=planned), the mode of each server, as M(quorumshift.kafka.zk_clients_info) returned it.
    type: dict
    default: {}
  archives:
    description: The SHA-256 of each server's archive, by C(host:port). With O(state=planned) it gives the token.
    type: dict
    default: {}
  accept_paths:
    description: Parts of the tree that no application needs. They are a part of the token.
    type: list
    elements: str
    default: []
  token:
    description: The confirmation token.
    type: str
    default: ""
  run:
    description: The run that stops the server. The action plugin fills it in.
    type: str
  stop_timeout_s:
    description: How long the service may take to stop, in seconds.
    type: float
    default: 120
extends_documentation_fragment:
  - quorumshift.kafka.host_record
attributes:
  check_mode: {support: full, description: Archives and stops nothing.}
  diff_mode: {support: full, description: Shows whether the service is active and masked before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the server's host
  quorumshift.kafka.zk_decommission:
    state: read
    config_file: /etc/zookeeper/zoo.cfg
    service: zookeeper
    zookeeper_connect: z1:2181,z2:2181,z3:2181/kafka
    cluster_id: Qs7KfZk2TIK1n0nQ5Qm3Tw
  register: my_server
"""

RETURN = r"""
host:
  description: What the host shows of its server.
  type: dict
  returned: with O(state=read), O(state=archived) and O(state=stopped)
archive:
  description: The archive, with C(path), C(sha256), C(zxid), C(znodes) and C(cluster_id).
  type: dict
  returned: with O(state=archived), not in check mode where there is none yet
order:
  description: The hosts in the order in which their servers stop.
  type: list
  elements: str
  returned: with O(state=planned)
stopped:
  description: The servers that their hosts prove to be stopped, with the id of each.
  type: dict
  returned: with O(state=planned)
voters:
  description: The ids of the servers that vote; empty for a standalone server.
  type: list
  elements: int
  returned: with O(state=planned)
token:
  description: The confirmation token; empty as long as not every server has an archive.
  type: str
  returned: with O(state=planned)
confirmed:
  description: Whether O(token) is that token.
  type: bool
  returned: with O(state=planned)
leftovers:
  description: What to remove by hand after the end, as sentences.
  type: list
  elements: str
  returned: with O(state=planned)
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import decommission, zk_clients
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import archives
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import ZooKeeperFileError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zk_process, own_zk_server
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.properties import PropertiesError
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import zk_archive
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file

RECORD = "zk_decommission.json"
CLOSED_S = 10.0  # for the last listener after the service has stopped


class Refused(Exception):
    """The module may not do what it is asked for; the text is for the operator."""


def main():
    """Read, plan, archive or stop."""
    on_host = ["config_file", "service"]
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["read", "planned", "archived", "stopped"]},
            "config_file": {"type": "path"},
            "service": {"type": "str"},
            "zookeeper_connect": {"type": "str", "required": True},
            "cluster_id": {"type": "str", "required": True},
            "hosts": {"type": "dict", "default": {}},
            "phase": {"type": "str", "default": ""},
            "nodes": {"type": "dict", "default": {}},
            "modes": {"type": "dict", "default": {}},
            "archives": {"type": "dict", "default": {}},
            "accept_paths": {"type": "list", "elements": "str", "default": []},
            "token": {"type": "str", "default": "", "no_log": False},
            "run": {"type": "str"},
            "stop_timeout_s": {"type": "float", "default": 120},
            **host_state.OPTIONS,
        },
        required_if=[("state", state, on_host) for state in ("read", "archived", "stopped")],
        supports_check_mode=True,
    )
    work = {"read": read, "planned": planned, "archived": archived, "stopped": stopped}[module.params["state"]]
    try:
        module.exit_json(**work(module.params, module.check_mode))
    except Refused as refused:
        module.fail_json(msg=message_ids.move_to_end(mask(str(refused))))
    except (
        OSError,
        ValueError,
        PropertiesError,
        ZooKeeperFileError,
        archives.SnapshotError,
        zk_archive.ArchiveError,
        service.ServiceError,
        run_lock_file.RunLockError,
        RestartError,
    ) as error:
        module.fail_json(
            msg=message_ids.move_to_end(mask(f"{error}. Run again once that is corrected (QS-ZKSTOP-006)"))
        )


def read(given, _check_mode):
    """Return what the host shows."""
    return {"changed": False, "host": read_host(given)}


def read_host(given):
    """Return the facts of this host (core.ensemble.decommission)."""
    connect = addresses.parse_zookeeper_connect(given["zookeeper_connect"])
    found = own_zk_process.read(given["config_file"], given["service"], connect.servers)
    return {**found, "record": host_state.read_json(record_path(given))}


def record_path(given):
    """Return the path of the record of this host's server."""
    return os.path.join(host_state.path_of(given["state_dir"], given["cluster_id"]), RECORD)


def planned(given, _check_mode):
    """Return order, token, and which servers are stopped. Raises Refused with all that is against the end."""
    connect = addresses.parse_zookeeper_connect(given["zookeeper_connect"])
    hosts, servers = given["hosts"], [str(server) for server in connect.servers]
    found = [
        *decommission.check_cluster(given["phase"], given["nodes"], given["cluster_id"]),
        *decommission.check_hosts(hosts, servers),
    ]
    if found:
        texts = [advice.sentences(finding.seen, finding.do) for finding in found]
        raise Refused("\n".join(f"{text}." for text in texts) + "\nNothing was stopped")
    token = ""
    if set(given["archives"]) == set(servers):
        token = zk_clients.token(given["cluster_id"], given["archives"], given["accept_paths"])
    return {
        "changed": False,
        "order": decommission.order(hosts, given["modes"]),
        "stopped": decommission.stopped_servers(hosts),
        "voters": decommission.voters(hosts),
        "token": token,
        "confirmed": bool(token) and given["token"] == token,
        "leftovers": decommission.leftovers(hosts, given["accept_paths"]),
    }


def archived(given, check_mode):
    """Return the archive of the server's data; make it where there is none, or where data changed since."""
    host = require_own(given, read_host(given))
    values = own_zk_server.read_values(given["config_file"])
    record = host["record"] or {}
    known = record.get("archive")
    if known and is_whole(known) and zk_archive.is_current(values, known["zxid"]):
        return {"changed": False, "host": host, "archive": known}
    if check_mode:
        return {"changed": True, "host": host}
    parent = host_state.make_directory(given["state_dir"], given["cluster_id"])
    chroot = addresses.parse_zookeeper_connect(given["zookeeper_connect"]).chroot
    archive = zk_archive.take(values, given["config_file"], parent, chroot)
    if archive.cluster_id != given["cluster_id"]:
        raise Refused(
            f"{chroot}/cluster/id in the data of {given['config_file']} is {archive.cluster_id or 'missing'}, and this "
            f"cluster is {given['cluster_id']}. Correct the inventory: this may be the server of another cluster. "
            "Nothing was stopped (QS-ZKSTOP-001)"
        )
    record = {**record, "server": host["server"], "archive": zk_archive.facts(archive)}
    host_state.write_json(record_path(given), record)
    return {"changed": True, "host": {**host, "record": record}, "archive": record["archive"]}


def is_whole(archive):
    """Return whether an archive's file is still the one that was read back."""
    try:
        return backup_file.file_sha256(archive["path"]) == archive["sha256"]
    except OSError:
        return False


def require_own(given, host):
    """Return the host. Raises Refused where it has no server of the connect string."""
    found = list(decommission.check_stop({**host, "connected": []}))
    if not found and host["server"] is None:
        raise Refused(
            f"this host's server is none of {given['zookeeper_connect']}. Correct the group zookeeper. Nothing was "
            "changed on this host (QS-ZKSTOP-005)"
        )
    refuse(found)
    return host


def refuse(found):
    """Raise Refused with findings."""
    if found:
        texts = [advice.sentences(finding.seen, finding.do) for finding in found]
        raise Refused(f"{'. '.join(texts)}. Nothing was changed on this host")


def stopped(given, check_mode):
    """Mask and stop the server, and wait until nothing listens."""
    host = require_own(given, read_host(given))
    if decommission.is_stopped(host):
        return {"changed": False, "host": host, "diff": difference(host, host)}
    record = host["record"] or {}
    archive = record.get("archive") or {}
    require_confirmed(given, host, archive)
    refuse(list(decommission.check_stop(host)))
    down = {**host, "service": {**host["service"], "masked": True, "active": False}}
    if check_mode:
        return {"changed": True, "host": host, "diff": difference(host, down)}
    if not is_whole(archive):
        raise Refused(f"{archive['path']} is not the archive of the token any more. Run again (QS-ZKSTOP-006)")
    if not zk_archive.is_current(own_zk_server.read_values(given["config_file"]), archive["zxid"]):
        raise Refused(
            f"the data of {host['server']} changed after its archive was made: a client wrote. Find it, and run again "
            "without decommission_token. Nothing was changed on this host (QS-ZKSTOP-003)"
        )
    run_lock_file.require_no_other_run(given["state_dir"], given["cluster_id"], given["run"])
    # First the record: a run that is killed after the stop finds why the server is down
    record = {**record, "state": decommission.STOPPING, "run": given["run"], "at": time.time()}
    host_state.write_json(record_path(given), {**record, "service": given["service"]})
    service.set_masked(given["service"], True)
    if not restart_steps.is_stopped(service.read_state(given["service"])):
        service.begin("stop", given["service"])
        restart_steps.await_stopped(given)
    end = time.monotonic() + CLOSED_S
    host_state.write_json(record_path(given), {**record, "state": decommission.STOPPED, "at": time.time()})
    while not decommission.is_stopped(after := read_host(given)):
        if time.monotonic() >= end:
            raise Refused(
                f"{host['service'].get('name')} is stopped, and {describe(after)}. Find what holds its port with "
                "`ss -tlnp`, and run again (QS-ZKSTOP-007)"
            )
        time.sleep(0.2)
    return {"changed": True, "host": after, "diff": difference(host, after)}


def describe(host):
    """Return why a host does not prove that its server is stopped."""
    seen = {
        "its process still runs": host["is_running"],
        f"a process listens on one of the ports {host['ports']}": host["is_listening"],
        f"{host['server']} answers": host["answers"],
        f"it is not known whether {host['server']} answers": host["answers"] is None,
        "its service is not masked": not host["service"]["masked"],
    }
    return advice.format_names([text for text, holds in seen.items() if holds]) or "its record could not be written"


def require_confirmed(given, host, archive):
    """Raise Refused unless the token is that of the archives, and this host's archive is one of them."""
    wanted = zk_clients.token(given["cluster_id"], given["archives"], given["accept_paths"])
    of_host = given["archives"].get(host["server"])
    if given["token"] != wanted or not of_host or of_host != archive.get("sha256"):
        raise Refused(
            f"the token {given['token'] or '(none)'} does not confirm the archive of {host['server']}. Run again "
            "without decommission_token, which prints the token. Nothing was changed on this host (QS-ZKSTOP-008)"
        )


def difference(before, after):
    """Return the diff of the service."""
    shown = [f"active: {host['service']['active']}\nmasked: {host['service']['masked']}\n" for host in (before, after)]
    name = before["service"].get("name")
    return {"before": shown[0], "after": shown[1], "before_header": name, "after_header": name}


if __name__ == "__main__":
    main()
