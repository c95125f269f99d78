#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_wipe
short_description: Remove what a migration that was taken back left on a controller's host
version_added: 0.1.0
description:
  - Empties the log directories of a controller that is down and masked, puts its properties file back as it was before
    the migration, or removes it where there was none, and allows the service to start again. Starts nothing.
  - A log directory that does not say this cluster's id is left alone, and the module fails.
  - Refuses without the pass that the roll back to plain ZooKeeper mode left. Under brokers in migration mode an empty
    quorum stops every broker.
options:
  gate_token:
    description: The pass that M(quorumshift.kafka.rolling_restart) returned when the roll had settled.
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
    description: The controller's log directory where there is no properties file any more.
    type: path
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode: {support: full, description: Tells what would be removed.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Leave no trace of the migration on the controller
  quorumshift.kafka.controller_wipe:
    gate_token: "{{ rolled_back.gate_token }}"
    run: "{{ run }}"
    cluster_id: "{{ cluster_id }}"
    service: kafka-controller
    config_file: /etc/kafka/controller.properties
    log_dir: /var/lib/kafka/controller
"""

RETURN = r"""
emptied:
  description: The log directories that were emptied.
  type: list
  elements: str
  returned: success
config_file:
  description: Whether the properties file was V(removed), V(put back) or V(untouched).
  type: str
  returned: success
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import (
    host_state,
    restart_files,
    restart_steps,
    run_locks,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node, service

MODE = "controller_migration"


class Refused(RuntimeError):
    """Why nothing is removed."""


def main():
    """Look at all of it first, then remove."""
    module = AnsibleModule(
        argument_spec={
            "gate_token": {"type": "dict", "no_log": False},
            "service": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
            **host_state.HELD_OPTIONS,
        },
        supports_check_mode=True,
    )
    given = module.params
    refused = gates.refusal("wipe", given["gate_token"], given["cluster_id"], given["run"])
    if refused and not module.check_mode:
        module.fail_json(msg=f"{refused}. Nothing was removed on this host.")
    directory = host_state.directory(given["state_dir"], given["cluster_id"])
    try:
        with host_state.locked(directory):
            run_locks.require(directory, given["run"])
            module.exit_json(**wiped(given, directory, module.check_mode))
    except host_state.Held:
        module.fail_json(msg="a turn is at work on this host: run again when it ended. Nothing was removed.")
    except (Refused, run_locks.RunLockError) as error:
        module.fail_json(msg=f"{error}. Nothing was removed on this host.")
    except (OSError, ValueError, service.ServiceError) as error:
        module.fail_json(msg=f"the controller is not wiped: {error}. Mend that and run again.")


def wiped(given, directory, check_mode):
    """Return the result. Raises Refused before anything is removed."""
    reported = service.state(given["service"])
    if not restart_steps.is_stopped(reported):
        raise Refused(f"service {given['service']} is {reported.get('active_state') or 'active'}")
    old = restart_files.read_text(given["config_file"])
    ours = kraft_config.mode_at_next_start(properties.parse(old)) == MODE if old else False
    before = restart_files.read_text(restart_files.kept({**given, "mode": MODE}, directory))
    full = [
        path
        for path in log_dirs(given, old if ours else "")
        if os.path.isdir(path) and set(os.listdir(path)) - node.IN_EMPTY_DIRECTORY
    ]
    for path in full:
        must_be_ours(path, given["cluster_id"])
    changed = bool(full or ours or reported["masked"])
    result = {"changed": changed, "emptied": full, "config_file": "untouched"}
    if ours:
        result["config_file"] = "put back" if before else "removed"
    if check_mode:
        return result
    for path in full:
        empty(path)
    if ours and before:
        restart_files.replace(given["config_file"], before, None)
    elif ours:
        os.unlink(given["config_file"])
    if reported["masked"]:
        service.set_masked(given["service"], False)
    return result


def log_dirs(given, text):
    """Return the directories of the controller, as its file names them, or the one that the role names."""
    values = properties.parse(text)
    named = [*node.log_dir_paths(values), *([values["metadata.log.dir"]] if values.get("metadata.log.dir") else [])]
    return list(dict.fromkeys(named)) or [given["log_dir"]]


def must_be_ours(path, cluster_id):
    """Refuse to empty what does not say that it is of this cluster."""
    meta = os.path.join(path, "meta.properties")
    found = node.read_properties(meta).get("cluster.id") if os.path.exists(meta) else None
    if found != cluster_id:
        raise Refused(f"{path} says cluster id {found}, this cluster is {cluster_id}")


def empty(path):
    """Remove what stands in a directory, what tells whose it is at last: so that it can be broken off."""
    for name in sorted(set(os.listdir(path)) - node.IN_EMPTY_DIRECTORY, key=lambda name: name == "meta.properties"):
        inside = os.path.join(path, name)
        if os.path.isdir(inside) and not os.path.islink(inside):
            shutil.rmtree(inside)
        else:
            os.unlink(inside)


if __name__ == "__main__":
    main()
