#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_home
short_description: Read from where a node's service starts Kafka, or switch it where no node runs
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=read) shows where the link O(home) leads, which release is in O(to), and from where the running process
    runs Kafka.
  - O(state=switched) lets the link lead to O(to), on a host whose service does not run.
    M(quorumshift.kafka.node_restart) switches it on hosts with a running node.
options:
  state:
    description: What to do.
    type: str
    choices: [read, switched]
    default: read
  home:
    description: The link or directory from which the service starts Kafka. The action plugin fills it in.
    type: path
    required: true
  to:
    description: The directory of the other release. It is O(home) where the hook installs the release.
    type: path
    required: true
  service:
    description: The service's name. The action plugin fills it in.
    type: str
    required: true
  run:
    description:
      - The run that must hold the run lock of the node. Without it, no run may hold one of O(cluster_id) on the host.
        The action plugin fills both in.
    type: str
  cluster_id:
    description: The cluster's id.
    type: str
  config_file:
    description: The properties file that the service starts with. The action plugin fills it in.
    type: path
  hook:
    description: The command that each restart runs on the host. The action plugin fills it in.
    type: path
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.node
attributes:
  check_mode: {support: full, description: Returns whether the link would be switched.}
  diff_mode: {support: full, description: Shows where the link leads before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the directories of both releases
  quorumshift.kafka.kafka_home:
    home: /opt/kafka
    to: /opt/kafka-4.1.1
    service: kafka
"""

RETURN = r"""
home:
  description:
    - The C(path), whether it C(is_link), its C(target), its C(real) path, and the C(version) of Kafka there.
    - C(package) is the package that installed Kafka there, C(shared) whether the directory has more than Kafka, and
      C(holds) has the node's own files below it.
  type: dict
  returned: success
to:
  description: The directory's C(path), whether it C(exists), its C(version), and whether a script C(starts) Kafka.
  type: dict
  returned: success
running:
  description:
    - From where the process runs Kafka, with C(path), C(version), and whether it C(exists) still; null if that cannot
      be seen.
  type: dict
  returned: success
hook:
  description: The C(path) of the hook, and whether it C(runs); null if there is none.
  type: dict
  returned: success
active:
  description: Whether the service runs.
  type: bool
  returned: success
java:
  description: The major version of the running node's Java, null if it is unknown.
  type: int
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import home_link
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError


def main():
    """Read the directories, or switch the link."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["read", "switched"], "default": "read"},
            "home": {"type": "path", "required": True},
            "to": {"type": "path", "required": True},
            "service": {"type": "str", "required": True},
            "run": {"type": "str"},
            "cluster_id": {"type": "str"},
            **host_state.OPTIONS,
            **host_state.NODE_OPTIONS,
            "config_file": {"type": "path"},
            "hook": {"type": "path"},
        },
        supports_check_mode=True,
    )
    home, to, service = (module.params[name] for name in ("home", "to", "service"))
    node = (module.params["config_file"] or "", module.params["hook"] or "")
    found = home_link.read(home, to, service, *node)
    if module.params["state"] == "read":
        module.exit_json(changed=False, **found)
    if found["active"]:
        module.fail_json(
            msg=f"{service} runs on this host: its restart switches {home}. Nothing was changed. (QS-RESTART-004)",
            **found,
        )
    before = found["home"]["target"]
    try:
        if before != to and not module.check_mode:
            run_lock_file.allow(module.params)
            home_link.switch(home, to)
            found = home_link.read(home, to, service, *node)
    except (OSError, ValueError, RestartError, run_lock_file.RunLockError) as error:
        module.fail_json(msg=f"{home} could not be switched to {to}: {error}. Nothing was changed. (QS-RESTART-004)")
    module.exit_json(changed=before != to, diff={"before": f"{before}\n", "after": f"{to}\n"}, **found)


if __name__ == "__main__":
    main()
