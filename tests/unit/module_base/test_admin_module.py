# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that change a cluster refuse under the open run lock of another run, on a host that has a lock."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import run_lock_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import admin_module

CLUSTER = "Qs7KfZk2TIK1n0nQ5Qm3Tw"
LOCK = {"number": 1, "run": "r1", "direction": "restart", "target": None, "user": "ops", "host": "h", "since": 1.0}


class Module(admin_module.AdminModule):
    """The rule alone."""

    def __init__(self, state_dir, run, check_mode=False):
        self.params, self.check_mode = {"state_dir": str(state_dir), "run": run}, check_mode


@pytest.mark.parametrize(
    ("lock", "run", "said"),
    [
        (None, None, None),
        (None, "r1", None),
        ({"closed": True}, None, None),
        ({"closed": True}, "r2", None),
        ({"closed": False}, "r1", None),
        ({"closed": False}, None, "is locked by run r1"),
        ({"closed": False}, "r2", "is locked by run r1"),
        ({"closed": True}, "r1", "is locked by run r1"),
        ("not JSON", None, "run_lock.json"),
        ("not JSON", "r1", "run_lock.json"),
    ],
)
def test_who_may_change_the_cluster(tmp_path, lock, run, said):
    if lock is not None:
        node = tmp_path / CLUSTER / "broker-1"
        node.mkdir(parents=True)
        text = lock if isinstance(lock, str) else json.dumps({**LOCK, **lock})
        (node / "run_lock.json").write_text(text)
    if said is None:
        Module(tmp_path, run)._require_no_other_run(CLUSTER)
        return
    with pytest.raises(run_lock_file.RunLockError, match=said):
        Module(tmp_path, run)._require_no_other_run(CLUSTER)


@pytest.mark.parametrize(("run", "refused"), [("r2", False), (None, True)])
def test_a_run_plans_before_it_takes_the_lock_of_a_killed_run(tmp_path, run, refused):
    node = tmp_path / CLUSTER / "broker-1"
    node.mkdir(parents=True)
    (node / "run_lock.json").write_text(json.dumps({**LOCK, "closed": False}))
    with pytest.raises(run_lock_file.RunLockError) if refused else contextlib.nullcontext():
        Module(tmp_path, run, check_mode=True)._require_no_other_run(CLUSTER)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("run", [None, "r0", "r1", "r2"])
def test_the_newest_lock_of_the_nodes_of_a_host_decides(tmp_path, closed, run):
    """A run that was killed left the lock of a node open that the next run excluded."""
    locks = {
        "broker-1": {**LOCK, "run": "r0", "closed": False},
        "broker-2": {**LOCK, "number": 2, "closed": closed},
        "controller-3000": {**LOCK, "number": 2, "closed": False},
    }
    for key, lock in locks.items():
        (tmp_path / CLUSTER / key).mkdir(parents=True)
        (tmp_path / CLUSTER / key / "run_lock.json").write_text(json.dumps(lock))
    if closed is not (run == "r1"):
        Module(tmp_path, run)._require_no_other_run(CLUSTER)
        return
    with pytest.raises(run_lock_file.RunLockError, match="is locked by run r1"):
        Module(tmp_path, run)._require_no_other_run(CLUSTER)


def test_controllers_that_do_not_say_their_cluster_are_no_failure_of_the_module(tmp_path):
    """Before metadata.version 3.7-IV0, where no broker answers. The change is refused with the reason later on."""
    node = tmp_path / CLUSTER / "broker-1"
    node.mkdir(parents=True)
    (node / "run_lock.json").write_text(json.dumps({**LOCK, "closed": False}))
    module = Module(tmp_path, "r2")
    module._require_no_other_run("")
    module.params["cluster_id"] = CLUSTER
    with pytest.raises(run_lock_file.RunLockError, match="is locked by run r1"):
        module._require_no_other_run("")


class _Failed(Exception):
    pass


@pytest.mark.parametrize(("sent", "said"), [(0, "Nothing was changed"), (1, "Nothing more was changed")])
def test_the_lock_is_asked_for_right_before_each_change(tmp_path, monkeypatch, sent, said):
    """Another run may take it over while the first one reads, or between two of its changes."""
    monkeypatch.setattr(admin_module.cluster.Connections, "from_options", lambda _params: None)
    made = []

    class Refused(Module):
        def fail_json(self, msg, **more):
            raise _Failed(msg, more)

    def work(admin, _connections):
        for _change in range(sent):
            admin.before_change()
            made.append(1)
        node = tmp_path / CLUSTER / "broker-1"
        node.mkdir(parents=True)
        (node / "run_lock.json").write_text(json.dumps({**LOCK, "closed": False}))
        admin.before_change()
        made.append(1)

    module = Refused(tmp_path, "r2")
    module.params["cluster_id"], module._changes = CLUSTER, True
    with pytest.raises(_Failed) as failed:
        module.run(work, connect=lambda _connections, cluster_id: SimpleNamespace(cluster_id=cluster_id))
    text, more = failed.value.args
    assert "is locked by run r1" in text and said in text and more == {"changed": bool(sent)} and len(made) == sent
