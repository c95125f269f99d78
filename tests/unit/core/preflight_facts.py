# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight looks at, recorded, for its tests to change one thing in."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import preflight

from tests.unit.core import recorded

OVER_TLS = {"listener.security.protocol.map": "INTERNAL:SSL,CLIENTS:SASL_SSL"}


def collected(name="zk", **changes):
    beside, hosts = recorded.facts("zk_preflight"), recorded.facts("zk_hosts")
    cluster = recorded.facts(name)
    for host, node in cluster["nodes"].items():
        seen = hosts["nodes"][host]
        node.update({**seen, "service": {**seen["service"], **node.get("service", {})}})
        # The bed's controllers are not enabled, which the check `enabled` tells.
        node["service"]["unit_file_state"] = "enabled"
    reported = preflight.Facts(
        cluster=cluster,
        metadata=beside["metadata"],
        running=beside["running"],
        controller_config={},
        controller_protocol="PLAINTEXT",
        controller_principal="User:ANONYMOUS",
        controller_super_users=["User:ANONYMOUS"],
        min_isr=beside["min_isr"],
        stop_timeout_s=300,
        rights=hosts["rights"],
    )
    return reported._replace(**changes)


def dialling(principal, **properties):
    """The facts of brokers with these settings, whom controllers dial as `principal`."""
    facts = collected(controller_principal=principal)
    for host in facts.brokers:
        node(facts, host)["file"]["properties"].update(properties)
    return facts


def node(facts, host):
    return facts.cluster["nodes"][host]


def found(facts, check, before_copy=True):
    """What one check found, once it is sure that no other found anything but what follows from the same cause."""
    return [one for one in preflight.run(facts, before_copy) if one["id"] == check]


def the_one(facts, check):
    (one,) = found(facts, check)
    assert one["do"] and not one["seen"].endswith(".") and not one["do"].endswith(".")
    return one["seen"]
