#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_stop
short_description: Stop a node's service and keep it down, or allow it to start again
version_added: 0.1.0
description:
  - O(state=stopped) stops the service and waits until systemd says that it is. O(state=masked) keeps anything from
    starting it before that, a reboot included. O(state=unmasked) takes that back and starts nothing.
  - Masking is a drop-in with a condition that does not hold, since C(systemctl mask) does nothing to a unit whose file
    stands in C(/etc/systemd/system). C(systemctl status) shows the drop-in's name.
options:
  service:
    description: The service's name.
    type: str
    required: true
  state:
    description: What is asked for.
    type: str
    required: true
    choices: [stopped, masked, unmasked]
  stop_timeout_s:
    description: How long the service may take to stop, in seconds.
    type: float
    default: 300
  kill_after_s:
    description:
      - After how many seconds a service that does not stop is killed, by SIGKILL to all its processes; 0 for never.
      - A broker in migration mode waits five minutes for the leave of a quorum that is gone (C(KafkaServer)).
    type: float
    default: 0
attributes:
  check_mode: {support: full, description: Tells what would change.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Keep the controller down
  quorumshift.kafka.service_stop:
    service: kafka-controller
    state: masked
"""

RETURN = r"""
stopped:
  description: Whether the service was stopped by this.
  type: bool
  returned: success
at:
  description: When it was seen stopped, in epoch seconds; null where it was down before.
  type: float
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import restart_steps
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.restart_record import RestartError


def main():
    """Mask first, then stop."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "state": {"type": "str", "required": True, "choices": ["stopped", "masked", "unmasked"]},
            "stop_timeout_s": {"type": "float", "default": 300},
            "kill_after_s": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    given = module.params
    name, state = given["service"], given["state"]
    reported = service.state(name)
    stops = state != "unmasked" and not restart_steps.is_stopped(reported)
    wanted = {"masked": True, "unmasked": False}.get(state, reported["masked"])
    if module.check_mode:
        module.exit_json(changed=stops or wanted != reported["masked"], stopped=stops, at=None)
    try:
        masked = state != "stopped" and service.set_masked(name, wanted)
        if stops:
            stop(given)
    except (service.ServiceError, RestartError, OSError) as error:
        module.fail_json(msg=f"{name}: {error}")
    module.exit_json(changed=stops or masked, stopped=stops, at=time.time() if stops else None)


def stop(given):
    """Stop the service, in order or by force. Raises ServiceError, TurnError."""
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
