#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_restart
short_description: Take one Kafka node through its turn of a roll
version_added: 0.1.0
description:
  - Stops the node, replaces its properties file, starts it and sees it up, in a worker that is detached from Ansible's
    connection, so that a lost control node, terminal or network cuts no turn half-way.
  - A broker is up when its process runs, its listener answers ApiVersions in the expected mode, and its own replica of
    the metadata log shows this start's registration, unfenced.
  - A node that runs in the mode already, with the file as it has to be, is left alone.
  - A broker that does not come up goes back to its earlier properties file and mode, where that is safe. From migration
    mode to plain ZooKeeper mode only while C(/migration) is at -1 and ZooKeeper's controller leads, which the worker
    reads itself right before; from KRaft mode to migration mode only while the migration goes on. Controllers never.
    The turn fails then all the same, as V(put_back), and quotes the node's own log.
  - Refuses without the pass of the gate that this kind of turn follows. O(action=finish) needs none, and ends a turn
    whose worker was lost, in whichever mode the host's properties file says.
options:
  action:
    description:
      - V(begin) starts the worker and returns at once, V(watch) returns when the turn has gone on or after a few
        seconds. V(finish) starts a worker that ends what a lost one began. The action plugin of this module calls them
        and shows the progress.
    type: str
    choices: [begin, finish, watch]
    default: begin
  restart_id:
    description: The turn's id.
    type: str
    required: true
  kind:
    description: What the turn is for; O(action=begin) needs it.
    type: str
    choices: [controller, zk_migration, kraft, controller_final, controller_migration, hybrid, zk]
  node_id:
    description: The node's id.
    type: int
    required: true
  gate_token:
    description: The pass of the gate that this kind of turn follows (M(quorumshift.kafka.gate)).
    type: dict
  registered:
    description: The ids of the brokers that are registered in the quorum. The action plugin fills it in.
    type: list
    elements: str
    default: []
  service:
    description: The service's name.
    type: str
    required: true
  config_file:
    description: The properties file that the service starts with.
    type: path
    required: true
  changes:
    description: Keys to set in the properties file; a key with a null value is removed.
    type: dict
  content:
    description: The whole properties file, where the collection owns it (controllers).
    type: dict
  owner:
    description: The user who owns a new properties file and formats log directories.
    type: str
    default: kafka
  format_command:
    description: The command that formats empty log directories, run as O(owner) before the start.
    type: list
    elements: str
  log_file:
    description: The node's own log, quoted when the node does not come up.
    type: path
    required: true
  kafka_home:
    description: Where Kafka is installed.
    type: path
    default: /opt/kafka
  stop_timeout_s:
    description: How long the node may take to stop, in seconds.
    type: float
    default: 300
  start_timeout_s:
    description: How long the node may take from its start until it is up, in seconds.
    type: float
    default: 300
  seen_steps:
    description: How many steps of the turn the caller of V(watch) has seen.
    type: int
    default: 0
  part:
    description:
      - V(all) starts the restart and waits for its end. V(begin) returns while it goes on, V(await) waits for one
        that was begun. Use them for nodes that need each other to start. Handled by the action plugin.
    type: str
    choices: [all, begin, await]
    default: all
  repair:
    description: Finish the restart that an earlier run left half done on the host. Handled by the action plugin.
    type: bool
    default: false
  run_key:
    description: The key that opens sealed secrets. The action plugin fills it in.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode:
    support: full
    description: Tells whether the turn is needed and shows the file's changes.
  diff_mode:
    support: full
    description: Shows the properties file before and after, with secrets masked.
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Restart the broker in KRaft mode
  quorumshift.kafka.node_restart:
    restart_id: "{{ run }}/kraft/{{ inventory_hostname }}"
    kind: kraft
    run: "{{ run }}"
    cluster_id: "{{ cluster_id }}"
    node_id: 1
    gate_token: "{{ gate_token }}"
    service: kafka
    config_file: /etc/kafka/server.properties
    log_file: /var/log/kafka/server.log
    changes: {process.roles: broker, node.id: "1", broker.id: null}
"""

RETURN = r"""
id:
  description: The turn's id.
  type: str
  returned: success
kind:
  description: What the turn is for; V(repair) for one that ended what a lost worker began.
  type: str
  returned: success
mode:
  description: The mode in which the node is to run.
  type: str
  returned: success
outcome:
  description: V(done), V(unneeded), V(put_back), V(failed) or V(died); empty while the turn goes on.
  type: str
  returned: success
steps:
  description: The steps taken, each with its time.
  type: list
  elements: dict
  returned: success
times:
  description: When the node stopped, answered and was registered, and how long each took, in seconds.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, restart_worker
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import node

WATCH_S = 2.0


def main():
    """Begin or watch a turn."""
    module = AnsibleModule(
        argument_spec={
            "action": {"type": "str", "choices": ["begin", "finish", "watch"], "default": "begin"},
            "restart_id": {"type": "str", "required": True},
            "kind": {"type": "str", "choices": list(transitions.TRANSITIONS)},
            **host_state.HELD_OPTIONS,
            "node_id": {"type": "int", "required": True},
            "gate_token": {"type": "dict", "no_log": False},
            "registered": {"type": "list", "elements": "str", "default": []},
            "service": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
            "changes": {"type": "dict"},
            "content": {"type": "dict"},
            "owner": {"type": "str", "default": "kafka"},
            "format_command": {"type": "list", "elements": "str"},
            "log_file": {"type": "path", "required": True},
            "kafka_home": {"type": "path", "default": "/opt/kafka"},
            "stop_timeout_s": {"type": "float", "default": 300},
            "start_timeout_s": {"type": "float", "default": 300},
            "seen_steps": {"type": "int", "default": 0},
            "part": {"type": "str", "choices": ["all", "begin", "await"], "default": "all"},
            "repair": {"type": "bool", "default": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        mutually_exclusive=[("changes", "content")],
        required_if=[("action", "begin", ("kind",))],
        supports_check_mode=True,
    )
    given = module.params
    finishing = given["action"] == "finish"
    if given["action"] == "begin":
        refused = gates.refusal(given["kind"], given["gate_token"], given["cluster_id"], given["run"])
        if refused and not module.check_mode:
            module.fail_json(msg=f"{refused}. Nothing was changed on this host.")
    spec = {
        **given,
        "id": given["restart_id"],
        "mode": transitions.TRANSITIONS[given["kind"]].after if given["kind"] else None,
        "format": given["format_command"],
    }
    try:
        if module.check_mode:
            plan = restart_worker.planned(spec)
            changed = finishing or plan["needed"]
            module.exit_json(changed=changed, diff=_diff(plan, given), outcome="unneeded", steps=[], times={})
        if given["action"] == "begin":
            reported = restart_worker.begin(spec)
        elif finishing:
            reported = restart_worker.finish(spec)
        else:
            reported = restart_worker.watch(
                given["state_dir"], given["cluster_id"], given["restart_id"], given["seen_steps"], WATCH_S
            )
    except (restart_worker.RestartError, OSError, ValueError) as error:
        module.fail_json(msg=f"the turn could not begin: {error}")
    result = {key: reported.get(key) for key in ("id", "kind", "mode", "outcome", "message", "steps", "times")}
    result["changed"] = bool(reported.get("changed"))
    if reported.get("diff"):
        result["diff"] = _diff(reported["diff"], given)
    if reported.get("outcome") in ("failed", "died"):
        module.fail_json(msg=reported["message"], **result)
    if reported.get("outcome"):
        role = "controller" if str(reported["mode"]).startswith("controller") else "broker"
        facts = node.facts(
            role, given["config_file"], given["service"], given["run_key"], given["state_dir"], given["kafka_home"]
        )
        result["ansible_facts"] = {"quorumshift_node": facts}
    if reported.get("outcome") == "reverted":
        # A role may go on to what is left of it elsewhere, with these facts.
        module.fail_json(msg=reported["message"], **result)
    module.exit_json(**result)


def _diff(plan, given):
    path = given["config_file"]
    return {"before": plan["before"], "after": plan["after"], "before_header": path, "after_header": path}


if __name__ == "__main__":
    main()
