#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_wipe
short_description: Remove the traces of a rolled-back migration from a controller's host
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Empties the log directories of a controller that is stopped, restores the properties file from before the
    migration (or deletes the file if there was none), and unmasks the service. It does not start the service.
  - Fails and deletes nothing if a log directory does not carry this cluster's id.
  - Fails without the gate token of the rolling restart to plain ZooKeeper mode, and with one that is older than a
    minute by the host's own clock. If a broker in migration mode connects
    to an empty quorum, it stops.
options:
  gate_token:
    description: The gate token that M(quorumshift.kafka.rolling_restart) returned after the brokers' restart.
    type: dict
  service:
    description: The controller's service.
    type: str
    required: true
  config_file:
    description: The controller's properties file.
    type: path
    required: true
  log_dir:
    description: The controller's log directory, used when there is no properties file.
    type: path
    required: true
  node_id:
    description: The controller's node id, which the gate token and each formatted log directory must have.
    type: int
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
  - quorumshift.kafka.host_record.token
attributes:
  check_mode: {support: full, description: Returns what would be removed.}
  diff_mode:
    support: full
    description: Shows the properties file with secrets masked, and the names in each log directory.
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Wipe the controller after a rollback
  quorumshift.kafka.controller_wipe:
    gate_token: "{{ rolled_back.gate_token }}"
    host: "{{ inventory_hostname }}"
    run: "{{ run }}"
    cluster_id: "{{ cluster_id }}"
    node_id: 3000
    service: kafka-controller
    config_file: /etc/kafka/controller.properties
    log_dir: /var/lib/kafka/controller
"""

RETURN = r"""
outcome:
  description: V(expired) if the gate token was too old, and nothing was removed.
  type: str
  returned: when the token expired
emptied:
  description: The log directories that were emptied.
  type: list
  elements: str
  returned: success
config_file:
  description: Whether the properties file was V(removed), V(restored) or V(untouched).
  type: str
  returned: success
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    kraft_config,
    same_cluster,
    transitions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    host_identity,
    restart_files,
    restart_steps,
)

STARTED = transitions.KINDS["controller"]


class Refused(RuntimeError):
    """The reason why nothing is removed."""


def main():
    """Check everything first, then remove."""
    module = AnsibleModule(
        argument_spec={
            "gate_token": {"type": "dict", "no_log": False},
            "host": {"type": "str", "required": True},
            "renewable": {"type": "bool", "default": False},
            "service": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
            "node_id": {"type": "int", "required": True},
            **host_state.HELD_OPTIONS,
        },
        supports_check_mode=True,
    )
    given = {**module.params, "role": STARTED.role}
    _role, own_id = node.read_own(given["config_file"])  # the file from before the migration may be of another role
    key = node_key.node_key(STARTED.role, given["node_id"] if own_id is None else own_id)
    of_this_run = (given["cluster_id"], given["run"], given["host"], key)
    rejected = gates.rejection(gates.WIPE, given["gate_token"], *of_this_run, clock.read())
    if rejected and not module.check_mode:
        rejected["msg"] += ". Nothing was removed on this host."
        module.fail_json(**rejected)
    try:
        directory = host_state.make_node_directory(given)
        with host_state.lock(directory):
            run_lock_file.require(directory, given["run"])
            module.exit_json(**wipe(given, directory, module.check_mode))
    except host_state.Held:
        module.fail_json(
            msg="a restart is running on this host. Nothing was removed. Run again when it has ended. (QS-ROLLBACK-007)"
        )
    except (Refused, run_lock_file.RunLockError, host_state.OldLayoutError) as error:
        module.fail_json(msg=f"{error}. Nothing was removed on this host.")
    except (OSError, ValueError, service.ServiceError) as error:
        module.fail_json(
            msg=f"the controller was not wiped completely: {error}. Fix the cause and run again. (QS-ROLLBACK-007)"
        )


def wipe(given, directory, check_mode):
    """Return the result. Raises Refused before anything is removed."""
    state = service.read_state(given["service"])
    if not restart_steps.is_stopped(state):
        raise Refused(
            f"service {given['service']} is {state.get('active_state') or 'active'}, but must be "
            "stopped (QS-ROLLBACK-007)"
        )
    old = restart_files.read_bytes(given["config_file"])
    mode = kraft_config.mode_at_next_start(properties.parse(old, path=given["config_file"]))
    ours = mode == STARTED.after
    started = {**given, "kind": STARTED.name, "mode": STARTED.after}
    before = restart_files.read_bytes(restart_files.kept_path(started, directory))
    full = [
        path
        for path in log_dirs(given, old if ours else b"")
        if os.path.isdir(path) and set(os.listdir(path)) - node.IN_EMPTY_DIRECTORY
    ]
    for path in full:
        require_ours(path, given["cluster_id"], given["node_id"])
    changed = bool(full or ours or state["masked"])
    result = {"changed": changed, "emptied": full, "config_file": "untouched", "diff": []}
    if ours:
        result["config_file"] = "restored" if before else "removed"
        texts = (restart_files.masked_text(old), restart_files.masked_text(before, old))
        result["diff"].append(diff(given["config_file"], *texts))
    result["diff"] += [diff(path, "".join(f"{name}\n" for name in sorted(os.listdir(path)))) for path in full]
    if state["masked"]:
        result["diff"].append(diff(given["service"], "masked: True\n", "masked: False\n"))
    if check_mode:
        return result
    for path in full:
        # Kafka's user may replace the directory by a link: what is emptied is what was compared.
        with safe_files.pin(path) as opened:
            require_ours(path, given["cluster_id"], given["node_id"], opened)
            empty(opened)
    if ours and before:
        restart_files.replace(given["config_file"], before, None)
    elif ours:
        os.unlink(given["config_file"])
    if state["masked"]:
        service.set_masked(given["service"], False)
    return result


def diff(header, before, after=""):
    """Return one entry of a diff in Ansible's format."""
    return {"before_header": header, "after_header": header, "before": before, "after": after}


def log_dirs(given, data):
    """Return the controller's log directories from its properties file, or else the option log_dir."""
    return host_identity.log_dirs(properties.parse(data)) or [given["log_dir"]]


def require_ours(path, cluster_id, node_id, opened=None):
    """Raise Refused unless the directory's meta.properties has this cluster's id, and this node's. `opened`: another
    path of the same directory, which is read."""
    found = {**host_identity.read_stored(opened or path), "path": path}
    refused = same_cluster.check_host([found], cluster_id, node_id, optional=False)
    if refused:
        raise Refused(refused)


def empty(path):
    """Empty a directory. meta.properties goes last, so that an interrupted wipe can be repeated."""
    for name in sorted(set(os.listdir(path)) - node.IN_EMPTY_DIRECTORY, key=lambda name: name == "meta.properties"):
        inside = os.path.join(path, name)
        if os.path.isdir(inside) and not os.path.islink(inside):
            shutil.rmtree(inside)
        else:
            os.unlink(inside)


if __name__ == "__main__":
    main()
