# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The login of the control node ends right after a broker was stopped, on hosts where logind then kills whatever the
login left running: the restart ends by itself, and the next run goes on. Only on the testbed's variant `sudo`."""

from __future__ import annotations

import json
import subprocess

from tests.system.testbed.waiting import wait_for

RECORD = "cat /var/lib/quorumshift/*/*/restart.json 2>/dev/null || echo '{}'"


def test_logind_kills_what_a_login_leaves_running(fresh):
    host = fresh.brokers[0]
    user = f"{fresh.variables['ansible_user']}@{fresh.addresses[host]}"
    key = fresh.variables["ansible_ssh_private_key_file"]
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ControlPath=none"]
    given = ["-i", key, *(part for option in options for part in ("-o", option)), user]
    left = "sudo setsid sleep 3600 >/dev/null 2>&1 </dev/null & sleep 1; pgrep -f 'sleep 3600'"
    pids = subprocess.run(
        ["ssh", *given, left], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    assert pids
    wait_for(lambda: not fresh.run(host, "pgrep -x sleep", check=False), 60, "logind to end the login's processes")


def test_a_restart_goes_on_when_its_login_ends(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_SSH_CONTROL_PATH_DIR", str(tmp_path))
    stopped = []

    def end_logins(line):
        host = next((host for host in fresh.brokers if line.strip() == f"{host} stops"), None)
        if host and not stopped:
            stopped.append(host)
            for path in tmp_path.iterdir():  # every connection that Ansible shares
                subprocess.run(["ssh", "-S", str(path), "-O", "exit", "host"], capture_output=True, check=False)
            fresh.run(host, f"loginctl terminate-user {fresh.variables['ansible_user']}", check=False)
        return False

    ran = fresh.play(kill_when=end_logins)
    assert stopped, ran.text

    def record():
        return json.loads(fresh.run(stopped[0], RECORD))

    wait_for(lambda: record().get("outcome"), 180, "the end of the restart")
    assert record()["outcome"] == "done" and record()["unit"].startswith("quorumshift-")
    fresh.wait_in_sync()
    ran = fresh.play()
    assert ran.code == 0, ran.text
    assert ": dual_write" in ran.text
