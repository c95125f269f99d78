#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: upgrade_audit
short_description: Find what stops or changes a cluster on the way to a later release of Kafka
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Reads the features of every node, and the configs of topics and brokers that the releases treat differently. With
    the facts of M(quorumshift.kafka.upgrade_read) it runs every check for O(to), or for each later release that is
    known.
  - Each check has a stable id. What is not known is a finding of its own, and never passes for a yes.
  - It sends C(ApiVersions), C(Metadata), C(DescribeQuorum), C(DescribeConfigs) and C(DescribeLogDirs), and changes
    nothing.
options:
  to:
    description: The version of Kafka that the nodes are to run. By default, each release from the running one on.
    type: str
    default: ""
  report_only:
    description: Return the findings without failing.
    type: bool
    default: false
  facts:
    description: What M(quorumshift.kafka.upgrade_read) returned of each host. Filled in by the action plugin.
    type: dict
    default: {}
  accept:
    description: Ids of checks whose findings are accepted, each with the reason.
    type: dict
    default: {}
  window_h:
    description: For how many hours a broker must have counted old requests, so that no such request is evidence.
    type: float
    default: 24
  show:
    description: Print the findings as a table. Handled by the action plugin.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.attributes.reads
  - quorumshift.kafka.connection
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
  - quorumshift.kafka.nodes
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# On localhost, after upgrade_read on every broker and controller
- name: Find what stops Kafka 4.1.1
  quorumshift.kafka.upgrade_audit:
    to: 4.1.1
    report_only: true
  delegate_to: "{{ quorumshift_probe_host }}"
  register: upgrade_audited
"""

RETURN = r"""
findings:
  description:
    - The findings, the blocking ones first. C(since) is the first release of which it is true, empty with O(to).
  type: list
  elements: dict
  returned: success, and if a finding blocks
checks:
  description: The ids of the checks that had all facts of their subject. Of these alone, no finding is a good answer.
  type: list
  elements: str
  returned: success, and if a finding blocks
targets:
  description: The versions that were audited; none where a node runs a later release than O(to).
  type: list
  elements: str
  returned: success, and if a finding blocks
clients:
  description:
    - C(old) has the clients that the newest of C(targets) does not answer, with name, version, address, requests with
      their versions, client ids and principals. C(connected) counts connections by name and version of the client,
      C(addresses) those by address, of other hosts than the nodes.
  type: dict
  returned: success, and if a finding blocks
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features, reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin, OtherCluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit, clients, quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit.audit_facts import Facts
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import accepted, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.probe_module import ProbeModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import dynamic_configs
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


def main():
    """Collect the facts, run the checks, exit."""
    module = ProbeModule(
        {
            "to": {"type": "str", "default": ""},
            "report_only": {"type": "bool", "default": False},
            "facts": {"type": "dict", "default": {}},
            "accept": {"type": "dict", "default": {}},
            "window_h": {"type": "float", "default": 24},
            "show": {"type": "bool", "default": False},
        }
    )
    given = module.params
    unfit = audit.check_accepted(given["accept"])
    if unfit:
        module.fail_json(
            msg=f"upgrade_accept is invalid: {'; '.join(unfit)}. It maps ids of checks to reasons, as in "
            "{QS-AUDIT-010: the teams said that no old client is left}. Nothing was changed. (QS-AUDIT-001)"
        )
    if given["to"] and releases.parse_release(given["to"]) is None:
        module.fail_json(
            msg=f"Kafka {given['to']} is {releases.describe_kind(given['to'])}. Set upgrade_to to the version in the "
            "name of its jar. Nothing was changed. (QS-AUDIT-001)"
        )
    module.run(lambda: audited(module))


def audited(module):
    """Return the findings and the clients. Fail the module where a finding blocks, unless it only reports."""
    given = module.params
    facts = collect(module)
    if given["to"] and audit.is_downgrade(facts, given["to"]):
        return {"findings": [], "checks": [], "targets": [], "clients": {"old": [], "connected": [], "addresses": {}}}
    targets = [given["to"]] if given["to"] else quorum.path(facts)
    findings = audit.run(facts, given["to"], given["accept"])
    result = {
        "findings": findings,
        "checks": audit.ids_with_facts(facts, targets[-1]) if targets else [],
        "targets": targets,
        "clients": {
            "old": clients.find_old(facts, targets[-1]) if targets else [],
            "connected": clients.connected(facts),
            "addresses": clients.addresses(facts),
        },
    }
    blocking = [finding for finding in findings if finding["severity"] == "blocks" and not finding["waived"]]
    if blocking and not given["report_only"]:
        lines = [f"{finding['id']}: {advice.sentences(finding['seen'], finding['do'])}." for finding in blocking]
        module.fail_json(
            msg="\n".join(
                [f"Blocking findings of the audit: {len(blocking)}. Nothing was changed. (QS-AUDIT-001)", *lines]
            ),
            **result,
        )
    return result


def explain_hidden(admin):
    """Return which topics the principal may not describe, or why that is not known, '' for none: metadata leaves them
    out."""
    try:
        denied, unread = reassigner.read_denied(admin)
    except WireError as failed:
        denied, unread = [], [str(failed)]
    if denied:
        return f"the principal may not describe {advice.format_names(denied)}"
    return f"whether it may describe all of them is not known: {advice.format_names(unread)}" if unread else ""


def collect(module):
    """Return the facts of all checks; errors become part of the facts. Fail the module on another cluster."""
    connections, nodes, given = module.connections, module.nodes, module.params
    controllers = [
        parse_host_port(node["address"]) for node in nodes.values() if node["role"] == transitions.CONTROLLER
    ]
    security = connections.client, connections.controller_client
    found, error, configs = None, "", dynamic_configs.Configs(None, "no broker answers", {}, {}, {})
    try:
        admin = features.connect(
            connections.bootstrap, security[0], controllers, security[1], connections.timeout, given["cluster_id"]
        )
        if isinstance(admin, ClusterAdmin):
            configs = dynamic_configs.read(
                {broker: address for broker, (address, _rack) in admin.brokers.items()},
                {topic for topic, _number in admin.partitions},
                accepted.TOPIC_SETTINGS,
                {*accepted.BROKER_SETTINGS, quorum.MIN_ISR},
                connections.client,
                connections.timeout,
            )
            configs = configs._replace(topics_error=configs.topics_error or explain_hidden(admin))
        found = features.collect(admin, *security, controllers, connections.timeout)
    except OtherCluster as other:
        module.fail_json(msg=f"{other}. Nothing was changed.")
    except WireError as failed:
        error = str(failed)
    ids = {str(node.get("node_id")): host for host, node in nodes.items() if node["role"] == transitions.BROKER}
    return Facts(
        nodes,
        {host: read or {} for host, read in given["facts"].items()},
        {"zookeeper": True, "migration": True, "kraft": False}.get(found["mode"]) if found else None,
        found,
        configs.topics,
        configs.brokers,
        {ids[broker]: level for broker, level in configs.loggers.items() if broker in ids},
        ",".join(map(str, connections.bootstrap)),
        given["window_h"] * 3600,
        error,
        configs.topics_error,
        configs.unread,
    )


if __name__ == "__main__":
    main()
