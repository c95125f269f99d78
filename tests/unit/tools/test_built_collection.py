# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of the tarball rejects what must not ship."""

from __future__ import annotations

import tarfile
from io import BytesIO

import pytest

from tools import built_collection


def tarball(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, size in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, BytesIO(bytes(size)))
    return path


@pytest.fixture(autouse=True)
def tracked(monkeypatch):
    files = ["README.md", "plugins/modules/m.py", "tools/checks.py", "Makefile"]
    monkeypatch.setattr(built_collection, "checkout_files", lambda: files)


def test_tracked_and_generated_files_may_ship(tmp_path):
    members = {"MANIFEST.json": 9, "FILES.json": 9, "README.md": 1, "plugins/modules/m.py": 10}
    assert built_collection.check_members(tarball(tmp_path / "c.tar.gz", members)) == 4


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (".venv/bin/python", 1),
        (".build/kafka/libs/kafka.jar", 1),
        ("tools/checks.py", 1),
        ("tests/modules.py", 1),
        ("extensions/molecule/config.yml", 1),
        ("Makefile", 1),
        ("plugins/modules/m.pyc", 1),
        ("plugins/modules/m.py", built_collection.MEMBER_LIMIT + 1),
    ],
)
def test_member_that_must_not_ship_is_named(tmp_path, name, size):
    with pytest.raises(built_collection.Wrong, match=name):
        built_collection.check_members(tarball(tmp_path / "c.tar.gz", {"README.md": 1, name: size}))


def test_failed_command_shows_its_output():
    with pytest.raises(built_collection.Wrong, match="no-such-type"):
        built_collection.call("ansible-doc", "--type", "no-such-type", "x")


REFERENCES = {
    "imports a tool": ("plugins/modules/m.py", "from tools import checks", "tools.checks"),
    "imports a test's helper in a function": ("spark/job/a.py", "def f():\n    import tests.modules", "tests.modules"),
    "imports what the collection lacks": (
        "plugins/modules/m.py",
        f"from {built_collection.COLLECTION}.plugins.module_utils import absent",
        "plugins.module_utils.absent",
    ),
    "starts a tool": ("plugins/modules/m.py", 'argv = [python, "-m", "tools.checks"]', "tools.checks"),
    "names a tool in a message": ("plugins/modules/m.py", 'fail("run: python -m tools.checks lint")', "tools.checks"),
    "starts a tool from a playbook": (
        "playbooks/p.yml",
        "- command:\n    argv: [python, -m, tools.checks]",
        "tools.checks",
    ),
    "starts a tool over lines": ("playbooks/p.yml", "argv:\n  - python\n  - -m\n  - tools.checks", "tools.checks"),
}
"""What a file of the tarball may do with a file of the checkout that is not in the tarball."""


def with_texts(path, texts):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, BytesIO(text.encode()))
    return path


@pytest.fixture
def checkout(monkeypatch):
    files = ["plugins/modules/m.py", "playbooks/p.yml", "spark/job/a.py", "spark/job/b.py"]
    monkeypatch.setattr(built_collection, "checkout_files", lambda: [*files, "tools/checks.py", "tests/modules.py"])


@pytest.mark.parametrize("reference", REFERENCES)
def test_reference_to_what_does_not_ship_is_named(tmp_path, checkout, reference):
    name, text, module = REFERENCES[reference]
    with pytest.raises(built_collection.Wrong, match=rf"{name}: needs .*{module}"):
        built_collection.check_references(with_texts(tmp_path / "c.tar.gz", {name: text}))


def test_references_within_the_tarball_and_to_other_packages_pass(tmp_path, checkout):
    texts = {
        "plugins/modules/m.py": '"""Written by `python -m tools.checks`."""\nimport os.path\nimport yaml',
        "playbooks/p.yml": "# tools: python -m tools.checks\n- command: ansible all -m ping",
        "spark/job/a.py": "from job import b\nfrom job.b import name\nfrom . import b",
        "spark/job/b.py": f"from {built_collection.COLLECTION}.plugins.modules import m",
    }
    assert built_collection.check_references(with_texts(tmp_path / "c.tar.gz", texts)) == 4
