# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The public variables of the collection, from the argument specs of its roles, and their values as these have them."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Iterator, Mapping

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import inputs

_ROOT = Path(__file__).resolve().parents[2]
_HOME = "quorumshift"
_HOME_ENTRIES = ("detect_phase", "gather")
_CLUSTER_WIDE = "detect_phase"
# of this entry's variables, those that each node reads for itself
PER_NODE = frozenset(
    {
        "quorumshift_broker_config",
        "quorumshift_controller_config",
        "quorumshift_hook_timeout_s",
        "quorumshift_restart_hook",
        "quorumshift_start_timeout_s",
        "quorumshift_stop_timeout_s",
    }
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, and each task of each host reads the specs
_FROM_TEXT = ("bool", "dict", "float", "int", "list")
_NAME = re.compile(rf"\b(?:{'|'.join(variables.PREFIXES)})\w+")


@functools.lru_cache(maxsize=None)
def specs() -> Mapping[str, Mapping]:
    """Return {name: argument spec} of every public variable. The home of one is the role quorumshift, where it is
    there."""
    found: dict[str, Mapping] = {}
    for path in sorted(_ROOT.glob("roles/*/meta/argument_specs.yml"), key=lambda path: path.parts[-3] != _HOME):
        entries = _entries(path)
        order = sorted(entries, key=lambda entry: (entry not in _HOME_ENTRIES, entry))
        for entry in order:
            for name, spec in (entries[entry].get("options") or {}).items():
                found.setdefault(name, spec)
    return found


def _entries(path: Path) -> Mapping[str, Mapping]:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)["argument_specs"]


@functools.lru_cache(maxsize=None)
def cluster_wide() -> frozenset[str]:
    """Return the names of the variables that the control node needs."""
    path = _ROOT / "roles" / _HOME / "meta" / "argument_specs.yml"
    options = _entries(path)[_CLUSTER_WIDE]["options"]
    return frozenset(options) - PER_NODE


@functools.lru_cache(maxsize=None)
def known() -> frozenset[str]:
    """Return every name with one of the prefixes that playbooks, roles and plugins use."""
    paths = [*_ROOT.glob("playbooks/**/*.yml"), *_ROOT.glob("roles/**/*.yml"), *_ROOT.glob("plugins/action/*.py")]
    paths += [*_ROOT.glob("plugins/plugin_utils/*.py"), inputs.FILE]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return frozenset(name for text in texts for name in _NAME.findall(text))


@functools.lru_cache(maxsize=None)
def internal() -> frozenset[str]:
    """Return the names that are no operator's: those that playbooks, roles and their tasks set, and those with one of
    the prefixes that no argument spec has. Of the former, those with a leading underscore and Ansible's own are left
    out."""
    files = [*_ROOT.glob("playbooks/**/*.yml"), *_ROOT.glob("roles/*/tasks/*.yml")]
    assigned = {name for path in files for name in _assigned(yaml.load(path.read_text("utf-8"), Loader=_LOADER))}
    own = {name for name in assigned if not name.startswith(("_", "ansible_"))}
    homes = _entries(_ROOT / "roles" / _HOME / "meta" / "argument_specs.yml")
    operators = {name for entry in _HOME_ENTRIES for name in homes[entry]["options"]}
    return frozenset((own | (known() - set(specs()))) - operators)


def _assigned(node: Any) -> Iterator[str]:
    """Yield the names that plays and tasks set."""
    if isinstance(node, list):
        for item in node:
            yield from _assigned(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("register", "loop_var"):
                yield value
            elif key in ("vars", "ansible.builtin.set_fact") and isinstance(value, dict):
                yield from value
            yield from _assigned(value)


def convert_text(name: str, value: Any) -> Any:
    """Return a variable's value as its spec has it where it is text for another type; any other value as it is. Paths
    are of their host, so they are not expanded here."""
    spec = specs().get(name) if isinstance(value, str) else None
    if not spec or spec.get("type") not in _FROM_TEXT:
        return value
    try:
        return convert(spec, value)
    except TypeError:
        return value  # the check of the inventory, or the module, says why


def convert(spec: Mapping, value: Any) -> Any:
    """Return a value as its spec has it: AWX surveys and -e give strings for every type. Raises TypeError.

    A list in text is separated by commas, blanks around them are not part of the items.
    """
    if isinstance(value, str) and spec.get("type") == "list":
        value = [item.strip() for item in value.split(",")] if value.strip() else []
    variables.require_type(spec, value)
    checked = ArgumentSpecValidator({"value": {**_plain(spec), "required": False}}).validate({"value": value})
    if checked.error_messages:
        raise TypeError("; ".join(checked.error_messages))
    return checked.validated_parameters["value"]


def _plain(spec: Mapping) -> dict:
    """Return a spec without what only documents it, and without choices, which the caller checks."""
    plain = {key: spec[key] for key in ("type", "elements", "no_log") if key in spec}
    if spec.get("options"):
        plain["options"] = {
            name: {**_plain(option), **({"choices": option["choices"]} if "choices" in option else {})}
            for name, option in spec["options"].items()
        }
    return plain
