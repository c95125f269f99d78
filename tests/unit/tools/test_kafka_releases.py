# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How what several builds say becomes one table, and when it does not."""

from __future__ import annotations

import struct
import zipfile

import pytest

from tools.kafka_releases import jars, settings, table

MV = "metadata.version"


def said(version, highest, keys=("log.dirs",), names=None, **changes):
    """Return what a build says whose controllers and brokers support metadata.version 1 to `highest`."""
    levels = names or {1: ("3.0-IV1", "false"), 2: ("3.1-IV0", "false"), 3: ("3.2-IV0", "true"), 4: ("9.9", "true")}
    lines = [("level", str(level), *named) for level, named in levels.items()]
    lines += [("range", role, MV, "1", str(changes.get(role, highest))) for role in ("controller", "broker")]
    lines += [("range", role, "x.version", "0", "2") for role in ("controller", "broker")]
    lines += [
        ("default", "x.version", "0", "1"),
        ("default", "x.version", "1", "2"),
        ("default", "x.version", "2", "4"),
    ]
    lines += [("depends", "x.version", "2", MV, "2"), ("first", "1"), ("moves", "true"), ("registers", "2")]
    return table.parsed(version, 8, True, [*lines, *(("key", key) for key in keys)])


def test_one_table_of_several_builds():
    found = [said("3.0.0", 2, ("a", "b")), said("3.0.1", 2, ("b", "c")), said("3.1.0", 3, ("a", "b"))]
    joined = table.joined(reversed(found))
    assert joined["RELEASES"] == {
        (3, 0): {
            "builds": ("3.0.0", "3.0.1"),
            "java": 8,
            "zookeeper": True,
            "moves_voters": True,
            "features": {MV: (1, 2, 2), "x.version": (0, 2, 1)},
            "depends": {("x.version", 2): {MV: 2}},
        },
        (3, 1): {
            **joined["RELEASES"][(3, 0)],
            "builds": ("3.1.0",),
            "features": {MV: (1, 3, 3), "x.version": (0, 2, 1)},
        },
    }
    assert joined["LEVELS"] == {1: "3.0-IV1", 2: "3.1-IV0", 3: "3.2-IV0"}, "4 is no production level"
    assert joined["ONE_WAY"] == (1, 3) and joined["REGISTERS_CONTROLLERS"] == 2
    assert joined["KEYS"] == {"a": (("", "3.0.1"), ("3.1.0", "")), "c": (("3.0.1", "3.1.0"),)}
    written: dict = {}
    exec(table.module(joined), written)
    assert {name: written[name] for name in joined} == joined


def test_builds_that_contradict_each_other_give_no_table():
    with pytest.raises(table.TableError, match=r"3\.0\.1 differs from \('3\.0\.0',\)"):
        table.joined([said("3.0.0", 2), said("3.0.1", 3)])
    other = {1: ("3.0-IV1", "false"), 2: ("3.1-IV0", "true")}
    with pytest.raises(table.TableError, match=r"3\.1\.0: 2 is \('3\.1-IV0', True\)"):
        table.joined([said("3.0.0", 2), said("3.1.0", 2, names=other)])
    with pytest.raises(table.TableError, match="controllers and brokers support other levels"):
        said("3.0.0", 2, broker=3)
    with pytest.raises(table.TableError, match="settings or levels are missing"):
        said("3.0.0", 2, keys=())


def test_an_unstable_level_may_change_its_meaning():
    other = {1: ("3.0-IV1", "false"), 2: ("3.1-IV0", "false"), 3: ("3.1-IV1", "false"), 4: ("3.1-IV2", "true")}
    joined = table.joined([said("3.0.0", 2), said("3.1.0", 4, names=other)])
    assert joined["LEVELS"][3] == "3.1-IV1" and joined["ONE_WAY"] == (1, 4)


def test_the_java_of_a_build_is_that_of_its_class_files(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "kafka_2.13-9.0.0.jar", "w") as jar:
        jar.writestr(jars.MAIN, struct.pack(">IHH", 0xCAFEBABE, 0, 69) + b"more")
    assert jars.built_for(tmp_path) == (25, False)
    monkeypatch.setattr(jars, "running_java", lambda: 17)
    with pytest.raises(jars.ReleaseError, match=r"Kafka 9\.0\.0 is built for Java 25, and this is Java 17"):
        jars.said("9.0.0", tmp_path, "describe")


def test_what_builds_accept_becomes_one_table():
    def accepts(version, least, classes, urls):
        lines = [
            ("rule", "broker", "a.bytes", least, "", "", "", ""),
            ("rule", "broker", "b.list", "", "", "x,y", "yes", "yes"),
            ("rule", "topic", "bytes", least, "", "", "", ""),
            ("request", "FETCH", "4" if urls else "0"),
            *(("class", name) for name in classes),
            ("urls", "true" if urls else "false"),
        ]
        return settings.parsed(version, lines)

    found = [accepts("3.9.2", "1", ("A", "B"), False), accepts("4.0.0", "9", ("B", "C"), True)]
    joined = settings.joined(reversed(found))
    bound = ("1", "", "", "", ""), ("9", "", "", "", "")
    assert joined == {
        "RULES": {"a.bytes": (("", bound[0]), ("4.0.0", bound[1]))},
        "TOPIC_RULES": {"bytes": (("", bound[0]), ("4.0.0", bound[1]))},
        "TOPIC_KEYS": {},
        "REQUESTS": {"FETCH": (("", 0), ("4.0.0", 4))},
        "CLASSES": {"A": (("", "4.0.0"),), "C": (("4.0.0", ""),)},
        "ALLOWED_URLS": (("4.0.0", ""),),
    }
    written: dict = {}
    exec(settings.module(joined), written)
    assert {name: written[name] for name in joined} == joined
    with pytest.raises(table.TableError, match="missing"):
        settings.parsed("4.0.0", [("urls", "true")])
    with pytest.raises(table.TableError, match="no kind of line"):
        settings.parsed("4.0.0", [("other", "x")])
