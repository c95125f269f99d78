# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what a Python file of the collection imports, directly and through the checkout, without running it."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLLECTION = "ansible_collections.quorumshift.kafka"
# optional: used if installed, replaced by our own code if not (the tests under the oldest Python run without)
ACCELERATORS = {"crc32c"}


def imported_names(source: str, name: str) -> Iterator[str]:
    """Yield absolute dotted names that a file of the collection imports.

    ``from a import b`` yields ``a.b``, which may be no module. ``name``: the file's path from the root.
    """
    package = [*COLLECTION.split("."), *Path(name).parent.parts]
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{module}.{alias.name}"


@functools.lru_cache(maxsize=None)
def _names(path: Path) -> tuple[str, ...]:
    return tuple(imported_names(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))))


@functools.lru_cache(maxsize=None)
def _own_file(name: str, root: Path) -> Path | None:
    """Return the checkout's file of a dotted name (a module, or a name in a module), or None."""
    parts = name[len(COLLECTION) + 1 :].split(".") if _in_collection(name) else name.split(".")
    for end in (len(parts), len(parts) - 1):
        path = root.joinpath(*parts[:end]).with_suffix(".py")
        if end and path.is_file():
            return path
    return None


def _in_collection(name: str) -> bool:
    return name.startswith(COLLECTION + ".")


def foreign_imports(*paths: Path) -> dict[str, Path]:
    """Return the packages outside the standard library that ``paths`` import, directly or through the checkout.

    {top-level package: the importing file}. An import of the collection without a file counts under its full name.
    """
    foreign: dict[str, Path] = {}
    todo, seen = [path.resolve() for path in paths], set()
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for name in _names(current):
            top = name.partition(".")[0]
            own = _own_file(name, ROOT)
            if own:
                todo.append(own)
            elif _in_collection(name):
                foreign.setdefault(name, current)
            elif top not in sys.stdlib_module_names:
                foreign.setdefault(top, current)
    return foreign
