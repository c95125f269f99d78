# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verification clients for tests, and the lasting content of ZooKeeper."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from typing import Callable, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper.zookeeper import read_tree

from tests.system.testbed.inventory import TestbedInventory
from tests.system.testbed.layout import ROOT
from tests.system.testbed.running import Testbed

# Kinds of znodes that a running cluster changes by itself or that belong to its controllers
VOLATILE = {"controller", "controller_epoch", "migration", "notification", "partition_state", "producer_id_block"}


@contextlib.contextmanager
def running_clients(directory: pathlib.Path) -> Iterator[Callable[[], dict]]:
    """Run the clients with their files in `directory`; yield a function that stops them and returns their verdict."""
    (directory / "config.json").write_text(json.dumps(TestbedInventory().clients_config()))
    _clients(directory, "run", "--config", directory / "config.json", "--daemon")

    def verdict() -> dict:
        _clients(directory, "stop", "--json", directory / "result.json", check=False)
        return json.loads((directory / "result.json").read_text())

    try:
        yield verdict
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            _clients(directory, "stop", "--json", directory / "result.json", check=False)


def assert_nothing_lost(verdict: dict, acknowledged: int) -> None:
    """Assert that more than `acknowledged` messages were acknowledged, and each was read once and in order."""
    counts = {key: verdict[key] for key in ("lost", "duplicated", "reordered", "aborted_visible")}
    print(f"{verdict['acked']} acknowledged, {counts}; longest stall {verdict['by_phase']}")
    assert counts == dict.fromkeys(counts, 0) and verdict["acked"] > acknowledged
    assert verdict["run"]["audit"]["done"], verdict["run"]["audit"]


def lasting_znodes(testbed: Testbed) -> dict[str, tuple]:
    """Return {path: (value, ACL)} of the znodes that last, without topics that the clients create and delete."""
    with testbed.zookeeper() as client:
        return {
            node.path: (_value(node.data), node.acl)
            for node in read_tree(client)
            if not node.stat.ephemeralOwner and znodes.kind(node.path) not in VOLATILE and ".admin." not in node.path
        }


def _clients(directory: pathlib.Path, command: str, *options: object, check: bool = True) -> None:
    argv = [sys.executable, "-m", "canary_clients", command, "--dir", directory / "run", *options]
    subprocess.run(list(map(str, argv)), cwd=ROOT, check=check, timeout=600)


def _value(data: bytes | None) -> object:
    try:
        return json.loads(data)
    except (TypeError, ValueError):
        return data
