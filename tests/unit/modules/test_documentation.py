# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples fit the argument specs, samples have the declared types, and the documented modules are complete."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.unit.modules import documented

CONTROL = {"done", "carry", "progress"}  # between a module that waits in slices and its action plugin


@pytest.mark.parametrize("name", documented.NAMES)
def test_examples_have_options_that_the_module_takes(name):
    found = list(documented.tasks(documented.module(name).examples))
    assert name in {module for module, _options in found}
    for module, options in found:
        assert documented.errors_of_options(module, options) == [], options


def test_wrong_options_of_examples_are_found():
    def errors(**options):
        return documented.errors_of_options("kafka_features", {"bootstrap_servers": "b1:9092", **options})

    assert errors(downgrade="safe", features={"metadata.version": "3.9"}) == []
    assert errors(downgrade="{{ how }}") == []
    assert "value of downgrade must be one of" in errors(downgrade="always")[0]
    assert "level" in errors(level=1)[0]
    assert "dict" in errors(features="metadata.version")[0]
    assert "missing required arguments" in documented.errors_of_options("preferred_leader_election", {})[0]
    assert "one of" in errors(client={"security_protocol": "TLS"})[0]
    moved = documented.errors_of_options("partition_reassignment", {"bootstrap_servers": "b1:9092"})
    assert "any of the following are missing" in moved[0]


def samples(returns, where=""):
    """Yield (where, entry of RETURN) of each sample."""
    for key, entry in returns.items():
        if "sample" in entry:
            yield f"{where}{key}", entry
        yield from samples(entry.get("contains") or {}, f"{where}{key}.")


@pytest.mark.parametrize("name", documented.NAMES)
def test_samples_have_the_declared_types(name):
    for where, entry in samples(documented.module(name).returns):
        assert documented.misfits(entry["sample"], entry, where) == []


def test_samples_of_wrong_types_are_found():
    plain = {"type": "int", "description": "A number."}
    assert documented.misfits(1, plain, "n") == []
    assert documented.misfits(True, plain, "n") == ["n is of type bool, declared as int"]
    assert documented.misfits(None, plain, "n") == ["n is null, which its description does not mention"]
    listed = {"type": "list", "elements": "dict", "description": "", "contains": {"n": plain}}
    assert documented.misfits([{"n": 1}, {"n": "1"}], listed, "x") == ["x[1].n is of type str, declared as int"]
    assert documented.misfits([{"m": 1}], listed, "x") == ["x[0].m is not declared"]


def test_an_internal_module_is_called_by_a_role_or_playbook():
    tasks = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("roles", "playbooks")
        for path in (documented.ROOT / folder).rglob("*.yml")
    )
    called = set(re.findall(r"^\s*(?:- )?quorumshift\.kafka\.(\w+):", tasks, re.MULTILINE))
    assert set(documented.NAMES) - set(documented.PUBLIC) <= called
    assert len(documented.PUBLIC) == 9


@pytest.mark.parametrize("name", documented.PUBLIC)
def test_a_documented_module_is_complete(name):
    module, attributes = documented.module(name), documented.attributes(name)
    assert len([called for called, _options in documented.tasks(module.examples) if called == name]) >= 3
    assert [key for key, entry in module.returns.items() if "sample" not in entry] == []
    assert len(documented.whole(name, "seealso")) >= 2
    for attribute in ("check_mode", "diff_mode", "platform"):
        assert attributes[attribute]["support"] in ("full", "partial", "none", "N/A"), attribute
    assert attributes["platform"]["platforms"] in ("posix", "linux")
    assert documented.argument_spec(name)["supports_check_mode"] is True
    assert attributes["check_mode"]["support"] == "full"


@pytest.mark.parametrize("name", documented.PUBLIC)
def test_modules_that_a_documented_module_names_exist(name):
    module = documented.module(name)
    for entry in documented.whole(name, "seealso"):
        if entry.get("module", "").startswith(documented.COLLECTION):
            assert entry["module"].removeprefix(documented.COLLECTION) in documented.NAMES
    named = re.findall(r"M\(quorumshift\.kafka\.(\w+)\)", yaml.safe_dump([module.docs, module.returns]))
    assert set(named) <= set(documented.NAMES)


def test_requirements_are_those_of_an_execution_environment():
    lines = (documented.ROOT / "meta" / "ee-requirements.txt").read_text(encoding="utf-8").splitlines()
    packages = {re.split("[<>=]", line)[0]: line for line in lines if line and not line.startswith("#")}
    for name in documented.PUBLIC:
        for text in documented.whole(name, "requirements"):
            package = text.split()[0]
            if package == "kerberos":  # needs Kerberos of the system; kazoo imports it for GSSAPI
                continue
            version = re.match(r"[\w-]+(?: >= ([\d.]+))?", text).group(1)
            assert packages[package] == (f"{package}>={version}" if version else package)
