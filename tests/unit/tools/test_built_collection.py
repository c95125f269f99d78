# Copyright: (c) 2026, Quorumshift contributors
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
