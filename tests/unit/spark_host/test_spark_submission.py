# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A submission is bounded, removes its input, and is accepted only with its nonce. A script replaces spark-submit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission

NONCE = "5f1e"
AWAITED = "until [ -e $1/job.json ]; do sleep 0.05; done"


@pytest.fixture
def place(tmp_path):
    """The directory of an application, and that of its job's output."""
    directory = tmp_path / "application"
    (directory / "input").mkdir(parents=True)
    directory.chmod(0o700)
    return directory, tmp_path / "output"


def start(place, script, wait_s=20.0, bound_s=20.0, **environment):
    """Start a shell script as the application: $1 is its directory of input, $2 that of output."""
    directory, output = place
    command = ["sh", "-c", script, "sh", str(directory / "input"), str(output)]
    spark_submission.start(command, str(directory), wait_s, bound_s, environment)


def hand_over(place, job):
    """Give a job to the application; return whether it took one."""
    if not spark_submission.take(str(place[0])):
        return False
    spark_submission.hand_over(str(place[0]), job, str(place[1]))
    return True


@pytest.fixture
def submit(place):
    """Submit a shell script as the job; return its end and its result."""

    def submitted(script, bound_s=20.0):
        directory, output = place
        start(place, f"{AWAITED}; {script}", bound_s=bound_s)
        assert hand_over(place, {"nonce": NONCE, "client": {"sasl_password": "s3cret"}})
        end, _wanted = spark_submission.watch(str(directory), 0, 30)
        assert end is not None and not (directory / "input").exists()
        spark_submission.keep_log(str(directory), str(output))
        return end, spark_submission.read_result(str(output), NONCE, end)

    return submitted


def writes(**fields):
    return f"printf '%s' '{json.dumps({'schema': 1, 'nonce': NONCE, 'verdict': 'pass', **fields})}' > $2/result.json"


def test_job_reads_its_input_and_its_result_is_returned(submit):
    end, result = submit(f"grep -q s3cret $1/job.json && test $(stat -c %a $1/job.json) = 600 && {writes()}")
    assert result["verdict"] == "pass"
    assert end["exit_code"] == 0 and end["reason"] == "" and end["seconds"] < 20 and end["peak_mib"] >= 0


def test_verdict_is_read_from_the_result_not_from_the_exit_code(submit):
    assert submit(f"{writes(verdict='differ')}; exit 0")[1]["verdict"] == "differ"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 0", "spark-submit exited with code 0 after"),
        ("echo 'ERROR SparkContext: no master' ; exit 1", "Its log says: ERROR SparkContext: no master"),
        ("echo '26/11/26 04:29:25 WARN A: b' ; echo 'out of memory' ; exit 1", "Its log says: out of memory"),
        (writes(nonce="another"), "the result is of another submission"),
        (writes(schema=2), "the result does not have schema version 1"),
        (writes(verdict="maybe"), "the result does not have schema version 1"),
        ("printf '{\"schema\": 1, ' > $2/result.json", "the Spark job's result cannot be read"),
    ],
)
def test_invalid_result_is_an_error_with_the_reason(submit, script, reason):
    _end, result = submit(script)
    assert result["verdict"] == "error" and reason in result["reasons"][0]


@pytest.mark.parametrize("script", ["kill -9 $$", "exit 137", writes(verdict="error") + "; kill -9 $$"])
def test_a_killed_driver_leaves_the_verdict_incomplete(submit, script):
    _end, result = submit(script)
    assert result["verdict"] == "incomplete" and "was killed by signal 9" in result["reasons"][0]
    assert result["reasons"][0].endswith("Run the playbook again")


def test_what_spark_says_at_each_start_is_left_out(submit):
    _end, result = submit("echo 'WARNING: Using incubator modules: a.b' ; echo '26/11/26 04:29:25 WARN A: b' ; exit 1")
    assert "Its log says" not in result["reasons"][0]


def test_job_is_stopped_after_its_bound_with_its_child_processes(submit, tmp_path):
    _end, result = submit(f"sleep 300 & echo $! > {tmp_path}/child; wait", bound_s=0.5)
    assert "it was stopped after 0 s" in result["reasons"][0] or "after 1 s" in result["reasons"][0]
    gone(int((tmp_path / "child").read_text()))


def gone(pid):
    """Wait until a process does not run any more."""
    deadline = time.monotonic() + 20
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pids(tmp_path):
    """Return the ids of supervisor and application, which the script writes to the file `pids`."""
    deadline = time.monotonic() + 20
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


def test_dead_supervisor_is_detected_and_its_input_can_be_removed(tmp_path, place):
    directory, output = place
    start(place, f"echo $PPID $$ > {tmp_path}/pids; sleep 300")
    assert hand_over(place, {})
    assert spark_submission.watch(str(directory), 0, 0.5) == (None, None)
    supervisor, job = pids(tmp_path)
    os.kill(supervisor, signal.SIGKILL)
    end, _wanted = spark_submission.watch(str(directory), 0, 60)
    found = spark_submission.read_result(str(output), NONCE, end)
    reason = found["reasons"][0]
    assert found["verdict"] == "incomplete"
    os.killpg(job, signal.SIGKILL)
    assert "its supervisor process ended without a result" in reason and (directory / "input" / "job.json").exists()
    spark_submission.clean(str(directory))
    assert not (directory / "input").exists()


# Started ahead of its job -----------------------------------------------------------------------------------------


def test_an_application_waits_for_one_job(place):
    start(place, f"{AWAITED}; sleep 1; {writes()}")
    assert hand_over(place, {"nonce": NONCE})
    assert not spark_submission.take(str(place[0]))
    end, _wanted = spark_submission.watch(str(place[0]), 0, 30)
    assert spark_submission.read_result(str(place[1]), NONCE, end)["verdict"] == "pass"


def test_the_seconds_and_the_bound_of_a_job_begin_with_the_job(place):
    start(place, f"{AWAITED}; {writes()}", bound_s=4)
    time.sleep(5)
    handed_over = time.monotonic()
    assert hand_over(place, {"nonce": NONCE})
    end, _wanted = spark_submission.watch(str(place[0]), 0, 60)
    assert end["exit_code"] == 0 and end["seconds"] <= time.monotonic() - handed_over + 0.1, end


@pytest.mark.parametrize("how", ["no job came in time", "it died", "its directory was removed"])
def test_an_application_without_a_job_ends_and_leaves_nothing(tmp_path, place, how):
    ends = "exit 1" if how == "it died" else "sleep 300"
    start(place, f"echo $PPID $$ > {tmp_path}/pids; {ends}", wait_s=0.5 if how == "no job came in time" else 60)
    supervisor, application = pids(tmp_path)
    if how == "its directory was removed":
        shutil.rmtree(place[0])
    gone(supervisor)
    assert not runs(application) and not place[0].exists()
    assert not hand_over(place, {})


def test_no_job_is_given_to_an_application_whose_supervisor_died(tmp_path, place):
    start(place, f"echo $PPID $$ > {tmp_path}/pids; sleep 300")
    supervisor, application = pids(tmp_path)
    os.kill(supervisor, signal.SIGKILL)
    gone(supervisor)
    assert not hand_over(place, {})
    os.killpg(application, signal.SIGKILL)


def test_a_job_and_the_end_of_the_wait_never_both_win(tmp_path):
    """At the moment at which the wait ends, a job comes, many times: it is refused, or it has a result."""
    taken = []
    for number in range(16):
        place = tmp_path / str(number), tmp_path / f"output-{number}"
        (place[0] / "input").mkdir(parents=True)
        place[0].chmod(0o700)
        start(place, f"{AWAITED}; {writes()}", wait_s=0.2)
        time.sleep(0.12 + 0.015 * number)
        taken.append(hand_over(place, {"nonce": NONCE}))
        if taken[-1]:
            end, _wanted = spark_submission.watch(str(place[0]), 0, 30)
            assert spark_submission.read_result(str(place[1]), NONCE, end)["verdict"] == "pass", number
    assert set(taken) == {True, False}


def runs(pid):
    """Return whether a process runs: where process 1 is not an init, an orphan stays as a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return " Z " not in stream.read()
    except OSError:
        return False


def test_job_continues_with_the_answer_to_its_request(place):
    directory, output = place
    script = (
        f"""{AWAITED}; printf '{{"nonce": "5f1e", "round": 1, "above": 17}}' > $1/log_request.json; """
        "until [ -e $1/log_answer.1.json ]; do sleep 0.1; done; "
        f"grep -q '\"end_offset\": 19' $1/log_answer.1.json && {writes()}"
    )
    start(place, script)
    assert hand_over(place, {})
    assert spark_submission.watch(str(directory), 0, 10) == (None, {"round": 1, "above": 17})
    assert spark_submission.watch(str(directory), 1, 0.2) == (None, None)
    assert spark_submission.answer(str(directory), NONCE, {"round": 1, "end_offset": 19}) == 1
    end, wanted = spark_submission.watch(str(directory), 1, 10)
    assert wanted is None and spark_submission.read_result(str(output), NONCE, end)["verdict"] == "pass"
    assert spark_submission.answer(str(directory), NONCE, {"round": 2, "end_offset": 23}) == 2  # the job has ended


def test_submission_needs_a_private_directory_a_new_output_and_spark(place):
    directory, output = place
    directory.chmod(0o755)
    with pytest.raises(spark_submission.SubmissionError, match="has mode 0755"):
        start(place, "true")
    directory.chmod(0o700)
    with pytest.raises(spark_submission.SubmissionError, match="no-such-submit is not on the Spark host"):
        spark_submission.start(["no-such-submit"], str(directory), 1, 1, {})
    assert not (directory / "open").exists()
    output.mkdir()
    (output / "result.json").write_text("{}")
    with pytest.raises(spark_submission.SubmissionError, match="already holds a result"):
        spark_submission.hand_over(str(directory), {}, str(output))
    assert not (directory / "input" / "job.json").exists()
