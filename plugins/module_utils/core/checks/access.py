# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: who is let in where."""

from __future__ import annotations

from typing import Iterable, Mapping

from .. import kraft_config
from ..advice import shown
from .facts import Facts, Finding, by_text, values_of

_AUTHORIZER = "authorizer.class.name"


def controller_acl(facts: Facts) -> Iterable[Finding]:
    """Brokers let controllers in: LeaderAndIsr, UpdateMetadata and StopReplica want ClusterAction on the cluster."""
    principal = facts.controller_principal
    for host, node in sorted(facts.brokers.items()):
        values = values_of(node)
        plain = kraft_config.inter_broker_protocol(values) == "PLAINTEXT"
        if plain and principal != kraft_config.ANONYMOUS:
            yield Finding(
                f"quorumshift_controller_principal is {principal}, and on the PLAINTEXT listener of {host} a "
                "controller is User:ANONYMOUS",
                f"set quorumshift_controller_principal to {kraft_config.ANONYMOUS}",
            )
        elif not plain and principal == kraft_config.ANONYMOUS:
            yield Finding(
                f"quorumshift_controller_principal is not set, and brokers and controllers log in at {host}",
                "set it to the principal with which controllers log in there",
            )
        elif not values.get(_AUTHORIZER) or principal in kraft_config.super_users(values):
            continue
        elif facts.metadata is not None and not _may_cluster_action(facts.metadata["acls"], principal):
            yield Finding(
                f"{principal}, as whom controllers dial {host}, has no ClusterAction there",
                f"grant it: kafka-acls.sh --add --allow-principal {principal} --operation ClusterAction --cluster, "
                "or make it a super user",
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


def controller_logins(facts: Facts) -> Iterable[Finding]:
    """Every broker lets every controller in: TLS and login, tried with the settings that the controller will have.

    Once the copy is made nobody else tells brokers who leads; a broker that lets no controller in hears nothing more.
    """
    reported = {}
    for host, node in facts.controllers.items():
        login = (node.get("paths") or {}).get("login")
        if login:
            silent = map(str, sorted(_alive(facts) - set(login["answered"]))) if not login["errors"] else []
            reported[host] = (tuple(login["errors"]), tuple(silent), login.get("untried") or "")
    for hosts, (errors, silent, untried) in by_text(reported).items():
        if untried:
            yield Finding(
                f"whether brokers let {shown(hosts)} in was not tried: {untried}",
                "see that it does: kafka-broker-api-versions.sh on those hosts, with the settings that a controller "
                "will have for the inter-broker listener",
                warns=True,
            )
        elif errors:
            yield Finding(
                f"{shown(hosts)} cannot log in to the brokers' inter-broker listener as a controller will: "
                f"{'; '.join(errors)}",
                "correct the stores on those hosts, or quorumshift_controller_config: controllers send LeaderAndIsr "
                "and UpdateMetadata there",
            )
        elif silent:
            yield Finding(
                f"{shown(hosts)} logged in to brokers, and broker {shown(silent)} was not among those that answered",
                "see whether it runs, and what it advertises on the inter-broker listener",
            )


def _alive(facts: Facts) -> set[int]:
    return {node["node_id"] for node in facts.brokers.values() if node.get("node_id") is not None} - set(facts.dead)


def controller_super_users(facts: Facts) -> Iterable[Finding]:
    """Controllers let each other and this tool in and nobody unknown: a new quorum knows no ACL, only super users."""
    with_authorizer = [one for one in map(values_of, facts.brokers.values()) if one.get(_AUTHORIZER)]
    if not with_authorizer:
        return
    given = list(facts.controller_super_users)
    secured = facts.controller_protocol != "PLAINTEXT"
    if secured and kraft_config.ANONYMOUS in given:
        yield Finding(
            f"{kraft_config.ANONYMOUS} would be a super user on controllers, whose listener is "
            f"{facts.controller_protocol}",
            "set quorumshift_controller_super_users to the principals that dial the controllers and are no super users "
            "on brokers: controllers, brokers, this tool",
        )
        return
    own = facts.controller_config.get("super.users")
    users = [own] if own is not None else [";".join([one.get("super.users", ""), *given]) for one in with_authorizer]
    dialling = {facts.tool_principal: "this tool dials them"}
    dialling[facts.controller_principal if secured else kraft_config.ANONYMOUS] = "controllers dial each other"
    for principal, what in dialling.items():
        if principal and any(principal not in kraft_config.super_users({"super.users": one}) for one in users):
            yield Finding(
                f"{principal}, as whom {what}, is no super user on controllers",
                "add it to quorumshift_controller_super_users: a new quorum knows no ACL yet",
            )


# What the run asks of the brokers, and the operation that each wants (KafkaApis 3.9). At controllers the tool asks for
# the quorum (Describe) and removes the registration of a broker that was put back (Alter); there it is a super user.
CLUSTER_OPERATIONS = {"DESCRIBE_CONFIGS": "the brokers' running configurations"}
TOPIC_OPERATIONS = {
    "DESCRIBE": "whether replicas are in sync before a broker is stopped",
    "DESCRIBE_CONFIGS": "min.insync.replicas",
}


def tool_acls(facts: Facts) -> Iterable[Finding]:
    """The tool's own principal may read what it judges by, of every topic."""
    rights = facts.rights
    if rights is None:
        return  # no broker answers: other checks say so
    if rights.get("error"):
        yield Finding(
            f"what this tool may read could not be asked: {rights['error']}", "mend quorumshift_client, or the brokers"
        )
        return
    for operation, what in CLUSTER_OPERATIONS.items():
        if operation not in rights["cluster"]:
            yield Finding(
                f"the tool's principal has no {_named(operation)} on the cluster, which it needs for {what}",
                _grant(facts, operation, "--cluster"),
            )
    for operation, what in TOPIC_OPERATIONS.items():
        lacking = sorted(name for name, allowed in rights["topics"].items() if operation not in allowed)
        if lacking:
            yield Finding(
                f"the tool's principal has no {_named(operation)} on {len(lacking)} of {len(rights['topics'])} topics, "
                f"which it needs for {what}: {shown(lacking)}",
                _grant(facts, operation, "--topic '*'"),
            )


def _grant(facts: Facts, operation: str, resource: str) -> str:
    principal = facts.client_principal or "PRINCIPAL"
    return f"grant it: kafka-acls.sh --add --allow-principal {principal} --operation {_named(operation)} {resource}"


def _named(operation: str) -> str:
    """Return an operation as kafka-acls.sh takes it."""
    return "".join(part.capitalize() for part in operation.split("_"))
