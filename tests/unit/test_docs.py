# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators read says what the code does: tables, variables, links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base import argument_specs

from tools import checks, messages, reference
from tools.checkout import checkout_files
from tools.yaml_files import read_yaml

ROOT = reference.ROOT
PLUGINS_ASKED = re.compile(r"\bquorumshift_\w+")
GUIDE = ROOT / "docs" / "operators-guide.md"
# Names that begin like a variable and are none: facts, registered results, groups made by the playbooks.
NOT_VARIABLES = {
    "quorumshift_node",
    "quorumshift_last_start",
    "quorumshift_session",
    "quorumshift_state",
    "quorumshift_gathered",
    "quorumshift_in_rescue",
    "quorumshift_controllers_gathered",
    "quorumshift_paths",
    "quorumshift_clock",
    "quorumshift_gate_tokens",
    "quorumshift_ahead",
    "quorumshift_zk_backup",
    "quorumshift_gate",
    "quorumshift_show",
    "quorumshift_direction",
    "quorumshift_record",
    "quorumshift_plan",
    "quorumshift_unregistered",
    "quorumshift_scratch_dirs",
    "quorumshift_spark",
}
GROUPS = re.compile(r"quorumshift_to_\w*|quorumshift_controllers")


def documents() -> list[Path]:
    return [ROOT / "README.md", *reference.documents(), *sorted(messages.PAGES.glob("*.md"))]


def of_contributors() -> list[Path]:
    """Return the files that a contributor reads."""
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    return [ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", ROOT / "docs" / "architecture.md", *pages]


def defaults() -> dict:
    return read_yaml(ROOT / "roles" / "quorumshift" / "defaults" / "main.yml")


def documented() -> dict[str, dict]:
    """Options of all entry points of the role quorumshift, by name; of shared variables, those at their home."""
    entry_points = reference.specs("quorumshift").values()
    return {
        **{name: spec for entry in entry_points for name, spec in entry["options"].items()},
        **reference.shared_variables(),
    }


# Tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", reference.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_regions_are_as_the_code_says(path):
    text = path.read_text(encoding="utf-8")
    assert text == reference.regenerated(text), "run: python -m tools.reference"


def test_all_generated_tables_stand_somewhere():
    text = "".join(path.read_text(encoding="utf-8") for path in reference.documents())
    assert set(re.findall(r"<!-- generated: ([\w ]+) -->", text)) == set(reference.REGIONS)


def test_the_guide_explains_every_phase_and_gate():
    text = GUIDE.read_text(encoding="utf-8")
    phases = {*phase.FORWARD, phase.KRAFT_NATIVE, phase.REVERTING, phase.UNKNOWN}
    table = text[text.index("\n## Phases") : text.index("\n## Gates")]
    assert set(re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE)) == phases
    assert all(f"`{name}`" in text for name in gates.GATES)


# Variables --------------------------------------------------------------------------------------------------------


def used_variables() -> set[str]:
    """Every quorumshift_* name that plugins, roles and playbooks use."""
    files = [
        *(ROOT / "plugins" / "action").glob("*.py"),
        *(ROOT / "plugins" / "plugin_utils").glob("*.py"),
        *(ROOT / "roles").glob("*/tasks/*.yml"),
        *(ROOT / "roles").glob("*/vars/*.yml"),
        *(ROOT / "playbooks").glob("*.yml"),
    ]
    names = {name for path in files for name in PLUGINS_ASKED.findall(path.read_text(encoding="utf-8"))}
    return {name for name in names if name not in NOT_VARIABLES and not GROUPS.fullmatch(name)}


def test_every_variable_is_documented_and_every_documented_one_exists():
    assert set(documented()) - NOT_VARIABLES == used_variables() | set(defaults())


def test_documented_defaults_are_the_defaults():
    assert {
        name: spec["default"] for name, spec in reference.shared_variables().items() if "default" in spec
    } == defaults()


def test_connection_options_are_those_of_the_modules():
    options = documented()
    for variable, known in (
        ("quorumshift_client", argument_specs.CLIENT_OPTIONS),
        ("quorumshift_controller_client", argument_specs.CLIENT_OPTIONS),
        ("quorumshift_zookeeper_client", argument_specs.ZOOKEEPER_CLIENT_OPTIONS),
    ):
        reported = options[variable]["options"]
        assert set(reported) == set(known)
        for name, spec in known.items():
            for key in ("type", "choices", "default"):
                assert reported[name].get(key) == spec.get(key), f"{variable}.{name}: {key}"
            assert reported[name].get("no_log") or not spec.get("no_log"), f"{variable}.{name} is a secret"


def test_every_gate_is_a_choice():
    assert documented()["quorumshift_gate"]["choices"] == list(gates.GATES)


def test_documents_name_no_variable_that_does_not_exist():
    known = set(documented()) | NOT_VARIABLES
    for path in documents():
        if path.name == "mistakes.md":
            continue  # it quotes mistyped names
        for name in PLUGINS_ASKED.findall(path.read_text(encoding="utf-8")):
            assert name in known or GROUPS.fullmatch(name), f"{path.relative_to(ROOT)}: {name}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_need_no_file_that_the_tarball_lacks(path):
    ignored = read_yaml(ROOT / "galaxy.yml")["build_ignore"]
    text = path.read_text(encoding="utf-8")
    for name in (pattern for pattern in ignored if not pattern.startswith((".", "*"))):
        assert not re.search(rf"\]\((\.\./)*{re.escape(name)}\b", text), f"a link to {name}"
    assert "requirements.in" not in text


@pytest.mark.parametrize("role", sorted(path.parent.name for path in (ROOT / "roles").glob("*/tasks")))
def test_every_role_has_its_readme_and_specs_of_task_files_that_exist(role):
    assert (ROOT / "roles" / role / "README.md").is_file()
    for entry_point in reference.specs(role):
        assert (ROOT / "roles" / role / "tasks" / f"{entry_point}.yml").is_file(), entry_point


# Links ------------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {reference.slug(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)}


@pytest.mark.parametrize(
    "path", sorted({*documents(), *of_contributors()}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_relative_links_lead_somewhere(path):
    text = re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _hash, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(found), f"{target}: no such heading"


# What contributors read -----------------------------------------------------------------------------------------------

_DEFINED = r"^(?:async )?(?:def |class )?{}\b"


def missing_names(text: str, files: list[str]) -> list[str]:
    """Return the files, folders, definitions, make targets and tools that a text names and the checkout lacks."""
    folders = {name.rpartition("/")[0] for name in files}
    folders |= {"/".join(folder.split("/")[:depth]) for folder in folders for depth in range(1, folder.count("/") + 2)}
    top = {name.split("/")[0] for name in files}
    base_names = {name.rpartition("/")[2] for name in files}
    fenced = re.findall(r"^```.*?$(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    code = [*re.findall(r"`([^`\n]+)`", prose), *fenced]
    found = []
    for path in (word.rstrip("/") for part in code for word in re.split(r"[\s\[\]\"():]+", part)):
        if "/" in path and path.split("/")[0] in top:
            if path not in files and path not in folders:
                found.append(path)
        elif re.fullmatch(r"[\w-]+\.(py|yml|toml|md|in|txt)", path) and path not in base_names:
            found.append(path)
    # the name of a definition after the path of its file
    for path, name in re.findall(r"`([\w./-]+\.py):(\w+)`", prose):
        source = (ROOT / path).read_text(encoding="utf-8") if path in files else ""
        if not re.search(_DEFINED.format(name), source, re.MULTILINE):
            found.append(f"{path}:{name}")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    targets |= set(checks.TARGETS)
    for part in code:
        found += [f"make {name}" for name in re.findall(r"^make ([a-z][\w-]*)", part, re.M) if name not in targets]
        found += [
            f"-m {name}"
            for name in re.findall(r"-m (tools[\w.]*)", part)
            if not {f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__main__.py"} & set(files)
        ]
    return found


@pytest.mark.parametrize("path", of_contributors(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_contributors_read_names_only_what_exists(path):
    assert missing_names(path.read_text(encoding="utf-8"), checkout_files()) == []


def test_names_that_do_not_exist_are_found():
    text = """`plugins/nothing.py` `plugins/module_utils/core/migration/phase.py:detect`
`plugins/module_utils/core/migration/phase.py:nothing` `nothing.yml` `step.yml` `plugins` `make nothing`
`make lint` `build/TARGET/summary.json` `tests/unit/` `a/b`

```
.venv/bin/python -m pytest -q tests/unit/nothing.py tests/unit/core
.venv/bin/python -m tools.nothing && .venv/bin/python -m tests.system.crash
make nowhere
```
"""
    assert sorted(missing_names(text, checkout_files())) == [
        "-m tools.nothing",
        "make nothing",
        "make nowhere",
        "nothing.yml",
        "plugins/module_utils/core/migration/phase.py:nothing",
        "plugins/nothing.py",
        "tests/unit/nothing.py",
    ]


def test_a_decision_is_listed_and_fits_on_a_screen():
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    listed = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"({page.name})" in listed and len(text.splitlines()) <= 40, page.name
        parts = re.findall(r"^\*\*([\w ]+)\.\*\*", text, re.MULTILINE)
        assert parts == ["Context", "Decision", "What it costs", "Instead of", "See"], page.name
