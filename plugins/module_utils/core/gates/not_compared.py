# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata that Apache Kafka 3.9 does not have: its names, and the tokens by which the operator accepts it. Pure.

A build of another vendor may write such metadata. No comparison sees it, so it is never counted as equal. Names:

=======================================  ================================================================
build=7.9.0-ce                           a build whose metadata may have all of these
record=15023v0                           records of this type and version in the metadata log
control=9v0                              control records of this type and version in the metadata log
field=PARTITION_RECORD:10001             a tagged field of a record that Kafka 3.9 has; also NAME.struct:TAG
znode=/brokers/topics/*/x                znodes at these paths, with all below them; * is any one name
key=/brokers/topics/*:observers          a key in the JSON of znodes that Kafka 3.9 has
=======================================  ================================================================

A token is CLUSTER_ID:NAME. So it accepts nothing of another cluster, and no other name.
"""

from __future__ import annotations

import shlex
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple
from urllib.parse import quote

VARIABLE = "quorumshift_accept_not_compared"
BUILD, RECORD, CONTROL, FIELD, ZNODE, KEY = "build", "record", "control", "field", "znode", "key"
SHOWN = 5
MOST = 1000
"""Names that a view notes. A token for each of more is no acceptance of something known."""

Found = Dict[str, Dict[str, Any]]
"""{name: {"count": how many, "first": where the first is}}"""


class Decided(NamedTuple):
    """The names, sorted, and those of them without a token."""

    names: List[str]
    open: List[str]


def build(version: str) -> str:
    """Return the name of a build, by the version in the name of its jar."""
    return f"{BUILD}={_written(version)}"


def record(api_key: int, version: int) -> str:
    """Return the name of records of an unknown type."""
    return f"{RECORD}={api_key}v{version}"


def control(kind: int, version: int) -> str:
    """Return the name of control records of an unknown type, or of an unknown version."""
    return f"{CONTROL}={kind}v{version}"


def field(record_type: str, path: str, tag: int) -> str:
    """Return the name of an unknown tagged field; `path`: of its struct in the record, "" for the record itself."""
    return f"{FIELD}={'.'.join(filter(None, (record_type, path)))}:{tag}"


def znode(path: str) -> str:
    """Return the name of unknown znodes."""
    return f"{ZNODE}={_written(path)}"


def key(path: str, name: str) -> str:
    """Return the name of an unknown key in the JSON of znodes."""
    return f"{KEY}={_written(path)}:{_written(name)}"


def token(cluster_id: str, name: str) -> str:
    """Return what accepts a name on a cluster."""
    return f"{cluster_id}:{name}"


def decide(names: Iterable[str], cluster_id: str, tokens: Iterable[str]) -> Decided:
    """Return which names the tokens accept on this cluster."""
    every, given = sorted(set(names)), set(tokens)
    return Decided(every, [name for name in every if token(cluster_id, name) not in given])


def option(cluster_id: str, names: Iterable[str]) -> str:
    """Return the option of ansible-playbook that accepts these names, for a shell."""
    tokens = ",".join(token(cluster_id, name) for name in names)
    return f"-e {shlex.quote(f'{VARIABLE}={tokens}')}"


def explain(cluster_id: str, decided: Decided) -> List[str]:
    """Return a sentence with what is not accepted, and the option that accepts all names; none if all are accepted."""
    if not decided.open:
        return []
    shown = ", ".join(decided.open[:SHOWN])
    more = f" and {len(decided.open) - SHOWN} more" if decided.open[SHOWN:] else ""
    return [
        f"Apache Kafka 3.9 does not have this, and nothing compares it: {shown}{more}. Ask the vendor of the build "
        f"what it is. To continue without its comparison: {option(cluster_id, decided.names)} (QS-VERIFY-009)"
    ]


def merge(parts: Iterable[Mapping[str, Mapping[str, Any]]]) -> Found:
    """Return the names of all parts with the sums of their counts, and the first place of any."""
    found: Found = {}
    for part in parts:
        for name, entry in part.items():
            into = found.setdefault(name, {"count": 0, "first": entry["first"]})
            into["count"] += entry["count"]
            into["first"] = min(into["first"], entry["first"], key=_place)
    return found


def _place(text: str) -> Tuple[int, str]:
    """Sort places as people do: offset 9 before offset 10."""
    digits = "".join(filter(str.isdigit, text))
    return int(digits[:18] or 0), text


def _written(text: str) -> str:
    """Return a text without what a list, a shell or Jinja would split or read: percent-encoded."""
    return quote(text, safe="/*.-_")
