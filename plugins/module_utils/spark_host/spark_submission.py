# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Submit a Spark job that survives its submitter and leaves no secret behind. Standard library only.

An application has a directory on the Spark host. It may be started ahead of its job: Spark is then warm when the job
comes. A supervisor, a process in its own session, runs spark-submit within bounds. The file `open` is there until the
application has its job, or until none may come any more: who removes it, submitter or supervisor, has decided that.
However the job ends, the supervisor removes its input and writes `ended.json` last. The verdict is read from the job's
`result.json` with the nonce of this submission, never from an exit code. An application that no job came for leaves
nothing. Removing the directory ends the application.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from typing import Any, Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import detached, host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking

INPUT, JOB, OPEN = "input", "job.json", "open"
RESULT, ENDED, LOG = "result.json", "ended.json", "spark.log"
REQUEST, ANSWER = "log_request.json", "log_answer.{}.json"
VERDICTS = ("pass", "differ", "error", "incomplete")
SCHEMA = 1
_GRACE_S = 15.0
_POLL_S = 0.1
_SHOWN_LINES = 6
_AT_EACH_START = re.compile(r"^\S+ [\d:]+ (INFO|WARN) |^Using Spark's default log4j profile|^WARNING: Using incubator")
_SUPERVISOR_DIED = {
    "exit_code": None,
    "reason": "its supervisor process ended without a result: it was killed, or the Spark host was rebooted",
}


class SubmissionError(RuntimeError):
    """A job cannot be submitted; the text is for the operator."""


def start(
    command: Sequence[str], directory: str, wait_s: float, bound_s: float, environment: Mapping[str, str]
) -> None:
    """Start an application in a directory that has an empty directory `input`, and detach its supervisor.

    :arg wait_s: how long the application waits for its job; `bound_s`: how long the job may take.
    :arg environment: is added to this process's.

    Raises SubmissionError if the directory is open to others, or if the command is missing.
    """
    mode = os.stat(directory).st_mode & 0o777
    if mode & 0o077:
        raise SubmissionError(f"{directory} has mode {mode:04o}: it holds secrets, so it must be 0700 (QS-VERIFY-002)")
    if not shutil.which(command[0]):
        raise SubmissionError(
            f"{command[0]} is not on the Spark host: install pyspark there, or set "
            "quorumshift_spark_submit (QS-VERIFY-002)"
        )
    host_state.write_json(os.path.join(directory, OPEN), {})
    with host_state.lock(directory):  # the supervisor keeps this lock while it runs
        detached.begin(lambda: _supervise(list(command), directory, wait_s, bound_s, {**os.environ, **environment}))


def take(directory: str) -> bool:
    """Return whether the application runs and waits for a job. It then waits for that of the caller alone."""
    return _runs(directory) and _close(directory)


def hand_over(directory: str, job: Mapping[str, Any], output_dir: str) -> None:
    """Give the job to the application that the caller took. Raises SubmissionError if the output holds a result."""
    os.makedirs(output_dir, mode=0o700, exist_ok=True)
    if os.path.exists(os.path.join(output_dir, RESULT)):
        raise SubmissionError(
            f"{output_dir} already holds a result: use a new directory for each submission (QS-VERIFY-002)"
        )
    host_state.write_json(os.path.join(directory, INPUT, JOB), job)


def _runs(directory: str) -> bool:
    """Return whether an application has its supervisor."""
    try:
        return host_state.is_held(directory)
    except FileNotFoundError:
        return False


def _close(directory: str) -> bool:
    """Return whether this call decided that no other job may come."""
    try:
        os.unlink(os.path.join(directory, OPEN))
    except FileNotFoundError:
        return False
    return True


def python_environment(python: str) -> dict[str, str]:
    """Return the variables by which spark-submit takes a Python for driver and executors."""
    return {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}


def watch(directory: str, answered: int, wait_s: float) -> tuple[dict | None, dict | None]:
    """Return (end, wanted) once one of them exists, at the latest after `wait_s`.

    end: how the submission ended, {exit_code, reason, seconds, peak_mib}, without the last two if the supervisor died.
    wanted: {round, above}, the job's request in a round after `answered` (metadata_parity.py: the metadata log above an
    offset).
    """
    deadline = time.monotonic() + wait_s
    while True:
        running = _runs(directory)
        end = host_state.read_json(os.path.join(directory, ENDED)) or (None if running else dict(_SUPERVISOR_DIED))
        request = host_state.read_json(os.path.join(directory, INPUT, REQUEST)) or {}
        if end or time.monotonic() >= deadline:
            return end, None
        if request.get("round", 0) > answered:
            return None, {"round": request["round"], "above": request["above"]}
        time.sleep(_POLL_S)


def answer(directory: str, nonce: str, given: Mapping[str, Any]) -> int:
    """Write the answer to the job's request and return the round; do nothing if the job has ended meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        name = ANSWER.format(given["round"])
        host_state.write_json(os.path.join(directory, INPUT, name), {**given, "nonce": nonce})
    return given["round"]


def clean(directory: str) -> None:
    """Remove the input of a job that has ended: a supervisor that died could not, and it holds secrets."""
    shutil.rmtree(os.path.join(directory, INPUT), ignore_errors=True)


def keep_log(directory: str, output_dir: str) -> None:
    """Copy Spark's log to the job's output."""
    with contextlib.suppress(FileNotFoundError):  # of a supervisor that died before it began one
        safe_files.replace(os.path.join(output_dir, LOG), safe_files.read(os.path.join(directory, LOG)), 0o600)


def read_result(output_dir: str, nonce: str, end: Mapping[str, Any]) -> dict:
    """Return the job's result, or one with the reason if there is no valid result.

    A result is invalid if it is incomplete, of another submission or of another version: verdict `error`. A driver that
    was killed found nothing wrong, and nothing right: verdict `incomplete`, also if its Python lived long enough to
    write that it lost Spark.
    """
    found = host_state.read_json(os.path.join(output_dir, RESULT))
    why = _explain_invalid(found, nonce)
    killed = _killed_by(end) or end.get("reason") == _SUPERVISOR_DIED["reason"]
    if why is None and found is not None:
        if not (killed and found["verdict"] == "error"):
            return found
        found, why = None, "the Spark job lost its driver"
    log = _last_lines(os.path.join(output_dir, LOG))
    text = f"{why}: {end.get('reason') or _how(end)}{log}"
    if found is None and killed:
        return {"verdict": "incomplete", "nonce": nonce, "reasons": [f"{text}. Run the playbook again"]}
    return {"verdict": "error", "nonce": nonce, "reasons": [text]}


def _killed_by(end: Mapping[str, Any]) -> int:
    """Return the signal that killed spark-submit or, as its exit code says, the Python of the driver; 0 if none."""
    code = end.get("exit_code") or 0
    return -code if code < 0 else code - 128 if code > 128 else 0


def _how(end: Mapping[str, Any]) -> str:
    number = _killed_by(end)
    how = f"was killed by signal {number}" if number else f"exited with code {end.get('exit_code') or 0}"
    return f"spark-submit {how} after {end.get('seconds')} s"


def _explain_invalid(found: Mapping[str, Any] | None, nonce: str) -> str | None:
    """Return why a result is invalid, None if it is valid."""
    if found is None:
        return "the Spark job wrote no result (QS-VERIFY-002)"
    if found.get("error") and "verdict" not in found:
        return f"the Spark job's result cannot be read ({found['error']}) (QS-VERIFY-002)"
    if found.get("nonce") != nonce:
        return "the result is of another submission (QS-VERIFY-002)"
    if found.get("schema") != SCHEMA or found.get("verdict") not in VERDICTS:
        return f"the result does not have schema version {SCHEMA} (QS-VERIFY-002)"
    return None


def _supervise(command: list[str], directory: str, wait_s: float, bound_s: float, environment: dict) -> None:
    end: dict = {"exit_code": None, "reason": ""}
    began = time.monotonic()
    os.umask(0o077)  # also for what Spark writes
    try:
        with open(
            os.open(os.path.join(directory, LOG), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
        ) as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
            try:
                if _has_job(process, directory, wait_s):
                    began = time.monotonic()
                    end["exit_code"] = _exit_code(process, directory, bound_s)
                    if end["exit_code"] is None:
                        end["reason"] = f"it was stopped after {bound_s:.0f} s (quorumshift_spark_timeout_s)"
                else:
                    end["exit_code"] = process.poll()
            finally:
                _end_group(process)
    except Exception as error:
        end["reason"] = f"it could not be started: {error}"
    finally:
        if _close(directory):
            _discard(directory)
        elif os.path.isdir(directory):
            clean(directory)
            peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            end.update(seconds=round(time.monotonic() - began, 1), peak_mib=round(peak_kib / 1024))
            with contextlib.suppress(FileNotFoundError):  # the directory was removed
                host_state.write_json(os.path.join(directory, ENDED), end)


def _discard(directory: str) -> None:
    """Remove an application's directory at once for others: they would see, and use, a part of it."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(directory, f"{directory}.ended")
    shutil.rmtree(f"{directory}.ended", ignore_errors=True)


def _has_job(process: subprocess.Popen, directory: str, wait_s: float) -> bool:
    """Wait until a job takes the application; return False if it ended before, or if none came."""
    until = time.monotonic() + wait_s
    while os.path.isdir(directory):
        if not os.path.exists(os.path.join(directory, OPEN)):
            return os.path.isdir(directory)  # also where the job has ended meanwhile
        if process.poll() is not None:
            return False
        if time.monotonic() > until and _close(directory):
            _discard(directory)
            return False
        time.sleep(_POLL_S)
    return False


def _exit_code(process: subprocess.Popen, directory: str, bound_s: float) -> int | None:
    """Return the exit code of a job; None if it is over its bound, or if its directory was removed."""
    until = time.monotonic() + bound_s
    while os.path.isdir(directory) and time.monotonic() < until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(1.0, bound_s))
    return None


def _end_group(process: subprocess.Popen) -> None:
    """End the submission's process group: Spark's JVM outlives a driver that is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def _last_lines(path: str) -> str:
    """Return the last errors of Spark's log, or other lines that it has not at each start, as the end of a message."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return excerpt(stream.read())
    except OSError:
        return ""


def excerpt(log: str) -> str:
    """Return the same of the log's text."""
    lines = [line.strip() for line in masking.mask(log).split("\n") if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "Error" in line or "Exception" in line]
    shown = (errors or [line for line in lines if not _AT_EACH_START.search(line)])[-_SHOWN_LINES:]
    return f". Its log says: {' | '.join(shown)}" if shown else ""
