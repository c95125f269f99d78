# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base class of modules that read the features of every node, by the controllers alone where no broker answers."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import FeatureError
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster import cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port


class FeaturesModule(AdminModule):
    """An AdminModule with the option `controllers`."""

    def __init__(self, argument_spec: Mapping[str, Any], **kwargs: Any):
        spec = {"controllers": {"type": "list", "elements": "str", "default": []}, **argument_spec}
        super().__init__(spec, **kwargs)

    def run(self, work: Callable[[Any, cluster.Connections], dict], errors: tuple = (), connect: Any = None) -> None:
        """Exit with the result of `work`, which gets what features.connect returns; fail on typed errors."""
        super().run(work, (FeatureError, *errors), connect or self._connect)

    def collect(self, admin: Any, connections: cluster.Connections) -> dict[str, Any]:
        """Return the features of every node (features.collect)."""
        clients = connections.client, connections.controller_client
        return features.collect(admin, *clients, self._controllers(), connections.timeout)

    def _connect(self, connections: cluster.Connections, cluster_id: str | None) -> Any:
        clients = connections.client, self._controllers(), connections.controller_client
        return features.connect(connections.bootstrap, *clients, connections.timeout, cluster_id)

    def _controllers(self) -> list:
        return [parse_host_port(text) for text in self.params["controllers"]]
