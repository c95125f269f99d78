# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward, back, and to the end on a cluster that has none of the collection's default names (variant `other`), and on
three hosts that each have a ZooKeeper server, a broker and a controller (variant `beside`).

The verification runs before each gate, and verification clients run throughout.
"""

from __future__ import annotations

import re

import pytest

from tests.system.e2e.clients import assert_nothing_lost, lasting_znodes, running_clients
from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase

VERIFIED = {"quorumshift_verify": True, "quorumshift_fingerprint_topics": ["eu.orders", "ledger.v1"]}
STATE_DIRS = ("/var/lib/quorumshift", "/srv/broker/migration", "/srv/migration")


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """Verification clients; a function that stops them and returns their verdict."""
    with running_clients(tmp_path_factory.mktemp("clients")) as stop:
        yield stop


def migrate(testbed, expected, **extra):
    ran = testbed.play(extra={**VERIFIED, **extra}, timeout=2400)
    assert ran.code == 0 and phase(ran) == expected, ran.text
    return ran


def assert_own_state_dirs(testbed):
    """Each host has its own state directory and none of the other hosts'."""
    listed = f"ls -d {' '.join(STATE_DIRS)} 2>/dev/null; true"
    found = dict(zip(testbed.addresses, testbed.on_each(list(testbed.addresses), listed)))
    assert found == {host: testbed.variable("state_dir", host) for host in testbed.addresses}


def test_forward_to_dual_write_and_back(fresh, clients):
    before, plain = lasting_znodes(fresh), files(fresh)
    migrate(fresh, "dual_write")
    assert_own_state_dirs(fresh)
    for host in fresh.controllers[:2]:
        kept = fresh.run(host, f"cd {fresh.variable('state_dir', host)}/*/ && ls copy.json backup/zookeeper-*.jsonl.gz")
        assert len(kept.split()) == 2, kept
    ran = back(fresh, "zk", **VERIFIED)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    after = lasting_znodes(fresh)
    assert {path: value for path, value in before.items() if after.get(path) != value} == {}
    for again in (back(fresh, "zk", **VERIFIED), fresh.play("restore_zookeeper")):
        assert again.code == 0 and changed(again, fresh) == [], again.text


def test_forward_again_to_the_end(fresh, clients):
    stopped = migrate(fresh, "dual_write")
    token = re.search(r"quorumshift_finalize_token=(\S+)", stopped.text).group(1)
    migrate(fresh, "finalized", quorumshift_finalize_token=token, quorumshift_soak="0s")
    again = fresh.play(extra=VERIFIED)
    assert again.code == 0 and changed(again, fresh) == [], again.text
    assert_own_state_dirs(fresh)
    assert_nothing_lost(clients(), 50_000)
