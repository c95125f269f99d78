#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_restart
short_description: Restart one Kafka node with changed properties
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Stops the node, replaces its properties file, starts the node and waits until it is up. A worker that is detached
    from Ansible's connection does this, so a lost control node, terminal or network does not interrupt the restart.
    With systemd the worker is a transient unit, so the end of the login does not kill it either.
  - A broker is up when its process runs, its listener answers ApiVersions in the expected mode, and its replica of the
    metadata log shows the unfenced registration of this start.
  - A controller is up with its new registration too. Below metadata.version 3.7-IV0, where controllers do not register,
    it is up once it has loaded the metadata up to the quorum's high watermark, or its log grows.
  - A node that already runs in the mode, with the wanted properties file, is not restarted.
  - If a broker does not come up, the worker reverts the properties file and the mode, where that is safe. Reverting to
    plain ZooKeeper mode is safe only while C(/migration) is at -1 and ZooKeeper's controller is active. Reverting from
    KRaft mode to migration mode is safe only while the migration continues. Controllers are never reverted. The module
    still fails, with the outcome V(reverted) and an excerpt of the node's log.
  - Fails without the token of the gate that belongs to O(kind), with one that is older than a minute by the host's own
    clock, and with the token of another host or node. A token that only permits a start stops no node that runs.
    O(action=finish) needs no token, since it stops nothing. It finishes a restart whose worker was lost, in the mode of
    the host's properties file.
  - While the file C(pause) exists in O(state_dir), nothing begins. The action plugin waits until it is removed. A
    restart that has begun goes on, and O(action=finish) does not wait.
options:
  action:
    description:
      - V(begin) starts the worker and returns at once. V(watch) returns at the next step, or after a few seconds.
        V(finish) starts a worker that finishes an interrupted restart. The action plugin calls them and prints the
        progress.
    type: str
    choices: [begin, finish, watch]
    default: begin
  restart_id:
    description: The restart's id.
    type: str
    required: true
  kind:
    description:
      - The kind of restart. Required with O(action=begin).
      - V(restart_broker) and V(restart_controller) restart a node in the mode in which it runs, without a change of its
        properties file. They fail in a mode of a migration, and where the file has another mode.
      - V(upgrade_broker) and V(upgrade_controller) are the same with another release, V(protocol_broker) with another
        C(inter.broker.protocol.version). A node that does not come up gets its earlier release and file back.
      - V(zk_connect) does the same with a broker in plain ZooKeeper mode, and changes its C(zookeeper.connect).
      - V(dynamic_controller) and V(dynamic_broker) do the same with a node in KRaft mode, and replace its
        C(controller.quorum.voters) by C(controller.quorum.bootstrap.servers).
    type: str
    choices:
      - controller
      - zk_migration
      - kraft
      - controller_final
      - controller_migration
      - hybrid
      - zk
      - restart_broker
      - restart_controller
      - upgrade_broker
      - upgrade_controller
      - protocol_broker
      - zk_connect
      - dynamic_controller
      - dynamic_broker
  release:
    description:
      - With V(upgrade_broker) and V(upgrade_controller), the release that the node is to run. C(home) is the link from
        which its service starts Kafka, C(to) the directory to which it is switched, and C(version) that of Kafka there.
        Where C(to) is C(home), O(hook) installs the release there. The action plugin fills it in.
    type: dict
  since:
    description:
      - With V(restart_broker) and V(restart_controller), the time of the change that the restart is for, in seconds
        since 1970. A node whose process started later is not restarted. V(0) restarts all. In a task it is a time of
        the control node's clock, which the action plugin converts to that of the host's.
    type: float
    default: 0
  role:
    description: The node's role. With O(node_id) it names the node among those of its host.
    type: str
    required: true
    choices: [broker, controller]
  node_id:
    description: The node's id.
    type: int
    required: true
  gate_token:
    description: The token of the gate that belongs to O(kind) (M(quorumshift.kafka.gate)).
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
    description: The complete properties file, where the collection owns it (controllers).
    type: dict
  owner:
    description: The user that owns a new properties file and formats log directories.
    type: str
    default: kafka
  format_command:
    description: The command that formats empty log directories, run as O(owner) before the start.
    type: list
    elements: str
  log_file:
    description: The node's own log. The module quotes it if the node does not come up.
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
    description:
      - How long the node may take to start, in seconds, from its last progress on. Progress is what O(log_file) shows
        of loading and recovering partitions, so a recovery after an unclean stop may take longer than this.
    type: float
    default: 300
  hook:
    description:
      - A command on the host, which the worker runs as root at three moments of each restart, with the moment as its
        argument. C(before-stop) is before a running node is stopped, C(stopped) between stop and start, C(up) once the
        node is up, also with what it had before. C(docs/upgrades.md) has the contract. The action plugin fills it in.
    type: path
  hook_timeout_s:
    description: How long the hook may take at each moment, in seconds. The action plugin fills it in.
    type: float
    default: 600
  seen_steps:
    description: With O(action=watch), how many steps of the restart the caller has seen.
    type: int
    default: 0
  pause_wait_s:
    description: With O(action=begin), for how many seconds to wait for the end of a pause. The action plugin sets it.
    type: float
    default: 0
  part:
    description:
      - V(all) starts the restart and waits for its end. V(begin) only starts it, V(await) waits for its end. Use the
        two for nodes that need each other to start. V(await) without O(kind) waits for the restart that the run began
        on the host and has not awaited, if there is one. Handled by the action plugin.
    type: str
    choices: [all, begin, await]
    default: all
  repair:
    description: Finish the restart that an earlier run left unfinished on the host. Handled by the action plugin.
    type: bool
    default: false
  format:
    description:
      - With O(repair), format the empty log directory of a controller that lost its log, before it is started. A
        missing properties file is written, as another controller has it. Handled by the action plugin.
    type: bool
    default: false
  run_key:
    description: The key that unseals secrets. The action plugin fills it in.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
  - quorumshift.kafka.host_record.token
attributes:
  check_mode:
    support: full
    description: Returns whether a restart is needed, and shows the file's changes.
  diff_mode:
    support: full
    description: Shows the properties file before and after, with secrets masked.
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Restart the broker in KRaft mode
  quorumshift.kafka.node_restart:
    restart_id: "{{ run }}/kraft/{{ inventory_hostname }}"
    host: "{{ inventory_hostname }}"
    kind: kraft
    run: "{{ run }}"
    cluster_id: "{{ cluster_id }}"
    role: broker
    node_id: 1
    gate_token: "{{ gate_token }}"
    service: kafka
    config_file: /etc/kafka/server.properties
    log_file: /var/log/kafka/server.log
    changes: {process.roles: broker, node.id: "1", broker.id: null}
"""

RETURN = r"""
id:
  description: The restart's id.
  type: str
  returned: success
kind:
  description: The kind of restart; V(repair) for an interrupted restart that was finished.
  type: str
  returned: success
mode:
  description: The target mode of the node.
  type: str
  returned: success
outcome:
  description:
    - V(done), V(unneeded), V(reverted), V(failed) or V(died); null while the restart is running. V(expired) if
      the gate token was too old, V(paused) while restarts are paused on this host, and nothing was begun.
  type: str
  returned: success
steps:
  description: The steps, each with its time.
  type: list
  elements: dict
  returned: success
unit:
  description: The systemd unit of the worker; empty if the worker is a process of the SSH session's control group.
  type: str
  returned: success
paused:
  description: The pause of this host, C(path) of its file, C(since) by the host's clock, and C(why).
  type: dict
  returned: if RV(outcome=paused)
  sample: {path: /var/lib/quorumshift/pause, since: 1795276229.6, why: "ops: disk alert on b3"}
unclean_stop:
  description: What the node's log says where its controlled shutdown failed, so that leaders had not moved; else null.
  type: str
  returned: success
progress:
  description: How far the node has loaded its partitions, by its own log; empty outside of its start.
  type: str
  returned: success
times:
  description: When the node stopped, answered and registered, and how long each took, in seconds.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import restart_token, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, pause_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_worker

WATCH_S = 10.0  # as often as the action plugin shows that a step goes on


def main():
    """Begin, finish or watch a restart."""
    module = AnsibleModule(
        argument_spec={
            "action": {"type": "str", "choices": ["begin", "finish", "watch"], "default": "begin"},
            "restart_id": {"type": "str", "required": True},
            "kind": {"type": "str", "choices": [*transitions.KINDS]},
            "release": {"type": "dict"},
            "since": {"type": "float", "default": 0},
            **host_state.HELD_OPTIONS,
            "role": {"type": "str", "required": True, "choices": list(node_key.ROLES)},
            "node_id": {"type": "int", "required": True},
            "gate_token": {"type": "dict", "no_log": False},
            "host": {"type": "str", "required": True},
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
            "hook": {"type": "path"},
            "hook_timeout_s": {"type": "float", "default": 600},
            "seen_steps": {"type": "int", "default": 0},
            "pause_wait_s": {"type": "float", "default": 0},
            "part": {"type": "str", "choices": ["all", "begin", "await"], "default": "all"},
            "repair": {"type": "bool", "default": False},
            "format": {"type": "bool", "default": False},
            "renewable": {"type": "bool", "default": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        mutually_exclusive=[("changes", "content")],
        required_if=[("action", "begin", ("kind",))],
        supports_check_mode=True,
    )
    given = module.params
    finishing = given["action"] == "finish"
    if given["action"] == "begin" and not module.check_mode:
        # Before the token is looked at: a pause may last longer than a token, and the host then asks for another one
        paused = pause_file.await_end(given["state_dir"], given["pause_wait_s"])
        if paused:
            module.exit_json(changed=False, outcome="paused", paused=paused)
    rejected = {}
    if given["action"] == "begin":
        key = node_key.node_key(given["role"], given["node_id"])
        of_this_run = (given["cluster_id"], given["run"], given["host"], key)
        rejected = gates.rejection(given["kind"], given["gate_token"], *of_this_run, clock.read())
    if given["action"] != "watch" and not rejected:
        own = node.read_own(given["config_file"])
        other = restart_token.check_node(given["config_file"], own, given["role"], given["node_id"])
        rejected = {"msg": other} if other else {}
    if rejected and not module.check_mode:
        rejected["msg"] += ". Nothing was changed on this host."
        module.fail_json(**rejected)
    kind = transitions.KINDS.get(given["kind"])
    spec = {
        **given,
        "id": given["restart_id"],
        "mode": kind.after if kind else None,
        "format": given["format_command"],
        "only_start": bool((given["gate_token"] or {}).get("only_start")),
    }
    try:
        if kind and kind.is_plain and given["action"] == "begin":
            if given["content"] or not set(given["changes"] or {}) <= set(kind.may_change):
                module.fail_json(
                    msg=f"a restart of kind {kind.name} changes {', '.join(kind.may_change) or 'no key'} of a "
                    "properties file. Nothing was changed on this host. (QS-RESTART-003)"
                )
            spec["mode"] = restart_worker.kept_mode(spec)
        if module.check_mode:
            plan = restart_worker.plan_restart(spec)
            changed = finishing or plan["needed"]
            module.exit_json(changed=changed, diff=_diff(plan, given), outcome="unneeded", steps=[], times={})
        if given["action"] == "begin":
            record = restart_worker.begin(spec)
        elif finishing:
            record = restart_worker.finish(spec)
        else:
            record = restart_worker.watch(given, given["restart_id"], given["seen_steps"], WATCH_S)
    except (restart_worker.RestartError, OSError, ValueError) as error:
        module.fail_json(msg=f"the restart could not begin: {error} (QS-RESTART-011)")
    result = {
        key: record.get(key)
        for key in ("id", "kind", "mode", "outcome", "message", "steps", "times", "unit", "progress", "unclean_stop")
    }
    result["changed"] = bool(record.get("changed"))
    if record.get("diff"):
        result["diff"] = _diff(record["diff"], given)
    if record.get("outcome") in ("failed", "died"):
        module.fail_json(msg=record["message"], **result)
    if record.get("outcome"):
        names = ("role", "config_file", "service", "run_key", "state_dir", "kafka_home")
        facts = node.collect(*(given[name] for name in names), node_id=given["node_id"])
        result["ansible_facts"] = {"quorumshift_node": facts}
    if record.get("outcome") == "reverted":  # with fresh facts: a role still has to remove the broker's registration
        module.fail_json(msg=record["message"], **result)
    module.exit_json(**result)


def _diff(plan, given):
    path = given["config_file"]
    return {"before": plan["before"], "after": plan["after"], "before_header": path, "after_header": path}


if __name__ == "__main__":
    main()
