# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Spark job that outlives whoever submitted it, and leaves nothing secret behind. Standard library only.

A supervisor, a process of its own session on the Spark host, runs spark-submit within a bound, removes the job's input
however it ended, and writes `ended.json` into the output last. What a job found is in its `result.json`, and counts
only with the nonce of this submission: an exit code opens nothing.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from typing import Any, Mapping, Sequence

from . import detached, host_state

JOB, RESULT, ENDED, LOG = "job.json", "result.json", "ended.json", "spark.log"
REQUEST, ANSWER = "log_request.json", "log_answer.{}.json"
VERDICTS = ("pass", "differ", "error", "incomplete")
SCHEMA = 1
_GRACE_S = 15.0
_SHOWN_LINES = 6
_EXCLUDED = {
    "exit_code": None,
    "reason": "the process that watches over it is gone: it was killed, or the Spark host was restarted",
}


class SubmissionError(RuntimeError):
    """A job that cannot be submitted; the text is for the operator."""


def begin(
    command: Sequence[str],
    job: Mapping[str, Any],
    input_dir: str,
    output_dir: str,
    remove: str,
    bound_s: float,
    environment: Mapping[str, str],
) -> None:
    """Write the job's input and detach its supervisor, which removes `remove` at the end. `environment`: what is added
    to this process's.

    Raises SubmissionError where the input directory is open to others, where an output stands already, and where the
    command is not there.
    """
    mode = os.stat(input_dir).st_mode & 0o777
    if mode & 0o077:
        raise SubmissionError(f"{input_dir} has mode {mode:04o}: it holds secrets, so it must be 0700")
    if not shutil.which(command[0]):
        raise SubmissionError(
            f"{command[0]} is not on the Spark host: install pyspark there, or set quorumshift_spark_submit"
        )
    os.makedirs(output_dir, mode=0o750, exist_ok=True)
    if os.path.exists(os.path.join(output_dir, RESULT)):
        raise SubmissionError(f"{output_dir} holds a result already: each submission takes a directory of its own")
    host_state.write_json(os.path.join(input_dir, JOB), job)
    with host_state.locked(output_dir):  # which the supervisor keeps: held is at work
        detached.begin(lambda: _supervise(list(command), remove, output_dir, bound_s, {**os.environ, **environment}))


def watch(input_dir: str, output_dir: str, answered: int, wait_s: float) -> tuple[dict | None, dict | None]:
    """Return (end, wanted) as soon as one of them is there, at the latest after `wait_s`.

    end: how the submission ended, {exit_code, reason, seconds, peak_mib}, without the last two where its supervisor is
    gone without a word. wanted: {round, above}, what the job asks for in a round after `answered` (metadata_parity.py:
    the metadata log, cut again above an offset).
    """
    deadline = time.monotonic() + wait_s
    while True:
        at_work = os.path.isdir(output_dir) and host_state.held(output_dir)
        end = host_state.read_json(os.path.join(output_dir, ENDED)) or (None if at_work else dict(_EXCLUDED))
        asked = host_state.read_json(os.path.join(input_dir, REQUEST)) or {}
        if end or time.monotonic() >= deadline:
            return end, None
        if asked.get("round", 0) > answered:
            return None, {"round": asked["round"], "above": asked["above"]}
        time.sleep(0.1)


def answer(input_dir: str, nonce: str, given: Mapping[str, Any]) -> int:
    """Give the job what it asked for; returns the round. A job that has ended meanwhile asks no more."""
    with contextlib.suppress(FileNotFoundError):
        host_state.write_json(os.path.join(input_dir, ANSWER.format(given["round"])), {**given, "nonce": nonce})
    return given["round"]


def clean(remove: str) -> None:
    """Remove the input of a job that has ended, for a supervisor that is gone could not: it holds secrets."""
    shutil.rmtree(remove, ignore_errors=True)


def result(output_dir: str, nonce: str, end: Mapping[str, Any]) -> dict:
    """Return the job's result; where there is none that counts, one of verdict `error` that says why.

    One that lacks what it must have, of another submission or of another version counts for nothing.
    """
    reported = host_state.read_json(os.path.join(output_dir, RESULT))
    why = _of_no_count(reported, nonce)
    if why is None and reported is not None:
        return reported
    said = _last_lines(os.path.join(output_dir, LOG))
    return {"verdict": "error", "nonce": nonce, "reasons": [f"{why}: {end.get('reason') or _how(end)}{said}"]}


def _how(end: Mapping[str, Any]) -> str:
    code = end.get("exit_code") or 0
    how = f"ended with {code}" if code >= 0 else f"was ended by signal {-code}"
    return f"spark-submit {how} after {end.get('seconds')} s"


def _of_no_count(reported: Mapping[str, Any] | None, nonce: str) -> str | None:
    """Return why a result counts for nothing, None when it counts."""
    if reported is None:
        return "the Spark job left no result"
    if reported.get("error") and "verdict" not in reported:
        return f"the Spark job's result cannot be read ({reported['error']})"
    if reported.get("nonce") != nonce:
        return "the result is of another submission"
    if reported.get("schema") != SCHEMA or reported.get("verdict") not in VERDICTS:
        return f"the result is none of version {SCHEMA}"
    return None


def _supervise(command: list[str], remove: str, output_dir: str, bound_s: float, environment: dict) -> None:
    began, reported = time.monotonic(), {"exit_code": None, "reason": ""}
    try:
        with open(os.open(os.path.join(output_dir, LOG), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
            try:
                reported["exit_code"] = process.wait(bound_s)
            except subprocess.TimeoutExpired:
                reported["reason"] = f"it was ended after {bound_s:.0f} s, its bound (quorumshift_spark_timeout_s)"
            finally:
                _end_group(process)
    except Exception as error:
        reported["reason"] = f"it could not be run: {error}"
    finally:
        clean(remove)
        peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        reported.update(seconds=round(time.monotonic() - began, 1), peak_mib=round(peak_kib / 1024))
        host_state.write_json(os.path.join(output_dir, ENDED), reported)


def _end_group(process: subprocess.Popen) -> None:
    """End whatever the submission left: Spark's JVM outlives a driver that is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def _last_lines(path: str) -> str:
    """Return the end of Spark's own log as the end of a message; '' without any."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = [line.strip() for line in stream if line.strip()]
    except OSError:
        return ""
    errors = [line for line in lines if "ERROR" in line or "Error" in line or "Exception" in line]
    shown = (errors or lines)[-_SHOWN_LINES:]
    return f". Its log says: {' | '.join(shown)}" if shown else ""
