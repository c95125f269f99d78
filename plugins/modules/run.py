#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run
short_description: Begin a run, and take, check or close a node's run lock
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - O(state=begun) begins a run on the probe host. It detects the phase as M(quorumshift.kafka.migration_state) does,
    with options that the action plugin takes from variables. It names the run in the fact C(quorumshift_session),
    journals its begin, decides on the run lock, and fails where a run in O(direction) may not begin. Another call of
    the same run detects the phase again.
  - The other states are for brokers and controllers. The lock prevents two runs from changing the same cluster at
    once. Each node keeps it in C(run_lock.json) in its directory on its host. M(quorumshift.kafka.node_restart) needs
    it to begin a restart.
  - O(state=refused) fails with O(reason), after O(state=begun) with O(deferred). Handled by the action plugin.
  - O(state=locked) waits while a restart is running on the host. It fails if another run takes the lock first.
  - O(state=held) fails unless the run still holds the lock. Tasks on the probe host, which has no lock, ask the first
    host of the lock right before they change the cluster.
  - O(state=closed) closes the run's own lock only. A lock that is closed on one host is closed for the cluster.
  - The lock is the collection's own record and not counted as a change.
options:
  state:
    description: Whether to begin or refuse the run, or to take, check or close the lock of a host.
    type: str
    required: true
    choices: [begun, refused, locked, held, closed]
  direction:
    description:
      - With O(state=begun), the direction of a run that changes something. V(forward) fails in a phase from which no
        migration can continue, and during a restore. V(back) fails where no rollback is possible. V(restart),
        V(reassign), V(features) and V(quorum) fail while a migration is under way, the second and third also where a
        restart is unfinished. A cancellation of reassignments fails in no phase, and neither does V(features) without
        C(features_apply), nor V(quorum) without C(quorum_apply). Each direction that changes something fails while
        another run holds the run lock. Handled by the action plugin.
    type: str
    choices: ["", forward, back, restore, restart, reassign, features, quorum]
    default: ""
  plan:
    description:
      - With O(state=begun), whether to show the plan. V(run) prints it in one line, for a run that follows it. V(alone)
        prints it as a screen. In check mode both print the screen. Handled by the action plugin.
    type: str
    choices: [none, run, alone]
    default: none
  record:
    description: With O(state=begun), whether to keep the journal and the facts. Handled by the action plugin.
    type: bool
    default: true
  deferred:
    description:
      - With O(state=begun), whether the task ends well where the run may not begin, with C(refused). So the
        stats of the job have the phase. Handled by the action plugin.
    type: bool
    default: false
  reason:
    description: With O(state=refused), why the run may not begin.
    type: str
  run_lock:
    description: The lock to write, with O(state=locked). The action plugin makes it.
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
    description: The node's properties file. With O(state=locked), its log directories must be of O(cluster_id).
    type: path
  log_dir:
    description: The controller's log directory, used when there is no properties file.
    type: path
extends_documentation_fragment:
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.run
  - quorumshift.kafka.host_record.node
attributes:
  check_mode:
    support: full
    description: Journals nothing, and takes and closes no lock.
  diff_mode: {support: none, description: Shows no difference.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
# On localhost, after the facts of every node were read
- name: Begin a run that migrates
  quorumshift.kafka.run:
    state: begun
    direction: forward
    plan: run
  delegate_to: "{{ quorumshift_probe_host }}"
  register: quorumshift_state

# On each host of the lock
- name: Take the run lock
  quorumshift.kafka.run:
    state: locked

- name: Fail unless this run still holds the run lock
  quorumshift.kafka.run:
    state: held

- name: End the run
  quorumshift.kafka.run:
    state: closed
"""

RETURN = r"""
waited_s:
  description: How long the module waited for a running restart, in seconds; 0 where none held it up.
  type: float
  returned: with O(state=locked)
idle:
  description: Whether a run in O(direction) has nothing to change now.
  type: bool
  returned: with O(state=begun), which also returns what M(quorumshift.kafka.migration_state) does
to_prove:
  description:
    - Whether a rollback has nothing left to change but its last gate must still open, because an earlier run was
      interrupted.
  type: bool
  returned: with O(state=begun)
ahead:
  description: Names of the remaining steps in O(direction). In check mode, those that are due now.
  type: list
  elements: str
  returned: with O(state=begun)
plan:
  description: The plan, as M(quorumshift.kafka.migration_state) returns it.
  type: dict
  returned: with O(state=begun) and O(plan)
"""

import contextlib
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import action_only
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import host_identity, restart_record

SLICE_S = 3.0


def main():
    """Take, check or close the lock. The action plugin alone begins a run."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["begun", "refused", "locked", "held", "closed"]},
            "direction": {
                "type": "str",
                "choices": ["", "forward", "back", "restore", "restart", "reassign", "features", "quorum"],
                "default": "",
            },
            "plan": {"type": "str", "choices": ["none", "run", "alone"], "default": "none"},
            "record": {"type": "bool", "default": True},
            "deferred": {"type": "bool", "default": False},
            "reason": {"type": "str"},
            **host_state.HELD_OPTIONS,
            **host_state.NODE_OPTIONS,
            "run_lock": {"type": "dict"},
            "seen": {"type": "dict"},
            "how": {"type": "str", "default": "ok"},
            "advice": {"type": "str", "default": ""},
            "timeout_s": {"type": "float", "default": 600},
            "carry": {"type": "dict", "default": {}},
            "config_file": {"type": "path"},
            "log_dir": {"type": "path"},
        },
        required_if=[("state", "locked", ["run_lock"])],
        supports_check_mode=True,
    )
    given = module.params
    if given["state"] in ("begun", "refused"):
        module.fail_json(msg=action_only.explain("run"))
    if module.check_mode:
        module.exit_json(changed=False, done=True)
    try:
        if given["state"] == "held":
            run_lock_file.require(host_state.node_directory(given), given["run"])
            module.exit_json(changed=False, done=True)
        path = host_state.make_node_directory(given)
        if given["state"] == "closed":
            run_lock_file.close(path, given["run"], given["how"], given["advice"])
            module.exit_json(changed=False, done=True)
        if given["config_file"]:
            # A file that cannot be read stops each change of this host. The preflight, which follows, names it
            with contextlib.suppress(host_identity.UnreadableFile):
                host_identity.require(given["config_file"], given["cluster_id"], None, given["log_dir"])
        module.exit_json(changed=False, **lock(path, given))
    except (run_lock_file.RunLockError, host_identity.ForeignHost, OSError, ValueError) as error:
        changed = "Nothing more was changed." if given["state"] == "held" else "Nothing was changed."
        module.fail_json(msg=f"{error}. {changed}")
    except host_state.Held:
        module.fail_json(
            msg=f"the run lock stays open, because {restart_record.describe_work(path)}. Run again when it has "
            "ended (QS-RUN-006)"
        )


def lock(path, given):
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
