# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that probe_module.ProbeModule declares."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  nodes:
    description:
      - The facts of M(quorumshift.kafka.node_facts) by host name, with C(role), C(reached), C(host_address) and, for
        controllers, C(address) (V(host:port) of the controller listener) added. An unreachable host has C(reached)
        false and C(error).
      - By default, the action plugin fills it from the inventory's groups C(kafka_broker) and C(kafka_controller).
    type: dict
    default: {}
  excluded:
    description:
      - The same for hosts that a rollback excludes. The module does not connect to them, and their replicas do not
        count. The action plugin fills it from C(quorumshift_exclude_hosts).
    type: dict
    default: {}
  carry:
    description:
      - What an earlier, unfinished call of the same wait returned. The action plugin passes it on; leave it out.
    type: dict
    default: {}
"""
