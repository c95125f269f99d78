# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bed for tests. Those of a module begin on a freshly seeded one; how they leave it is no matter to the next."""

from __future__ import annotations

import contextlib
import re

import pytest
import yaml

from tools.demo.testbed import VARIANT
from tools.e2e.testbed import INVENTORY, KEPT, Testbed

# Each variant has its tests: those of the secured bed are run by its molecule scenario, after the migration.
collect_ignore = [] if VARIANT == "secure" else ["test_secure.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keeps the hosts' logs of a test that failed: the next reset empties them."""
    report = yield
    if report.failed and call.excinfo and "testbed" in item.fixturenames and INVENTORY.exists():
        place = KEPT / re.sub(r"[^\w.-]+", "-", item.nodeid.rpartition("/")[2])
        with contextlib.suppress(OSError):  # of a bed that is not reached any more nothing is kept
            Testbed().keep_logs(place)
            report.sections.append(("logs of the hosts", str(place)))
    return report


@pytest.fixture(scope="session")
def testbed():
    """This checkout's bed."""
    if not INVENTORY.exists():
        pytest.fail("the bed is not up: make testbed-up")
    return Testbed()


@pytest.fixture(scope="module")
def fresh(testbed):
    """The bed, reset to a ZooKeeper-mode cluster at the module's beginning."""
    testbed.reset()
    testbed.wait_in_sync()
    if VARIANT == "secure":
        testbed.grant_cluster_action()
    return testbed


@pytest.fixture
def inventory(fresh, tmp_path):
    """A function that writes a copy of the inventory, changed by a function of its groups, and returns its path."""

    def changed(change):
        tree = yaml.safe_load(INVENTORY.read_text())
        change(tree["all"]["children"])
        path = tmp_path / "inventory.yml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(tree))
        return path

    return changed
