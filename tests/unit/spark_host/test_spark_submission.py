# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A submission is bounded, removes its input, and is accepted only with its nonce. A script replaces spark-submit."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_submission

NONCE = "5f1e"


@pytest.fixture
def submit(tmp_path):
    """Submit a shell script as the job; return its end and its result."""

    def submitted(script, bound_s=20.0, **environment):
        input_dir, output_dir = tmp_path / "input", tmp_path / "output"
        input_dir.mkdir(mode=0o700)
        job = {"nonce": NONCE, "client": {"sasl_password": "s3cret"}}
        command = ["sh", "-c", script, "sh", str(input_dir), str(output_dir)]
        spark_submission.begin(command, job, str(input_dir), str(output_dir), str(input_dir), bound_s, environment)
        end, _wanted = spark_submission.watch(str(input_dir), str(output_dir), 0, 30)
        assert end is not None and not input_dir.exists()
        return end, spark_submission.read_result(str(output_dir), NONCE, end)

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
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_dead_supervisor_is_detected_and_its_input_can_be_removed(tmp_path):
    input_dir, output_dir = tmp_path / "input", tmp_path / "output"
    input_dir.mkdir(mode=0o700)
    scratch_dirs = (str(input_dir), str(output_dir))
    spark_submission.begin(
        ["sh", "-c", f"echo $PPID $$ > {tmp_path}/pids; sleep 300"], {}, *scratch_dirs, scratch_dirs[0], 60, {}
    )
    assert spark_submission.watch(*scratch_dirs, 0, 0.5) == (None, None)
    supervisor, job = (int(pid) for pid in (tmp_path / "pids").read_text().split())
    os.kill(supervisor, signal.SIGKILL)
    end, _wanted = spark_submission.watch(*scratch_dirs, 0, 60)
    found = spark_submission.read_result(scratch_dirs[1], NONCE, end)
    reason = found["reasons"][0]
    assert found["verdict"] == "incomplete"
    os.killpg(job, signal.SIGKILL)
    assert "its supervisor process ended without a result" in reason and (input_dir / "job.json").exists()
    spark_submission.clean(scratch_dirs[0])
    assert not input_dir.exists()


def runs(pid):
    """Return whether a process runs: where process 1 is not an init, an orphan stays as a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return " Z " not in stream.read()
    except OSError:
        return False


def test_job_continues_with_the_answer_to_its_request(tmp_path):
    input_dir, output_dir = tmp_path / "input", tmp_path / "output"
    input_dir.mkdir(mode=0o700)
    script = (
        """printf '{"nonce": "5f1e", "round": 1, "above": 17}' > $1/log_request.json; """
        "until [ -e $1/log_answer.1.json ]; do sleep 0.1; done; "
        f"grep -q '\"end_offset\": 19' $1/log_answer.1.json && {writes()}"
    )
    scratch_dirs = (str(input_dir), str(output_dir))
    spark_submission.begin(["sh", "-c", script, "sh", *scratch_dirs], {}, *scratch_dirs, str(input_dir), 20, {})
    assert spark_submission.watch(*scratch_dirs, 0, 10) == (None, {"round": 1, "above": 17})
    assert spark_submission.watch(*scratch_dirs, 1, 0.2) == (None, None)
    assert spark_submission.answer(str(input_dir), NONCE, {"round": 1, "end_offset": 19}) == 1
    end, wanted = spark_submission.watch(*scratch_dirs, 1, 10)
    assert wanted is None and spark_submission.read_result(str(output_dir), NONCE, end)["verdict"] == "pass"
    assert spark_submission.answer(str(input_dir), NONCE, {"round": 2, "end_offset": 23}) == 2  # the job has ended


def test_submission_needs_a_private_input_a_new_output_and_spark(tmp_path):
    input_dir, output_dir = tmp_path / "input", tmp_path / "output"
    input_dir.mkdir(mode=0o755)
    with pytest.raises(spark_submission.SubmissionError, match="has mode 0755"):
        spark_submission.begin(["true"], {}, str(input_dir), str(output_dir), str(input_dir), 1, {})
    input_dir.chmod(0o700)
    with pytest.raises(spark_submission.SubmissionError, match="no-such-submit is not on the Spark host"):
        spark_submission.begin(["no-such-submit"], {}, str(input_dir), str(output_dir), str(input_dir), 1, {})
    output_dir.mkdir()
    (output_dir / "result.json").write_text("{}")
    with pytest.raises(spark_submission.SubmissionError, match="already holds a result"):
        spark_submission.begin(["true"], {}, str(input_dir), str(output_dir), str(input_dir), 1, {})
    assert not (input_dir / "job.json").exists()
