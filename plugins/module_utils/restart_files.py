# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The properties file in a turn: what it becomes, the old one kept, either of them written in one step."""

from __future__ import annotations

import os
import pwd
from typing import Any, Mapping

from .core import kraft_config
from .core.transitions import TRANSITIONS
from .formats import properties
from .restart_record import RestartError
from .seal import masked, unseal

CONFIGS = "configs"


def read_text(path: str) -> str:
    """Return a file's text as it is to the byte, '' when there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="latin-1", newline="") as stream:
        return stream.read()


def new_text(spec: Mapping[str, Any], old: str) -> str:
    """Return the text that a turn's `content` or `changes` make of the file, its sealed secrets opened."""
    if _is_rollback(spec) and spec.get("changes") is not None:
        return _earlier_text(spec, old)
    wanted = spec.get("content") or spec.get("changes") or {}
    plain = {key: None if value is None else unseal(spec["run_key"], value) for key, value in wanted.items()}
    comment = f"Added by Quorumshift for mode {spec['mode']}"
    return properties.edit("" if spec.get("content") else old, plain, "" if spec.get("content") else comment)


def _is_rollback(spec: Mapping[str, Any]) -> bool:
    """Return whether the restart goes back: the file of before was kept when the node went to the mode that it
    leaves."""
    transition = TRANSITIONS.get(spec.get("kind"))
    return bool(transition and transition.rollback)


def _earlier_text(spec: Mapping[str, Any], old: str) -> str:
    """Return the text with the keys that going forth changed as they were before; to the byte the file that was kept,
    where nobody has changed anything else since. The keys: those of `changes`, and of the way to the mode left."""
    left, there = TRANSITIONS[spec["kind"]].before, kraft_config.mode_at_next_start(properties.parse(old))
    if there == spec["mode"]:
        return old
    if there != left:
        raise RestartError(
            f"{spec['config_file']} is of mode {there}: only one of mode {left} goes back to {spec['mode']}"
        )
    path = kept({**spec, "kind": left, "mode": left}, os.path.join(spec["state_dir"], spec["cluster_id"]))
    before = read_text(path)
    if not before:
        raise RestartError(f"no file of before mode {left} was kept on this host as {path}")
    values = properties.parse(before)
    keys = set(spec["changes"])
    if left == "kraft":
        keys |= set(kraft_config.to_kraft_mode(values, spec["node_id"]))
    if left == "controller_final":
        keys |= set(kraft_config.to_final_controller(values))
    new = properties.edit(old, {key: values.get(key) for key in sorted(keys)}, "")
    return before if properties.parse(new) == values else new


def masked_text(text: str) -> str:
    """Return a file's text with its secrets masked."""
    return properties.edit(text, {key: masked(key, value) for key, value in properties.parse(text).items()})


def keep(spec: Mapping[str, Any], directory: str, old: str) -> None:
    """Keep the file as it was before a turn took it to another mode; a turn within a mode keeps nothing."""
    if old and kraft_config.mode_at_next_start(properties.parse(old)) != spec["mode"]:
        os.makedirs(os.path.join(directory, CONFIGS), mode=0o700, exist_ok=True)
        replace(kept(spec, directory), old, None, 0o600)


def kept(spec: Mapping[str, Any], directory: str) -> str:
    """Return where the file stands as it was before the turn. One that goes back keeps it under a name of its own, so
    that it leaves alone what the way forth kept."""
    back = "back-to-" if _is_rollback(spec) else ""
    return os.path.join(directory, CONFIGS, f"{os.path.basename(spec['config_file'])}.before-{back}{spec['mode']}")


def replace(path: str, text: str, owner: str | None, mode: int = 0o640) -> None:
    """Replace a file in one step, keeping owner and mode of the one that stood there."""
    temporary = f"{path}.quorumshift"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="latin-1") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if os.path.exists(path):
        status = os.stat(path)
        os.chown(temporary, status.st_uid, status.st_gid)
        os.chmod(temporary, status.st_mode & 0o7777)
    else:
        if owner:
            account = pwd.getpwnam(owner)
            os.chown(temporary, account.pw_uid, account.pw_gid)
        os.chmod(temporary, mode)
    os.replace(temporary, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
