# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""not_compared: names and tokens of what Apache Kafka does not have."""

from __future__ import annotations

import shlex

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import not_compared

NAMES = ["build=7.9.0-ce", "record=15023v0", "znode=/confluent"]


def test_a_token_is_for_one_name_on_one_cluster():
    tokens = [not_compared.token("C", name) for name in NAMES]
    assert not_compared.decide(NAMES, "C", tokens) == (NAMES, [])
    assert not_compared.decide(NAMES, "D", tokens).open == NAMES
    assert not_compared.decide([*NAMES, "record=15023v1"], "C", tokens).open == ["record=15023v1"]
    assert not_compared.decide(NAMES, "C", ["C", "C:record", "record=15023v0", "C:*"]).open == NAMES


def test_the_sentence_has_the_option_that_accepts_all_names():
    decided = not_compared.decide(NAMES, "C", [not_compared.token("C", NAMES[0])])
    (said,) = not_compared.explain("C", decided)
    assert "record=15023v0, znode=/confluent" in said and NAMES[0] not in said.partition("To continue")[0]
    option = next(part for part in shlex.split(said) if part.startswith(f"{not_compared.VARIABLE}="))
    assert option.partition("=")[2].split(",") == [not_compared.token("C", name) for name in NAMES]
    assert not_compared.explain("C", decided._replace(open=[])) == []


@pytest.mark.parametrize("path", ["/a b", "/a,b", "/{{ lookup('pipe', 'id') }}", "/a'b", "/é", "/a:b=c\n"])
def test_a_name_has_nothing_that_a_list_a_shell_or_jinja_reads(path):
    for name in (not_compared.znode(path), not_compared.key("/x", path), not_compared.build(path)):
        assert not set(name.partition("=")[2]) & set(" ,{}()'\n\"é")
    assert not_compared.znode(path) != not_compared.znode(path + "x")


def test_parts_are_merged_with_the_first_place():
    parts = [{"a": {"count": 2, "first": "offset 10"}}, {"a": {"count": 1, "first": "offset 9"}}, {}]
    assert not_compared.merge(parts) == {"a": {"count": 3, "first": "offset 9"}}
