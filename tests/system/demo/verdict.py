# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of an observed migration: stop the observers, write verdict, picture and summary."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import jsonschema
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import report

from tests.system.demo import ledger, marks, steps, summary
from tests.system.demo.changes import KINDS
from tests.system.demo.observers import Observers
from tests.system.demo.runs import RecordedRun, runs_since
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import ROOT

CLIENTS_TIMEOUT_S = 600


@dataclass
class Outcome:
    """What only the caller of the runs knows: the last phase, the settings, seconds by run."""

    phase: str
    soak_s: float
    stable_s: float
    wall_s: dict[str, float] = field(default_factory=dict)
    changed_on_second_run: int | None = None
    failovers: int = 0


def finish(observers: Observers, outcome: Outcome) -> dict[str, Any]:
    """Stop the observers; write marks, verdict, picture and summary.json; return the summary.

    Copy picture and verdict to the artifacts of each run that restarted a node. Raise jsonschema.ValidationError,
    ObserverError.
    """
    directory = observers.directory
    observers.compare("brokers", resume=False)
    end = time.time()
    observers.end_recorder()
    runs = runs_since(TestbedInventory().artifacts_dir, observers.begun)
    journal = [event for run in runs for event in run.journal]
    events = observers.recorded()
    restarts = steps.find(events, journal)
    phases = steps.phases(events, restarts, observers.begun)
    marks.write(directory / "marks.jsonl", marks.make(phases, restarts, journal))
    verdict = clients_verdict(observers)
    _copy_to_artifacts(observers, runs)
    made = summary.make(
        events,
        restarts,
        journal,
        verdict,
        ledger.summary(ledger.read(observers.changes), KINDS, phases, observers.checks),
        {**vars(outcome), "begun": observers.begun, "end": end},
    )
    problems = summary.problems(made, outcome.failovers)
    made = {"schema": made.pop("schema"), "result": "failed" if problems else "passed", "problems": problems, **made}
    jsonschema.validate(made, json.loads(summary.SCHEMA.read_text(encoding="utf-8")))
    (directory / "summary.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return made


def collect(observers: Observers) -> tuple[list[dict], list[dict], dict[str, Any]]:
    """Stop recorder and clients; write marks, verdict and picture. Raise ObserverError.

    Return the recorder's events, the events of the runs' journals and the clients' verdict, {} if there is none.
    """
    observers.end_recorder()
    runs = runs_since(TestbedInventory().artifacts_dir, observers.begun)
    events, journal = observers.recorded(), [event for run in runs for event in run.journal]
    noted = sorted((event["t"], event["name"]) for event in journal if event["kind"] == "phase")
    phases = [phase for phase, before in zip(noted, [(0, ""), *noted]) if phase[1] != before[1]]
    marks.write(observers.directory / "marks.jsonl", marks.make(phases, steps.find(events, journal), journal))
    return events, journal, clients_verdict(observers) or {}


def clients_verdict(observers: Observers) -> dict[str, Any] | None:
    """Stop the clients; write verdict and picture, with the marks in marks.jsonl; return the verdict, None if none."""
    directory = observers.directory
    given = ["--dir", str(observers.clients), "--marks", str(directory / "marks.jsonl")]
    out = directory / "clients.json"
    subprocess.run(
        [sys.executable, "-m", "canary_clients", "stop", *given, "--json", str(out)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=CLIENTS_TIMEOUT_S,
    )
    if not out.exists():
        return None
    subprocess.run(
        [sys.executable, "-m", "canary_clients", "picture", *given, "--out", str(directory / "clients.svg")],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=CLIENTS_TIMEOUT_S,
    )
    return json.loads(out.read_text(encoding="utf-8"))


def _copy_to_artifacts(observers: Observers, runs: list[RecordedRun]) -> None:
    """Copy the clients' verdict and picture to each run that restarted a node, and write the reports."""
    restarting = [run for run in runs if any(event["kind"] == "restart" for event in run.journal)]
    for run in restarting:
        for name in ("clients.svg", "clients.json"):
            if (observers.directory / name).exists():
                shutil.copy(observers.directory / name, run.directory / name)
    for cluster in {run.directory.parent for run in restarting}:
        report.write_all(str(cluster))
