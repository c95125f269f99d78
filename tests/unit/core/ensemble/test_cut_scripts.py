# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""heal.sh and fence.sh run in a real shell, with iptables, ip and systemctl that record. Their models, which the
simulation runs, end the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host, ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble.ensemble_cut import (
    CUT_COMMENT,
    FENCE_COMMENT,
)

from tools.cut_simulation.world import World

STATES = (
    *(cut_host.NONE, ensemble_cut.BEGUN, ensemble_cut.FENCED, ensemble_cut.CUT, ensemble_cut.HEALED),
    *ensemble_cut.ACCEPTED,
)
# keeps its rules, one a line, in a file; `broken`: how many calls fail, `deaf`: deletions do nothing
IPTABLES = """#!/bin/sh
rules={home}/$(basename $0).rules
touch $rules
[ "$1" = -w ] && shift
left=$(cat {home}/broken 2>/dev/null || echo 0)
if [ $left -gt 0 ]; then echo $((left - 1)) > {home}/broken; echo 'xtables lock' >&2; exit 4; fi
case $1 in
  -S) cat $rules ;;
  -D) shift; [ -e {home}/deaf ] || {{ grep -vxF -- "-A $*" $rules > $rules.new; mv $rules.new $rules; }} ;;
  -C) shift; grep -qxF -- "-A $*" $rules ;;
  -I) shift; {{ echo "-A $*"; cat $rules; }} > $rules.new; mv $rules.new $rules ;;
esac
"""
IP = """#!/bin/sh
rules={home}/ip$1.rules
touch $rules
action=$3; shift 3
case $action in
  show) sed 's/^pref 81/81:	from all/' $rules ;;
  add) echo "$*" >> $rules ;;
  del) grep -vxF -- "$*" $rules > $rules.new; mv $rules.new $rules ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >> {home}/asked
[ "$1" != kill ] || kill -KILL -$(cat {home}/pid)
"""
OWN = '-A INPUT -p tcp --dport 22 -m comment --comment ssh -j LOG --log-prefix "a\\n"'
FENCE = ensemble_cut.fence(["2181"])
RULES = [*FENCE, *ensemble_cut.cut(["10.0.0.1", "fd00::1"], ["2888"])]


class Shell:
    """A host with a directory of a cut. iptables and ip6tables have a rule of the operator."""

    def __init__(self, home: Path, monkeypatch) -> None:
        monkeypatch.setattr(ensemble_cut, "HEAL_TRIES", 3)
        self.home, self.tools = home, home / "bin"
        self.tools.mkdir()
        self.drop_in = Path(ensemble_cut.drop_in("zookeeper").replace("/etc/systemd/system", str(home)))
        for name in ensemble_cut.IPTABLES:
            self._tool(name, IPTABLES.format(home=home))
            (home / f"{name}.rules").write_text(f"{OWN}\n")
        self._tool("ip", IP.format(home=home))
        self._tool("systemctl", SYSTEMCTL.format(home=home))
        self._tool("sleep", "#!/bin/sh\n")

    def _tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def run(self, text: str) -> int:
        script = self.home / "script.sh"
        text = text.replace("PATH=/usr/sbin", f"PATH={self.tools}:/usr/sbin")
        script.write_text(text.replace("/etc/systemd/system", str(self.home)))
        path = f"{self.tools}:{os.environ['PATH']}"
        done = subprocess.run(["/bin/sh", script], check=False, env={"PATH": path}, capture_output=True, timeout=60)
        return done.returncode

    def prepare(self, state: str, rules: bool, drop_in: bool) -> None:
        if state != cut_host.NONE:
            (self.home / "state").write_text(f"{state}\n")
        if rules:
            assert self.run("\n".join(" ".join(ensemble_cut.insert_command(rule)) for rule in RULES)) == 0
            for family in ("-4", "-6"):
                assert self.run(" ".join(ensemble_cut.ip_rule("add", "2181", family))) == 0
        if drop_in:
            self.drop_in.parent.mkdir()
            self.drop_in.write_text("[Service]\n")

    def seen(self) -> dict:
        texts = [(self.home / f"{name}.rules").read_text().splitlines() for name in ensemble_cut.IPTABLES]
        assert all(text[-1] == OWN for text in texts), "the operator's rule is left alone"
        lines = [line for text in texts for line in text[:-1]]
        policy = [self.home / f"ip{family}.rules" for family in ("-4", "-6")]
        state = self.home / "state"
        return {
            "state": state.read_text().strip() if state.exists() else cut_host.NONE,
            "fence": any(FENCE_COMMENT in line for line in lines),
            "cut": any(CUT_COMMENT in line for line in lines),
            "blocked": any(path.exists() and "sport 2181 prohibit" in path.read_text() for path in policy),
            "drop_in": self.drop_in.exists(),
        }


@pytest.fixture
def shell(tmp_path, monkeypatch):
    return Shell(tmp_path, monkeypatch)


def modelled(steps, state, rules, drop_in, broken_s=0.0):
    """Return the exit code of a script's model, and what a simulated host has after it."""
    world = World(Random(1))
    host = world.hosts[0]
    host.state_file, host.drop_in, host.broken_until = state, drop_in, broken_s
    if rules:
        host.rules_by, host.blocked_by = {FENCE_COMMENT: 1, CUT_COMMENT: 1}, 1
    codes = []
    world.spawn(steps, host, "timer", lambda value, _error: codes.append(value))
    world.run_until(100)
    return codes[0], {
        "state": host.state_file,
        "fence": FENCE_COMMENT in host.rules_by,
        "cut": CUT_COMMENT in host.rules_by,
        "blocked": bool(host.blocked_by),
        "drop_in": host.drop_in,
    }


@pytest.mark.parametrize(
    ("rules", "broken"), [(False, ""), *((True, fault) for fault in ("", "broken", "deaf", "once"))]
)
@pytest.mark.parametrize("state", [state for state in STATES if state != cut_host.NONE])
def test_the_dead_mans_switch_ends_as_its_model(shell, state, rules, broken):
    shell.prepare(state, rules, drop_in=True)
    calls = {"broken": 1000, "once": 1}.get(broken)
    (shell.home / (broken or "none")).write_text("")
    if calls:
        (shell.home / "broken").write_text(f"{calls}\n")
    code = shell.run(ensemble_cut.heal_script(str(shell.home), "zookeeper"))
    broken_s = {"broken": 1000.0, "deaf": 1000.0, "once": 0.5}.get(broken, 0.0)
    assert (code, shell.seen()) == modelled(cut_host.heal_script_steps(), state, rules, True, broken_s)
    healed = state in (*ensemble_cut.UNDONE_BY_ITSELF, ensemble_cut.HEALED) and broken in ("", "once")
    assert (shell.seen()["state"] == ensemble_cut.HEALED) == (healed or state == ensemble_cut.HEALED)
    assert shell.drop_in.exists() != healed


@pytest.mark.parametrize("broken", ["", "broken"])
@pytest.mark.parametrize("rules", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_a_start_of_the_server_fences_as_its_model(shell, state, rules, broken):
    shell.prepare(state, rules, drop_in=True)
    if broken:
        (shell.home / "broken").write_text("1000\n")
    script = ensemble_cut.fence_script(str(shell.home), FENCE, ["2181"])
    code = shell.run(script)
    model = modelled(cut_host.fence_script_steps(), state, rules, True, 1000.0 if broken else 0.0)
    if not (broken and state == ensemble_cut.PROMOTING):
        assert (code, shell.seen()) == model
        assert shell.run(script) == code  # once more adds nothing
        assert shell.seen()["fence"] == (rules or state == ensemble_cut.PROMOTING)
    elif not rules:
        assert code == 1 == model[0]  # the server does not start


def test_fences_are_put_in_once(shell):
    shell.prepare(ensemble_cut.PROMOTING, False, True)
    script = ensemble_cut.fence_script(str(shell.home), FENCE, ["2181", "2182"])
    assert [shell.run(script) for _start in range(2)] == [0, 0]
    assert [len((shell.home / f"{name}.rules").read_text().splitlines()) for name in ensemble_cut.IPTABLES] == [3, 3]
    assert [len((shell.home / f"ip{family}.rules").read_text().splitlines()) for family in ("-4", "-6")] == [2, 2]


def test_the_dead_mans_switch_ends_a_worker_that_hangs_with_the_lock(shell):
    shell.prepare(ensemble_cut.FENCED, True, True)
    with subprocess.Popen(["flock", shell.home / "lock", "sleep", "60"], start_new_session=True) as worker:
        (shell.home / "pid").write_text(f"{worker.pid}")
        while subprocess.run(["flock", "-n", shell.home / "lock", "true"], check=False).returncode == 0:
            pass
        assert shell.run(ensemble_cut.heal_script(str(shell.home), "zookeeper")) == 0
    asked = (shell.home / "asked").read_text().splitlines()
    assert asked == ["kill --signal=KILL quorumshift-zk-cut.service", "daemon-reload"]
    assert shell.seen() == {"state": "healed", "fence": False, "cut": False, "blocked": False, "drop_in": False}
