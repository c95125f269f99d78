# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the pages of messages from the registry and the code: `python -m tools.messages`.

docs/messages/registry has an entry for each id: title, meaning, what to do. A text is in the code, with its id at its
end; a preflight check gives its id to all of its findings. A page of docs/messages shows an entry with its texts. Exit
code 1 where an id has no entry, an entry no text, or a message no id. tests/unit/test_messages.py checks the same.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.audit import audit
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight

from tools.checkout import ROOT
from tools.yaml_files import read_yaml

PAGES = ROOT / "docs" / "messages"
REGISTRY = PAGES / "registry"
INSERTED = "…"
CHECKS = (*preflight.CHECKS, *audit.CHECKS)  # each gives its id to all of its findings
_OF_CHECKS = ("core.preflight", "core.audit")  # where their functions are

# What a message adds to the text that it passes on, which has the id
_PASSED_ON = re.compile(
    r"(Nothing (more )?was (changed|restored|removed|compared|stopped)( on this host| by this task)?"
    r"|Run (it )?again|Nothing was changed\. Run again)\.?$"
)
# Errors of formats: what reads them inserts their text into a message of its own
_INSIDE_OTHERS = ("formats", "doc_fragments")
_CAUGHT = {"ValueError", "IndexError", "TypeError", "KeyError", "error", "NotImplementedError", "AssertionError"}
_CAUGHT |= {"PropertiesError", "PerfDataError", "_NotResolved", "Misread", "UndecodablePassword"}
_CAUGHT |= {"ZnodeError", "CorruptBatch"}


class Entry(NamedTuple):
    """An id's entry in the registry. `means`, `do`: Markdown."""

    id: str
    title: str
    means: str
    do: str


class Area(NamedTuple):
    """A file of the registry: ids with a common subject."""

    name: str
    title: str
    about: str
    entries: list[Entry]


class Text(NamedTuple):
    """A text of the code, `…` for each inserted value; `ids` at its end; `origin` as `file:line`."""

    text: str
    ids: tuple[str, ...]
    origin: str


def areas() -> list[Area]:
    """Return the registry, in the order in which an operator meets the areas."""
    order = read_yaml(REGISTRY / "order.yml")
    found = []
    for name in order:
        read = read_yaml(REGISTRY / f"{name.lower()}.yml")
        entries = [Entry(ident, **entry) for ident, entry in read["messages"].items()]
        found.append(Area(name, read["title"], read.get("about", ""), entries))
    return found


# Texts ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def texts() -> tuple[Text, ...]:
    """Return all texts with an id, those of the checks included."""
    found: list[Text] = []
    for path in sources():
        templates = templates_of(path)
        found += [_text(path, node, template) for node, template in templates if message_ids.find_ids(template)]
    for path in tasks():
        for text in _strings(read_yaml(path)):
            if message_ids.find_ids(text):
                found.append(_text(path, None, re.sub(r"\{\{.*?\}\}", INSERTED, text, flags=re.DOTALL)))
    for check in CHECKS:
        found += [Text(seen, (check.id,), check.find.__module__) for seen in findings_of(check.find)]
    return tuple(dict.fromkeys(found))


def sources() -> list[Path]:
    """Return the Python files whose messages reach an operator."""
    return sorted([*(ROOT / "plugins").rglob("*.py"), *(ROOT / "spark" / "quorumshift_spark").rglob("*.py")])


def tasks() -> list[Path]:
    """Return the files of tasks."""
    return sorted([*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")])


def task_messages(node: Any) -> Iterator[str]:
    """Yield the messages with which the tasks of a YAML file can fail, those in blocks included."""
    if isinstance(node, list):
        for task in node:
            yield from task_messages(task)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "fail_msg":
                yield value
            elif key == "ansible.builtin.fail":
                yield value["msg"]
            else:
                yield from task_messages(value)


def _text(path: Path, node: ast.AST | None, template: str) -> Text:
    text = " ".join(message_ids.strip_ids(template).split())
    return Text(text, tuple(message_ids.find_ids(template)), f"{path.relative_to(ROOT)}:{node.lineno if node else ''}")


@functools.lru_cache(maxsize=None)
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=None)
def templates_of(path: Path) -> tuple[tuple[ast.AST, str], ...]:
    """Return the strings of a Python file as `_templates` yields them."""
    return tuple(_templates(_tree(path)))


def _templates(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the outermost strings of a tree, with INSERTED for each value. Documentation quotes messages."""
    for node in ast.iter_child_nodes(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            continue
        template = template_of(node)
        if template is not None:
            yield node, template
        else:
            yield from _templates(node)


def template_of(node: ast.AST) -> str | None:
    """Return an expression as the text that it makes, INSERTED for each value; None where it makes no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(template_of(part) or INSERTED for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template_of(node.left), template_of(node.right)
        if left is not None or right is not None:
            return (left or INSERTED) + (right or INSERTED)
    return None


def _strings(node: Any) -> Iterator[str]:
    """Yield all strings of a YAML file."""
    if isinstance(node, str):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _strings(child)


def findings_of(check: Callable) -> list[str]:
    """Return what a check finds: the texts of `Finding` in its function, and in those of its module that it names."""
    module = sys.modules[check.__module__]
    functions = {name: function for name, function in vars(module).items() if inspect.isfunction(function)}
    to_read, read, found = [check.__name__], set(), []
    while to_read:
        name = to_read.pop(0)
        function = functions.get(name)
        if name in read or function is None or not any(room in function.__module__ for room in _OF_CHECKS):
            continue
        read.add(name)
        tree = ast.parse(inspect.getsource(function))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                to_read.append(node.id)
            elif isinstance(node, ast.Call) and _last_name(node.func).endswith("Finding") and node.args:
                template = template_of(node.args[0])
                if template:
                    found.append(" ".join(template.split()))
    return list(dict.fromkeys(found))


# What has no id -------------------------------------------------------------------------------------------------


def without_id() -> list[str]:
    """Return the messages that have no id, as `file:line: text`: what ends a module, an action, a task or a job.

    That is: `fail_json`, a result with `failed`, a raised exception of this collection, a `Finding` or `Block`, `fail`
    and `fail_msg`. A message without words of its own passes another one on, which has the id.
    """
    found = []
    for path in sources():
        if set(path.parts).intersection(_INSIDE_OTHERS):
            continue
        of_checks = any(room.replace(".", "/") in str(path) for room in _OF_CHECKS)
        for node, said in _said(_tree(path), of_checks):
            for _node, template in _templates(ast.Expression(said)):
                if not message_ids.find_ids(template) and has_words(template):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {template}")
    for path in tasks():
        for text in task_messages(read_yaml(path)):
            if not message_ids.find_ids(text) and has_words(re.sub(r"\{\{.*?\}\}", INSERTED, text, flags=re.DOTALL)):
                found.append(f"{path.relative_to(ROOT)}: {text}")
    return found


def has_words(template: str) -> bool:
    """Return whether a text says more than that nothing was changed."""
    return " " in template and len(re.findall(r"[A-Za-z]{2,}", _PASSED_ON.sub("", template.strip()))) > 1


def _last_name(node: ast.expr) -> str:
    """Return the name `c` of an expression `a.b.c`; the end of its source where it is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ast.unparse(node).rpartition(".")[2]


def _said(tree: ast.AST, checks: bool) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the calls and results that end something, with the expression of their message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            name = _last_name(node.exc.func)
            if name not in _CAUGHT and name.lstrip("_")[:1].isupper():  # else a function that makes the exception
                yield node, node.exc.args[-1]
        elif isinstance(node, ast.Call):
            name = _last_name(node.func)
            if name == "fail_json":
                yield from ((node, keyword.value) for keyword in node.keywords if keyword.arg == "msg")
            elif name == "Block" and len(node.args) > 1:
                yield node, node.args[1]
            elif name == "Finding" and node.args and not checks:
                yield node, node.args[0]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if "failed" in keys and "msg" in keys:
                yield node, node.values[keys.index("msg")]


# Pages ----------------------------------------------------------------------------------------------------------

_INDEX = """
# Messages

The output of a run that stops ends with ids, as in `… (QS-PHASE-011 QS-GATE-001)`. Each id has a page here: what the
message means, and what to do. The first id is the cause, the last one is where the run met it. STATUS shows the id of
each block, the preflight that of each finding. A message without an id: `grep -rl "its fixed words" docs/messages`.

`tools/messages.py` writes these pages from the code and from the files of `docs/messages/registry`.
"""
_WORD = re.compile(r"[A-Za-z]{2}")
_FOOT = "STATUS, MIGRATE and ROLLBACK are commands: see [a bad day](../runbook.md). [All messages](README.md)"


def pages() -> dict[str, str]:
    """Return {file name: text} of all pages."""
    by_id: dict[str, list[str]] = {}
    for text in texts():
        for ident in text.ids:
            by_id.setdefault(ident, []).append(text.text)
    checks = {check.id: check for check in CHECKS}
    places = provoked()
    found = {"README.md": index()}
    for area in areas():
        for entry in area.entries:
            quotes = [quoted(text) for text in dict.fromkeys(by_id.get(entry.id, ())) if _WORD.search(text)]
            found[f"{entry.id}.md"] = page(entry, quotes, checks.get(entry.id), places.get(entry.id, []))
    return found


def quoted(text: str) -> str:
    """Return a text as a page of messages quotes it."""
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"> - {fence}{space}{text}{space}{fence}"


def provoked() -> dict[str, list[str]]:
    """Return {check id: where tests provoke its finding}.

    Files of tests/system/e2e, by the mark `provokes`, and molecule scenarios that assert the finding, `ID: ...`.
    """
    places: dict[str, set[str]] = {}
    for path in (ROOT / "extensions" / "molecule").glob("*/converge.yml"):
        for check in re.findall(r"'(QS-CHECK-\d{3}): ", path.read_text(encoding="utf-8")):
            places.setdefault(check, set()).add(f"scenario {path.parent.name}")
    for path in sorted((ROOT / "tests" / "system" / "e2e").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "provokes":
                for argument in node.args:
                    places.setdefault(preflight.ID[ast.literal_eval(argument)], set()).add(path.name)
    return {check: sorted(names) for check, names in places.items()}


def page(entry: Entry, quotes: list[str], check: preflight.Check | audit.Check | None, places: list[str]) -> str:
    """Return the page of an id. `quotes`: its texts as Markdown; `check`: the check of the id; `places`: where tests
    cause the finding of a preflight check."""
    parts = [f"# {entry.id}: {entry.title}", "\n".join(quotes)]
    if isinstance(check, audit.Check):
        does = "stops the upgrade" if check.severity == "blocks" else "warns"
        accepted = ". Its findings can be accepted in `upgrade_accept`" if check.acceptable else ""
        parts.append(f"A check of the upgrade audit that {does}{accepted}. It relies on: {check.source}.")
    elif check:
        where = ", ".join(f"`{name}`" for name in places) or "recorded facts"
        does = "blocks the migration" if check.severity == "blocks" else "warns"
        parts.append(f"A preflight check that {does}. It relies on: {check.source}. A test finds it on: {where}.")
    parts += ["## Meaning", entry.means.strip(), "## What to do", entry.do.strip(), _FOOT]
    return "\n\n".join(part for part in parts if part) + "\n"


def index() -> str:
    """Return the page that lists all ids."""
    parts = [_INDEX.strip()]
    for area in areas():
        parts.append(f"## {area.name}")
        parts.append(f"{area.title}. {area.about.strip()}".strip())
        parts.append("\n".join(f"- [{entry.id}]({entry.id}.md): {entry.title}" for entry in area.entries))
    return "\n\n".join(parts) + "\n"


def gaps() -> list[str]:
    """Return what registry and code do not have in common, and the messages without an id."""
    registered = {entry.id for area in areas() for entry in area.entries}
    used = {ident for text in texts() for ident in text.ids} | {check.id for check in preflight.CHECKS}
    used.add(message_ids.NO_ID)
    found = [f"{ident}: no entry in {REGISTRY.relative_to(ROOT)}" for ident in sorted(used - registered)]
    found += [f"{ident}: no code has it" for ident in sorted(registered - used)]
    return found + [f"no id: {place}" for place in without_id()]


def main() -> int:
    """Write the pages, list the gaps."""
    wanted = pages()
    for name, text in wanted.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    found = gaps()
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
