# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as Java, Kafka and ZooKeeper read them, from one JVM (FilesAsRead.java)."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
from typing import Dict, Iterator

from tests.integration import servers

_PROGRAM = pathlib.Path(__file__).with_name("FilesAsRead.java")


class Rejected(Exception):
    """Java, Kafka or ZooKeeper does not accept the file; the text is its reason."""


class Reader:
    """The JVM. Each question is about one file."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    def read(self, verb: str, data: bytes) -> Dict[str, str]:
        """Return what is read of a file. Raise Rejected."""
        self._process.stdin.write(f"{verb}\t{data.hex()}\n".encode())
        self._process.stdin.flush()
        verdict, *fields = self._process.stdout.readline().decode().rstrip("\n").split("\t")
        if verdict == "no":
            raise Rejected(_text(fields[0]))
        assert verdict == "ok", f"the JVM ended with {self._process.wait(10)}"
        pairs = (field.split("=") for field in fields)
        return {_text(key): _text(value) for key, value in pairs}


@contextlib.contextmanager
def reader(home: pathlib.Path) -> Iterator[Reader]:
    """Compile the program and run it."""
    classes = servers.compile_java(_PROGRAM, home)
    command = servers.java()
    command[-1] += f"{os.pathsep}{classes}"
    with open(home / "stderr.log", "wb") as log, subprocess.Popen(
        [*command, "FilesAsRead", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    ) as process:
        try:
            yield Reader(process)
        finally:
            process.stdin.close()
            process.wait(servers.STOP_SECONDS)


def _text(field: str) -> str:
    return bytes.fromhex(field).decode("utf-16-be", "surrogatepass")
