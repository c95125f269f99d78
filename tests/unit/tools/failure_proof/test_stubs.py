# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stubs of the failure proof say no where an input lacks."""

from __future__ import annotations

import hashlib

import pytest

pytest.importorskip("ansible")

from tools.failure_proof import stubs
from tools.failure_proof.world import BROKERS, DESTINATIONS, World


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path / "world")
    found.root.mkdir()
    found.create("dual_write")
    return found


@pytest.fixture
def compared(world, tmp_path):
    """The job of a gate with all its inputs."""
    archive = tmp_path / "log.tar.gz"
    archive.write_bytes(b"archive")
    log = {"archive": str(archive), "sha256": hashlib.sha256(b"archive").hexdigest()}
    brokers = [{"id": number} for number in BROKERS.values()]
    others = [{"node": number, **log} for number in (102, 103)]
    return {"zookeeper": {}, "metadata_log": log, "metadata_logs": others, "brokers": brokers}


def verdict_of(world, views, key="key"):
    args = {
        "submit": ["spark-submit", "metadata_parity", "--input", "job.json"],
        "job": {"gate": "before_finalize", "views": views},
        "nonce": "n",
        "output_dir": str(world.root / "output"),
        "digest_key": key,
    }
    return stubs.spark_job(world, "localhost", args, False)["result"]["verdict"]


def test_the_comparison_passes_with_all_its_inputs(world, compared):
    assert verdict_of(world, compared) == "pass"


@pytest.mark.parametrize(
    "lacking",
    [
        {"zookeeper": None},
        {"metadata_log": {}},
        {"metadata_logs": []},
        {"metadata_logs": [{"node": 102, "error": "unreachable"}, {"node": 103, "error": "unreachable"}]},
        {"brokers": [{"id": 1}]},
    ],
    ids=lambda lacking: next(iter(lacking)),
)
def test_the_comparison_is_incomplete_without_an_input(world, compared, lacking):
    views = {name: value for name, value in {**compared, **lacking}.items() if value is not None}
    assert verdict_of(world, views) == "incomplete"


def test_the_comparison_is_incomplete_without_a_broker(world, compared):
    world.stop("b2")
    assert verdict_of(world, compared) == "incomplete"


def test_the_comparison_is_incomplete_without_a_key(world, compared):
    assert verdict_of(world, compared, key="") == "incomplete"


def test_a_promotion_is_refused_where_a_host_was_not_cut_off(world):
    hosts = {host: {"last": stubs.ZXID} for host in DESTINATIONS[1:]}
    assert stubs.zk_cut_check(world, "s1", {"hosts": hosts, "expected": list(DESTINATIONS)}, False)["failed"]


def test_an_accepted_promotion_is_not_healed(world):
    stubs._member(world, "d1", state="promoting", config="voter")
    assert stubs.zk_cut(world, "d1", {"state": "healed"}, False)["failed"]
    assert not stubs.zk_cut(world, "d2", {"state": "healed"}, False).get("failed")
