#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal_host
short_description: Build, start or remove what a rehearsal has on one of its hosts
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - A host of a rehearsal runs a ZooKeeper server, a controller and, on up to three hosts, a broker. All their files are
    in one directory, and their units begin with C(quorumshift-rehearsal-).
  - A host that runs Kafka or ZooKeeper, holds their data, or has an address of the cluster is refused.
options:
  plan:
    description: The result of M(quorumshift.kafka.rehearsal). The action plugin takes this host's options from it.
    type: dict
    default: {}
  state:
    description:
      - V(checked) refuses a host that cannot be one of a rehearsal, and changes nothing.
      - V(present) refuses the same, and creates directory, files and units.
      - V(started) starts the service of O(role).
      - V(measured) returns the sizes of files.
      - V(absent) stops the services and removes units and directory. What no rehearsal made stays, and so does the
        rehearsal of a cluster with other O(bootstrap_servers).
    type: str
    choices: [checked, present, started, measured, absent]
    required: true
  directory:
    description: The directory of the rehearsal.
    type: path
    required: true
  bootstrap_servers:
    description:
      - The bootstrap servers of the cluster that is rehearsed, sorted, with commas. They say whose a rehearsal is.
    type: str
    required: true
  role:
    description: Whose service to start. Required with O(state=started).
    type: str
    choices: [zookeeper, broker]
  cluster_id:
    description: The rehearsal's cluster id.
    type: str
    default: ""
  owner:
    description: The user that runs Kafka.
    type: str
    default: kafka
  kafka_home:
    description: Where Kafka is installed.
    type: path
    default: /opt/kafka
  place:
    description: Which one of the hosts this is, from 1.
    type: int
    default: 0
  address:
    description: The address that its servers listen on.
    type: str
    default: ""
  others:
    description: The address of each host by its place, this one included.
    type: dict
    default: {}
  ports:
    description: The ports of C(zookeeper), C(peer), C(election), C(controller) and C(broker).
    type: dict
    default: {}
  chroot:
    description: The rehearsal's chroot in ZooKeeper.
    type: str
    default: ""
  broker_id:
    description: The broker's id. Without it the host has no broker.
    type: int
  replicas:
    description: How many replicas a broker gets at most.
    type: int
    default: 0
  heap:
    description: The maximum heap of each server.
    type: str
    default: 1g
  settings:
    description: Settings of the broker.
    type: dict
    default: {}
  passwords:
    description: Settings of the broker that are secret, new for this rehearsal.
    type: dict
    default: {}
  environment:
    description: Environment of the services.
    type: dict
    default: {}
  forbidden:
    description: Names and addresses of the cluster's hosts.
    type: list
    elements: str
    default: []
  other_paths:
    description: Files and directories of the cluster's nodes, which must hold nothing on this host.
    type: list
    elements: path
    default: []
  wait_s:
    description: How long a start or a stop may take.
    type: float
    default: 120
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Its result says what was created or removed.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Remove the rehearsal from this host
  quorumshift.kafka.rehearsal_host:
    state: absent
    directory: /var/lib/quorumshift-rehearsal
    bootstrap_servers: b1:9092,b2:9092
"""

RETURN = r"""
created:
  description: What was created, with O(state=present).
  type: list
  elements: str
  returned: O(state=present)
removed:
  description: What was removed.
  type: list
  elements: str
  returned: O(state=absent)
sizes:
  description: Bytes by path below the directory.
  type: dict
  returned: O(state=measured)
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import rehearsal_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import rehearsal_host as probe

_MEASURED = ("zookeeper/version-2", "metadata/__cluster_metadata-0", "data")


def main():
    """Check, build, start, measure or remove."""
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "default": {}},
            "state": {
                "type": "str",
                "required": True,
                "choices": ["checked", "present", "started", "measured", "absent"],
            },
            "directory": {"type": "path", "required": True},
            "bootstrap_servers": {"type": "str", "required": True},
            "role": {"type": "str", "choices": [core.ZOOKEEPER, core.BROKER]},
            "cluster_id": {"type": "str", "default": ""},
            "owner": {"type": "str", "default": "kafka"},
            "kafka_home": {"type": "path", "default": "/opt/kafka"},
            "place": {"type": "int", "default": 0},
            "address": {"type": "str", "default": ""},
            "others": {"type": "dict", "default": {}},
            "ports": {"type": "dict", "default": {}},
            "chroot": {"type": "str", "default": ""},
            "broker_id": {"type": "int"},
            "replicas": {"type": "int", "default": 0},
            "heap": {"type": "str", "default": "1g"},
            "settings": {"type": "dict", "default": {}},
            "passwords": {"type": "dict", "default": {}, "no_log": True},
            "environment": {"type": "dict", "default": {}},
            "forbidden": {"type": "list", "elements": "str", "default": []},
            "other_paths": {"type": "list", "elements": "path", "default": []},
            "wait_s": {"type": "float", "default": 120},
        },
        supports_check_mode=True,
        required_if=[("state", "started", ["role"])],
    )
    given = module.params
    work = {
        "checked": _check,
        "present": _build,
        "started": _start,
        "measured": lambda module: {"sizes": rehearsal_host.sizes(given["directory"], _MEASURED)},
        "absent": _remove,
    }[given["state"]]
    try:
        module.exit_json(**{"changed": False, **work(module)})
    except (rehearsal_host.RehearsalError, OSError) as error:
        module.fail_json(
            msg=f"{given['directory']}: {error}. Correct that, then remove what is there: -e rehearse_remove=true "
            "(QS-REHEARSE-002)"
        )


def _wanted(module):
    given = module.params
    return core.Wanted(
        directory=given["directory"].rstrip("/"),
        bootstrap_servers=given["bootstrap_servers"],
        cluster_id=given["cluster_id"],
        user=given["owner"],
        kafka_home=given["kafka_home"].rstrip("/"),
        place=given["place"],
        address=given["address"],
        others={int(place): address for place, address in given["others"].items()},
        ports={name: int(port) for name, port in given["ports"].items()},
        chroot=given["chroot"],
        broker_id=given["broker_id"],
        replicas=given["replicas"],
        heap=given["heap"],
        settings={name: str(value) for name, value in given["settings"].items()},
        secrets={name: str(value) for name, value in given["passwords"].items()},
        environment={name: str(value) for name, value in given["environment"].items()},
        forbidden=given["forbidden"],
        ending=probe.find_ending(given["kafka_home"]),
    )


def _check(module):
    wanted = _wanted(module)
    refused = core.refusals(wanted, probe.read(wanted, module.params["other_paths"]))
    if refused:
        said = ". ".join(text[:1].upper() + text[1:] for text in refused)
        module.fail_json(msg=f"{said}. Nothing was changed on this host. (QS-REHEARSE-001)")
    return {}


def _build(module):
    _check(module)
    wanted = _wanted(module)
    if module.check_mode:
        return {"changed": True, "created": [wanted.directory, *core.units(wanted)]}
    return {"changed": True, "created": rehearsal_host.build(wanted)}


def _start(module):
    if module.check_mode:
        return {"changed": True}
    return {"changed": True, "took_s": rehearsal_host.start(module.params["role"], module.params["wait_s"])}


def _remove(module):
    directory = module.params["directory"].rstrip("/")
    found = probe.read_directory(directory)
    if found["directory"] != "missing" and found["mark"] is None:
        module.fail_json(
            msg=f"{directory} has no {core.MARK_FILE} of root's: no rehearsal made it, and it stays. Correct "
            "rehearse_dir. Nothing was changed on this host. (QS-REHEARSE-001)"
        )
    other = core.foreign(directory, found["mark"], module.params["bootstrap_servers"]) if found["mark"] else ""
    if other:
        module.fail_json(msg=f"{other}. Nothing was changed on this host. (QS-REHEARSE-001)")
    if module.check_mode:
        return {"changed": found["directory"] != "missing", "removed": []}
    removed = rehearsal_host.remove(directory, module.params["wait_s"])
    return {"changed": bool(removed), "removed": removed}


if __name__ == "__main__":
    main()
