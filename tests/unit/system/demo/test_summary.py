# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's summary: a real run's summary fits the schema, and everything wrong in it is a problem."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from canary_clients.verdict import evaluate
from tests.system.demo import summary
from tests.unit.canary_clients.client_ledgers import LedgerBuilder

RECORDED = json.loads(Path(__file__).with_name("summary.json").read_text(encoding="utf-8"))
SCHEMA = json.loads(summary.SCHEMA.read_text(encoding="utf-8"))


def test_schema_is_valid_and_a_real_run_fits_it():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert list(validator.iter_errors(RECORDED)) == []
    for key in RECORDED:
        assert list(validator.iter_errors({name: value for name, value in RECORDED.items() if name != key})), key
        assert list(validator.iter_errors({**RECORDED, key: object()})), key


def test_the_clients_verdict_fits_the_schema_with_the_longest_wait_of_each_client(tmp_path):
    run = LedgerBuilder()
    run.messages(100)
    run.stop()
    clients = summary.clients(evaluate(run.write(tmp_path), []))
    assert clients["longest_wait_ms"]["producer"] == {"long": 5, "txn": 5, "compact": 5, "fence": 5}
    jsonschema.validate({**RECORDED, "clients": clients}, SCHEMA)


def test_real_run_that_passed_has_no_problems():
    assert RECORDED["result"] == "passed"
    assert summary.problems(RECORDED) == []


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("phase",), "dual_write", "the last phase is dual_write"),
        (("clients",), None, "the verification clients left no verdict"),
        (("clients", "verdict"), "fail", "the clients' verdict is fail"),
        (("clients", "acked_per_second"), 99.0, "99 messages per second"),
        (("changes", "problems"), ["brokers: acl x is missing"], "acl x is missing"),
        (("changes", "checked"), [], "never compared"),
        (("gates",), [], "no run passed the gates before_controllers"),
        (("steps",), [], "0 restarts of kind kraft, not 3"),
        (("steps", 0, "kind"), "unrecorded", "restarts that no journal contains"),
        (("steps", 0, "overtaken"), True, "still out of an ISR"),
        (("changed_on_second_run",), 1, "one more run reported 1 changes"),
    ],
)
def test_everything_wrong_is_a_problem(path, value, problem):
    changed = copy.deepcopy(RECORDED)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    assert any(problem in found for found in summary.problems(changed))


def test_failover_is_expected_if_one_was_made():
    changed = copy.deepcopy(RECORDED)
    changed["steps"].append({**changed["steps"][-1], "kind": "unrecorded"})
    assert summary.problems(changed, failovers=1) == []
    assert summary.problems(RECORDED, failovers=1) != []


def test_phases_last_until_the_next_one():
    assert summary.wall_by_phase([(0.0, "zk"), (5.0, "hybrid"), (7.5, "dual_write")], 10.0) == {
        "zk": 5.0,
        "hybrid": 2.5,
        "dual_write": 2.5,
    }
