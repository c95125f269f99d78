# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that were typed on the command line, of which the collection reads none by that name.

Ansible ignores a variable that nothing reads: a restart with a mistyped restart_concurrency would take one broker at a
time, and one with a mistyped restart_since would begin anew.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from typing import Iterable

from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

PREFIXES = ("quorumshift_", "restart_", "upgrade_", "reassign_", "zk_migrate_")
_READERS = ("playbooks/**/*.yml", "roles/**/*.yml", "plugins/action/*.py", "plugins/plugin_utils/*.py")
_NAME = re.compile(rf"\b(?:{'|'.join(PREFIXES)})\w+")


def typed() -> set[str]:
    """Return the names of all variables of the command line, those of `-e @file` included."""
    return set(load_extra_vars(DataLoader()))  # Ansible has loaded them, and keeps them for the whole process


def known() -> set[str]:
    """Return the names of all variables that this collection reads."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    names: set[str] = set()
    for pattern in _READERS:
        for path in glob.glob(os.path.join(glob.escape(root), pattern), recursive=True):
            with open(path, encoding="utf-8") as stream:
                names.update(_NAME.findall(stream.read()))
    return names


def refused(typed: Iterable[str]) -> str | None:
    """Return why a run may not begin with these variables, None when it may."""
    mine = [name for name in typed if name.startswith(PREFIXES)]
    names = known() if mine else set()
    unknown = sorted(set(mine) - names)
    if not unknown:
        return None
    typed_as = ", ".join(_beside(name, names) for name in unknown)
    return f"-e {typed_as}: the collection has no variable of that name. Correct it. Nothing was changed"


def _beside(name: str, names: Iterable[str]) -> str:
    """Return an unknown name with the known one that is most like it."""
    near = difflib.get_close_matches(name, names, 1)
    return f"{name} ({near[0]} is one)" if near else name
