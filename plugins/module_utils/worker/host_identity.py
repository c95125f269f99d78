# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a host with the run's cluster, by the meta.properties of its log directories. Standard library only."""

from __future__ import annotations

import os
from typing import Iterable

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import LogDirectory
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_files

_NAMES = {"log.dirs", "log.dir", "metadata.log.dir"}


class ForeignHost(RuntimeError):
    """The host is of another cluster, or is another node; the text is for the operator."""


class UnreadableFile(ForeignHost):
    """The host's properties file cannot be read, so nothing shows of which cluster it is."""


def require(
    config_file: str, cluster_id: str, node_id: int | None = None, log_dir: str | None = None, new: Iterable[str] = ()
) -> None:
    """Raise ForeignHost unless the host's log directories are of this cluster and node. Call it right before a change.

    They are those of the properties file, or `log_dir` without one, and `new`: those of the file that is to be written.
    A broker must have an answer in at least one of them. A controller that is not formatted yet has none. Raises
    UnreadableFile where the file is no properties file.
    """
    data = restart_files.read_bytes(config_file)
    try:
        values = properties.parse(data, path=config_file)
    except properties.PropertiesError as error:
        raise UnreadableFile(str(error)) from None
    mode = kraft_config.mode_at_next_start(values) if data else None
    # A file that starts no node has no default directory.
    paths = log_dirs(values) if mode != "invalid" or _NAMES & values.keys() else []
    paths = paths or ([log_dir] if log_dir else [])
    optional = mode is None or mode.startswith("controller") or (mode == "invalid" and not paths)
    found = [read_stored(path) for path in dict.fromkeys([*paths, *new])]
    refused = same_cluster.check_host(found, cluster_id, node_id, optional)
    if refused:
        raise ForeignHost(refused)


def log_dirs(values: dict) -> list[str]:
    """Return every directory in which a node with these properties has a meta.properties."""
    metadata = config_values.metadata_log_dir(values)
    return list(dict.fromkeys([*config_values.log_dirs(values), *([metadata] if metadata else [])]))


def read_stored(path: str) -> LogDirectory:
    """Return a log directory with its meta.properties; with `error` where they cannot be read."""
    meta = os.path.join(path, "meta.properties")
    try:
        return {"path": path, "meta": node.read_properties(meta)}
    except (FileNotFoundError, NotADirectoryError):
        return {"path": path, "meta": None}
    except (OSError, properties.PropertiesError) as error:
        return {"path": path, "meta": None, "error": str(error)}  # either names the file
