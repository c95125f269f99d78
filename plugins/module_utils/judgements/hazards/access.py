# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: who is let in where."""

from __future__ import annotations

from typing import Iterable, Mapping

from .. import kraft_config
from .facts import Facts, Found, values_of


def controller_acl(facts: Facts) -> Iterable[Found]:
    """Brokers let controllers in: LeaderAndIsr, UpdateMetadata and StopReplica want ClusterAction on the cluster."""
    principal = facts.controller_principal
    for host, node in sorted(facts.brokers.items()):
        values = values_of(node)
        plain = kraft_config.inter_broker_protocol(values) == "PLAINTEXT"
        if plain and principal != kraft_config.ANONYMOUS:
            yield Found(
                f"quorumshift_controller_principal is {principal}, and on the PLAINTEXT listener of {host} a "
                "controller is User:ANONYMOUS",
                f"set quorumshift_controller_principal to {kraft_config.ANONYMOUS}",
            )
        elif not plain and principal == kraft_config.ANONYMOUS:
            yield Found(
                f"quorumshift_controller_principal is not set, and brokers and controllers log in at {host}",
                "set it to the principal with which controllers log in there",
            )
        elif not values.get("authorizer.class.name") or principal in kraft_config.super_users(values):
            continue
        elif facts.metadata is not None and not _may_cluster_action(facts.metadata["acls"], principal):
            yield Found(
                f"{principal}, as whom controllers dial {host}, has no ClusterAction there",
                f"kafka-acls.sh --add --allow-principal {principal} --operation ClusterAction --cluster, or make it a "
                "super user",
            )


def _may_cluster_action(acls: Iterable[Mapping], principal: str) -> bool:
    ours = [
        acl
        for acl in acls
        if acl["resource_type"] == "CLUSTER"
        and acl["principal"] in (principal, "User:*")
        and acl["operation"] in ("CLUSTER_ACTION", "ALL")
    ]
    allowed = any(acl["permission"] == "ALLOW" and acl["host"] == "*" for acl in ours)
    return allowed and not any(acl["permission"] == "DENY" for acl in ours)


def controller_super_users(facts: Facts) -> Iterable[Found]:
    """Controllers let each other in and nobody unknown: a new quorum knows no ACL, only super users."""
    given = list(facts.controller_super_users)
    with_authorizer = [
        values_of(node) for node in facts.brokers.values() if values_of(node).get("authorizer.class.name")
    ]
    if not with_authorizer:
        return
    secured = facts.controller_protocol != "PLAINTEXT"
    principal = facts.controller_principal if secured else kraft_config.ANONYMOUS
    if secured and kraft_config.ANONYMOUS in given:
        yield Found(
            f"{kraft_config.ANONYMOUS} would be a super user on controllers, whose listener is "
            f"{facts.controller_protocol}",
            "set quorumshift_controller_super_users to the principals that dial the controllers and are no super users "
            "on brokers: controllers, brokers, this tool",
        )
    elif any(principal not in (*kraft_config.super_users(values), *given) for values in with_authorizer):
        yield Found(
            f"{principal}, as whom controllers dial each other, is no super user on them",
            "add it to quorumshift_controller_super_users: a new quorum knows no ACL yet",
        )
