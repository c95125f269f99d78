# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import hashlib
import json

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file, taking

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


def test_each_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    """By enumeration: deflate has bits that mean nothing, such as those that fill its last byte."""
    header = {"quorumshift_zk_backup": backup_file.FORMAT, "cluster_id": "c", "taken_at": "t"}
    nodes = [znodes.Znode(path, b"data of " + path.encode(), ACL, znodes.Stat(*range(11))) for path in ("/a", "/a/b")]
    counts = backup_file.Counts()
    for node in nodes:
        counts.add(node)
    body = json.dumps(header).encode() + b"\n" + b"".join(map(backup_file.line, nodes))
    trailer = {**counts.totals(), "zxid": 7, "sha256": hashlib.sha256(body).hexdigest()}
    content = body + json.dumps({"end": trailer}).encode() + b"\n"
    path = tmp_path / "backup"
    packed = gzip.compress(content, mtime=0)
    path.write_bytes(packed)
    backup_file.Backup(str(path)).check()
    harmless = 0
    # bytes 4 to 9 are gzip's time, flags and system
    for bit in [*range(4 * 8), *range(10 * 8, len(packed) * 8)]:
        flipped = bytearray(packed)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            backup_file.Backup(str(path)).check()
        except backup_file.BackupBroken:
            continue
        assert gzip.decompress(flipped) == content, f"bit {bit} changed what is read"
        harmless += 1
    assert harmless < 16
