# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark on Kafka's old data at the source of a move, so that an old connect string finds no plausible cluster. Pure.

A broker compares /cluster/id with its meta.properties before it does anything (KafkaServer.startup since Kafka 2.4,
InconsistentClusterIdException; MetaPropertiesEnsemble.verify since 3.7). With another id there it ends, and names it. A
broker with empty directories has nothing to compare, and would begin a cluster on the old data: it fails where it
creates its znode below /brokers/ids, since the ACL lacks that right. Both are given back by what the mark has.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster

PATH = "/quorumshift-moved"  # below the chroot
CLUSTER_ID, BROKER_IDS = "/cluster/id", "/brokers/ids"
READ, ADMIN = 1, 16
VERSION = 1


class MarkError(ValueError):
    """The znode is no mark that this version knows."""


class Acl(NamedTuple):
    """One entry of an ACL, as ZooKeeper has it."""

    perms: int
    scheme: str
    id: str


class Mark(NamedTuple):
    """What the mark's znode has. `cluster_id`: Kafka's; `to`: the destination's connect string; `data`: of /cluster/id
    before; `acl`: of /brokers/ids before."""

    cluster_id: str
    to: str
    data: str
    acl: List[Acl]


def id_data(to: str) -> bytes:
    """Return the data of /cluster/id on a marked source (kafka.zk.ClusterIdZNode)."""
    return json.dumps({"version": "1", "id": same_cluster.moved_id(to)}).encode()


def without_writes(acl: Iterable[Acl]) -> List[Acl]:
    """Return an ACL that lets its accounts read, and those who may change it do so, and no account write. An entry
    without either right stays out."""
    kept = [entry._replace(perms=entry.perms & (READ | ADMIN)) for entry in acl]
    return [entry for entry in kept if entry.perms]


def can_be_given_back(acl: Iterable[Acl]) -> bool:
    """Return whether an account may change this ACL again."""
    return any(entry.perms & ADMIN for entry in acl)


def format_mark(mark: Mark) -> bytes:
    """Return the data of the mark's znode."""
    return json.dumps({"version": VERSION, **mark._asdict(), "acl": [list(entry) for entry in mark.acl]}).encode()


def parse_mark(data: bytes) -> Mark:
    """Return the mark in a znode's data. Raises MarkError."""
    try:
        values: Mapping[str, Any] = json.loads(data)
        if values["version"] != VERSION:
            raise MarkError(f"{PATH} has version {values['version']}, and {VERSION} is known (QS-ZKMOVE-020)")
        acl = [Acl(int(perms), str(scheme), str(name)) for perms, scheme, name in values["acl"]]
        return Mark(str(values["cluster_id"]), str(values["to"]), str(values["data"]), acl)
    except (ValueError, KeyError, TypeError) as error:
        raise (
            error if isinstance(error, MarkError) else MarkError(f"{PATH} is no mark: {error} (QS-ZKMOVE-020)")
        ) from error


def check_own_servers(creators: Mapping[str, int | None], ids: Sequence[int]) -> str:
    """Return why these are not the source's servers, '' if they are. `creators`: of each server of the source's connect
    string, the id that it gives to sessions; `ids`: of the destination."""
    own = sorted(server for server, creator in creators.items() if creator in ids)
    if own:
        return f"{own[0]} of zk_migrate_source_connect is a server of the destination, by its id {creators[own[0]]}"
    known = [server for server, creator in creators.items() if creator is not None]
    if not known:
        return "no server of zk_migrate_source_connect gives a session"
    return ""


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Dict[str, str]:
    """Return Ansible's diff of {path: text}."""
    text = [
        "".join(f"{path}: {values[path]}\n" for path in sorted(values) if values[path]) for values in (before, after)
    ]
    return {"before_header": "source", "after_header": "source", "before": text[0], "after": text[1]}
