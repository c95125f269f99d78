# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options in host_state.OPTIONS, host_state.HELD_OPTIONS and host_state.NODE_OPTIONS."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state_dir:
    description:
      - Directory with one subdirectory per cluster. In it, each node of the host has a directory, such as C(broker-1),
        with its lock, run lock, restart record, journal and old properties files.
    type: path
    default: /var/lib/quorumshift
"""

    RUN = r"""
options:
  run:
    description:
      - The run's id.
    type: str
    required: true
  cluster_id:
    description:
      - The cluster's id.
    type: str
    required: true
"""

    NODE = r"""
options:
  role:
    description:
      - The node's role. With O(node_id) it names the node among those of its host. The action plugin fills both in.
    type: str
    choices: [broker, controller]
  node_id:
    description: The node's id. A formatted log directory must have it.
    type: int
"""

    LOCKED = r"""
options:
  run:
    description:
      - The id of the run under whose lock the module changes the cluster. The action plugin fills it in.
      - Under the open run lock of another run the module changes nothing.
    type: str
"""

    TOKEN = r"""
options:
  host:
    description: This host's name in the inventory, which the gate token must name. The action plugin fills it in.
    type: str
    required: true
  renewable:
    description:
      - A gate token that expired on its way fails the task only after several renewals. Until then the outcome is
        V(expired), and the role asks for a new token. Handled by the action plugin.
    type: bool
    default: false
"""
