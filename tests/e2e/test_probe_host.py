# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration with a host of the cluster as probe host: the control node needs SSH to the hosts, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tools.e2e import faults
from tools.e2e.testbed import ROOT, STATE

PROBE = "c3"
PACKAGES = "/usr/local/lib/python3.11/dist-packages"
CA = "/root/ca.pem"


@pytest.fixture(scope="module")
def probing(fresh, tmp_path_factory):
    """Options that name a probe host, which has the two packages and the CA's certificate; secrets are in a file."""
    made = tmp_path_factory.mktemp("packages")
    names = (ROOT / "requirements.in").read_text().split()
    platform = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")
    wanted = [name for name in names if name.partition("==")[0] in ("kazoo", "confluent-kafka")]
    pip = (sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", *platform, "--target", str(made / "p"))
    subprocess.run([*pip, *wanted], check=True, timeout=300)
    subprocess.run(["tar", "-C", str(made / "p"), "-czf", str(made / "p.tar.gz"), "."], check=True)
    fresh.send(PROBE, [made / "p.tar.gz"], "/root")
    fresh.run(PROBE, f"mkdir -p {PACKAGES} && tar -C {PACKAGES} -xzf /root/p.tar.gz")
    fresh.run(PROBE, f"cat > {CA} <<'END'\n{(STATE / 'ca.pem').read_text()}END")
    client = {**fresh.variables["quorumshift_client"], "ssl_cafile": CA}
    variables = made / "variables.json"
    variables.write_text(json.dumps({"quorumshift_probe_host": PROBE, "quorumshift_client": client}))
    return "-e", f"@{variables}"


def test_to_dual_write(fresh, probing):
    with faults.cut_off_from_the_control_node(fresh):
        ran = fresh.play("migrate", *probing)
        assert ran.code == 0, ran.text
        assert ": dual_write" in ran.text
        again = fresh.play("migrate", *probing)
    assert again.code == 0 and all(again.recap(host).get("changed", 0) == 0 for host in fresh.addresses), again.text


def test_status(fresh, probing):
    ran = fresh.play("status", *probing, extra={"quorumshift_history": True})
    assert ran.code == 0 and ": dual_write" in ran.text, ran.text
    assert "ended well" in ran.text and "kraft  done" in ran.text, "the history below the screen"
