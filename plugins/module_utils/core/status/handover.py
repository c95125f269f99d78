# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What configuration management has to write once a migration is finalized. Otherwise its next run takes the nodes'
settings back: it knows the files as they were in ZooKeeper mode. Pure.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts

VERSION = 1  # of handover.json
ABSENT = {
    transitions.BROKER: ("broker.id", *kraft_config.ZOOKEEPER_ONLY),
    transitions.CONTROLLER: kraft_config.READS_ZOOKEEPER,
}
"""Keys that no file may have any more, by role; one with * is the begin of keys."""
_SET = (
    "process.roles",
    "node.id",
    "controller.quorum.voters",
    "controller.listener.names",
    "listener.security.protocol.map",
    kraft_config.AUTHORIZER,
)
_OWN = ("node.id",)


def describe(
    cluster_id: str,
    nodes: Mapping[str, NodeFacts],
    own_keys: Iterable[str],
    is_hidden: Callable[[str, str], bool],
) -> Dict[str, Any]:
    """Return the content of handover.json.

    `own_keys`: the operator's own settings of brokers in migration mode (quorumshift_broker_config); `is_hidden`:
    whether the value of a key is a secret. A broker has the keys that the migration has set, a controller its whole
    file; secrets are null. Hosts whose file was not read are under `unread`, keys that a file must not have and has
    under `left`, by host.
    """
    files = {host: (node.get("file") or {}).get("properties") for host, node in sorted(nodes.items())}
    wanted = {*_SET, *own_keys}
    found: Dict[str, Any] = {"version": VERSION, "cluster_id": cluster_id, "brokers": {}, "controllers": {}}
    for host, values in files.items():
        if values is None:
            continue
        role = nodes[host]["role"]
        shown = {
            key: None if is_hidden(key, value) else value
            for key, value in sorted(values.items())
            if role == transitions.CONTROLLER or key in wanted
        }
        found[f"{role}s"][host] = {"file": nodes[host]["file"].get("path"), "set": shown}
    left = {
        host: [key for key in sorted(values or ()) if kraft_config.is_one_of(key, ABSENT[nodes[host]["role"]])]
        for host, values in files.items()
    }
    return {
        **found,
        "absent": {f"{role}s": list(names) for role, names in ABSENT.items()},
        "left": {host: keys for host, keys in left.items() if keys},
        "unread": [host for host, values in files.items() if values is None],
    }


def lines(found: Mapping[str, Any], where: str) -> List[str]:
    """Return the same for people. `where`: the path of handover.json."""
    shown = [f"from now on, your configuration management writes the nodes' files as they are now: {where}"]
    for role in ("brokers", "controllers"):
        if not found[role]:
            continue
        files = [node["set"] for node in found[role].values()]
        same = {key: value for key, value in files[0].items() if all(other.get(key) == value for other in files[1:])}
        keys = sorted({key for values in files for key in values})
        whole = "" if role == "brokers" else f" its {len(keys)} keys are listed there"
        shown.append(f"  file of {format_names(list(found[role]))}:{whole}")
        shown += [f"    + {_format(key, same)}" for key in keys if role == "brokers"]
        shown.append(f"    - {', '.join(found['absent'][role])}")
    shown += [
        f"  ! the file of {host} still has {', '.join(keys)}: remove them" for host, keys in found["left"].items()
    ]
    if found["unread"]:
        shown.append(f"  not read: {format_names(found['unread'])}")
    return shown


def _format(key: str, same: Mapping[str, str | None]) -> str:
    if key in _OWN or key not in same:
        return f"{key}=(its own)"
    return f"{key}=(secret)" if same[key] is None else f"{key}={same[key]}"
