# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of a cut in the kernel: two network namespaces, a server in one, and a filter table that is loaded anew."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables", "ip6tables"))), reason="needs root and iptables"
)
HOST, CLIENT = "quorumshift-a", "quorumshift-b"
ADDRESS, CLIENTS = {"-4": "192.0.2.1", "-6": "2001:db8::1"}, {"-4": "192.0.2.2", "-6": "2001:db8::2"}
PROBE = "127.81.83.1"
SERVER = """
import socket, threading
def serve(sock):
    while True:
        connection = sock.accept()[0]
        threading.Thread(target=echo, args=(connection,), daemon=True).start()
def echo(connection):
    while data := connection.recv(10):
        connection.sendall(data)
for port in (2181, 2888):
    sock = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve, args=(sock,)).start()
print("ready", flush=True)
"""
ASK = """
import socket, sys
own = (sys.argv[3], 0) if sys.argv[3] else None
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 4, own) as sock:
        sock.sendall(b"x")
        print(sock.recv(1) == b"x")
except OSError as error:
    print(type(error).__name__)
"""
CALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import rules
fence = ensemble_cut.fence(["2181"])
cut = ensemble_cut.cut(["198.51.100.9"], ["2888"])
print(json.dumps(eval(sys.argv[2])))
"""


def inside(namespace, *command):
    done = subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def call(expression):
    return json.loads(inside(HOST, sys.executable, "-c", CALL, str(ROOT / ".build"), expression) or "null")


def ask(namespace, address, port=2181, source=""):
    return inside(namespace, sys.executable, "-c", ASK, address, str(port), source)


def reached():
    """Return what a client in each family, one on the host itself, and the host's own question get."""
    clients = [ask(CLIENT, ADDRESS["-4"]), ask(CLIENT, ADDRESS["-6"]), ask(HOST, ADDRESS["-4"])]
    return [*clients, ask(HOST, "127.0.0.1", 2181, PROBE)]


@pytest.fixture
def server():
    with contextlib.ExitStack() as stack:
        for namespace in (HOST, CLIENT):
            subprocess.run(["ip", "netns", "add", namespace], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "del", namespace], check=False)
        link = ["ip", "link", "add", "qs-a", "netns", HOST, "type", "veth", "peer", "name", "qs-b", "netns", CLIENT]
        subprocess.run(link, check=True)
        for namespace, device, addresses in ((HOST, "qs-a", ADDRESS), (CLIENT, "qs-b", CLIENTS)):
            inside(namespace, "ip", "address", "add", f"{addresses['-4']}/24", "dev", device)
            inside(namespace, "ip", "address", "add", f"{addresses['-6']}/64", "dev", device, "nodad")
            for name in ("lo", device):
                inside(namespace, "ip", "link", "set", name, "up")
        command = ["ip", "netns", "exec", HOST, sys.executable, "-c", SERVER]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            stack.callback(process.kill)
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield
            process.kill()


def test_the_second_fence_holds_where_the_filter_table_is_loaded_anew(server):
    assert reached() == ["True"] * 4
    call("rules.insert([*fence, *cut]), rules.block(['2181'])")
    # by ICMP, the second time at the latest: the second fence keeps a reset on the host
    assert reached() == ["ConnectionRefusedError"] * 3 + ["True"]
    assert call("[len(rules.find_missing(fence)), len(rules.find_missing(cut)), rules.is_blocked(['2181'])]") == [
        0,
        0,
        True,
    ]
    assert ask(CLIENT, ADDRESS["-4"], 2888) == "True", "other ports are not fenced"

    for command in ("iptables", "ip6tables"):  # what iptables-restore, Puppet or firewalld do
        inside(HOST, command, "-F")
    assert call("[len(rules.find_missing(fence)), len(rules.find_missing(cut)), rules.is_blocked(['2181'])]") == [
        4,
        1,
        True,
    ]
    assert reached() == ["TimeoutError", "TimeoutError", "True", "True"]

    call("rules.insert(fence)")
    assert reached()[2] != "True"
    assert call("rules.count_rules('quorumshift-fence')") == 6
    call("rules.remove('quorumshift-cut', 'quorumshift-fence')")
    assert call("rules.count_rules('quorumshift-cut', 'quorumshift-fence')") == 0
    assert reached() == ["True"] * 4


def test_the_trial_leaves_nothing(server):
    before = [inside(HOST, "iptables", "-S"), inside(HOST, "ip", "rule")]
    assert call("rules.explain_no_rules([*fence, *cut])") == ""
    assert [inside(HOST, "iptables", "-S"), inside(HOST, "ip", "rule")] == before
