# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare our readers of a transaction log and of a snapshot with ZooKeeper's TxnLogToolkit, on the same files.

    PYTHONPATH=.build:. .venv/bin/python tests/benchmarks/zookeeper_log.py [--megabytes N] [--znodes N] [--rounds N]

The log is written in ZooKeeper's format with transactions of about 200 bytes, and has an allocated tail of 64 MiB. Both
readers must find the same last zxid. Pages are in the cache. Seconds are the least of the rounds; the toolkit runs once
and includes the JVM's start.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, Callable, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import zk_files, zk_log

from tests.integration import servers

FIRST = (1 << 32) + 1
NEWEST = 1000


def write_log(directory: Path, megabytes: int) -> int:
    """Write a log; return the last zxid."""
    rng, zxid = random.Random(1), FIRST
    data = [rng.randbytes(100) for _number in range(50)]
    with open(directory / f"log.{FIRST:x}", "wb") as file:
        file.write(struct.pack(">4siq", b"ZKLG", 2, 0))
        written = 0
        while written < megabytes * 1_000_000:
            for _number in range(1000):
                path = b"/prod/kafka/brokers/topics/orders-%06d" % (zxid % 1_000_000)
                body = struct.pack(">qiqqi", 0x2C00000000000001, 1, zxid, 1_700_000_000_000, 5)
                body += struct.pack(">i", len(path)) + path + struct.pack(">i", 100) + data[zxid % 50]
                body += struct.pack(">iiq", zxid & 0xFFFF, 2, zxid * 977)
                written += file.write(struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B")
                zxid += 1
        file.truncate(written + 16 + (64 << 20))
    return zxid - 1


def write_snapshot(path: Path, count: int) -> None:
    """Write a snapshot of so many znodes of 100 bytes."""
    out = [struct.pack(">4siqii", b"ZKSN", 2, 0, 0, 0)]
    stat = struct.pack(">qqqqqiiiqq", -1, 5, 5, 0, 0, 0, 0, 0, 0, 5)
    for number in range(count):
        name = b"/prod/kafka/brokers/topics/orders-%07d" % number if number else b""
        out.append(struct.pack(">i", len(name)) + name + struct.pack(">i", 100) + bytes(100) + stat)
    out.append(struct.pack(">i", 1) + b"/")
    data = b"".join(out)
    path.write_bytes(data + struct.pack(">qi", zlib.adler32(data), 1) + b"/")


def least(rounds: int, read: Callable[[], Any]) -> Tuple[float, Any]:
    """Return the least seconds of some rounds, and the last result."""
    times, result = [], None
    for _round in range(rounds):
        begun = time.perf_counter()
        result = read()
        times.append(time.perf_counter() - begun)
    return min(times), result


def toolkit(path: Path) -> int:
    """Dump the log with ZooKeeper's tool; return its last zxid."""
    command = [*servers.java(), "org.apache.zookeeper.server.persistence.TxnLogToolkit", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as dump:
        last = ""
        for line in dump.stdout or ():
            last = line if " zxid 0x" in line else last
    found = re.search(r" zxid 0x([0-9a-f]+)", last)
    if not found:
        raise SystemExit(f"TxnLogToolkit printed no zxid: {last!r}")
    return int(found[1], 16)


def main() -> None:
    """Measure, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--znodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with servers.workdir("benchmark_log") as home, tempfile.TemporaryDirectory(dir=home) as name:
        directory = Path(name)
        last = write_log(directory, given.megabytes)
        print(f"log of {given.megabytes} MB, {last - FIRST + 1} transactions")

        def newest(count: int) -> int:
            return [transaction.zxid for transaction in zk_log.transactions(name, last - count)][-1]

        readers = {
            "last zxid": lambda: zk_files.last_zxid(name, name),
            f"newest {NEWEST} transactions": lambda: newest(NEWEST),
            "all transactions": lambda: newest(last - FIRST + 1),
        }
        for label, read in readers.items():
            seconds, zxid = least(given.rounds if label != "all transactions" else 1, read)
            if zxid != last:
                raise SystemExit(f"{label}: 0x{zxid:x}, expected 0x{last:x}")
            print(f"  {label:28} {seconds * 1e3:9.1f} ms")
        seconds, zxid = least(1, lambda: toolkit(directory / f"log.{FIRST:x}"))
        if zxid != last:
            raise SystemExit(f"TxnLogToolkit: 0x{zxid:x}, expected 0x{last:x}")
        print(f"  {'TxnLogToolkit':28} {seconds * 1e3:9.1f} ms")
        snapshot = directory / "snapshot.5"
        write_snapshot(snapshot, given.znodes)
        seconds, count = least(given.rounds, lambda: sum(1 for _node in zk_files.read_snapshot(str(snapshot))))
        print(f"snapshot of {count} znodes, {snapshot.stat().st_size / 1e6:.0f} MB")
        print(f"  {'all znodes':28} {seconds * 1e3:9.1f} ms, {count / seconds / 1e3:.0f} k/s")


if __name__ == "__main__":
    main()
