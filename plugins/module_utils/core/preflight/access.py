# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of permissions and logins between brokers, controllers and this tool."""

from __future__ import annotations

import shlex
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.check_facts import (
    Facts,
    group_by_value,
    values_of,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import Finding, format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values


def controller_acl(facts: Facts) -> Iterable[Finding]:
    """Yield each broker on which the controllers lack ClusterAction, which LeaderAndIsr, UpdateMetadata and StopReplica
    require."""
    principal = facts.controller_principal
    for host, node in sorted(facts.brokers.items()):
        values = values_of(node)
        protocol = kraft_config.inter_broker_protocol(values)
        if protocol == "PLAINTEXT" and principal != kraft_config.ANONYMOUS:
            yield Finding(
                f"quorumshift_controller_principal is {principal}, but controllers are User:ANONYMOUS on the PLAINTEXT "
                f"listener of {host}",
                f"set quorumshift_controller_principal to {kraft_config.ANONYMOUS}",
            )
        elif protocol != "PLAINTEXT" and principal == kraft_config.ANONYMOUS:
            yield Finding(
                f"quorumshift_controller_principal is not set, but the inter-broker listener of {host} uses {protocol}",
                "set it to the principal with which controllers log in to this listener",
            )
        elif not config_values.get(values, kraft_config.AUTHORIZER) or principal in kraft_config.super_users(values):
            continue
        elif facts.metadata is not None and not _may_cluster_action(facts.metadata["acls"], principal):
            yield Finding(
                f"{principal}, the controllers' principal, has no ClusterAction on {host}",
                f"grant it: kafka-acls.sh --add --allow-principal {shlex.quote(principal)} --operation ClusterAction "
                "--cluster, or add the principal to super.users",
            )


def _may_cluster_action(acls: Iterable[Mapping], principal: str) -> bool:
    matching = [
        acl
        for acl in acls
        if acl["resource_type"] == "CLUSTER"
        and acl["principal"] in (principal, "User:*")
        and acl["operation"] in ("CLUSTER_ACTION", "ALL")
    ]
    allowed = any(acl["permission"] == "ALLOW" and acl["host"] == "*" for acl in matching)
    return allowed and not any(acl["permission"] == "DENY" for acl in matching)


def controller_logins(facts: Facts) -> Iterable[Finding]:
    """Yield the controllers that cannot log in to each broker with the settings of their future properties file.

    After the initial copy only controllers send leaders to brokers: a broker that rejects them serves stale metadata.
    """
    results = {}
    for host, node in facts.controllers.items():
        login = (node.get("paths") or {}).get("login")
        if login:
            silent = map(str, sorted(_alive(facts) - set(login["answered"]))) if not login["errors"] else []
            results[host] = (tuple(login["errors"]), tuple(silent), login.get("untried") or "")
    for hosts, (errors, silent, untried) in group_by_value(results).items():
        if untried:
            yield Finding(
                f"the login of {format_names(hosts)} to the brokers was not tested: {untried}",
                "test it on these hosts: run kafka-broker-api-versions.sh with the settings that the controllers will "
                "have for the inter-broker listener",
                warns=True,
            )
        elif errors:
            yield Finding(
                f"{format_names(hosts)} cannot log in to the brokers' inter-broker listener with the controllers' "
                f"settings: {'; '.join(errors)}",
                "fix the key stores and trust stores on these hosts, or quorumshift_controller_config: controllers "
                "send LeaderAndIsr and UpdateMetadata to this listener",
            )
        elif silent:
            yield Finding(
                f"{format_names(hosts)} logged in to the brokers, but broker {format_names(silent)} did not answer",
                "check whether it runs and what it advertises on the inter-broker listener",
            )


def _alive(facts: Facts) -> set[int]:
    return {node["node_id"] for node in facts.brokers.values() if node.get("node_id") is not None} - set(facts.dead)


def controller_super_users(facts: Facts) -> Iterable[Finding]:
    """Yield the principals that must be super users on controllers and are not, or must not be: a new quorum has no
    ACLs."""
    with_authorizer = [
        values
        for values in map(values_of, facts.brokers.values())
        if config_values.get(values, kraft_config.AUTHORIZER)
    ]
    if not with_authorizer:
        return
    given = list(facts.controller_super_users)
    secured = facts.controller_protocol != "PLAINTEXT"
    if secured and kraft_config.ANONYMOUS in given:
        yield Finding(
            f"{kraft_config.ANONYMOUS} would be a super user on controllers, whose listener is "
            f"{facts.controller_protocol}",
            "set quorumshift_controller_super_users to the principals of controllers, brokers and this tool that are "
            "not super users on brokers",
        )
        return
    own = facts.controller_config.get("super.users")
    users = (
        [own]
        if own is not None
        else [";".join([properties.get("super.users", ""), *given]) for properties in with_authorizer]
    )
    required = {facts.tool_principal: "this tool's"}
    required[facts.controller_principal if secured else kraft_config.ANONYMOUS] = "the controllers'"
    for principal, whose in required.items():
        if principal and any(principal not in kraft_config.super_users({"super.users": listed}) for listed in users):
            yield Finding(
                f"{principal}, {whose} principal, is not a super user on controllers",
                "add it to quorumshift_controller_super_users: a new quorum has no ACLs",
            )


# {operation: why the tool needs it on brokers} (KafkaApis 3.9). On controllers the tool needs Describe (quorum) and
# Alter (remove the registration of a reverted broker): there it is a super user.
CLUSTER_OPERATIONS = {"DESCRIBE_CONFIGS": "read the brokers' running configs"}
TOPIC_OPERATIONS = {
    "DESCRIBE": "check that replicas are in sync before it stops a broker",
    "DESCRIBE_CONFIGS": "read min.insync.replicas",
}


def tool_acls(facts: Facts) -> Iterable[Finding]:
    """Yield the operations that the tool's principal lacks on the cluster or on topics."""
    rights = facts.rights
    if rights is None:
        return  # no broker answers: other checks report it
    if rights.get("error"):
        yield Finding(
            f"the permissions of this tool could not be read: {rights['error']}",
            "fix quorumshift_client or the brokers",
        )
        return
    for operation, why in CLUSTER_OPERATIONS.items():
        if operation not in rights["cluster"]:
            yield Finding(
                f"the tool's principal has no {_acl_name(operation)} on the cluster, which it needs to {why}",
                _grant(facts, operation, "--cluster"),
            )
    for operation, why in TOPIC_OPERATIONS.items():
        lacking = sorted(name for name, allowed in rights["topics"].items() if operation not in allowed)
        if lacking:
            yield Finding(
                f"the tool's principal has no {_acl_name(operation)} on {len(lacking)} of {len(rights['topics'])} "
                f"topics, which it needs to {why}: {format_names(lacking)}",
                _grant(facts, operation, "--topic '*'"),
            )


def _grant(facts: Facts, operation: str, resource: str) -> str:
    principal = facts.client_principal or "PRINCIPAL"
    given = f"--allow-principal {shlex.quote(principal)} --operation {_acl_name(operation)} {resource}"
    return f"grant it: kafka-acls.sh --add {given}"


def _acl_name(operation: str) -> str:
    """Return an operation in the spelling of kafka-acls.sh."""
    return "".join(part.capitalize() for part in operation.split("_"))
