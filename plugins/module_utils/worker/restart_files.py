# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's properties file during a restart: its new content, its backup, and how both are written."""

from __future__ import annotations

import os
import pwd
from typing import Any, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import mask_value, unseal
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError


def read_bytes(path: str) -> bytes:
    """Return a file's bytes, b'' if there is no file."""
    try:
        return safe_files.read(path)
    except FileNotFoundError:
        return b""


def new_bytes(spec: Mapping[str, Any], old: bytes) -> bytes:
    """Return the file after a restart's `content` or `changes`, with sealed secrets opened."""
    if _is_rollback(spec) and spec.get("changes") is not None:
        return _earlier(spec, old)
    wanted = spec.get("content") or spec.get("changes") or {}
    plain = {key: None if value is None else unseal(spec["run_key"], value) for key, value in wanted.items()}
    comment = f"Added by Quorumshift for mode {spec['mode']}"
    return properties.edit(b"" if spec.get("content") else old, plain, "" if spec.get("content") else comment)


def _is_rollback(spec: Mapping[str, Any]) -> bool:
    """Return whether the restart goes back: the file of before was kept when the node went to the mode that it
    leaves."""
    kind = transitions.KINDS.get(spec["kind"])  # None where an interrupted restart is to be finished, in check mode
    return bool(kind and kind.is_rollback)


def _earlier(spec: Mapping[str, Any], old: bytes) -> bytes:
    """Return the file with the keys of `changes`, and of the change into the mode left, as in the kept file.

    If no other key differs from the kept file, return that file byte for byte.
    """
    kind = transitions.KINDS[spec["kind"]]
    left = kind.left
    current = kraft_config.mode_at_next_start(properties.parse(old, path=spec["config_file"]))
    if current == spec["mode"]:
        return old
    if current != left:
        raise RestartError(
            f"{spec['config_file']} has mode {current}: a rollback to mode {spec['mode']} needs mode "
            f"{left} (QS-RESTART-011)"
        )
    path = kept_path({**spec, "kind": left, "mode": left}, host_state.node_directory(spec))
    before = read_bytes(path)
    if not before:
        raise RestartError(
            f"{path} is missing: the properties file from before mode {left} was not kept on this host (QS-RESTART-011)"
        )
    values = properties.parse(before, path=path)
    keys = {*spec["changes"], *kind.takes_back(values, spec["node_id"])}
    new = properties.edit(old, {key: values.get(key) for key in sorted(keys)}, "")
    return before if properties.parse(new) == values else new


def masked_text(data: bytes, before: bytes = b"") -> str:
    """Return a file as text with secrets masked, in comments too. A secret that has another value in the file `before`
    is marked, since masked texts would not differ."""
    old = properties.parse(before)

    def value(key: str, plain: str) -> str:
        differs = mask_value(key, plain) != plain and old.get(key, plain) != plain
        return f"{mask_value(key, plain)} (differs)" if differs else mask_value(key, plain)

    return properties.rewrite(data, value, masking.mask_comment)


def keep(spec: Mapping[str, Any], directory: str, old: bytes) -> None:
    """Keep a copy of the file if the restart changes the node's mode, or is one that changes keys in the same mode."""
    changes_mode = kraft_config.mode_at_next_start(properties.parse(old, path=spec["config_file"])) != spec["mode"]
    if old and (changes_mode or transitions.KINDS[spec["kind"]].changes_host):
        os.makedirs(os.path.join(directory, host_state.CONFIGS), mode=0o700, exist_ok=True)
        replace(kept_path(spec, directory), old, None, 0o600)


def kept_path(spec: Mapping[str, Any], directory: str) -> str:
    """Return the path of the file from before the restart. A rollback's restart, and one that keeps the mode, use other
    names, so that they do not overwrite the file kept by the migration."""
    into = spec["kind"] if transitions.KINDS[spec["kind"]].changes_host else spec["mode"]
    back = "back-to-" if _is_rollback(spec) else ""
    return os.path.join(directory, host_state.CONFIGS, f"{os.path.basename(spec['config_file'])}.before-{back}{into}")


def replace(path: str, data: bytes, owner: str | None, mode: int = 0o640) -> None:
    """Replace a file by rename, keeping its owner and mode; a new file gets `owner` and `mode`."""
    owned = None
    try:
        handle = safe_files.open_regular(path)
    except FileNotFoundError:
        if owner:
            account = pwd.getpwnam(owner)
            owned = account.pw_uid, account.pw_gid
    else:
        status = os.fstat(handle)
        os.close(handle)
        owned, mode = (status.st_uid, status.st_gid), status.st_mode & 0o777
    safe_files.replace(path, data, mode, owned)
