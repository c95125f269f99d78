# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move the testbed `ensembles` to its own ZooKeeper ensemble, with drills before the cut, while clients and
another application run:
`TESTBED_VARIANT=ensembles python -m tests.system.zk_move [--only REGEX] [--no-drills] [--dead-host] [--znodes N]`.

The testbed must be up and fresh. Logs and the result are in build/zk_to_zk.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

from tests.system.testbed.layout import ROOT
from tests.system.zk_move import drills
from tests.system.zk_move.bed import DESTINATION, Bed

OUTPUT = ROOT / "build" / "zk_to_zk"
ACCEPT = re.compile(r"quorumshift_accept_degraded=(\w+)")
CUT_STEPS = ("fenced", "cut", "not serving", "read", "promotion accepted", "stopped", "started", "serving", "opened")


def main() -> int:
    """Run it, print a row for each drill, and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run the drills whose names match")
    parser.add_argument("--no-drills", action="store_true")
    parser.add_argument("--dead-host", action="store_true", help="a destination host does not survive the last cut")
    parser.add_argument("--joined", action="store_true", help="the brokers are on the observers already")
    parser.add_argument("--znodes", type=int, default=0, help="load the source with this many znodes before")
    given = parser.parse_args()
    bed, rows, problems = Bed(OUTPUT), [], []
    bed.load(given.znodes)
    with tenant(bed) as of_tenant, clients(bed) as of_clients:
        if not given.joined:
            moved(bed, "roll", "zk_migrate_cut=false")
        for name, drill in drills.DRILLS.items():
            if given.no_drills or not re.search(given.only, name):
                continue
            rows.append(run_drill(bed, name, drill))
        before = bed.sessions(bed.destination)
        if given.dead_host:
            rows.append(
                run_drill(bed, "a destination host loses power in the last cut", drills.moved_without_a_dead_host)
            )
        else:
            moved(bed, "cut")
        figures = cut_figures(bed, before)
        print(json.dumps(figures, indent=1), flush=True)
        refused = bed.playbook("zk_rollback", "rollback-after")
        if refused.wait() == 0 or "There is no rollback without loss" not in bed.log("rollback-after"):
            problems.append("a rollback after the promotion was not refused")
        moved(bed, "again")
        problems += mark_problems(bed)
    verdict, noticed = of_clients["verdict"], of_tenant["result"]
    problems += [f"{row['drill']}: {row['what']}" for row in rows if row["result"] != "passed"]
    if verdict["verdict"] != "pass":
        problems.append(f"the clients' verdict is {verdict['verdict']}: {'; '.join(verdict['reasons'])}")
    disturbed = [
        problem for problem in noticed["problems"] if not any(a <= problem["at"] <= b for a, b in bed.disturbed)
    ]
    problems += [f"the other application noticed: {problem['what']}" for problem in disturbed]
    summary = {"drills": rows, "figures": figures, "clients": verdict, "tenant": noticed, "problems": problems}
    (OUTPUT / "summary.json").write_text(json.dumps(summary, indent=1, default=str), encoding="utf-8")
    print(f"clients: {verdict['acked']} acknowledged, {verdict['lost']} lost, longest stall {verdict.get('by_phase')}")
    print(f"other application: {noticed['writes']} writes, longest answer {noticed['longest_s']} s")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def mark_problems(bed: Bed) -> list[str]:
    """Mark Kafka's old data on the source after the move; return what is wrong then. Clients go on meanwhile."""
    own = bed.cluster_id(bed.destination)
    moved(bed, "mark", "zk_migrate_source_data=marked")
    found = []
    if not bed.cluster_id(bed.source).startswith("MOVED_TO_"):
        found.append(f"/cluster/id on the marked source is {bed.cluster_id(bed.source)}")
    if bed.cluster_id(bed.destination) != own:
        found.append(f"/cluster/id on the destination is {bed.cluster_id(bed.destination)}, and was {own}")
    if bed.playbook("status", "status-left").wait() == 0 or "the mark of a move" not in bed.log("status-left"):
        found.append("status does not say that quorumshift_zookeeper_connect names the ensemble that Kafka has left")
    uses = f"quorumshift_zookeeper_connect={bed.destination}"
    if bed.playbook("status", "status-done", uses).wait() or "ZooKeeper ensemble: done" not in bed.log("status-done"):
        found.append("status does not say that the move is done")
    return found


def run_drill(bed: Bed, name: str, drill: drills.Drill) -> dict:
    """Run a drill; print and return its row."""
    began = time.monotonic()
    try:
        what, result = drill(bed), "passed"
    except Exception as error:
        what, result = f"{type(error).__name__}: {error}", "FAILED"
    seconds = time.monotonic() - began
    print(f"{name:62} {result:7} {seconds:6.1f} s  {what}", flush=True)
    return {"drill": name, "result": result, "s": round(seconds, 1), "what": what}


def moved(bed: Bed, log: str, *options: str) -> None:
    """Run zk_migrate.yml; where it asks for a token of partitions without a spare replica, once more with it."""
    if bed.playbook("zk_migrate", log, *options).wait() == 0:
        return
    token = ACCEPT.search(bed.log(log))
    if not bed.accept and token:
        bed.accept = token[1]
        if bed.playbook("zk_migrate", log, *options).wait() == 0:
            return
    raise SystemExit(f"zk_migrate.yml failed, see {bed.directory / log}.log:\n{bed.log(log)[-3000:]}")


def cut_figures(bed: Bed, before: dict[str, int]) -> dict:
    """Return how long the cut took on each host, from its workers' records, and how many sessions it kept."""
    hosts = {}
    for host in DESTINATION:
        record = bed.record(host)
        at = {step["name"]: step["at"] for step in record.get("steps", ())}
        if "fenced" not in at:  # joined after the cut
            continue
        hosts[host] = {name: round(at[name] - at["fenced"], 2) for name in CUT_STEPS if name in at}
    after = bed.sessions(bed.destination)
    kept = sum(after.get(path) == session for path, session in before.items())
    return {"seconds_since_fence": hosts, "ephemerals": len(before), "kept": kept, "modes": bed.modes()}


@contextlib.contextmanager
def tenant(bed: Bed) -> Iterator[dict]:
    """Run another application on the source; its result is in the yielded dict after the block."""
    path, held = bed.directory / "tenant.json", {}
    argv = [sys.executable, "-m", "tests.system.zk_move.tenant", bed.source, str(path)]
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield held
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        held["result"] = json.loads(path.read_text(encoding="utf-8"))


@contextlib.contextmanager
def clients(bed: Bed) -> Iterator[dict]:
    """Run the verification clients; their verdict is in the yielded dict after the block."""
    directory, held = bed.directory / "clients", {}
    shutil.rmtree(directory, ignore_errors=True)  # a ledger is of one run
    directory.mkdir()
    config, result = directory / "config.json", directory / "result.json"
    config.write_text(json.dumps(bed.inventory.clients_config()), encoding="utf-8")
    run = [sys.executable, "-m", "canary_clients"]
    begin = [*run, "run", "--dir", str(directory / "run"), "--config", str(config), "--daemon"]
    subprocess.run(begin, cwd=ROOT, check=True, timeout=300)
    try:
        yield held
    finally:
        stop = [*run, "stop", "--dir", str(directory / "run"), "--json", str(result)]
        subprocess.run(stop, cwd=ROOT, check=False, timeout=600)
        held["verdict"] = json.loads(Path(result).read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
