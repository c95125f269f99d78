# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples. tests/integration/test_files_against_java.py compares with Java over generated files."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

OPERATORS_FILE = rb"""# Broker 1, see the wiki
broker.id = 1
   log.dirs : /data/1,\
      /data/2
! another comment
super.users=User:a;User:b
zookeeper.connect=zk1:2181/kafka

sasl.jaas.config=x required \
   username="u" \
   password="p";
empty=
path=C:\\temp
broker.id=2
"""


def test_parses_as_java_does():
    assert properties.parse(OPERATORS_FILE) == {
        "broker.id": "2",
        "log.dirs": "/data/1,/data/2",
        "super.users": "User:a;User:b",
        "zookeeper.connect": "zk1:2181/kafka",
        "sasl.jaas.config": 'x required username="u" password="p";',
        "empty": "",
        "path": "C:\\temp",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a\\ b=c", {"a b": "c"}),
        (b"a\\=b=c", {"a=b": "c"}),
        (b"key value with blanks ", {"key": "value with blanks "}),
        (b"unicode=\\u00e9", {"unicode": "é"}),
        (b"beyond=\\uD83D\\uDE00", {"beyond": "😀"}),
        (b"odd=\\q", {"odd": "q"}),
        (b"alone", {"alone": ""}),
        (b"tail=x\\", {"tail": "x"}),
        (b"even=x\\\\", {"even": "x\\"}),
        (b"a=1\\\n# 2", {"a": "1# 2"}),
        (b"\\\n# a comment\nb=1", {"b": "1"}),
        (b"utf8=\xc3\xbc", {"utf8": "Ã¼"}),  # Latin-1, as Kafka reads it
        (b"a=\x85\x0b\x1c\x1d\x1e", {"a": "\x85\x0b\x1c\x1d\x1e"}),
    ],
)
def test_parses_escapes(line, expected):
    assert properties.parse(line) == expected


@pytest.mark.parametrize("charset", ["utf-8", "cp1251", "cp1252", "gb18030"])
@pytest.mark.parametrize(
    "comment", ["на старых log.dirs=/old", "配置 log.dirs=/old", "wait… log.dirs=/old", "ą log.dirs=/old"]
)
def test_a_comment_in_any_script_stays_a_comment(comment, charset):
    before = b"log.dirs=/data\n# " + comment.encode(charset, "replace") + b"\nx=1\n"
    assert properties.parse(before) == {"log.dirs": "/data", "x": "1"}
    assert properties.edit(before, {"x": "2"}) == before.replace(b"x=1", b"x=2")


def test_malformed_unicode_is_rejected_with_its_line():
    with pytest.raises(properties.PropertiesError, match="line 2"):
        properties.parse(b"a=b\nc=\\u12g4\n")


def test_edit_changes_only_the_values_of_changed_keys():
    edited = properties.edit(
        OPERATORS_FILE,
        {"log.dirs": "/data/1", "zookeeper.connect": None, "broker.id": None, "node.id": "1", "empty": ""},
        comment="KRaft mode",
    )
    assert edited == (
        b"# Broker 1, see the wiki\n   log.dirs : /data/1\n! another comment\nsuper.users=User:a;User:b\n\n"
        b'sasl.jaas.config=x required \\\n   username="u" \\\n   password="p";\nempty=\npath=C:\\\\temp\n'
        b"\n# KRaft mode\nnode.id=1\n"
    )


def test_edit_without_change_returns_the_same_bytes():
    odd = b"a=b\r\n\r\n c : d"
    assert properties.edit(odd, {"a": "b", "c": "d", "x": None}) == odd


def test_edit_keeps_each_end_of_line():
    mixed = b"a=1\r\nb=2\nc=3\r# \xef\r\nd=4"
    assert properties.edit(mixed, {"b": "5", "e": "6"}) == b"a=1\r\nb=5\nc=3\r# \xef\r\nd=4\r\n\r\ne=6\r\n"


def test_new_keys_do_not_continue_an_entry_at_the_end_of_the_file():
    for before in (b"a=1\\", b"a=1\\\n", b"a=1\\\r\n", b"a", b"  "):
        known = properties.parse(before)
        assert properties.parse(properties.edit(before, {"b": "2"}, "ours")) == {**known, "b": "2"}


def test_edited_values_are_written_in_ascii_and_parsed_back():
    nasty = {"k =:#!": " leading", "tab\t": "a\tb\nc\\d", "jaas": 'x required password="=:#!";', "utf": "é\x85张😀\0"}
    written = properties.edit(b"", nasty)
    assert written.isascii() and b"\\u5F20\\uD83D\\uDE00" in written
    assert properties.parse(written) == nasty


def test_a_value_after_blanks_alone_keeps_its_first_character():
    assert properties.parse(properties.edit(b"key value\n", {"key": "=x"})) == {"key": "=x"}


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("continued", [b"\\\r", b" \\\n  ", b"\\\r\n"])
def test_an_empty_value_in_place_of_one_on_the_next_line_leaves_the_line_after_it(continued, end):
    data = b"a=" + continued + b"old" + end + b"b=kept" + end
    assert properties.parse(properties.edit(data, {"a": ""})) == {"a": "", "b": "kept"}
