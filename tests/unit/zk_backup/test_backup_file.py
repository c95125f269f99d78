# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_backup import backup_file, taking

ACL = [
    {"perms": 31, "scheme": "world", "id": "anyone"},
    {"perms": 1, "scheme": "x509", "id": "CN=a:b,O=c"},
    {"perms": 12, "scheme": "digest", "id": "kafka:aGFzaA=="},
    {"perms": 0, "scheme": "auth", "id": ""},
]


@pytest.mark.parametrize("data", [None, b"", b"text", "grün \u2028\n".encode(), b"\x00", bytes(range(256))])
def test_znode_is_read_back_from_its_line(data):
    node = znodes.Znode("/a/b <c>", data, ACL, znodes.Stat(*range(11)))
    line = backup_file.line(node)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert backup_file.znode(json.loads(line)) == node


def test_line_contains_readable_data_and_acl():
    record = json.loads(backup_file.line(znodes.Znode("/a", b"x", ACL, znodes.Stat(*range(11)))))
    assert record["data"] == {"text": "x"}
    assert record["acl"][:3] == ["world:anyone:cdrwa", "x509:CN=a:b,O=c:r", "digest:kafka:aGFzaA==:cd"]


@pytest.mark.parametrize(
    ("chroot", "ancestors"), [("", []), ("/", []), ("/kafka", ["/"]), ("/prod/eu/kafka", ["/", "/prod", "/prod/eu"])]
)
def test_ancestors(chroot, ancestors):
    assert taking.ancestors_of(chroot) == ancestors
