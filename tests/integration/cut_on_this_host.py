# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real steps and the real worker of a cut in a network namespace of their own, with the kernel's rules.

Scripts take the place of systemd and the server. `cut_on_this_host.py HOME CASE` prints what it sees as JSON, one line
a step; test_cut_worker.py runs it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import effects, rules, state, steps

HOME, CASE = Path(sys.argv[1]), sys.argv[2]
DEADLINE_S = 4.0 if CASE == "deadline" else 60.0
ZOO = f"""dataDir={HOME}/data
clientPort=2181
peerType=observer
server.1=127.0.0.1:2888:3888:participant
server.11=127.0.0.1:2889:3889:observer
"""
SCRIPTS = {
    # the one unit that is asked for is the worker's
    "systemctl": """case "$1 $2" in
 "show quorumshift-zk-cut.service") if kill -0 $(cat HOME/worker) 2>/dev/null
   then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
 "stop quorumshift-zk-cut.service") kill -9 $(cat HOME/worker 2>/dev/null) 2>/dev/null ;;
 "kill --signal=KILL") kill -9 $(cat HOME/worker) ;;
esac
exit 0""",
    "systemd-run": """while :; do
  case "$1" in --on-active=*) after=${1#--on-active=}; shift ;; --*) shift ;; *) break ;; esac
done
(setsid sh -c "sleep ${after%s}; $*" >/dev/null 2>&1 </dev/null &)""",
    "service": """case $2 in start) touch HOME/runs ;; stop) rm -f HOME/runs ;; status) [ -e HOME/runs ] ;; esac""",
}


def start_worker(self, spec):
    """Begin the worker in a process of its own, with this process's PATH."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    (HOME / "worker").write_text(str(os.getpid()))
    spec = json.loads(json.dumps(spec))
    cut_host.run(cut_host.Worker(spec).steps(), effects.Effects(spec, self.directory))
    os._exit(0)


def prepare():
    """Make the scripts, and a server that runs as an observer."""
    (HOME / "bin").mkdir()
    for name, text in SCRIPTS.items():
        path = HOME / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n".replace("HOME", str(HOME)))
        path.chmod(0o755)
    os.environ["PATH"] = f"{HOME}/bin:{os.environ['PATH']}"
    (HOME / "data" / "version-2").mkdir(parents=True)
    (HOME / "zoo.cfg").write_text(ZOO)
    (HOME / "runs").touch()
    effects.Effects.start_worker = start_worker
    ensemble_cut.drop_in = lambda _service: str(HOME / "units" / "fence.conf")


def given():
    return {
        **{
            "state_dir": str(HOME / "state"),
            "host": "z1",
            "config_file": str(HOME / "zoo.cfg"),
            "service": "zk",
            "myid": 11,
        },
        **{"destination_servers": {"11": "127.0.0.1:2889:3889"}, "destination_connect": "127.0.0.1:2181/kafka"},
        **{"source_addresses": [], "deadline_s": DEADLINE_S, "id": "cut", "one_promoted": False, "reason": "the test"},
        "brokers": ["127.0.0.1:9092"] if CASE == "broker" else [],
    }


def main():
    prepare()
    directory = state.path_of(given())

    def seen(step, *wanted):
        print(
            json.dumps(
                {
                    "step": step,
                    "state": state.wait_state(directory, wanted, 20) if wanted else state.read_state(directory),
                    "rules": rules.count_rules(*cut_host.ALL_RULES),
                    "runs": (HOME / "runs").exists(),
                    "drop_in": (HOME / "units" / "fence.conf").exists(),
                    "reason": state.read_record(directory).get("reason"),
                }
            ),
            flush=True,
        )

    def order(name, **more):
        effects.Effects(given(), directory).write_order({"id": "cut", "name": name, **more})

    def flush(*more):
        for command in (("iptables", "-F"), ("ip6tables", "-F"), *more):
            subprocess.run(command, check=True)

    steps.carry_out(given(), cut_host.begin)
    seen("begin", "fenced")
    order("cut")
    seen("cut", "cut")
    if CASE == "deadline":
        seen("deadline", "healed")
        return
    if CASE == "flushed before":
        flush()
    order("promote", zxids={"z1": 1 if CASE == "other files" else 0}, first=["z1"])
    seen("promote", "promoting", "healed")
    if CASE in ("flushed before", "other files"):
        return
    deadline = time.monotonic() + 20
    while '"name": "started"' not in json.dumps(state.read_record(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if CASE == "both":  # at once, for the worker
        worker = int((HOME / "worker").read_text())
        os.kill(worker, signal.SIGSTOP)
        flush(*(("ip", family, "rule", "del", "pref", ensemble_cut.BLOCK_PREF) for family in ("-4", "-6")))
        os.kill(worker, signal.SIGCONT)
    else:
        flush()
    if CASE == "flushed after":
        while rules.count_rules(ensemble_cut.FENCE_COMMENT) < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
    seen("flushed", *(("suspended",) if CASE in ("both", "broker") else ()))
    steps.carry_out(given(), cut_host.suspend)
    seen("suspend")
    print(
        json.dumps({"step": "start", "code": subprocess.run(["sh", f"{directory}/fence.sh"], check=False).returncode})
    )
    moved = steps.carry_out(given(), cut_host.take_back)
    assert Path(moved).is_dir()
    seen("take back")


if __name__ == "__main__":
    main()
