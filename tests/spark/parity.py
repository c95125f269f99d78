# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of metadata_parity on local Spark, for tests: one Spark for all of them, and job.json as the role writes it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import sys
import threading
import time
from typing import Any, Dict, Iterator

import jsonschema
from ansible_collections.quorumshift.kafka.plugins.module_utils import metadata_snapshot
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper
from quorumshift_spark import fence, metadata_parity, result

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHONPATH = f"{ROOT}/.build{os.pathsep}{ROOT}/spark"
DIGEST_KEY = b"0123456789abcdef0123456789abcdef"
CONF = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@contextlib.contextmanager
def local_spark() -> Iterator[Any]:
    """A Spark session that the jobs of this process share."""
    os.environ["PYTHONPATH"] = PYTHONPATH
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tests")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


_NUMBERS = itertools.count(1)


class Run:
    """A job: `write` makes its directory, `go` runs it in this process. `result` is None until there is one."""

    def __init__(self, home: pathlib.Path, gate: str, views: Dict[str, Any], **more: Any) -> None:
        self.directory = home / f"job-{next(_NUMBERS)}-{gate}"
        self.output = self.directory / "output"
        self.nonce = f"nonce of {self.directory.name}"
        self.views = views
        self.job = {
            "nonce": self.nonce,
            "gate": gate,
            "phase": more.pop("phase", "unknown"),
            "cluster_id": more.pop("cluster_id"),
            "digest_key_file": str(self.directory / "digest.key"),
            "output": str(self.output),
            "views": views,
            "bounds": {"pause_s": 0.5, "request_timeout_s": 20, **more.pop("bounds", {})},
            **more,
        }
        self.code: int | None = None
        self.result: Dict[str, Any] | None = None

    def write(self) -> str:
        """The path of job.json."""
        self.directory.mkdir(mode=0o700, parents=True)
        (self.directory / "digest.key").write_bytes(DIGEST_KEY)
        path = self.directory / "job.json"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(self.job, file)
        return str(path)

    def go(self) -> Run:
        """Runs it and reads the result, which must fit the schema and carry the nonce."""
        self.code = metadata_parity.main(["--input", self.write()])
        self.read()
        return self

    def read(self) -> None:
        """Reads result.json."""
        path = self.output / result.NAME
        if not path.exists():
            return
        self.result = json.loads(path.read_text())
        jsonschema.validate(self.result, result.schema())
        assert self.result["nonce"] == self.nonce
        assert self.result["digest"] == result.digest(self.result)

    @property
    def verdict(self) -> str:
        """The verdict, which the exit code must agree with."""
        assert self.result is not None, "no result.json"
        assert self.code is None or self.code == result.EXIT_CODES[self.result["verdict"]]
        return self.result["verdict"]

    @property
    def baseline(self) -> Dict[str, str]:
        """This run's entities as the next one's view."""
        return {"path": str(self.output / metadata_parity.ENTITIES)}

    def found(self, kind: str, key: Any, field: str | None = None) -> Dict[str, Any] | None:
        """The first difference of this place."""
        text = json.dumps(key, separators=(",", ":"), ensure_ascii=False)
        return next(
            (d for d in self.result["differences"] if (d["kind"], d["key"], d["field"]) == (kind, text, field)), None
        )

    def story(self) -> str:
        """What to show when an assertion fails."""
        if self.result is None:
            return f"no result, exit code {self.code}"
        reported = {name: self.result[name] for name in ("verdict", "reasons", "rounds", "differences", "unsettled")}
        return json.dumps(reported, indent=1, ensure_ascii=False)


class Snapshots:
    """Cuts of a controller's live log, and the fence read before each."""

    def __init__(self, home: pathlib.Path, log_directory: str, connect: str) -> None:
        self._home = home
        self._directory = log_directory
        self._connect = connect
        self._count = itertools.count(1)

    def fence(self) -> Dict[str, int]:
        """/migration as the role reads it before it has the log cut."""
        with zookeeper.connect(self._connect) as client:
            seen = zookeeper.migration_znodes(client)["migration"]
        return {"migration_offset": seen["kraft_metadata_offset"], "migration_zxid": seen["mzxid"]}

    def fence_after(self, zxid: int) -> Dict[str, int]:
        """A fence that everything up to a zxid lies behind."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            fence = self.fence()
            if fence["migration_zxid"] > zxid:
                return fence
            time.sleep(0.1)
        raise TimeoutError(f"/migration was not written within 30 s after zxid {zxid}")

    def cut(self, above: int | None = None) -> Dict[str, Any]:
        """views.metadata_log of a cut that holds the record `above`."""
        end = time.monotonic() + 30
        while True:
            taken = metadata_snapshot.take(self._directory, str(self._home / f"cut-{next(self._count)}"))
            if above is None or taken.end_offset > above:
                return {"archive": taken.path, "sha256": taken.sha256, "end_offset": taken.end_offset}
            if time.monotonic() > end:
                raise TimeoutError(f"the log did not pass {above}")
            time.sleep(0.1)

    @contextlib.contextmanager
    def answering(self, run: Run) -> Iterator[None]:
        """Answers a job's requests for another cut, as the role does, until the block ends."""
        stop = threading.Event()

        def answer():
            done = 0
            while not stop.wait(0.05):
                path = run.directory / fence.REQUEST
                request = json.loads(path.read_text()) if path.exists() else {"round": 0}
                if request["round"] == done:
                    continue
                done = request["round"]
                reported = {"nonce": request["nonce"], "round": done, **self.cut(request["above"])}
                part = run.directory / "answer.part"
                part.write_text(json.dumps(reported))
                part.rename(run.directory / fence.ANSWER.format(done))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(30)
