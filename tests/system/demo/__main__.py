# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: python -m tests.system.demo [--failover]. Its commands observe molecule's own runs of the playbook.

Without a command: reset the testbed, start verification clients and metadata changes, run `playbooks/migrate.yml` to
its stop in dual-write, soak, finalize with the printed token, and run it once more, which must change nothing.
build/demo/ then holds the clients' verdict and picture and summary.json (docs/summaries.md).
  begin    start verification clients, recorder and metadata changes
  compare  pause the changes; compare the brokers and ZooKeeper with what was written
  end      stop everything, evaluate it, write the summary
  stop     stop everything that runs, without an evaluation
Exit code 0: passed; 1: failed, 130: interrupted; the testbed is left as it is.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from tests.system.demo.demo import DIRECTORY, Demo, DemoError
from tests.system.demo.observers import ObserverError, Observers
from tests.system.demo.verdict import Outcome, finish
from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import ROOT

STAYS = "the testbed is left as it is: inspect it with `make testbed-ssh HOST=b1`"


def report(summary: dict, directory: Path) -> None:
    """Print the result and where its files are."""
    print(f"\n{directory.name}: {summary['result']}; see summary.json and clients.svg in {directory.relative_to(ROOT)}")
    for problem in summary["problems"]:
        print(f"  ! {problem}")
    wall = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in summary["wall_s"]["runs"].items())
    ratio = summary["overhead_ratio"]
    print(f"  runs: {wall}; the steps alone need {summary['floor_s']:.0f} s" + (f", x{ratio}" if ratio else ""))
    if summary["tool_s_per_broker_step"] is not None:
        print(
            f"  the tool's overhead per broker step: {summary['tool_s_per_broker_step']:.1f} s on average, "
            f"{summary['tool_s_max']:.1f} s at most"
        )
    print(f"  artifacts of the runs: {TestbedInventory().artifacts_dir}", flush=True)


def run_demo(failover: bool) -> int:
    # a shell in the background may have set Ctrl-C to be ignored
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


def run_command(arguments: argparse.Namespace) -> int:
    observers = Observers(arguments.directory.resolve())
    try:
        if arguments.command == "begin":
            observers.begin()
        elif arguments.command == "compare":
            differences = observers.compare("brokers", "ZooKeeper", resume=True)
            print("\n".join(differences), flush=True)
            return 1 if differences else 0
        elif arguments.command == "stop":
            observers.stop_all()
        else:
            summary = finish(observers, Outcome(arguments.phase, arguments.soak, arguments.stable))
            report(summary, observers.directory)
            if summary["problems"]:
                TestbedInventory().keep_logs(observers.directory / "hosts")  # molecule may destroy the hosts next
            return 0 if summary["result"] == "passed" else 1
    except ObserverError as error:
        print(f"{arguments.command}: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--failover", action="store_true", help="kill the active controller once in dual-write")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in ("begin", "compare", "end", "stop"):
        command = commands.add_parser(name)
        command.add_argument("--directory", type=Path, required=True, help="the directory of all records")
        if name == "end":
            command.add_argument("--phase", required=True, help="the cluster's last phase")
            command.add_argument("--soak", type=float, required=True, help="seconds")
            command.add_argument("--stable", type=float, required=True, help="seconds")
    given = parser.parse_args(arguments)
    return run_command(given) if given.command else run_demo(given.failover)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
