# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark on the source: what it has, and that it can be taken off. test_zk_source_mark runs it on real servers."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import source_mark
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.source_mark import Acl, Mark

WRITES = 2 | 4 | 8


@pytest.mark.parametrize("perms", list(itertools.product(range(32), range(32))))
def test_no_account_may_write_and_each_that_could_may_give_it_back(perms):
    acl = [Acl(perms[0], "world", "anyone"), Acl(perms[1], "sasl", "kafka")]
    left = source_mark.without_writes(acl)
    assert not any(entry.perms & WRITES for entry in left)
    assert source_mark.can_be_given_back(left) == source_mark.can_be_given_back(acl)
    assert all(entry.perms for entry in left)


def test_a_mark_is_read_as_it_was_written():
    mark = Mark("abc", "z1:2181,z2:2181/kafka", '{"version":"1","id":"abc"}', [Acl(31, "world", "anyone")])
    assert source_mark.parse_mark(source_mark.format_mark(mark)) == mark
    assert json.loads(source_mark.id_data(mark.to))["id"] == "MOVED_TO_z1:2181_z2:2181"


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version": 2}', b'{"version": 1, "acl": 3}'])
def test_what_is_no_mark_is_named(data):
    with pytest.raises(source_mark.MarkError, match="QS-ZKMOVE-020"):
        source_mark.parse_mark(data)


def test_servers_of_the_destination_are_never_the_source():
    assert "is a server of the destination" in source_mark.check_own_servers({"s1": 1, "s2": 11}, [11, 12])
    assert "gives a session" in source_mark.check_own_servers({"s1": None}, [11])
    assert source_mark.check_own_servers({"s1": 1, "s2": None}, [11]) == ""
