# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: run, stop, mark, verdict, picture."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from canary_clients import config, ledger, marks, picture, screen, verdict
from canary_clients.errors import ClientsError
from canary_clients.run import Lock, Run

USAGE_ERROR = 2

EPILOG = """\
one run, start to end:
  python -m canary_clients run --config canary.yml --dir run1 --daemon     returns when messages flow everywhere
  python -m canary_clients mark --dir run1 --kind phase --name hybrid      once for each phase, restart or event
  python -m canary_clients stop --dir run1                                 drains, audits the log, prints the verdict
  python -m canary_clients picture --dir run1 --out timeline.svg

exit codes: 0 pass, 1 fail, 2 wrong usage or failed start, 3 incomplete.
canary_clients/README.md documents the config keys, the ACLs that the clients need and the keys of the verdict.
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m canary_clients",
        description="Kafka clients that run through a migration and prove that no message was lost, duplicated or "
        "reordered.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser("run", help="start the clients; runs until SIGTERM, Ctrl-C or 'stop'")
    command.add_argument("--config", type=Path, required=True, metavar="FILE", help="YAML or JSON settings")
    command.add_argument("--dir", type=Path, required=True, help="a new directory for the ledger")
    command.add_argument("--daemon", action="store_true", help="detach; return when messages flow end to end")
    command.set_defaults(call=_run)

    command = commands.add_parser("stop", help="end a run: drain, audit the log, print the verdict")
    _add_directory(command)
    _add_verdict_options(command)
    command.add_argument("--timeout", type=float, default=600, help="seconds to wait for the run to end (default 600)")
    command.set_defaults(call=_stop)

    command = commands.add_parser("mark", help="add a mark of a phase, a restart or an event, now")
    _add_directory(command)
    command.add_argument("--kind", choices=marks.KINDS, required=True)
    command.add_argument("--name", required=True)
    command.add_argument("--host", help="the host that was restarted")
    command.add_argument("--seconds", type=float, help="the mark began that long ago and ends now")
    command.set_defaults(call=_mark)

    command = commands.add_parser("verdict", help="evaluate a run's ledger (while it runs: incomplete or fail)")
    _add_directory(command)
    _add_verdict_options(command)
    command.set_defaults(call=_verdict)

    command = commands.add_parser("picture", help="draw the run: throughput, latency, phases, restarts, stalls")
    _add_directory(command)
    command.add_argument("--marks", type=Path, metavar="FILE", help="JSON lines (default: DIR/marks.jsonl)")
    command.add_argument("--out", type=Path, required=True, metavar="FILE.svg")
    command.set_defaults(call=_picture)

    arguments = parser.parse_args(argv)
    try:
        return arguments.call(arguments)
    except ClientsError as e:
        print(f"canary_clients: {e}", file=sys.stderr)
        return USAGE_ERROR


def _add_directory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dir", type=Path, required=True, help="the run's directory")


def _add_verdict_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--marks", type=Path, metavar="FILE", help="JSON lines (default: DIR/marks.jsonl)")
    command.add_argument("--json", type=Path, metavar="OUT", help="write the full result to this file too")


def _run(arguments: argparse.Namespace) -> int:
    settings = config.load(arguments.config)
    if arguments.daemon:
        return _detach(settings, arguments.dir)
    return _foreground(settings, arguments.dir)


def _foreground(settings: config.Config, directory: Path) -> int:
    run = Run(settings, directory)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: run.stop_requested.set())
    run.start()
    print(
        f"messages flow on every partition; stop with: python -m canary_clients stop --dir {directory}",
        flush=True,
    )
    run.wait()
    run.stop()
    return _report(directory, None, None, running=False)


def _detach(settings: config.Config, directory: Path) -> int:
    """Run in a new session; return when the clients are ready. Raise ClientsError with the output of a failed start."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    holder = Lock(directory / "lock").holder()
    if holder is not None:
        raise ClientsError(f"{directory}: clients already run here (pid {holder}). Stop them or give another --dir")
    output = directory / "output.txt"
    output.unlink(missing_ok=True)
    # before any client exists: librdkafka's threads do not survive a fork
    child = os.fork()
    if child == 0:
        os.setsid()
        _redirect(output)
        code = USAGE_ERROR
        try:
            code = _foreground(settings, directory)
        except ClientsError as e:
            print(f"canary_clients: {e}", file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + settings.start_timeout_s + 30
    while time.monotonic() < deadline:
        if _is_ready(directory, child):
            print(f"running as pid {child}; stop with: python -m canary_clients stop --dir {directory}")
            return 0
        ended, _status = os.waitpid(child, os.WNOHANG)
        if ended:
            raise ClientsError(f"the clients did not start:\n{output.read_text().strip()}")
        time.sleep(0.1)
    os.kill(child, signal.SIGTERM)
    raise ClientsError(
        f"neither ready nor ended after {settings.start_timeout_s + 30:g} s; see {directory}/clients.log"
    )


def _is_ready(directory: Path, child: int) -> bool:
    """Return whether this process is ready: the directory may have the file of an earlier run."""
    try:
        return json.loads((directory / "ready").read_text(encoding="utf-8"))["pid"] == child
    except (FileNotFoundError, ValueError):
        return False


def _redirect(output: Path) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _stop(arguments: argparse.Namespace) -> int:
    lock = Lock(arguments.dir / "lock")
    pid = lock.holder()
    if pid:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + arguments.timeout
        while lock.holder() is not None:
            if time.monotonic() > deadline:
                raise ClientsError(
                    f"pid {pid} did not end within {arguments.timeout:g} s; see {arguments.dir}/clients.log. "
                    "It is still stopping: run 'stop' again, or kill it and accept an incomplete verdict"
                )
            time.sleep(0.1)
    return _report(arguments.dir, arguments.marks, arguments.json, running=False)


def _mark(arguments: argparse.Namespace) -> int:
    if not arguments.dir.is_dir():
        raise ClientsError(f"{arguments.dir}: no such directory")
    marks.append(arguments.dir / "marks.jsonl", arguments.kind, arguments.name, arguments.host, arguments.seconds)
    return 0


def _verdict(arguments: argparse.Namespace) -> int:
    running = Lock(arguments.dir / "lock").holder() is not None
    return _report(arguments.dir, arguments.marks, arguments.json, running)


def _read_marks(directory: Path, given: Path | None) -> list[marks.Mark]:
    if given is not None:
        return marks.read(given)
    own = directory / "marks.jsonl"
    return marks.read(own) if own.exists() else []


def _report(directory: Path, marks_file: Path | None, out: Path | None, running: bool) -> int:
    result: dict[str, Any] = verdict.evaluate(ledger.read(directory), _read_marks(directory, marks_file), running)
    if not running:
        ledger.write_json(directory / "verdict.json", result)
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(screen.text(result), flush=True)
    return verdict.EXIT_CODES[result["verdict"]]


def _picture(arguments: argparse.Namespace) -> int:
    recording = ledger.read(arguments.dir)
    given = _read_marks(arguments.dir, arguments.marks)
    arguments.out.write_text(picture.draw(recording, given), encoding="utf-8")
    return 0
