#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_lock
short_description: Take or close a host's run lock
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Prevents two runs from changing the same cluster at once. Each host keeps the lock in C(run_lock.json) below its
    state directory. M(quorumshift.kafka.node_restart) needs it to begin a restart.
  - O(state=taken) waits while a restart is running on the host. It fails if another run takes the lock first.
  - O(state=closed) closes the run's own lock only. A lock that is closed on one host is closed for the cluster.
  - The lock is the collection's own record and not counted as a change.
options:
  state:
    description: Whether to take or close the lock.
    type: str
    required: true
    choices: [taken, closed]
  run_lock:
    description: The lock to write, with O(state=taken). The action plugin makes it.
    type: dict
  seen:
    description: On the arbiter, the lock that the run read before it decided.
    type: dict
  how:
    description: How the run ended, for the host's journal, with O(state=closed).
    type: str
    default: ok
  advice:
    description: With O(state=closed), the next step that a failed run gave the operator.
    type: str
    default: ""
  timeout_s:
    description: How many seconds to wait for a running restart.
    type: float
    default: 600
  carry:
    description: What an earlier, unfinished call of the same wait returned. The action plugin passes it on.
    type: dict
    default: {}
  config_file:
    description: The node's properties file. With O(state=taken), its log directories must be of O(cluster_id).
    type: path
  log_dir:
    description: The controller's log directory, used when there is no properties file.
    type: path
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
attributes:
  check_mode: {support: full, description: Takes and closes nothing.}
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Take the run lock
  quorumshift.kafka.run_lock:
    state: taken

- name: End the run
  quorumshift.kafka.run_lock:
    state: closed
"""

RETURN = r"""
waited_s:
  description: How long the module waited for a running restart, in seconds; 0 where none held it up.
  type: float
  returned: with O(state=taken)
"""

import contextlib
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import host_identity, restart_record

SLICE_S = 3.0


def main():
    """Take or close the lock."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["taken", "closed"]},
            **host_state.HELD_OPTIONS,
            "run_lock": {"type": "dict"},
            "seen": {"type": "dict"},
            "how": {"type": "str", "default": "ok"},
            "advice": {"type": "str", "default": ""},
            "timeout_s": {"type": "float", "default": 600},
            "carry": {"type": "dict", "default": {}},
            "config_file": {"type": "path"},
            "log_dir": {"type": "path"},
        },
        required_if=[("state", "taken", ["run_lock"])],
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, done=True)
    given = module.params
    try:
        path = host_state.make_directory(given["state_dir"], given["cluster_id"])
        if given["state"] == "closed":
            run_lock_file.close(path, given["run"], given["how"], given["advice"])
            module.exit_json(changed=False, done=True)
        if given["config_file"]:
            # A file that cannot be read stops each change of this host. The preflight, which follows, names it
            with contextlib.suppress(host_identity.UnreadableFile):
                host_identity.require(given["config_file"], given["cluster_id"], None, given["log_dir"])
        module.exit_json(changed=False, **taken(path, given))
    except (run_lock_file.RunLockError, host_identity.ForeignHost, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Nothing was changed.")
    except host_state.Held:
        module.fail_json(
            msg=f"the run lock stays open, because {restart_record.describe_work(path)}. Run again when it has "
            "ended (QS-RUN-006)"
        )


def taken(path, given):
    """Take the lock, waiting for one slice; return {done, waited_s} or {done: false, progress, carry}.

    Raises RunLockError."""
    began, waited = given["carry"].get("began") or time.time(), given["carry"].get("waited", 0.0)
    slice_end = time.monotonic() + SLICE_S
    while True:
        try:
            run_lock_file.take(path, given["run_lock"], given["seen"])
            # The host was read before: what another run's restart changed meanwhile is read again, however short it was
            return {"done": True, "waited_s": round(waited, 3)}
        except host_state.Held:
            waited = max(time.time() - began, 0.001)
        if waited >= given["timeout_s"]:
            raise run_lock_file.RunLockError(
                f"waited {waited:.0f} s for a restart to end: {restart_record.describe_work(path)} (QS-RUN-003)"
            )
        if time.monotonic() >= slice_end:
            return {
                "done": False,
                "progress": f"waits: {restart_record.describe_work(path)} ({waited:.0f} s)",
                "carry": {"began": began, "waited": waited},
            }
        time.sleep(0.1)


if __name__ == "__main__":
    main()
