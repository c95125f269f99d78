# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base class of modules that reassign partitions and update features: connection options, the cluster, errors."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import ClusterAdmin, OtherCluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, run_lock_file
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import CONNECTION
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import zk_wire
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


class AdminModule(AnsibleModule):
    """An AnsibleModule with connection options. It needs the standard library alone.

    `changes`: whether it changes the cluster, and so refuses under another run's open lock.
    """

    _sent = False  # whether a change was begun to be sent

    def __init__(self, argument_spec: Mapping[str, Any], changes: bool = False, **kwargs: Any):
        spec = {**CONNECTION, "cluster_id": {"type": "str"}, **argument_spec}
        if changes:
            spec.update({"run": {"type": "str"}, **host_state.OPTIONS})
        super().__init__(argument_spec=spec, supports_check_mode=True, **kwargs)
        self._changes = changes

    def fail_json(self, msg: str, **kwargs: Any) -> Any:
        """Fail with a message whose ids are at its end."""
        super().fail_json(msg=message_ids.move_to_end(msg, message_ids.NO_ID), **kwargs)

    def run(
        self,
        work: Callable[[Any, cluster.Connections], dict],
        errors: tuple = (),
        connect: Callable[[cluster.Connections, str | None], Any] | None = None,
    ) -> None:
        """Exit with the result of `work`; fail on the typed errors of addresses, options, servers, and on `errors`.

        `connect`: returns what `work` gets of a cluster with this id, by default a ClusterAdmin.
        """
        try:
            connections = cluster.Connections.from_options(self.params)
            admin = (connect or _connect)(connections, self.params["cluster_id"])
            if self._changes:
                self._require_no_other_run(admin.cluster_id)
                admin.before_change = lambda: self._before_change(admin.cluster_id)
            result = work(admin, connections)
        except (run_lock_file.RunLockError, host_state.OldLayoutError) as error:
            changed = "Nothing more was changed" if self._sent else "Nothing was changed"
            self.fail_json(msg=f"{error}. {changed}", changed=self._sent)
        except (AddressError, SecurityError, WireError, OtherCluster, OSError, *errors) as error:
            self.fail_json(msg=mask(str(error)))
        self.exit_json(**{"changed": False, **result})

    def _before_change(self, cluster_id: str) -> None:
        """Ask for the lock again, right before a change is sent: the readings before it take time."""
        self._require_no_other_run(cluster_id)
        self._sent = not self.check_mode

    def _require_no_other_run(self, cluster_id: str) -> None:
        """Raise an error where a node of this host keeps the open run lock of another run. The probe host need not be a
        host of the cluster, and then has no lock.

        A run shows in check mode what it would change before it takes the lock, perhaps that of a run that was killed.
        """
        if self.check_mode and self.params["run"]:
            return
        cluster_id = cluster_id or self.params.get("cluster_id") or ""
        if not cluster_id:  # no broker answers, and older controllers do not say it: they get no change
            return
        run_lock_file.require_no_other_run(self.params["state_dir"], cluster_id, self.params["run"])


def _connect(connections: cluster.Connections, cluster_id: str | None) -> ClusterAdmin:
    return ClusterAdmin(connections.bootstrap, connections.client, connections.timeout, cluster_id)


def znodes(connections: cluster.Connections, *paths: str) -> dict[str, bytes | None]:
    """Return the data of znodes, None for one that does not exist; all None without a connect string.

    Raises WireError, SecurityError.
    """
    return {path: value[0] if value else None for path, value in znodes_with_stat(connections, *paths).items()}


def znodes_with_stat(connections: cluster.Connections, *paths: str) -> dict[str, tuple[bytes, zk_wire.Stat] | None]:
    """Return the data and Stat of znodes, as `znodes`."""
    if connections.zookeeper is None:
        return dict.fromkeys(paths)
    return zk_wire.read_znodes(connections.zookeeper, paths, connections.zookeeper_client, connections.timeout)
