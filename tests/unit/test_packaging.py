# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection promises to Galaxy, ansible-core and its users, held against the files that keep the promise."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import ansible_test
import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.unit.modules import documented
from tools.checkout import checkout_files
from tools.imports import ACCELERATORS, ROOT, foreign_imports
from tools.yaml_files import parse_yaml, read_yaml

COLLECTION = "quorumshift.kafka"
HEADER = """\
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""
# Kafka's definitions of its messages, as data
KAFKAS = "plugins/module_utils/formats/messages/definitions.py"
KAFKAS_HEADER = """\
# SPDX-FileCopyrightText: The Apache Software Foundation and the contributors of Apache Kafka
# Apache License 2.0 (see LICENSES/Apache-2.0.txt or https://www.apache.org/licenses/LICENSE-2.0)
# SPDX-License-Identifier: Apache-2.0
"""
FILES = checkout_files()
PYTHON_FILES = [name for name in FILES if name.endswith(".py")]
MODULES = [name for name in PYTHON_FILES if name.startswith("plugins/modules/")]
ROLES = sorted({name.split("/")[1] for name in FILES if name.startswith("roles/")})
PLAYS = [name for name in FILES if re.match(r"(playbooks|roles|extensions)/.*\.ya?ml$", name)]
# Code that runs on managed hosts without being a module (design: collect on the hosts, decide in one place)
ON_MANAGED_HOSTS = [
    name
    for name in PYTHON_FILES
    if re.match(r"plugins/module_utils/(formats/.*|wire/.*|settings/properties)\.py$", name)
]


def load(name: str) -> object:
    return read_yaml(ROOT / name)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def version_range(cell: str) -> tuple[Version, Version]:
    first, _to, last = cell.partition(" to ")
    return Version(first), Version(last)


def compatibility() -> dict[str, tuple[tuple[Version, Version], tuple[Version, Version]]]:
    """docs/compatibility.md: ansible-core release -> (control node's Pythons, managed hosts' Pythons), as ranges."""
    rows = re.findall(r"^\| (\d+\.\d+) \| (.*?) \| (.*?) \|$", text("docs/compatibility.md"), re.MULTILINE)
    return {core: (version_range(control), version_range(managed)) for core, control, managed in rows}


# --- galaxy.yml, meta/runtime.yml, the lock ---------------------------------------------------------------------


def test_galaxy_metadata():
    galaxy = load("galaxy.yml")
    assert f"{galaxy['namespace']}.{galaxy['name']}" == COLLECTION
    assert galaxy["dependencies"] == {}
    assert galaxy["license"] == ["GPL-3.0-or-later", "Apache-2.0"]
    assert "GNU GENERAL PUBLIC LICENSE" in text("LICENSE") and "Version 3, 29 June 2007" in text("LICENSE")
    released = load("changelogs/changelog.yaml")["releases"] if "changelogs/changelog.yaml" in FILES else {}
    assert galaxy["version"] in released or f"changelogs/fragments/{galaxy['version']}.yml" in FILES


def test_requires_ansible_is_the_compatibility_table():
    requires = SpecifierSet(load("meta/runtime.yml")["requires_ansible"])
    table = sorted(compatibility(), key=Version)
    assert table, "docs/compatibility.md has no rows that can be read"
    for core in table:
        assert f"{core}.0" in requires
    oldest = Version(table[0])
    assert f"{oldest.major}.{oldest.minor - 1}.99" not in requires
    assert (oldest.major, oldest.minor) == base.OLDEST_ANSIBLE


def test_lock_runs_supported_ansible_on_each_python():
    pins = re.findall(r"^ansible-core==(\S+) ; python_full_version (<|>=) '([\d.]+)'", text("requirements.txt"), re.M)
    assert len(pins) == 2
    for core, comparison, python in pins:
        release = ".".join(core.split(".")[:2])
        first, _last = compatibility()[release][0]
        # below the border the release must run on our oldest, Debian 12's 3.11; from it on, on the border itself
        assert first <= (Version("3.11") if comparison == "<" else Version(python))


def test_compatibility_agrees_with_the_installed_ansible_core():
    constants: dict = {}
    source = Path(ansible_test.__path__[0], "_util", "target", "common", "constants.py").read_text(encoding="utf-8")
    exec(compile(source, "constants.py", "exec"), constants)
    control, remote = constants["CONTROLLER_PYTHON_VERSIONS"], constants["REMOTE_ONLY_PYTHON_VERSIONS"]
    release = ".".join(importlib.metadata.version("ansible-core").split(".")[:2])
    assert compatibility()[release] == (
        (Version(control[0]), Version(control[-1])),
        (Version(remote[0]), Version(control[-1])),
    )


def test_ruff_holds_code_to_the_oldest_managed_python():
    oldest = min(managed[0] for _control, managed in compatibility().values())
    assert f'target-version = "py{oldest.major}{oldest.minor}"' in text("pyproject.toml")


def test_readme_names_each_system_package():
    packages = [line.split()[0] for line in text("tools/packages.txt").splitlines() if line and line[0] != "#"]
    readme = text("README.md")
    assert [package for package in packages if not re.search(rf"(?<![\w-]){re.escape(package)}(?![\w-])", readme)] == []


def test_no_check_is_ignored_without_a_reason():
    ignores = [name for name in FILES if re.match(r"tests/sanity/ignore-.*\.txt$", name)]
    assert {Path(name).name for name in ignores} <= {f"ignore-{core}.txt" for core in compatibility()}
    for name in ignores:
        for line in text(name).splitlines():
            assert "#" in line, f"{name}: {line}: say why, after a #"


def test_the_execution_environment_has_what_plugins_and_jobs_import():
    lines = text("meta/ee-requirements.txt").splitlines()
    required = {re.split("[<>=]", line)[0].replace("-", "_") for line in lines if not line.startswith("#")}
    files = [ROOT / name for name in PYTHON_FILES if name.startswith(("plugins/", "spark/"))]
    imported = {package for path in files for package in foreign_imports(path)}
    # of ansible-core and pyspark themselves, and the job's own package
    assert required - {"pandas", "pure_sasl"} == imported - {
        "puresasl",
        "ansible",
        "yaml",
        "markupsafe",
        "py4j",
        "quorumshift_spark",
    }
    assert load("meta/execution-environment.yml")["dependencies"] == {
        "python": "meta/ee-requirements.txt",
        "system": "meta/ee-bindep.txt",
    }


# --- Python files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PYTHON_FILES)
def test_python_file_begins_with_the_licence(name):
    source = text(name)
    if source.startswith("#!"):
        source = source.split("\n", 1)[1]
    source = source.removeprefix("# -*- coding: utf-8 -*-\n")
    assert source.startswith(KAFKAS_HEADER if name == KAFKAS else HEADER) or not source
    # the compiler would read the whole file: that is 6 s of CPU for all
    skipped = (tokenize.COMMENT, tokenize.STRING, tokenize.NL, tokenize.NEWLINE)
    statement = (token for token in tokenize.generate_tokens(StringIO(source).readline) if token.type not in skipped)
    first = next(statement)
    assert first.type == tokenize.ENDMARKER or (first.string, next(statement).string) == ("from", "__future__")


@pytest.mark.parametrize("name", ON_MANAGED_HOSTS)
def test_code_on_managed_hosts_needs_the_standard_library_only(name):
    assert {
        package: user for package, user in foreign_imports(ROOT / name).items() if package not in ACCELERATORS
    } == {}


@pytest.mark.parametrize("name", MODULES)
def test_module_is_documented(name):
    assigned = {
        target.id: node.value
        for node in ast.parse(text(name)).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    documentation = parse_yaml(ast.literal_eval(assigned["DOCUMENTATION"]))
    assert documentation["module"] == Path(name).stem
    assert {"check_mode", "diff_mode"} <= set(documented.attributes(Path(name).stem))
    examples = parse_yaml(ast.literal_eval(assigned["EXAMPLES"]))
    assert any(f"{COLLECTION}.{Path(name).stem}" in task for task in examples), "no example of the module itself"
    assert parse_yaml(ast.literal_eval(assigned["RETURN"])) is not None


# --- roles and playbooks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_role_has_its_parts(role):
    for part in ("README.md", "meta/argument_specs.yml"):
        assert f"roles/{role}/{part}" in FILES, f"roles/{role}/{part} is missing"
    assert any(name.startswith(f"roles/{role}/tasks/") for name in FILES), f"roles/{role} has no tasks"


@pytest.mark.parametrize("role", ROLES)
def test_role_arguments_agree_with_its_defaults(role):
    defaults = load("roles/quorumshift/defaults/main.yml")
    specs = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]
    options = {name: option for spec in specs.values() for name, option in spec.get("options", {}).items()}
    specified = {name: option["default"] for name, option in options.items() if "default" in option}
    own = {"quorumshift_connectivity_required": False}
    if (ROOT / f"roles/{role}/defaults/main.yml").exists():
        own.update(load(f"roles/{role}/defaults/main.yml"))
    assert specified == {name: value for name, value in {**defaults, **own}.items() if name in options}
    assert [name for name, option in options.items() if option.get("required") and name in defaults] == []
    # restart_kind has one name from the playbook to the journal, in each role that it passes through
    shared = {"restart_kind"}
    assert [name for name in options if not name.startswith(("quorumshift_", f"{role}_")) and name not in shared] == []


@pytest.mark.parametrize("role", ROLES)
def test_role_readme_names_each_argument(role):
    specs = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]
    readme = text(f"roles/{role}/README.md")
    own = [name for spec in specs.values() for name in spec.get("options", {}) if name.startswith(f"{role}_")]
    assert [name for name in own if name not in readme] == []


def role_names(node: object) -> Iterator[str]:
    """Names of roles that a play or task file uses."""
    if isinstance(node, list):
        for item in node:
            yield from role_names(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "roles" and isinstance(value, list):
                yield from (item if isinstance(item, str) else item.get("role", item.get("name")) for item in value)
            elif re.search(r"(^|\.)(include|import)_role$", str(key)):
                yield from (
                    [] if "{{" in value["name"] else [value["name"]]
                )  # a part of a playbook has it from its caller
            else:
                yield from role_names(value)


@pytest.mark.parametrize("name", PLAYS)
def test_roles_are_used_by_their_full_name(name):
    if "templates/" in name or "/files/" in name:
        pytest.skip("not a play")
    for used in role_names(load(name)):
        assert used.startswith(f"{COLLECTION}.") and used.removeprefix(f"{COLLECTION}.") in ROLES, used
