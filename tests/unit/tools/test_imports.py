# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of imports finds a foreign package, directly and through other files of the collection."""

from __future__ import annotations

import pytest

from tools import imports

PACKAGE = "ansible_collections.quorumshift.kafka.plugins.module_utils"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "ROOT", tmp_path)
    utils = tmp_path / "plugins" / "module_utils"
    utils.mkdir(parents=True)
    return utils


@pytest.mark.parametrize(
    ("source", "foreign"),
    [
        ("import os.path, struct\nfrom collections import abc", set()),
        ("import kazoo.client", {"kazoo"}),
        ("def f():\n    from kazoo import client", {"kazoo"}),
        ("try:\n    import yaml\nexcept ImportError:\n    yaml = None", {"yaml"}),
        (f"from {PACKAGE} import other", {"kazoo"}),
        (f"from {PACKAGE}.other import name", {"kazoo"}),
        (f"import {PACKAGE}.other", {"kazoo"}),
        ("from . import other", {"kazoo"}),
        ("from .other import name", {"kazoo"}),
        (f"from {PACKAGE}.absent import name", {f"{PACKAGE}.absent.name"}),
    ],
)
def test_foreign_imports_are_found(root, source, foreign):
    (root / "other.py").write_text("import kazoo\nname = 1\n")
    (root / "it.py").write_text(source)
    assert set(imports.foreign_imports(root / "it.py")) == foreign


def test_foreign_import_has_the_importing_file(root):
    (root / "other.py").write_text("from . import it\nimport kazoo\n")
    (root / "it.py").write_text("from . import other\n")
    assert imports.foreign_imports(root / "it.py") == {"kazoo": root / "other.py"}
