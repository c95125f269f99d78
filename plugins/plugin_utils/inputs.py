# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what each action takes beside what a task gives it: inputs.yml, which says how to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple

import yaml

OF_PLAY, OF_HOST, KNOWN = "of_play", "of_host", "known"
FILE = Path(__file__).with_suffix(".yml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
_TABLE: Mapping[str, Any] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=_LOADER)

Source = Mapping[str, str]


class Inputs(NamedTuple):
    """A row: options that are filled in, options that the action takes for itself, variables that it reads besides."""

    fills: Mapping[str, Source]
    takes: Mapping[str, Source | None]
    reads: tuple[str, ...]


ACTIONS: Mapping[str, Inputs] = {
    name: Inputs(row.get("fills") or {}, row.get("takes") or {}, tuple(row.get("reads") or ()))
    for name, row in _TABLE["actions"].items()
}
CONNECTION: Mapping[str, Source] = _TABLE["sources"]["connection"]
NODE: Mapping[str, Source] = _TABLE["sources"]["node"]
SHARED: Mapping[str, list[str]] = _TABLE["shared"]
_NOTHING = Inputs({}, {}, ())


def find(action: str) -> Inputs:
    """Return the inputs of an action."""
    return ACTIONS.get(action, _NOTHING)


def variables(source: Source) -> list[str]:
    """Return the names of the variables of a source."""
    return [name for kind, name in source.items() if kind != KNOWN]
