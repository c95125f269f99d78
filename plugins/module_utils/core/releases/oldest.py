# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest release of Kafka whose brokers the collection can restart, upgrade and reassign. Pure.

A running broker is asked which versions of requests it offers, since that decides; a broker that is down has only the
release of its jars. Before 2.4 no broker offers Metadata 9 or reassignments (KIP-455): waits for a healthy cluster
could never end.
"""

from __future__ import annotations

from typing import List, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import apis

OLDEST = (2, 4)


def find_lacking(api_keys: Mapping[int, Sequence[int]]) -> List[str]:
    """Return the requests that are needed and that a broker with this answer to ApiVersions does not offer."""
    return [api.explain(api_keys) for api in apis.OF_2_4 if api.version(api_keys) is None]


def refusal(nodes: Mapping[str, NodeFacts]) -> str | None:
    """Return which brokers are of too old a release, and what to do; None where none is."""
    seen = []
    for host, node in sorted(nodes.items()):
        version, lacking = node.get("version"), node.get("lacking") or []
        if node["role"] != "broker":
            continue
        runs = f" runs Kafka {version} and" if version else ""
        if lacking:
            seen.append(f"{host}{runs} does not offer {', '.join(lacking)}")
        elif not node.get("running") and version and (releases.parse_release(version) or OLDEST) < OLDEST:
            seen.append(f"{host} does not answer, and has the jars of Kafka {version}")
    return _explain(seen) if seen else None


def refusal_of_broker(api_keys: Mapping[int, Sequence[int]]) -> str | None:
    """Return the same of one broker with this answer to ApiVersions."""
    lacking = find_lacking(api_keys)
    return _explain([f"this broker does not offer {', '.join(lacking)}"]) if lacking else None


def _explain(seen: Sequence[str]) -> str:
    """Return what was seen of brokers, with the oldest release and what to do."""
    oldest = releases.format_release(OLDEST)
    shown = "; ".join(seen[:3]) + (f"; {len(seen) - 3} more brokers" if len(seen) > 3 else "")
    return advice.sentences(
        f"Kafka {oldest} is the oldest release that can be restarted, upgraded or reassigned here: {shown}",
        f"upgrade the brokers to Kafka {oldest} or later first, as Kafka's own documentation says (QS-RUN-017)",
    )
