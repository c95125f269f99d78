# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mistyped variable on the command line stops the run before it begins; each documented one is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import typed_variables

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("README.md", "docs/**/*.md", "playbooks/**/*.yml", "roles/**/*.yml", "roles/**/*.md", "plugins/**/*.py")
_GIVEN = re.compile(r"-e ([a-z_]+)=")


def documented():
    """Return every variable that the docs, the playbooks and the messages give with -e."""
    files = [path for pattern in SOURCES for path in ROOT.glob(pattern) if path.name != "typed_variables.py"]
    return sorted({name for path in files for name in _GIVEN.findall(path.read_text(encoding="utf-8"))})


def test_each_documented_variable_is_known():
    names = documented()
    assert len(names) > 20 and typed_variables.refused(names) is None


@pytest.mark.parametrize("name", [name for name in documented() if name.startswith(typed_variables.PREFIXES)])
def test_a_mistyped_one_is_refused_with_the_one_that_was_meant(name):
    wrong = name[:-2] + name[-1]
    reason = typed_variables.refused([wrong, "ansible_become"])
    assert reason and f"-e {wrong} ({name} is one)" in reason


def test_variables_of_others_are_none_of_its_business():
    assert typed_variables.refused(["ansible_user", "my_restart", "kafka_home"]) is None
