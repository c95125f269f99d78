# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate token permits on one host: whether it names the host, and whether a running node may be stopped. Pure.

A token's `hosts` is {inventory name: node id}. With `only_start` the cluster's health was not required, since the host
itself reported that the node is down: the token permits its start, and no stop.
"""

from __future__ import annotations

from typing import Any, Mapping


def is_stopped(state: Mapping[str, Any], or_stopping: bool = False) -> bool:
    """Return whether a service is stopped, given its host.service.read_state; with `or_stopping`, also while it stops.

    A unit that systemd is about to restart is `activating`, and so is one of Type=notify until it is up.
    """
    if state["manager"] != "systemd":
        return not state["active"]
    return state["active_state"] in ("inactive", "failed", *(["deactivating"] if or_stopping else []))


def check_host(token: Mapping, host: str, node_id: int | None) -> str | None:
    """Return why a token does not admit this host; None when it does. `node_id`: None where the host has none."""
    hosts = token.get("hosts") or {}
    if host not in hosts:
        return (
            f"the gate token is of {', '.join(sorted(hosts)) or 'no host'}, this host is {host}. Run "
            "again (QS-RESTART-009)"
        )
    if node_id is not None and str(hosts[host]) != str(node_id):
        return (
            f"the gate token is of {host} with node id {hosts[host]}, this host has node id {node_id}. Check "
            "quorumshift_node_id in the inventory, and the id in the properties file of this host (QS-RESTART-009)"
        )
    return None


def check_node(config_file: str, found: int | None, node_id: int) -> str | None:
    """Return why a node is not the one that the run means; None when it is. `found`: its id on the host, None where it
    has none yet."""
    if found in (None, node_id):
        return None
    return (
        f"{config_file} on this host is of node {found}, the run means node {node_id}. Check ansible_host and "
        "quorumshift_node_id of this host in the inventory (QS-RESTART-009)"
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
