# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate token permits on one host: whether it names the node, and whether a running node may be stopped. Pure.

A token's `hosts` is {inventory name: key of the node} (core.run.node_key), so that no token of a broker is one of the
controller beside it. With `only_start` the cluster's health was not required, since the host
itself reported that the node is down: the token permits its start, and no stop.
"""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import node_key


def is_stopped(state: Mapping[str, Any], or_stopping: bool = False) -> bool:
    """Return whether a service is stopped, given its host.service.read_state; with `or_stopping`, also while it stops.

    A unit that systemd is about to restart is `activating`, and so is one of Type=notify until it is up.
    """
    if state["manager"] != "systemd":
        return not state["active"]
    return state["active_state"] in ("inactive", "failed", *(["deactivating"] if or_stopping else []))


def check_host(token: Mapping, host: str, key: str) -> str | None:
    """Return why a token does not admit this node of this host; None when it does. `key`: of the node."""
    hosts = token.get("hosts") or {}
    if host not in hosts:
        return (
            f"the gate token is of {', '.join(sorted(hosts)) or 'no host'}, this host is {host}. Run "
            "again (QS-RESTART-009)"
        )
    if hosts[host] != key:
        return (
            f"the gate token is of {host} with node {hosts[host]}, this is node {key}. Check quorumshift_node_id and "
            "the groups of this host in the inventory, and the id in its properties file (QS-RESTART-009)"
        )
    return None


def check_node(config_file: str, found: tuple[str | None, int | None], role: str, node_id: int) -> str | None:
    """Return why a node is not the one that the run means; None when it is. `found`: its role and its id on the host,
    None where it has none yet."""
    found_role, found_id = found
    if found_role in (None, role) and found_id in (None, node_id):
        return None
    return (
        f"{config_file} on this host is of {node_key.node_key(found_role or role, found_id)}, the run means "
        f"{node_key.node_key(role, node_id)}. Check ansible_host, quorumshift_node_id and "
        f"quorumshift_{role}_config_file of this host in the inventory (QS-RESTART-009)"
    )


def check_stop(spec: Mapping[str, Any]) -> str | None:
    """Return why a node that runs now must not be stopped; None when it may be. `spec`: of restart_worker.begin."""
    if not spec.get("only_start"):
        return None
    unit = spec["service"]
    return (
        f"{unit} runs, and this restart may only start it. If it does not serve, see why: journalctl -u {unit}. Run "
        "again: the run stops it once the cluster is healthy without it. Or stop it yourself: systemctl stop "
        f"{unit} (QS-RESTART-010)"
    )
