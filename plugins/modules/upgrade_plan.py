#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: upgrade_plan
short_description: Decide whether Kafka's binaries may be changed to another release, and what is left of an upgrade
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(step=binaries) fails where the binaries of the cluster may not be changed to O(to), and shows the order of the
    restarts. Going up, controllers come before brokers, and going down after them.
  - O(step=versions) shows what raises the versions in use, after every node runs O(to). That is
    C(inter.broker.protocol.version) in ZooKeeper mode, C(metadata.version) and the other features in KRaft mode. It
    needs O(token), because the binaries cannot be taken back afterwards.
  - O(step=settled) fails unless every node runs O(to), after a restart in either direction.
options:
  step:
    description: Which step of the upgrade to evaluate.
    type: str
    required: true
    choices: [binaries, versions, settled]
  to:
    description: The version of Kafka that the nodes are to run.
    type: str
    required: true
  homes:
    description: What M(quorumshift.kafka.kafka_home) read on each host. The action plugin fills it in.
    type: dict
    default: {}
  token:
    description: The token that O(step=versions) shows.
    type: str
    default: ""
extends_documentation_fragment:
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Reads only.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Plan an upgrade to Kafka 4.1.1
  quorumshift.kafka.upgrade_plan:
    step: binaries
    to: 4.1.1
    bootstrap_servers: b1:9094
    nodes: "{{ my_node_facts }}"
"""

RETURN = r"""
order:
  description: The kinds of restarts, one after the other (M(quorumshift.kafka.rolling_restart)).
  type: list
  elements: str
  returned: with O(step=binaries)
ready:
  description: Hosts that need no restart for this step.
  type: list
  elements: str
  returned: success
switched:
  description: Hosts without a running node, whose link alone is switched.
  type: list
  elements: str
  returned: with O(step=binaries)
capped:
  description:
    - Nodes that are gone and still registered, which keep C(metadata.version) below the release's, and what to do. With
      the right O(token) the task fails where there is one.
  type: list
  elements: str
  returned: success
ahead:
  description:
    - Hosts whose link was switched ahead of the restart, each with the link's C(path), its C(target), and the directory
      that the process C(runs). A node that does not come up goes back to that directory.
  type: dict
  returned: with O(step=binaries)
by_hook:
  description: Hosts on which the hook installs the release.
  type: list
  elements: str
  returned: with O(step=binaries)
lowers:
  description: Whether the release is older than the one that runs.
  type: bool
  returned: with O(step=binaries)
protocol:
  description:
    - With O(step=binaries), the C(inter.broker.protocol.version) that brokers keep. With O(step=versions), the one to
      which it is raised. Empty in KRaft mode, and where there is nothing to raise.
  type: str
  returned: success
removed:
  description:
    - Keys of the properties files that an older release does not know, by host, each with what to set. Those of a later
      one are findings of M(quorumshift.kafka.upgrade_audit).
  type: dict
  returned: with O(step=binaries)
metadata_version:
  description: The level to which C(metadata.version) is raised; 0 in ZooKeeper mode, and if nothing is to be raised.
  type: int
  returned: with O(step=versions)
features:
  description: The level to which each feature is raised, C(metadata.version) among them; empty in ZooKeeper mode.
  type: dict
  returned: with O(step=versions)
before:
  description: What is in use, as people name it.
  type: str
  returned: with O(step=versions)
controllers:
  description: The addresses of the controllers.
  type: list
  elements: str
  returned: with O(step=versions)
needed:
  description: The token that confirms the step; empty where there is nothing to raise.
  type: str
  returned: with O(step=versions)
confirmed:
  description: Whether O(token) is that token.
  type: bool
  returned: with O(step=versions)
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin, OtherCluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import kafka_homes, registrations, upgrade
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import levels
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import plain_restart
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


def main():
    """Evaluate one step of an upgrade."""
    module = ProbeModule(
        {
            "step": {"type": "str", "required": True, "choices": ["binaries", "versions", "settled"]},
            "to": {"type": "str", "required": True},
            "homes": {"type": "dict", "default": {}},
            "token": {"type": "str", "default": "", "no_log": False},
        }
    )
    steps = {"binaries": binaries, "versions": versions, "settled": settled}
    module.run(lambda: steps[module.params["step"]](module))


def binaries(module):
    """Return the first step: the order of the restarts."""
    given, facts, in_zookeeper_mode = read_situation(module)
    hosts = upgrade.hosts_from_facts(facts["nodes"], given["homes"])
    finalized, announced, capped = {}, {}, []
    if not in_zookeeper_mode:
        seen = collect_features(module)
        finalized, announced = seen["finalized"], levels.find_announced(facts["nodes"], seen["nodes"])
    refused = upgrade.refusals(hosts, given["to"], in_zookeeper_mode, finalized, announced)
    if refused:
        module.fail_json(msg=f"{'. '.join(refused)}. Nothing was changed.")
    if not in_zookeeper_mode:
        wanted = upgrade.highest_level(given["to"], announced)
        capped = explain_registrations(module, facts, finalized[core_features.METADATA_VERSION], wanted)
    files = {host: (node.get("file") or {}).get("properties") or {} for host, node in facts["nodes"].items()}
    # On the way up, the audit has named them
    removed = upgrade.find_removed_keys(files, given["to"]) if upgrade.is_lowered(hosts, given["to"]) else {}
    plan = upgrade.plan_binaries(hosts, given["to"], in_zookeeper_mode, removed)
    # A process that does not answer is restarted, whatever it runs
    plan = plan._replace(ready=[host for host in plan.ready if facts["nodes"][host].get("running")])
    homes = {host: given["homes"][host] for host in hosts if given["homes"].get(host)}
    by_home = {"ahead": kafka_homes.find_switched_ahead(homes), "by_hook": kafka_homes.find_hook_hosts(homes)}
    return {**plan._asdict(), "capped": capped, **by_home}


def settled(module):
    """Return {} when every node runs the release; fail the module otherwise."""
    given, facts, in_zookeeper_mode = read_situation(module)
    left = upgrade.explain_left(
        upgrade.hosts_from_facts(facts["nodes"], given["homes"]), given["to"], in_zookeeper_mode
    )
    if left:
        module.fail_json(
            msg=f"the change to Kafka {given['to']} is not done: {'. '.join(left)}. Run again (QS-RESTART-004)"
        )
    return {}


def versions(module):
    """Return the second step: what raises the versions in use."""
    given, facts, in_zookeeper_mode = read_situation(module)
    hosts = upgrade.hosts_from_facts(facts["nodes"], {})
    nothing = {"ready": [], "protocol": "", "metadata_version": 0, "before": "", "needed": "", "confirmed": False}
    nothing.update(capped=[], features={})
    left = upgrade.find_not_upgraded(hosts, given["to"], in_zookeeper_mode)
    if left:
        module.fail_json(
            msg=f"{', '.join(left)} do not run Kafka {given['to']} yet, so the versions in use stay. Run this playbook "
            "again. Nothing was changed by this task. (QS-RESTART-004)"
        )
    needed = upgrade.token(given["cluster_id"] or facts["zookeeper"].get("cluster_id") or "", given["to"])
    if given["token"] not in ("", needed):
        module.fail_json(
            msg=f"upgrade_confirm is {given['token']}, and that of this step is {needed}. Nothing was "
            "changed. (QS-RESTART-004)"
        )
    nothing["controllers"] = [
        node["address"] for node in module.nodes.values() if node["role"] == transitions.CONTROLLER
    ]
    found = {**nothing, "needed": needed, "confirmed": given["token"] == needed}
    if in_zookeeper_mode:
        due = upgrade.find_due_protocols(hosts, given["to"])
        if not due:
            return nothing
        brokers = [host for host, node in hosts.items() if node.role == transitions.BROKER]
        before = ", ".join(sorted(set(due.values())))
        target = needed.rpartition(":")[2]
        return {**found, "ready": sorted(set(brokers) - set(due)), "protocol": target, "before": before}
    seen = collect_features(module)
    refused = core_features.explain_unready(seen)
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed.")
    supported = features.supported_ranges(seen)
    raised = upgrade.levels_of_target(given["to"], seen["finalized"], supported, bool(seen["static_voters"]))
    if not raised:
        return nothing
    now = seen["finalized"].get(core_features.METADATA_VERSION, 0)
    level = raised.get(core_features.METADATA_VERSION, 0)
    before = core_features.name_of(core_features.METADATA_VERSION, now)
    capped = explain_registrations(module, facts, now, level)
    if capped and found["confirmed"]:
        module.fail_json(msg=f"{'. '.join(capped)}. Nothing was changed by this task.", capped=capped)
    return {**found, "metadata_version": level, "features": raised, "before": before, "capped": capped}


def explain_registrations(module, facts, now, wanted):
    """Return which nodes that are gone keep metadata.version below `wanted`, as sentences."""
    if wanted <= now:
        return []
    bootstrap = ",".join(map(str, module.connections.bootstrap))
    return registrations.explain_cap(
        registrations.find_gone(facts["nodes"]), module.params["to"], now, wanted, bootstrap
    )


def read_situation(module):
    """Return (parameters, facts, whether the cluster is in ZooKeeper mode). Fail during a migration."""
    facts = module.facts(partitions=False)
    detected = phase.detect(facts)
    refused = plain_restart.refusal(facts, detected)
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed.")
    return module.params, facts, detected.phase == phase.ZK


def collect_features(module):
    """Return the features of every node (admin.features.collect)."""
    connections = module.connections
    controllers = [
        parse_host_port(node["address"]) for node in module.nodes.values() if node["role"] == transitions.CONTROLLER
    ]
    try:
        admin = ClusterAdmin(
            connections.bootstrap, connections.client, connections.timeout, module.params["cluster_id"]
        )
        clients = connections.client, connections.controller_client
        return features.collect(admin, *clients, controllers, connections.timeout)
    except (WireError, OtherCluster) as error:
        module.fail_json(msg=f"the features could not be read: {error}. Nothing was changed. (QS-RESTART-004)")


if __name__ == "__main__":
    main()
