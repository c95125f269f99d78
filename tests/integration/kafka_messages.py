# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages as Kafka's generated classes read and write them, from one JVM (MessagesAsKafka.java), and random ones."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pathlib
import random
import subprocess
from typing import Any, Dict, Iterator, List, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages.messages import Field

from tests.integration import servers

_PROGRAM = pathlib.Path(__file__).with_name("MessagesAsKafka.java")
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class Rejected(Exception):
    """Kafka's class does not read or write the message; the text is its reason."""


class Kafka:
    """The JVM."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    def ask(self, *fields: object) -> List[str]:
        """Return the fields of an answer. Raise Rejected."""
        self._process.stdin.write("\t".join(map(str, fields)) + "\n")
        self._process.stdin.flush()
        verdict, *answer = self._process.stdout.readline().rstrip("\n").split("\t")
        if verdict == "no":
            raise Rejected(answer[0])
        assert verdict == "ok", f"the JVM ended with {self._process.wait(10)}"
        return answer


@contextlib.contextmanager
def kafka(home: pathlib.Path, libs: pathlib.Path) -> Iterator[Kafka]:
    """Compile the program and run it on the jars of a release."""
    classes = servers.compile_java(_PROGRAM, home)
    path = os.pathsep.join([*map(str, sorted(libs.glob("*.jar"))), str(classes)])
    with open(home / "stderr.log", "wb") as log, subprocess.Popen(
        ["java", *servers.JVM_FLAGS, "-cp", path, _PROGRAM.stem],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        encoding="utf-8",
    ) as process:
        try:
            yield Kafka(process)
        finally:
            process.stdin.close()
            process.wait(servers.STOP_SECONDS)


def values(chosen: random.Random, fields: Sequence[Field]) -> Dict[str, Any]:
    """Return random values of the fields that a version has."""
    return {field.name: _value(chosen, field) for field in fields if field.present}


def _value(chosen: random.Random, field: Field) -> Any:
    if chosen.random() < 0.15:
        return field.default if field.default is not None or field.nullable else _value(chosen, field)
    if field.nullable and chosen.random() < 0.2:
        return None
    if field.type.startswith("[]"):
        element = field._replace(type=field.type[2:], nullable=False, default=0)
        length = chosen.choice((127, 128, 300)) if chosen.random() < 0.02 and not field.fields else chosen.randint(0, 3)
        return [_single(chosen, element) for _element in range(length)]
    return _single(chosen, field)


def _single(chosen: random.Random, field: Field) -> Any:
    kind = field.type
    if kind == "struct":
        return values(chosen, field.fields)
    if kind in _BITS:
        bits = chosen.choice((1, 7, _BITS[kind] - 1))
        some = chosen.getrandbits(bits)
        return chosen.choice((0, -1, some, -some - 1, (1 << bits) - 1, -1 << bits))
    if kind == "uuid":
        return base64.urlsafe_b64encode(chosen.randbytes(16))[:22].decode()
    if kind in ("bytes", "records"):
        return chosen.randbytes(chosen.choice((0, 1, 16, 200)))
    if kind == "string":
        letters = 'abc-._ äß日本\U0001f600\0"\\'
        return "".join(chosen.choice(letters) for _letter in range(chosen.choice((0, 1, 5, 31, 126, 127, 128, 5000))))
    if kind == "bool":
        return chosen.random() < 0.5
    if kind == "float64":
        return chosen.choice((0.0, -1.5, 1e300, chosen.random()))
    return chosen.getrandbits(16 if kind == "uint16" else 32)


def as_json(value: Any) -> Any:
    """Return values with bytes in base64, as Kafka's JSON has them."""
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def text(value: Any) -> str:
    """Return values as a line of JSON."""
    return json.dumps(as_json(value))
