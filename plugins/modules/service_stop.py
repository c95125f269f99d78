#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_stop
short_description: Stop a node's service and keep it down, or allow it to start again
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=stopped) stops the service and waits until systemd reports it stopped. O(state=masked) first prevents any
    start of the service, also after a reboot. O(state=unmasked) removes the mask and does not start the service.
  - Masking is a drop-in with a condition that never holds, because C(systemctl mask) does not work on a unit file in
    C(/etc/systemd/system). C(systemctl status) shows the drop-in's name.
options:
  service:
    description: The service's name.
    type: str
    required: true
  state:
    description: The wanted state of the service.
    type: str
    required: true
    choices: [stopped, masked, unmasked]
  stop_timeout_s:
    description: How long the service may take to stop, in seconds.
    type: float
    default: 300
  kill_after_s:
    description:
      - After how many seconds to send SIGKILL to all processes of a service that does not stop; 0 for never.
      - A broker in migration mode that has lost the quorum waits five minutes before it stops (C(KafkaServer)).
    type: float
    default: 0
  cluster_id:
    description: The run's cluster id. Without it, the host is not compared with a cluster.
    type: str
  config_file:
    description: The node's properties file. Its log directories must be of O(cluster_id).
    type: path
  log_dir:
    description: The controller's log directory, used when there is no properties file.
    type: path
  run:
    description:
      - The run that must hold the run lock of the node. Without it, no run may hold one of O(cluster_id) on the host.
    type: str
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.node
attributes:
  check_mode: {support: full, description: Returns what would change.}
  diff_mode: {support: full, description: Shows whether the service is active and masked before and after.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Stop and mask the controller
  quorumshift.kafka.service_stop:
    service: kafka-controller
    state: masked
"""

RETURN = r"""
stopped:
  description: Whether the module stopped the service.
  type: bool
  returned: success
at:
  description: When the service was stopped, in epoch seconds; null if it was stopped before.
  type: float
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import host_identity, restart_steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError


def main():
    """Mask first, then stop."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "state": {"type": "str", "required": True, "choices": ["stopped", "masked", "unmasked"]},
            "stop_timeout_s": {"type": "float", "default": 300},
            "kill_after_s": {"type": "float", "default": 0},
            "cluster_id": {"type": "str"},
            "config_file": {"type": "path"},
            "log_dir": {"type": "path"},
            **host_state.NODE_OPTIONS,
            "run": {"type": "str"},
            **host_state.OPTIONS,
        },
        supports_check_mode=True,
    )
    given = module.params
    name, state = given["service"], given["state"]
    found = service.read_state(name)
    active = not restart_steps.is_stopped(found)
    stops = state != "unmasked" and active
    wanted = {"masked": True, "unmasked": False}.get(state, found["masked"])
    diff = {
        "before": _shown(active, found["masked"]),
        "after": _shown(active and not stops, wanted),
        "before_header": name,
        "after_header": name,
    }
    if module.check_mode:
        module.exit_json(changed=stops or wanted != found["masked"], stopped=stops, at=None, diff=diff)
    try:
        run_lock_file.allow(given)
        if given["cluster_id"] and given["config_file"]:
            host_identity.require(given["config_file"], given["cluster_id"], given["node_id"], given["log_dir"])
    except (run_lock_file.RunLockError, host_identity.ForeignHost, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Nothing was changed on this host.")
    try:
        masked = state != "stopped" and service.set_masked(name, wanted)
        if stops:
            stop(given)
    except (service.ServiceError, RestartError, OSError) as error:
        module.fail_json(msg=f"{name}: {error}")
    module.exit_json(changed=stops or masked, stopped=stops, at=time.time() if stops else None, diff=diff)


def _shown(active, masked):
    return f"active: {active}\nmasked: {masked}\n"


def stop(given):
    """Stop the service; after kill_after_s by force. Raises ServiceError, RestartError."""
    service.begin("stop", given["service"])
    if given["kill_after_s"]:
        try:
            restart_steps.await_stopped({**given, "stop_timeout_s": given["kill_after_s"]})
            return
        except RestartError:
            service.kill(given["service"])
    restart_steps.await_stopped(given)


if __name__ == "__main__":
    main()
