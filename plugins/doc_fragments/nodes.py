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
      - What M(quorumshift.kafka.node_facts) returned on each host, by host name, with C(role), C(reached),
        C(host_address) and, for controllers, C(address) (V(host:port) of the controller listener) added. A host that
        was not reached stands there with C(reached) false and C(error).
      - When it is left out, the action plugin of this module fills it from the groups C(kafka_broker) and
        C(kafka_controller) of the inventory.
    type: dict
    default: {}
  excluded:
    description:
      - The same of hosts without which a migration is taken back. Nobody asks them anything, and their replicas do not
        count. The action plugin fills it from C(quorumshift_exclude_hosts).
    type: dict
    default: {}
  carry:
    description:
      - What an earlier, unfinished call of the same wait returned. The action plugin hands it back; leave it out.
    type: dict
    default: {}
"""
