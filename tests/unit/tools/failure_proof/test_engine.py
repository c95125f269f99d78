# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a case of the failure proof cheap changes nothing else: restored worlds, files that are read once."""

from __future__ import annotations

import copy
import os

import pytest

pytest.importorskip("ansible")

from ansible.module_utils._internal._datatag import AnsibleTagHelper
from ansible.parsing.dataloader import DataLoader

from tools.failure_proof import warm
from tools.failure_proof.engine import Snapshot


def content(root):
    found = {}
    for path in sorted(root.rglob("*")):
        own = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "directory"
        found[str(path.relative_to(root))] = own, os.lstat(path).st_mode
    return found


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "world"
    for name in ("hosts/b1/kept", "hosts/b1/changed", "hosts/b2/removed", "file-to-directory", "link-target"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    (made / "link").symlink_to("link-target")
    return made


def change(root):
    (root / "hosts/b1/changed").write_text("hosts/b1/CHANGED")  # of the same length
    (root / "hosts/b2/removed").unlink()
    (root / "hosts/b2").rmdir()
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/file").write_text("new")
    (root / "file-to-directory").unlink()
    (root / "file-to-directory").mkdir()
    (root / "file-to-directory/file").touch()
    (root / "link").unlink()
    (root / "link").symlink_to("hosts")
    (root / "link-target").chmod(0o600)


def test_a_snapshot_restores_the_directory(root):
    before, snapshot = content(root), Snapshot(root)
    for _number in range(2):
        change(root)
        assert content(root) != before
        snapshot.restore()
        assert content(root) == before


def test_a_snapshot_follows_the_directory(root):
    snapshot = Snapshot(root)
    change(root)
    snapshot.update()
    after = content(root)
    assert content(snapshot.saved) == after
    (root / "new/deep/file").write_text("more")
    (root / "hosts/b1/kept").unlink()
    snapshot.restore()
    assert content(root) == after


def test_a_copy_of_what_was_read_is_a_deep_copy_with_tags(tmp_path):
    path = tmp_path / "read.yml"
    path.write_text("- name: a\n  list: [1, {b: 'c {{ d }}'}]\n  none:\n")
    read = DataLoader().load_from_file(str(path), unsafe=True, trusted_as_template=True)
    made, expected = warm.copied(read), copy.deepcopy(read)
    assert made == expected == read

    def tags(value):
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return type(value), AnsibleTagHelper.tags(value), [tags(part) for part in inner]

    assert tags(made) == tags(expected)
    made[0]["list"][1]["b"] = "changed"
    made[0]["list"].append(2)
    assert read == expected
