# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a job of job.json: from its command line to result.json, report and exit code, whatever fails in it."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import time
from typing import Any, Callable, Dict, Iterator, Sequence

import pyspark
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quorumshift_spark import ahead, report, session
from quorumshift_spark import job as jobs
from quorumshift_spark import result as results
from quorumshift_spark.views.source import error_line

_NOT_NEEDED = 4  # the exit code of an application that had no job


def main(
    name: str,
    about: str | None,
    create: Callable[[jobs.Job, Dict[str, Any]], Any],
    arguments: Sequence[str] | None,
    warm_up: ahead.WarmUp | None = None,
) -> int:
    """Run the job `create(job, result)`, whose `run` fills in the result as far as it gets; return the exit code.

    :arg about: the text of --help: what the job reads and writes.
    :arg warm_up: see ahead.start.
    """
    parser = argparse.ArgumentParser(
        prog=f"submit.py {name}",
        description=about,
        epilog=_EPILOG.format(name=name, keys="\n".join(jobs.describe(jobs.schema()["$defs"][name]))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--input", required=True, metavar="DIR/job.json", help="what to do; mode 0600, in a directory of mode 0700"
    )
    parser.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="start Spark, and wait for job.json; ends if its directory is removed, or after so many seconds",
    )
    given = parser.parse_args(arguments)
    started = None
    try:
        if given.wait is not None:
            started = ahead.start(name, given.input, given.wait, warm_up)
        return _run(name, create, given.input)
    except ahead.NotNeeded:
        return _NOT_NEEDED
    finally:
        if started:
            with contextlib.suppress(OSError, Py4JNetworkError):  # the job has reported that its JVM ended
                started.stop()


_EPILOG = """exit codes:
  0  pass: all was compared, and nothing differs
  1  differ
  2  error: a view or Spark failed, or the command line or job.json cannot be used
  3  incomplete: not all was compared or decided
  4  with --wait: no job came
The exit code opens no gate: result.json with the nonce of job.json does.

output, in the directory `output` of job.json: result.json (result.schema.json), report.html, differences.parquet and
differences.csv, and with the verdict pass what the next comparison takes as its baseline

example, on one host, that compares ZooKeeper with a broker (digest.key: 16 random bytes or more):
  umask 077; mkdir -p job; head -c 32 /dev/urandom > job/digest.key
  cat > job/job.json <<'END'
  {{"nonce": "1", "gate": "before_controllers", "cluster_id": "THE_ID", "output": "/root/job/output",
   "digest_key_file": "/root/job/digest.key",
   "views": {{"zookeeper": {{"connect": "zk1:2181"}}, "brokers": [{{"id": 1, "address": "b1:9092"}}]}}}}
  END
  spark-submit --master 'local[*]' --py-files quorumshift_spark.zip submit.py metadata_parity --input job/job.json

keys of job.json (job.schema.json):
{keys}
"""


def _run(name: str, create: Callable[[jobs.Job, Dict[str, Any]], Any], job_file: str) -> int:
    try:
        given = jobs.read(job_file)
        os.makedirs(given["output"], mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(given["output"], results.NAME))
    except (jobs.JobError, OSError) as error:
        # Without a job there is no output directory; a missing result opens no gate
        print(f"{name}: {error_line(error)}", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    result = results.empty(results.ERROR, [], name)
    started = time.monotonic()
    try:
        create(jobs.checked(job_file, given, name), result).run()
    except PySparkException as error:
        _fail(result, f"Spark could not run the job ({type(error).__name__} {_condition(error)}). {_CAUSE}")
    except Exception as error:
        _fail(result, _spark_failure(error) or error_line(error))
    _scrub(result, jobs.secrets(given))
    result["timings"]["total"] = round(time.monotonic() - started, 3)
    about = {key: given.get(key) for key in ("nonce", "gate", "phase", "cluster_id")}
    result.update({key: value if isinstance(value, str) else None for key, value in about.items()})
    result["versions"].update(spark=pyspark.__version__, python=platform.python_version())
    try:
        results.write(given["output"], result)
    except OSError as error:
        print(f"{name}: cannot write the result: {error_line(error)}", file=sys.stderr)
        return results.EXIT_CODES[results.ERROR]
    try:
        report.write(given["output"])
    except Exception as error:  # the report does not affect the verdict
        print(f"{name}: cannot write the report: {error_line(error)}", file=sys.stderr)
    print(f"{name} {result['gate']}: {result['verdict']}" + "".join(f"\n- {text}" for text in result["reasons"]))
    return results.EXIT_CODES[result["verdict"]]


@contextlib.contextmanager
def spark(name: str, result: Dict[str, Any]) -> Iterator[SparkSession]:
    """Yield this process's Spark session, or a new one that ends with the block. Raises SessionError where its JVM has
    ended before."""
    with timed(result, "spark_start"):
        active = SparkSession.getActiveSession()
        started = active or session.start(f"quorumshift {name}")
    try:
        yield started
    finally:
        if active is None:
            try:
                started.stop()
            except (OSError, Py4JNetworkError):
                raise session.SessionError(_NO_JVM) from None


_NO_JVM = "Spark's JVM ended during the job: it was killed, or it had no memory left. Run the playbook again"


@contextlib.contextmanager
def timed(result: Dict[str, Any], stage: str) -> Iterator[None]:
    """Add how long the block takes to the result's timings. Spark's UI and event log name its Spark jobs so."""
    started = time.monotonic()
    try:
        with described(f"{result['job']}: {stage}"):
            yield
    finally:
        result["timings"][stage] = round(time.monotonic() - started, 3)


@contextlib.contextmanager
def described(text: str) -> Iterator[None]:
    """Describe the Spark jobs that this thread starts in the block."""
    context = SparkContext._active_spark_context
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, Py4JNetworkError):  # the job reports that its JVM ended
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


_DESCRIPTION = "spark.job.description"


def _fail(result, reason):
    result.update(verdict=results.ERROR, reasons=[reason, *result["reasons"]])


_SHORTEST = 6  # characters
_CAUSE = "The cause is in spark.log beside the report. Run the playbook again"


def _scrub(result: Dict[str, Any], secrets: Sequence[str]) -> None:
    """Remove secrets from what others said: a broker's or a library's message may quote one.

    To mask a short one, which other words contain, would show it.
    """

    def scrubbed(text: Any) -> Any:
        for secret in secrets:
            if text and len(secret) >= _SHORTEST:
                text = text.replace(secret, "********")
        return text

    result["reasons"] = [*map(scrubbed, result["reasons"])]
    for view in result["views"].values():
        view["error"] = scrubbed(view["error"])
        view["problems"] = [{name: scrubbed(text) for name, text in problem.items()} for problem in view["problems"]]


def _condition(error):
    """Return Spark's error class. Its message may quote what was read."""
    with contextlib.suppress(Exception):
        return error.getCondition() or ""
    return ""


def _spark_failure(error):
    """Return the class names of a JVM failure and its causes, None for other errors. Texts may quote what was read."""
    if type(error).__module__ != "py4j.protocol":
        return None
    names = []
    with contextlib.suppress(Exception):
        cause = error.java_exception
        while cause is not None and len(names) < 5:
            names.append(cause.getClass().getSimpleName())
            cause = cause.getCause()
    return f"Spark could not run the job ({' <- '.join(names) or type(error).__name__}). {_CAUSE}"
