# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs metadata_parity on local Spark for tests: one Spark session, and job.json as the role writes it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import sys
import threading
import time
from typing import Any, Dict, Iterator

import jsonschema
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.snapshots import metadata_snapshot
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
def local_spark(name: str = "tests", **conf: str) -> Iterator[Any]:
    """Yield a Spark session that the jobs of this process share, with CONF and `conf`."""
    os.environ["PYTHONPATH"] = PYTHONPATH
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in {**CONF, **conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


_NUMBERS = itertools.count(1)


class Run:
    """A job: `write` creates its directory, `go` runs it in this process. `result` is None without a result."""

    main = staticmethod(metadata_parity.main)

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
        """Write job.json and return its path."""
        self.directory.mkdir(mode=0o700, parents=True)
        (self.directory / "digest.key").write_bytes(DIGEST_KEY)
        path = self.directory / "job.json"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(self.job, file)
        return str(path)

    def go(self) -> Run:
        """Run the job and read its result, which must match the schema and the nonce."""
        self.code = self.main(["--input", self.write()])
        self.read()
        return self

    def read(self) -> None:
        """Read result.json, if it exists."""
        path = self.output / result.NAME
        if not path.exists():
            return
        self.result = json.loads(path.read_text())
        kept = os.environ.get("QUORUMSHIFT_KEEP_RESULTS")  # a directory; tools/screenshots.py renders such results
        if kept:
            shutil.copytree(self.output, pathlib.Path(kept) / self.directory.name, dirs_exist_ok=True)
        jsonschema.validate(self.result, result.schema())
        assert self.result["nonce"] == self.nonce
        assert self.result["digest"] == result.digest(self.result)

    @property
    def verdict(self) -> str:
        """The verdict, which must agree with the exit code."""
        assert self.result is not None, "no result.json"
        assert self.code is None or self.code == result.EXIT_CODES[self.result["verdict"]]
        return self.result["verdict"]

    @property
    def baseline(self) -> Dict[str, str]:
        """The entities of this run, as the baseline of the next one."""
        return {"path": str(self.output / metadata_parity.ENTITIES)}

    def found(self, kind: str, key: Any, field: str | None = None) -> Dict[str, Any] | None:
        """Return the first difference of this kind, key and field."""
        text = json.dumps(key, separators=(",", ":"), ensure_ascii=False)
        return next(
            (d for d in self.result["differences"] if (d["kind"], d["key"], d["field"]) == (kind, text, field)), None
        )

    def story(self) -> str:
        """Return the text for a failed assertion."""
        if self.result is None:
            return f"no result, exit code {self.code}"
        shown = {name: self.result[name] for name in ("verdict", "reasons", "rounds", "differences", "undecided")}
        return json.dumps(shown, indent=1, ensure_ascii=False)


class Snapshots:
    """Snapshots of a controller's live log, and the fence read before each."""

    def __init__(self, home: pathlib.Path, log_directory: str, connect: str) -> None:
        self._home = home
        self._directory = log_directory
        self._connect = connect
        self._count = itertools.count(1)

    def fence(self) -> Dict[str, int]:
        """Return /migration as the role reads it before the snapshot of the log."""
        with zookeeper.connect(self._connect) as client:
            migration = zookeeper.read_migration_znodes(client)["migration"]
        return {"migration_offset": migration["kraft_metadata_offset"], "migration_zxid": migration["mzxid"]}

    def fence_after(self, zxid: int) -> Dict[str, int]:
        """Return a fence after a zxid."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            fence = self.fence()
            if fence["migration_zxid"] > zxid:
                return fence
            time.sleep(0.1)
        raise TimeoutError(f"/migration was not written within 30 s after zxid {zxid}")

    def cut(self, above: int | None = None) -> Dict[str, Any]:
        """Return views.metadata_log for a snapshot with the record `above`."""
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
        """Answer a job's requests for a new snapshot, as the role does, until the block ends."""
        stop = threading.Event()

        def answer():
            done = 0
            while not stop.wait(0.05):
                path = run.directory / fence.REQUEST
                request = json.loads(path.read_text()) if path.exists() else {"round": 0}
                if request["round"] == done:
                    continue
                done = request["round"]
                answered = {"nonce": request["nonce"], "round": done, **self.cut(request["above"])}
                part = run.directory / "answer.part"
                part.write_text(json.dumps(answered))
                part.rename(run.directory / fence.ANSWER.format(done))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(30)


# Facts count that an action of this process of Ansible has set, not those of a cache
_BEGUN = """from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction

class ActionModule(QuorumshiftAction):
    def act(self, args):
        return {"ansible_facts": args["facts"]}
"""


def write_begun(directory):
    """Write the action `begun` beside a play of this directory: it sets `facts` as the begin of a run does."""
    (directory / "action_plugins").mkdir()
    (directory / "action_plugins" / "begun.py").write_text(_BEGUN)
