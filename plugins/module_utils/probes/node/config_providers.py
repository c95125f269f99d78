# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve the variables in a properties file, `${provider:path:key}`, as Kafka's own config providers do (KIP-297,
KIP-421). Runs on managed hosts: standard library only; read-only.

Source: AbstractConfig.resolveConfigVariables, ConfigTransformer, FileConfigProvider, DirectoryConfigProvider,
EnvVarConfigProvider of Kafka 3.9.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any, Callable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

PROVIDERS = "config.providers"
_VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}", re.DOTALL)
_PACKAGE = "org.apache.kafka.common.config.provider."


class Variable(NamedTuple):
    """A variable in a value. `why`: it could not be resolved, '' if it was; `foreign`: the class of a provider that
    only Kafka can run."""

    key: str
    variable: str
    why: str = ""
    foreign: str = ""


class _NotResolved(Exception):
    """The text says why."""


def find_variables(values: Mapping[str, str], environment: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """Return the variables in a file's values, as Variable in form of a dict. `environment`: that of the node, None if
    it cannot be read."""
    return [variable._asdict() for variable in resolve(values, environment)[1]]


def resolve(values: Mapping[str, str], environment: Mapping[str, str] | None) -> tuple[dict[str, str], list[Variable]]:
    """Return the values as the node gets them, and the variables that were in them."""
    classes = _providers(values)
    found: list[Variable] = []

    def replaced(key: str, match: re.Match) -> str:
        name, path, variable = match[1], match[3] or "", match[4]
        if name not in classes:
            return str(match[0])
        prefix = f"{PROVIDERS}.{name}.param."
        parameters = {
            parameter[len(prefix) :]: value for parameter, value in values.items() if parameter.startswith(prefix)
        }
        reader = _READERS.get(classes[name].replace(_PACKAGE, ""))
        if reader is None:
            found.append(Variable(key, match[0], f"only Kafka can run its provider {classes[name]}", classes[name]))
            return str(match[0])
        try:
            text = reader(path, variable, parameters, environment)
        except _NotResolved as error:
            found.append(Variable(key, match[0], f"{error}"))
            return str(match[0])
        found.append(Variable(key, match[0]))
        return text

    if not classes:
        return dict(values), []
    own = {key for key in values if key == PROVIDERS or key.startswith(f"{PROVIDERS}.")}
    given = {
        key: value if key in own else _VARIABLE.sub(functools.partial(replaced, key), value)
        for key, value in values.items()
    }
    return given, found


def effective_values(values: Mapping[str, str], service_name: str) -> Mapping[str, str]:
    """Return the values as a service's node gets them. A variable that cannot be resolved stays."""
    if PROVIDERS not in values:
        return values
    return resolve(values, service.read_environment(service_name) if service_name else None)[0]


def _providers(values: Mapping[str, str]) -> dict[str, str]:
    """Return {name: class} of the providers; Kafka does not trim their names."""
    names = values.get(PROVIDERS, "").split(",")
    return {name: values[f"{PROVIDERS}.{name}.class"] for name in names if f"{PROVIDERS}.{name}.class" in values}


def _read_file(path: str, key: str, parameters: Mapping[str, str], _environment: Mapping[str, str] | None) -> str:
    _require_allowed(path, parameters)
    try:
        found = properties.parse(safe_files.read(path), "utf-8")
    except (OSError, properties.PropertiesError) as error:
        raise _NotResolved(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if key not in found:
        raise _NotResolved(f"{path} has no key {key}")
    return found[key]


def _read_directory(path: str, key: str, parameters: Mapping[str, str], _environment: Mapping[str, str] | None) -> str:
    _require_allowed(path, parameters)
    file = os.path.join(path, key)
    try:
        return safe_files.read(file).decode("utf-8", "replace")
    except OSError as error:
        raise _NotResolved(f"{file}: {error.strerror or error}") from None


def _read_environment(path: str, key: str, parameters: Mapping[str, str], environment: Mapping[str, str] | None) -> str:
    if path:
        raise _NotResolved(f"an environment variable has no path, and this one has {path}")
    if environment is None:
        raise _NotResolved("the environment of the service could not be read")
    pattern = parameters.get("allowlist.pattern", "")
    if key not in environment:
        raise _NotResolved(f"the service's environment has no {key}")
    if pattern and not re.fullmatch(pattern, key):
        raise _NotResolved(f"the allowlist.pattern of its provider is {pattern}")
    return environment[key]


def _require_allowed(path: str, parameters: Mapping[str, str]) -> None:
    allowed = [os.path.normpath(directory) for directory in parameters.get("allowed.paths", "").split(",") if directory]
    wanted = os.path.normpath(path)
    if not path:
        raise _NotResolved("it names no path")
    if allowed and not any(
        wanted == directory or wanted.startswith(directory.rstrip("/") + "/") for directory in allowed
    ):
        raise _NotResolved(f"{path} is not below its provider's allowed.paths, {', '.join(allowed)}")


_Reader = Callable[[str, str, Mapping[str, str], "Mapping[str, str] | None"], str]
_READERS: dict[str, _Reader] = {
    "FileConfigProvider": _read_file,
    "DirectoryConfigProvider": _read_directory,
    "EnvVarConfigProvider": _read_environment,
}
