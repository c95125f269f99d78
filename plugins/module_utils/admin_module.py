# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base class of modules that reassign partitions and update features: connection options, the cluster, errors."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible.module_utils.basic import AnsibleModule

from . import host_state, run_locks
from .addresses import AddressError
from .argument_specs import CONNECTION
from .core import run_lock
from .masking import mask
from .probes import cluster, zk_wire
from .probes.cluster_admin import ClusterAdmin, OtherCluster
from .probes.socket_wire import WireError
from .security import SecurityError


class AdminModule(AnsibleModule):
    """An AnsibleModule with connection options. It needs the standard library alone.

    `changes`: whether it changes the cluster, and so refuses under another run's open lock.
    """

    def __init__(self, argument_spec: Mapping[str, Any], changes: bool = False, **kwargs: Any):
        spec = {**CONNECTION, "cluster_id": {"type": "str"}, **argument_spec}
        if changes:
            spec.update({"run": {"type": "str"}, **host_state.OPTIONS})
        super().__init__(argument_spec=spec, supports_check_mode=True, **kwargs)
        self._changes = changes

    def run(self, work: Callable[[ClusterAdmin, cluster.Connections], dict], errors: tuple = ()) -> None:
        """Exit with the result of `work`; fail on the typed errors of addresses, options, servers, and on `errors`."""
        try:
            connections = cluster.Connections.from_options(self.params)
            admin = ClusterAdmin(
                connections.bootstrap, connections.client, connections.timeout, self.params["cluster_id"]
            )
            if self._changes:
                self._require_no_other_run(admin.cluster_id)
            result = work(admin, connections)
        except (AddressError, SecurityError, WireError, OtherCluster, OSError, *errors) as error:
            self.fail_json(msg=mask(str(error)))
        self.exit_json(**{"changed": False, **result})

    def _require_no_other_run(self, cluster_id: str) -> None:
        """Fail where this host keeps the open run lock of another run."""
        lock = run_locks.read(host_state.path_of(self.params["state_dir"], cluster_id))
        if lock is None or lock.get("closed") or (self.params["run"] and lock.get("run") == self.params["run"]):
            return
        if lock.get("error"):
            self.fail_json(msg=f"the run lock cannot be read: {lock['error']}. Nothing was changed")
        self.fail_json(
            msg=f"this cluster is locked by {run_lock.holder(lock)}. Wait until that run ends. If it is dead, run its "
            "playbook again. Nothing was changed"
        )


def znodes(connections: cluster.Connections, *paths: str) -> dict[str, bytes | None]:
    """Return the data of znodes, None for one that does not exist; all None without a connect string.

    Raises WireError, SecurityError.
    """
    if connections.zookeeper is None:
        return dict.fromkeys(paths)
    found = zk_wire.read_znodes(connections.zookeeper, paths, connections.zookeeper_client, connections.timeout)
    return {path: value[0] if value else None for path, value in found.items()}
