# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of probe_module.ProbeModule: its options, and its requirements as in meta/ee-requirements.txt."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  nodes:
    description:
      - The result of M(quorumshift.kafka.node_facts) by host name, with C(role), C(reached), C(host_address) and, for
        controllers, C(address) (V(host:port) of the controller listener) added. An unreachable host has C(reached)
        false and C(error).
      - By default, the action plugin of this module fills it from the inventory groups C(kafka_broker) and
        C(kafka_controller).
    type: dict
    default: {}
  excluded:
    description:
      - The same for the hosts that a rollback excludes. They are not probed, and their replicas do not count. The
        action plugin fills it from C(quorumshift_exclude_hosts).
    type: dict
    default: {}
  cluster_id:
    description:
      - The run's cluster id. If ZooKeeper, a host or the bootstrap servers report another id, the module fails. The
        action plugin sets it.
    type: str
  carry:
    description:
      - The C(carry) that an earlier, unfinished call of the same wait returned. The action plugin sets it; omit it.
    type: dict
    default: {}
requirements:
  - confluent-kafka >= 2.16
  - kazoo >= 2.11 (with O(zookeeper_connect))
  - pure-sasl (with O(zookeeper_client.sasl_mechanism))
  - kerberos (with O(zookeeper_client.sasl_mechanism=GSSAPI))
notes:
  - Runs on the probe host, by default the control node. There it runs in Ansible's own Python, which needs the
    packages.
  - The action plugin takes connection options that the task does not set from variables of the play's host, such as
    C(quorumshift_bootstrap_servers) and C(quorumshift_zookeeper_connect).
  - Without O(nodes), read every host of the groups C(kafka_broker) and C(kafka_controller) first, with the entry point
    C(gather) of the role P(quorumshift.kafka.quorumshift#role).
"""
