# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the testbed. Each module begins on a freshly seeded cluster, and need not clean up after itself."""

from __future__ import annotations

import contextlib
import re

import pytest
import yaml

from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import INVENTORY, SECURED, VARIANT
from tests.system.testbed.running import KEPT, Testbed

# Tests of one variant: the molecule scenario `secure` runs test_secure.py, after its migration.
OF_VARIANTS = {
    "test_secure.py": ("secure",),
    "test_other_layout.py": ("other", "beside"),
    "test_login_ends.py": ("sudo",),
    "test_restart_racks.py": ("racks",),
    "test_cp_ansible.py": ("confluent",),
}
collect_ignore = [name for name, variants in OF_VARIANTS.items() if VARIANT not in variants]
if not SECURED:
    collect_ignore.append("test_secured_ways.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep the hosts' logs of a failed test: the next reset deletes them."""
    report = yield
    if report.failed and call.excinfo and "testbed" in item.fixturenames and INVENTORY.exists():
        directory = KEPT / re.sub(r"[^\w.-]+", "-", item.nodeid.rpartition("/")[2])
        with contextlib.suppress(OSError):  # the testbed may be unreachable
            TestbedInventory().keep_logs(directory)
            report.sections.append(("logs of the hosts", str(directory)))
    return report


@pytest.fixture(scope="session")
def testbed():
    """This checkout's testbed."""
    if not INVENTORY.exists():
        pytest.fail("the testbed is down: run `make testbed-up`")
    return Testbed()


@pytest.fixture(scope="module")
def fresh(testbed):
    """The testbed, reset to a ZooKeeper-mode cluster when the module begins."""
    testbed.reset()
    if SECURED:
        testbed.grant_rights()  # before them, the tool of some variants sees no partition
    testbed.wait_in_sync()
    return testbed


@pytest.fixture
def inventory(fresh, tmp_path):
    """A function that writes a copy of the inventory, changed by a function of the groups, and returns its path."""

    def changed(change):
        tree = yaml.safe_load(INVENTORY.read_text())
        change(tree["all"]["children"])
        path = tmp_path / "inventory.yml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(tree))
        return path

    return changed
