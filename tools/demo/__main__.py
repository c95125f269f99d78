# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: python -m tools.demo [--failover]; and for molecule, what is around its own runs of the playbook.

Without a command: the bed goes back to its seed, witness and metadata changes start, `playbooks/migrate.yml` runs to
its stop in dual-write, soaks, gets the word that it printed, finalizes, and runs once more to show that it changes
nothing. build/demo/ then holds the witness's verdict and picture and summary.json (docs/summaries.md).
  begin    start witness, recorder and metadata changes
  compare  pause the changes; do brokers and ZooKeeper hold what was written?
  end      stop them, judge, write the summary
  stop     stop them without a judgement, if they run
Exit code 0: all is as it must be; 1: it is not, the bed is left to be looked at; 130: interrupted, likewise.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from tools.demo.demo import DIRECTORY, Demo, DemoError
from tools.demo.observers import ObserverError, Observers
from tools.demo.testbed import ROOT, TestbedInventory
from tools.demo.verdict import Told, detect

STAYS = "the bed stays as it is: look with `make testbed-ssh HOST=b1`"


def report(summary: dict, directory: Path) -> None:
    """A few lines: what came out, where it stands."""
    print(f"\n{directory.name}: {summary['result']}; {directory.relative_to(ROOT)}/summary.json, witness.svg beside it")
    for problem in summary["problems"]:
        print(f"  ! {problem}")
    wall = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in summary["wall_s"]["runs"].items())
    ratio = summary["overhead_ratio"]
    print(f"  runs: {wall}; the steps need {summary['floor_s']:.0f} s by themselves" + (f", x{ratio}" if ratio else ""))
    if summary["tool_s_per_broker_step"] is not None:
        print(
            f"  the tool's own cost of a broker step: {summary['tool_s_per_broker_step']:.1f} s on average, "
            f"{summary['tool_s_max']:.1f} s at most"
        )
    evidence = TestbedInventory().evidence
    print(f"  evidence of the runs: {evidence}", flush=True)


def whole(failover: bool) -> int:
    # also where a shell in the background had Ctrl-C ignored
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    demo = Demo(failover)
    try:
        summary = demo.run()
    except KeyboardInterrupt:
        print(f"\nmake demo: interrupted; {STAYS}", file=sys.stderr)
        demo.observers.stop_all()
        return 130
    except (DemoError, ObserverError, subprocess.CalledProcessError) as error:
        print(f"\nmake demo: failed: {error}; {STAYS}", file=sys.stderr)
        demo.observers.stop_all()
        return 1
    report(summary, DIRECTORY)
    return 0 if summary["result"] == "passed" else 1


def around(arguments: argparse.Namespace) -> int:
    observers = Observers(arguments.directory.resolve())
    try:
        if arguments.command == "begin":
            observers.begin()
        elif arguments.command == "compare":
            differences = observers.compare("brokers", "ZooKeeper", go_on=True)
            print("\n".join(differences), flush=True)
            return 1 if differences else 0
        elif arguments.command == "stop":
            observers.stop_all()
        else:
            summary = detect(observers, Told(arguments.phase, arguments.soak, arguments.stable))
            report(summary, observers.directory)
            if summary["problems"]:
                TestbedInventory().keep_logs(observers.directory / "hosts")  # what comes next may remove the hosts
            return 0 if summary["result"] == "passed" else 1
    except ObserverError as error:
        print(f"{arguments.command}: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--failover", action="store_true", help="kill the active controller once in dual-write")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in ("begin", "compare", "end", "stop"):
        command = commands.add_parser(name)
        command.add_argument("--directory", type=Path, required=True, help="where all that is recorded stands")
        if name == "end":
            command.add_argument("--phase", required=True, help="the phase that the cluster reached")
            command.add_argument("--soak", type=float, required=True, help="seconds")
            command.add_argument("--stable", type=float, required=True, help="seconds")
    given = parser.parse_args(arguments)
    return around(given) if given.command else whole(given.failover)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
