#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: soak_history
short_description: Keep a sample of a soak on a host
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Adds a sample to C(soak.json) in the cluster's directory. Samples that say the same are one episode in it. The gate
    C(before_finalize) reads it.
options:
  sample:
    description: The sample, as M(quorumshift.kafka.soak_sample) returned it.
    type: dict
    required: true
  soak_gap:
    description: How far two samples may be apart, as V(15m). Empty where that is not asked.
    type: str
    default: ""
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode: {support: full, description: Keeps nothing.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Keep the sample
  quorumshift.kafka.soak_history:
    sample: "{{ taken.sample }}"
"""

RETURN = r"""
episodes:
  description: How many episodes the host keeps now.
  type: int
  returned: success
"""

import contextlib
import fcntl
import os
import shlex

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state


def main():
    """Read the history, add the sample, write it."""
    module = AnsibleModule(
        argument_spec={
            **host_state.HELD_OPTIONS,
            "sample": {"type": "dict", "required": True},
            "soak_gap": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        gap_s = soak.parse_soak("0", given["soak_gap"])[1]
        directory = host_state.path_of(given["state_dir"], given["cluster_id"])
        path = os.path.join(directory, host_state.SOAK)
        if not module.check_mode:
            host_state.make_directory(given["state_dir"], given["cluster_id"])
        with held(directory):
            history = host_state.read_json(path)
            if (history or {}).get("error"):
                module.fail_json(
                    msg=f"the history of the soak is not JSON: {history['error']}. What it had is lost, unless the "
                    f"other host kept it. Remove it: rm {shlex.quote(path)} (QS-GATE-013)"
                )
            history = soak.add(history, soak.Sample(**given["sample"]), gap_s)
            if not module.check_mode:
                host_state.write_json(path, history)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the sample of the soak could not be kept: {error} (QS-GATE-013)")
    module.exit_json(changed=True, episodes=len(history["episodes"]))


@contextlib.contextmanager
def held(directory):
    """Hold a directory, where there is one: of two samples at the same time, each is kept."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
