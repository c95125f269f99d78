# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties files over all bytes, as operators' editors, shells and templates leave them.

The same seed and number give the same file.
"""

from __future__ import annotations

import json
import random
from typing import Any, Callable, Sequence

KEYS = ("log.dirs", "broker.id", "zookeeper.connect", "listeners", "super.users", "sasl.jaas.config", "a", "k 1", "ü")
_COMMENTS = (
    "на старых log.dirs=/old/kafka",
    "配置 全部 关闭 log.dirs=/old",
    "Zażółć gęślą jaźń broker.id=9",
    "✅ done… see \u201cwiki\u201d",
    "Größe\\",
    "日本語のコメント",
    "العربية broker.id=7",
    "x=y",
    "",
)
_CHARSETS = ("utf-8", "utf-8", "cp1251", "gb18030", "cp1252", "latin-1", "shift_jis", "utf-16-le")
_ENDS = (b"\n", b"\r\n", b"\r")
_BLANKS = (b"", b"", b"", b" ", b"\t", b"\f", b"  ")
# bytes at which str.splitlines and str.strip differ from Java, and those that the grammar names
_BYTES = b"\x85\x0b\x0c\x1c\x1d\x1e\x1f\xa0\x00\\\\\\=:#! \t\f\r\nutnf\"'$" + bytes(range(256))
_WORDS = (
    "/data/kafka",
    "zk1:2181,zk2:2181/kafka",
    "PLAINTEXT://:9092",
    "true",
    "C:\\\\temp",
    "User:CN\\=\\u5f20\\u4e09",
)


def properties_file(seed: int, number: int) -> bytes:
    """Return a generated file."""
    chosen = random.Random(f"{seed}/{number}")
    parts = [b"\xef\xbb\xbf"] if chosen.random() < 0.05 else []
    ends = chosen.choice(((b"\n",), (b"\n",), (b"\r\n",), (b"\r",), _ENDS))
    for _line in range(chosen.randint(0, 8)):
        kind: Callable[[random.Random, bytes], bytes] = chosen.choice(
            (_comment, _entry, _entry, _entry, _noise, _empty)
        )
        parts.append(kind(chosen, chosen.choice(ends)))
    data = b"".join(parts)
    tail = chosen.random()
    if tail < 0.2:
        data = data.rstrip(b"\r\n")
    elif tail < 0.3:
        data += chosen.choice((b"\\", b"\\\n", b"\\\r\n", b"\\\r", b"a=\\", b" ", b"#", b"#\\", b"\\\n\\"))
    return data


def shrunk(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Return a smallest file that fails too: no run of its bytes can be left out."""
    size = max(1, len(data) // 2)
    while size:
        begin = 0
        while begin < len(data):
            smaller = data[:begin] + data[begin + size :]
            if fails(smaller):
                data = smaller
            else:
                begin += size
        size //= 2
    return data


def changes(seed: int, number: int, present: Sequence[str]) -> dict[str, str | None]:
    """Return changes for an edit: new values, in all of Unicode, of some keys, and keys to remove. `present`: those of
    the file."""
    chosen = random.Random(f"{seed}/{number}/changes")
    keys = [chosen.choice((*KEYS, *present)) for _key in range(chosen.randint(1, 3))]
    return {key: _value(chosen) if chosen.random() < 0.7 else None for key in keys}


def _value(chosen: random.Random) -> str:
    kinds = (
        lambda: chosen.choice(_WORDS).replace("\\", ""),
        lambda: "".join(chr(chosen.choice((*range(0x180), 0x5F20, 0x4E09, 0x1F600))) for _one in range(6)),
        lambda: chosen.choice((" leading", ":=x", "#c", "trailing ", "back\\", "", "a\nb", "p\xfc\x85ß")),
    )
    return chosen.choice(kinds)()


def _comment(chosen: random.Random, end: bytes) -> bytes:
    text = chosen.choice(_COMMENTS).encode(chosen.choice(_CHARSETS), "replace")
    return chosen.choice(_BLANKS) + chosen.choice((b"#", b"# ", b"!")) + text.replace(b"\n", b"") + end


def _entry(chosen: random.Random, end: bytes) -> bytes:
    key = chosen.choice(KEYS).replace(" ", "\\ ").encode(chosen.choice(("utf-8", "latin-1")))
    if chosen.random() < 0.1:
        key = _random(chosen, 3)
    separator = chosen.choice((b"=", b"=", b"=", b":", b" ", b" = ", b"\t:\f", b"", b"\\\n =", b"=\\\r\n"))
    value = chosen.choice(_WORDS).encode() if chosen.random() < 0.6 else _random(chosen, 8)
    for _piece in range(chosen.choice((0, 0, 0, 1, 2))):
        value += (
            b"\\" * chosen.choice((1, 1, 2, 3)) + chosen.choice(_ENDS) + chosen.choice(_BLANKS) + _random(chosen, 4)
        )
    escape = chosen.random()
    if escape < 0.15:
        value += chosen.choice(
            (b"\\u00fc", b"\\ud83d\\ude00", b"\\ud83d", b"\\u0000", b"\\u000A", b"\\t\\n\\f\\r", b"\\q")
        )
    elif escape < 0.18:
        value += chosen.choice((b"\\u12", b"\\u12g4", b"\\u", b"\\U0041"))
    return chosen.choice(_BLANKS) + key + separator + value + end


def _noise(chosen: random.Random, end: bytes) -> bytes:
    return _random(chosen, 10) + end


def _empty(chosen: random.Random, end: bytes) -> bytes:
    return chosen.choice(_BLANKS) + chosen.choice((b"", b"", b"\\")) + end


def _random(chosen: random.Random, most: int) -> bytes:
    return bytes(chosen.choice(_BYTES) for _byte in range(chosen.randint(0, most)))


_CONNECTS = (
    "z1:2181",
    "z1,z2:2182/kafka",
    "z2:2182,z1:2181/kafka",
    "[::1]:2181",
    "3333::204:9",
    "::1,z1/a/b",
    "z1:2181/",
)
_ENDPOINTS = (
    "PLAINTEXT://:9092",
    "INTERNAL://3333:10:9:101::204:9092",
    "internal://[3333:10:9:101::204]:9092",
    "SSL://b1.example.org:9093",
    "CLIENTS://0.0.0.0:9094",
    "Clients://[::]:9095",
    "INTERNAL://fe80::1%eth0:9096",
    "SASL_SSL://b-1_x:0",
    "://b1:9092",
    "INTERNAL://b1",
)
_MAPS = (
    "INTERNAL:PLAINTEXT,CLIENTS:SASL_SSL,SSL:SSL,SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT",
    "internal:ssl , Clients:Sasl_Ssl,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
)


def broker_properties(seed: int, number: int) -> dict[str, str]:
    """Return a broker's settings as text, most of which Kafka accepts."""
    chosen = random.Random(f"{seed}/{number}/broker")

    def some(most: int, *values: str) -> str:
        return ",".join(chosen.sample(values, chosen.randint(1, most)))

    candidates = {
        "broker.id": chosen.choice(("1", "01", "+7", "-1", "1005", "0")),
        "node.id": chosen.choice(("1", "7", "-1")),
        "broker.id.generation.enable": chosen.choice(("true", "FALSE", "False")),
        "reserved.broker.max.id": chosen.choice(("1000", "5000", "+10")),
        "listeners": some(2, *_ENDPOINTS),
        "advertised.listeners": some(2, *_ENDPOINTS),
        "listener.security.protocol.map": chosen.choice(_MAPS),
        "inter.broker.listener.name": chosen.choice(("INTERNAL", "internal", "CLIENTS", "PLAINTEXT")),
        "security.inter.broker.protocol": chosen.choice(("PLAINTEXT", "SSL", "SASL_SSL")),
        "log.dirs": some(3, "/data/1", "/data/2", "/d 3", "/data/ü"),
        "log.dir": chosen.choice(("/one", "/one,/two")),
        "metadata.log.dir": chosen.choice(("/metadata", "/data/1")),
        "zookeeper.metadata.migration.enable": chosen.choice(("false", "FALSE")),
        "zookeeper.ssl.client.enable": chosen.choice(("true", "TRUE", "false")),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    }
    found = {key: value for key, value in candidates.items() if chosen.random() < 0.4}
    found["zookeeper.connect"] = chosen.choice(_CONNECTS)
    return {key: blanks(chosen, value) for key, value in found.items()}


def blanks(chosen: random.Random, value: str) -> str:
    """Return a value with blanks at its ends and at its commas."""
    some = ("", "", "", " ", "\t", "\x0b", "\x1f", "\f ")
    commas = (",", ",", ", ", " ,", " , ")
    joined = "".join(chosen.choice(commas) if character == "," else character for character in value)
    return chosen.choice(some[:5]) + joined + chosen.choice(some)


def zoo_cfg(seed: int, number: int, data: str) -> dict[str, str]:
    """Return a ZooKeeper server's settings as text, most of which it accepts. `data`: its data directory."""
    chosen = random.Random(f"{seed}/{number}/zoo")
    candidates = {
        "clientPortAddress": chosen.choice(("[::]", "::", "0.0.0.0", "127.0.0.1", "[::1]", "0:0:0:0:0:0:0:0")),
        "dataLogDir": f"{data}/logs",
        "peerType": chosen.choice(("observer", "OBSERVER", "participant")),
        "syncEnabled": chosen.choice(("true", "False", "TRUE")),
        "localSessionsEnabled": chosen.choice(("true", "False", "false")),
        "tickTime": chosen.choice(("500", "3000")),
        "minSessionTimeout": chosen.choice(("1000", "4000")),
        "maxSessionTimeout": chosen.choice(("-1", "60000")),
    }
    found = {key: value for key, value in candidates.items() if chosen.random() < 0.5}
    found.update({"dataDir": data, "clientPort": "2181", "initLimit": "5", "syncLimit": "2"})
    for server in range(1, chosen.choice((1, 4))):
        role = chosen.choice(("", ":participant", ":observer", ":OBSERVER"))
        host = chosen.choice((f"127.0.0.{server}", f"[::{server}]"))
        found[f"server.{server}"] = f"{host}:2888:3888{role}{chosen.choice(('', ';2181', ';[::]:2181'))}"
    # ZooKeeper does not trim a member's host; the blanks before a value in a file are no part of it.
    begins = {key: "" if key.startswith("server.") else chosen.choice(("", " ", "\t")) for key in found}
    return {key: begins[key] + value + chosen.choice(("", " ", "\x0b")) for key, value in found.items()}


def reassignment(seed: int, number: int) -> str:
    """Return a reassignment as JSON, as kafka-reassign-partitions writes it or with one value of another form."""
    chosen = random.Random(f"{seed}/{number}/reassignment")
    partitions: list[Any] = []
    for _number in range(chosen.choice((0, 1, 1, 2, 3))):
        replicas = chosen.sample((1, 2, 3, 11, 1005), chosen.randint(1, 3))
        entry = {"topic": chosen.choice(("orders", "a.b", "журнал")), "partition": chosen.choice((0, 1, 2, 31))}
        entry["replicas"] = replicas
        if chosen.random() < 0.3:
            entry["log_dirs"] = ["any"] * len(replicas)
        partitions.append(entry)
    content: dict[str, Any] = {"version": 1, "partitions": partitions}
    odd = (None, True, "12", "", -1, 1.9, 2.0, 1 << 31, [], [1, "2"], [1.9, 2], [2, 2], [True], {}, {"a": 1}, ["/data"])
    if chosen.random() < 0.5:
        where = chosen.choice([content, *partitions])
        where[chosen.choice(sorted(where))] = chosen.choice(odd)
    if chosen.random() < 0.1:
        where = chosen.choice([content, *partitions])
        del where[chosen.choice(sorted(where))]
    return json.dumps(content, ensure_ascii=chosen.random() < 0.5)
