# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded facts for the tests of the preflight, which change one thing in them."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight

from tests.unit.core import recorded

OVER_TLS = {"listener.security.protocol.map": "INTERNAL:SSL,CLIENTS:SASL_SSL"}


def collected(name="zk", **changes):
    more, hosts = recorded.facts("zk_preflight"), recorded.facts("zk_hosts")
    cluster = recorded.facts(name)
    for host, node in cluster["nodes"].items():
        seen = hosts["nodes"][host]
        node.update({**seen, "service": {**seen["service"], **node.get("service", {})}})
        # The testbed's controllers are not enabled: see test_recorded_controllers_are_not_enabled.
        node["service"]["unit_file_state"] = "enabled"
    facts = preflight.Facts(
        cluster=cluster,
        metadata=more["metadata"],
        running=more["running"],
        controller_config={},
        controller_protocol="PLAINTEXT",
        controller_principal="User:ANONYMOUS",
        controller_super_users=["User:ANONYMOUS"],
        min_isr=more["min_isr"],
        stop_timeout_s=300,
        rights=hosts["rights"],
    )
    return facts._replace(**changes)


def with_controller_principal(principal, **properties):
    """Return facts with this controller principal and these properties on all brokers."""
    facts = collected(controller_principal=principal)
    for host in facts.brokers:
        node(facts, host)["file"]["properties"].update(properties)
    return facts


def node(facts, host):
    return facts.cluster["nodes"][host]


def found(facts, check, before_copy=True):
    """Return the findings of one check, by its name."""
    return [finding for finding in preflight.run(facts, before_copy) if finding["id"] == preflight.ID[check]]


def the_one(facts, check):
    """Return what the only finding of a check says is wrong."""
    (finding,) = found(facts, check)
    assert finding["do"] and not finding["seen"].endswith(".") and not finding["do"].endswith(".")
    return finding["seen"]
