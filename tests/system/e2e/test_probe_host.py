# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration with a cluster host as probe host: the control node needs only SSH to the hosts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.system.testbed import faults
from tests.system.testbed.layout import ROOT, STATE

PROBE = "c3"
PACKAGES = "/usr/local/lib/python3.11/dist-packages"
CA = "/root/ca.pem"


@pytest.fixture(scope="module")
def options(fresh, tmp_path_factory):
    """Install two packages and the CA certificate on the probe host; the options of its runs."""
    directory = tmp_path_factory.mktemp("packages")
    names = (ROOT / "requirements.in").read_text().split()
    platform = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")
    packages = [name for name in names if name.partition("==")[0] in ("kazoo", "confluent-kafka")]
    target = ("--target", str(directory / "p"))
    pip = (sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", *platform, *target)
    subprocess.run([*pip, *packages], check=True, timeout=300)
    subprocess.run(["tar", "-C", str(directory / "p"), "-czf", str(directory / "p.tar.gz"), "."], check=True)
    fresh.send(PROBE, [directory / "p.tar.gz"], "/root")
    fresh.run(PROBE, f"mkdir -p {PACKAGES} && tar -C {PACKAGES} -xzf /root/p.tar.gz")
    fresh.run(PROBE, f"cat > {CA} <<'END'\n{(STATE / 'ca.pem').read_text()}END")
    client = {**fresh.variables["quorumshift_client"], "ssl_cafile": CA}
    variables = directory / "variables.json"
    variables.write_text(json.dumps({"quorumshift_probe_host": PROBE, "quorumshift_client": client}))
    return "-e", f"@{variables}"


def test_a_run_reaches_dual_write_through_ssh_alone(fresh, options):
    with faults.without_connections(fresh, *fresh.addresses):
        ran = fresh.play("migrate", *options)
        assert ran.code == 0, ran.text
        assert ": dual_write" in ran.text
        again = fresh.play("migrate", *options)
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text


def test_status_shows_the_history(fresh, options):
    ran = fresh.play("status", *options, extra={"quorumshift_history": True})
    assert ran.code == 0 and ": dual_write" in ran.text, ran.text
    assert "ended well" in ran.text and "kraft  done" in ran.text, ran.text
