# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of each variant as it is written is what tests and drills read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# A process for each variant, since the layout is chosen at the import. The files are in a directory of the test.
READ = """
import collections, json, pathlib, sys
from tests.system.testbed import inventory, layout, running
inventory.INVENTORY = pathlib.Path(sys.argv[1])
network = layout.Network()
network.prefix = "10.64.0"
inventory.write(network, collections.defaultdict(lambda: "secret"))
read, testbed = inventory.TestbedInventory(), running.Testbed()
print(json.dumps({
    "written": {host.name: network.address(host) for host in layout.HOSTS},
    "hosts": read.hosts,
    "addresses": testbed.addresses,
    "brokers": [sorted(read.brokers), testbed.brokers, sorted(host.name for host in layout.BROKERS)],
    "controllers": [sorted(read.controllers), sorted(host.name for host in layout.CONTROLLERS)],
    "state_dirs": {host: testbed.variable("state_dir", host) for host in testbed.addresses},
    "log_dir": {host: testbed.variable("controller_log_dir", host) for host in read.controllers},
    "ssh": read.ssh(next(iter(read.hosts)), "true"),
}))
"""


def read(variant, directory):
    done = subprocess.run(
        [sys.executable, "-c", READ, str(directory / "inventory.yml")],
        cwd=ROOT,
        env={**os.environ, "TESTBED_VARIANT": variant},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("variant", ["default", "secure", "sasl", "other", "ensembles"])
def test_hosts_are_read_as_written(variant, tmp_path):
    seen = read(variant, tmp_path)
    assert seen["hosts"] == seen["addresses"] == seen["written"]
    for names in (seen["brokers"], seen["controllers"]):
        assert names == [names[0]] * len(names)
    first = next(iter(seen["hosts"].values()))
    assert seen["ssh"][-2:] == [f"root@{first}", "true"]


def test_a_hosts_own_variable_precedes_its_groups_and_the_default(tmp_path):
    seen = read("other", tmp_path)
    assert seen["state_dirs"]["n12"] == "/srv/broker/migration" and seen["state_dirs"]["q2"] == "/srv/migration"
    assert set(seen["log_dir"].values()) == {"/srv/broker/data/quorum"}
    assert seen["state_dirs"]["n7"] == "/var/lib/quorumshift"
