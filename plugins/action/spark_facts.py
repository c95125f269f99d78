# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""spark_facts: read the Spark host with the settings and addresses of a job. A host that cannot be read is a fact."""

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import spark
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import (
    Connections,
    client_address,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import spark_jobs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction, format_reason


class ActionModule(QuorumshiftAction):
    """Reads the host. The check of the preflight says what is wrong, with all other findings."""

    def act(self, args: dict) -> dict:
        master = self.variable("quorumshift_spark_master") or spark_jobs.LOCAL
        found: dict[str, Any] = {"host": self.host, "master": master}
        try:
            options = spark_jobs.submit_options(
                master,
                self.variable("quorumshift_spark_conf") or {},
                list(self.variable("quorumshift_spark_options") or []),
            )
            result = self.module({**self._asked(options), **self.fill(args)})
        except AnsibleConnectionFailure as error:
            return self._read({**found, "unreachable": format_reason(self.host, error)})
        except AnsibleActionFail as error:
            return self._read({**found, "error": format_reason(self.host, error)})
        if result.get("unreachable"):
            return self._read({**found, "unreachable": format_reason(self.host, result.get("msg"))})
        if result.get("failed") or "spark" not in result:
            return self._read(
                {**found, "error": format_reason(self.host, result.get("msg") or "the module returned nothing")}
            )
        return self._read({**found, "heap_mib": spark.heap_mib(options), **result["spark"]})

    @staticmethod
    def _read(found: dict) -> dict:
        return {"changed": False, "spark": found}

    def _asked(self, options: list[str]) -> dict:
        """Return the module's options."""
        connection = self.connection()
        data_dir = self.variable("quorumshift_zookeeper_data_dir")
        nodes, connections = self.nodes(), Connections.from_options(connection)
        brokers = {
            host: client_address(node, node["host_address"], connections)
            for host, node in nodes.items()
            if node["role"] == "broker"
        }
        controllers = {host: node["address"] for host, node in nodes.items() if node["role"] == "controller"}
        local_dirs = spark.setting(options, "spark.local.dir") or self.variable("_quorumshift_temporary")
        here = [self._artifacts().directory] if self.host in constants.LOCALHOST else []
        return {
            "submit": spark_jobs.submit_command(self.variable("quorumshift_spark_submit")),
            "options": options,
            "packages": list(spark.PACKAGES),
            "directories": [self.variable("_quorumshift_temporary"), *local_dirs.split(","), *here],
            "readable": [str(data_dir)] if data_dir else [],
            "targets": spark.targets(brokers, controllers, None if data_dir else connection["zookeeper_connect"]),
        }
