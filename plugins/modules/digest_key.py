#!/usr/bin/python
# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: digest_key
short_description: The key under which a cluster's secrets are hashed before they are compared
version_added: 0.1.0
description:
  - Keeps one key per cluster on the managed side, of mode 0600, so that hashes of different runs can be compared and
    nobody who reads a report can try passwords against them.
options:
  key:
    description:
      - The key to keep, sealed. Without it the host's own is returned, and a new one is made where it has none.
    type: str
    default: ""
  run_key:
    description: The key that seals and opens. The action plugin fills it in.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode: {support: full, description: Tells whether a key would be kept.}
  diff_mode: {support: none, description: Shows no secrets.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read or make the key
  quorumshift.kafka.digest_key:
    run: "{{ run }}"
    cluster_id: "{{ cluster_id }}"
"""

RETURN = r"""
key:
  description: The key, sealed under the run's key.
  type: str
  returned: success
"""

import os
import secrets

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import host_state, seal


def main():
    """Read, make or keep."""
    module = AnsibleModule(
        argument_spec={
            **host_state.HELD_OPTIONS,
            "key": {"type": "str", "default": "", "no_log": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    path = os.path.join(given["state_dir"], given["cluster_id"], host_state.DIGEST_KEY)
    try:
        held = (host_state.read_json(path) or {}).get("key")
        wanted = seal.unseal(given["run_key"], given["key"]) or held or secrets.token_hex(32)
        if wanted != held and not module.check_mode:
            host_state.directory(given["state_dir"], given["cluster_id"])
            host_state.write_json(path, {"key": wanted})
    except (seal.SealError, OSError) as error:
        module.fail_json(msg=f"the key under which secrets are hashed: {error}")
    module.exit_json(changed=wanted != held, key=seal.seal(given["run_key"], wanted))


if __name__ == "__main__":
    main()
