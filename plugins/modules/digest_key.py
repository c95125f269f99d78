#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: digest_key
short_description: Keep the key that hashes a cluster's secrets for comparison
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Keeps one key per cluster on a managed host, with mode 0600. Hashes of different runs can be compared, and a reader
    of a report cannot test passwords against them.
options:
  key:
    description:
      - The sealed key to store. Without it, the module returns the host's key, or creates one.
    type: str
    default: ""
  run_key:
    description: The key that seals and unseals. The action plugin fills it in.
    type: str
    required: true
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode: {support: full, description: Returns whether a key would be stored.}
  diff_mode: {support: none, description: Shows no secrets.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read or create the key
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
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal


def main():
    """Read, create or store the key."""
    module = AnsibleModule(
        argument_spec={
            **host_state.HELD_OPTIONS,
            "key": {"type": "str", "default": "", "no_log": False},
            "run_key": {"type": "str", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        path = os.path.join(host_state.path_of(given["state_dir"], given["cluster_id"]), host_state.DIGEST_KEY)
        held = (host_state.read_json(path) or {}).get("key")
        wanted = seal.unseal(given["run_key"], given["key"]) or held or secrets.token_hex(32)
        if wanted != held and not module.check_mode:
            host_state.make_directory(given["state_dir"], given["cluster_id"])
            host_state.write_json(path, {"key": wanted})
    except (seal.SealError, OSError, ValueError) as error:
        module.fail_json(msg=f"the key that hashes secrets could not be read or stored: {error} (QS-VERIFY-002)")
    module.exit_json(changed=wanted != held, key=seal.seal(given["run_key"], wanted))


if __name__ == "__main__":
    main()
