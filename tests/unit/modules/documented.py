# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the modules, their argument specs, and what a sample may be."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import inputs

from tools.yaml_files import parse_yaml

ROOT = Path(__file__).resolve().parents[3]
COLLECTION = "quorumshift.kafka."
INTERNAL = "B(Internal.) Roles of this collection call it. Its options and results may change in any release."
TYPES = {
    "str": str,
    "path": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "list": list,
    "dict": dict,
    "raw": object,
}
PLACEHOLDERS = {"int": 1, "float": 1.0, "bool": True, "list": [], "dict": {}}
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)


class Module(NamedTuple):
    """The documentation of a module."""

    name: str
    docs: dict
    examples: list
    returns: dict

    @property
    def is_internal(self) -> bool:
        return self.docs["description"][0] == INTERNAL


@functools.lru_cache(maxsize=None)
def module(name: str) -> Module:
    source = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.modules.{name}")
    texts = (source.DOCUMENTATION, source.EXAMPLES, source.RETURN)
    return Module(name, *(parse_yaml(text) or {} for text in texts))


NAMES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
PUBLIC = [name for name in NAMES if not module(name).is_internal]


def fragments(docs: Mapping[str, Any]) -> Iterator[dict]:
    """Yield the documentation fragments that a module extends."""
    for name in docs.get("extends_documentation_fragment", []):
        file, _dot, part = name.removeprefix(COLLECTION).partition(".")
        source = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.doc_fragments.{file}")
        yield parse_yaml(getattr(source.ModuleDocFragment, (part or "documentation").upper()))


def whole(name: str, key: str) -> list:
    """Return the entries of a list in the documentation, with those of the fragments."""
    docs = module(name).docs
    return [entry for part in (docs, *fragments(docs)) for entry in part.get(key, [])]


def attributes(name: str) -> dict[str, dict]:
    """Return the attributes of a module. What the module says goes before what its fragments say."""
    docs = module(name).docs
    found: dict[str, dict] = {}
    for part in (*fragments(docs), docs):
        for attribute, value in part.get("attributes", {}).items():
            found.setdefault(attribute, {}).update(value)
    return found


class _Captured(Exception):
    """The module asked for its options."""


@functools.lru_cache(maxsize=None)
def argument_spec(name: str) -> dict:
    """Return what a module gives AnsibleModule."""
    given: dict = {}

    def capture(_self: AnsibleModule, **kwargs: Any) -> None:
        given.update(kwargs)
        raise _Captured

    source = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.modules.{name}")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(_Captured):
        patch.setattr(AnsibleModule, "__init__", capture)
        source.main()
    return given


def tasks(node: Any) -> Iterator[tuple[str, dict]]:
    """Yield (module, options) of each task of this collection in examples, in plays and blocks too."""
    if isinstance(node, list):
        for entry in node:
            yield from tasks(entry)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key.startswith(COLLECTION):
                yield key.removeprefix(COLLECTION), value or {}
            else:
                yield from tasks(value)


def filled_by_action(name: str) -> set[str]:
    """Return the options that the action plugin of this name fills in, and those that it makes."""
    if not (ROOT / "plugins" / "action" / f"{name}.py").exists():
        return set()
    docs = module(name).docs
    options = {key: entry for part in (docs, *fragments(docs)) for key, entry in part.get("options", {}).items()}
    made = {key for key, entry in options.items() if "action plugin" in " ".join(_sentences(entry["description"]))}
    return made | set(inputs.find(name).fills)


def valued(value: Any, spec: Mapping[str, Any]) -> Any:
    """Return an option's value with what templates could render to."""
    if isinstance(value, str) and _TEMPLATE.fullmatch(value.strip()):
        return spec["choices"][0] if spec.get("choices") else PLACEHOLDERS.get(spec.get("type", "str"), "x")
    if isinstance(value, str):
        return _TEMPLATE.sub("x", value)
    if isinstance(value, list):
        return [valued(entry, {"type": spec.get("elements", "raw")}) for entry in value]
    if isinstance(value, dict):
        own = spec.get("options") or {}
        return {key: valued(entry, own.get(key, {})) for key, entry in value.items()}
    return value


def errors_of_options(name: str, options: Mapping[str, Any]) -> list[str]:
    """Return what Ansible finds wrong with the options of a task."""
    given = argument_spec(name)
    spec = given["argument_spec"]
    values = {key: valued(value, spec.get(key, {})) for key, value in options.items()}
    needed = {option for option, entry in spec.items() if entry.get("required")}
    needed |= {option for rule in given.get("required_if") or () for option in rule[2]}
    for option in filled_by_action(name) & needed:
        if option not in values:
            values[option] = valued("{{ filled }}", spec[option])
    rules = {key: given.get(key) for key in ("mutually_exclusive", "required_together", "required_one_of")}
    rules.update({key: given.get(key) for key in ("required_if", "required_by")})
    return ArgumentSpecValidator(spec, **rules).validate(values).error_messages


def misfits(value: Any, declared: Mapping[str, Any], where: str) -> list[str]:
    """Return where a value has not the declared type; `declared`: an entry of RETURN."""
    if value is None:
        said = " ".join([*_sentences(declared["description"]), declared.get("returned", "")])
        return [] if "null" in said.lower() else [f"{where} is null, which its description does not mention"]
    kind = declared["type"]
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind in ("int", "float")):
        return [f"{where} is of type {type(value).__name__}, declared as {kind}"]
    found = []
    contains = declared.get("contains")
    if kind == "list":
        element = {"type": declared["elements"], "description": "", "contains": contains}
        for number, entry in enumerate(value):
            found += misfits(entry, element, f"{where}[{number}]")
    elif kind == "dict" and contains:
        found += [f"{where}.{key} is not declared" for key in value if key not in contains]
        for key in value:
            if key in contains:
                found += misfits(value[key], contains[key], f"{where}.{key}")
    return found


def _sentences(text: str | list[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def is_part(sample: Any, result: Any) -> bool:
    """Return whether a result has the sample: of a dict some keys, of a list some entries."""
    if isinstance(sample, dict) and isinstance(result, dict):
        return all(key in result and is_part(value, result[key]) for key, value in sample.items())
    if isinstance(sample, list) and isinstance(result, list):
        return bool(sample) == bool(result) and all(any(is_part(part, entry) for entry in result) for part in sample)
    return type(sample) is type(result) and sample == result
