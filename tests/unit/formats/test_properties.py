# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties

OPERATORS_FILE = """\
# Broker 1, see the wiki
broker.id = 1
   log.dirs : /data/1,\\
      /data/2
! another comment
super.users=User:a;User:b
zookeeper.connect=zk1:2181/kafka

sasl.jaas.config=x required \\
   username="u" \\
   password="p";
empty=
path=C:\\\\temp
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
        ("a\\ b=c", {"a b": "c"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("key value with blanks ", {"key": "value with blanks "}),
        ("unicode=\\u00e9", {"unicode": "é"}),
        ("odd=\\q", {"odd": "q"}),
        ("alone", {"alone": ""}),
        ("tail=x\\", {"tail": "x"}),
        ("even=x\\\\", {"even": "x\\"}),
    ],
)
def test_parses_escapes(line, expected):
    assert properties.parse(line) == expected


def test_malformed_unicode_is_rejected_with_its_line():
    with pytest.raises(properties.PropertiesError, match="line 2"):
        properties.parse("a=b\nc=\\u12g4\n")


def test_edit_changes_only_the_lines_of_changed_keys():
    edited = properties.edit(
        OPERATORS_FILE,
        {"log.dirs": "/data/1", "zookeeper.connect": None, "broker.id": None, "node.id": "1", "empty": ""},
        comment="KRaft mode",
    )
    assert edited == (
        "# Broker 1, see the wiki\nlog.dirs=/data/1\n! another comment\nsuper.users=User:a;User:b\n\n"
        'sasl.jaas.config=x required \\\n   username="u" \\\n   password="p";\nempty=\npath=C:\\\\temp\n'
        "\n# KRaft mode\nnode.id=1\n"
    )


def test_edit_without_change_returns_the_text_byte_for_byte():
    odd = "a=b\r\n\r\n c : d"
    assert properties.edit(odd, {"a": "b", "c": "d", "x": None}) == odd


def test_edited_values_are_parsed_back():
    nasty = {"k =:#!": " leading", "tab\t": "a\tb\nc\\d", "jaas": 'x required password="=:#!";', "utf": "é"}
    assert properties.parse(properties.edit("", nasty)) == nasty
