# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a watched migration: observers ended, verdict and picture made, summary written and checked."""

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

from tools.demo import ledger, marks, steps, summary
from tools.demo.changes import KINDS
from tools.demo.observers import Observers
from tools.demo.runs import Evidence, evidence_since
from tools.demo.testbed import ROOT, TestbedInventory

CLIENTS_TIMEOUT_S = 600


@dataclass
class Told:
    """What the driver of the runs knows: the phase at the end, the settings, seconds by run."""

    phase: str
    soak_s: float
    stable_s: float
    wall_s: dict[str, float] = field(default_factory=dict)
    changed_on_second_run: int | None = None
    failovers: int = 0


def detect(observers: Observers, reported: Told) -> dict[str, Any]:
    """End the observers; write marks, verdict, picture and summary.json; return the summary.

    Picture and verdict are put into the evidence of each run that restarted something, too. Raises
    jsonschema.ValidationError, ObserverError.
    """
    directory = observers.directory
    observers.compare("brokers", go_on=False)
    end = time.time()
    observers.end_recorder()
    runs = evidence_since(TestbedInventory().evidence, observers.begun)
    journal = [event for run in runs for event in run.journal]
    events = observers.recorded()
    found = steps.find(events, journal)
    seen = steps.phases(events, found, observers.begun)
    marks.write(directory / "marks.jsonl", marks.make(seen, found, journal))
    verdict = witness_verdict(observers)
    _into_evidence(observers, runs)
    made = summary.make(
        events,
        found,
        journal,
        verdict,
        ledger.summary(ledger.read(observers.changes), KINDS, seen, observers.checks),
        {**vars(reported), "begun": observers.begun, "end": end},
    )
    wrong = summary.problems(made, reported.failovers)
    made = {"schema": made.pop("schema"), "result": "failed" if wrong else "passed", "problems": wrong, **made}
    jsonschema.validate(made, json.loads(summary.SCHEMA.read_text(encoding="utf-8")))
    (directory / "summary.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return made


def story(observers: Observers) -> tuple[list[dict], list[dict], dict[str, Any]]:
    """End recorder and witness, with phases and restarts as marks of its picture; (the recorder's events, those of the
    runs' journals, the witness's verdict, {} where there is none). Raises ObserverError."""
    observers.end_recorder()
    runs = evidence_since(TestbedInventory().evidence, observers.begun)
    events, journal = observers.recorded(), [event for run in runs for event in run.journal]
    reported = sorted((event["t"], event["name"]) for event in journal if event["kind"] == "phase")
    seen = [one for one, before in zip(reported, [(0, ""), *reported]) if one[1] != before[1]]
    marks.write(observers.directory / "marks.jsonl", marks.make(seen, steps.find(events, journal), journal))
    return events, journal, witness_verdict(observers) or {}


def witness_verdict(observers: Observers) -> dict[str, Any] | None:
    """Stop the witness; write its verdict and picture, with the marks in marks.jsonl; return the verdict."""
    directory = observers.directory
    given = ["--dir", str(observers.canary_clients), "--marks", str(directory / "marks.jsonl")]
    out = directory / "witness.json"
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
        [sys.executable, "-m", "canary_clients", "picture", *given, "--out", str(directory / "witness.svg")],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=CLIENTS_TIMEOUT_S,
    )
    return json.loads(out.read_text(encoding="utf-8"))


def _into_evidence(observers: Observers, runs: list[Evidence]) -> None:
    """Put the witness's verdict and picture where the report shows them."""
    acted = [run for run in runs if any(event["kind"] == "restart" for event in run.journal)]
    for run in acted:
        for name in ("witness.svg", "witness.json"):
            if (observers.directory / name).exists():
                shutil.copy(observers.directory / name, run.directory / name)
    for cluster in {run.directory.parent for run in acted}:
        report.write_all(str(cluster))
