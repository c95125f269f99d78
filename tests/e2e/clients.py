# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The witness on the bed in the hands of a test, and what ZooKeeper holds whoever its controller is."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from typing import Callable, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import read_tree

from tools.demo import testbed as demo_testbed
from tools.e2e.testbed import ROOT, Testbed

# What a running cluster moves by itself, and what its controllers keep of their own
MOVES = {"controller", "controller_epoch", "migration", "notification", "partition_state", "producer_id_block"}


@contextlib.contextmanager
def witnessed(made: pathlib.Path) -> Iterator[Callable[[], dict]]:
    """The witness runs, with its files in `made`; yields a function that stops it and returns its verdict."""
    (made / "config.json").write_text(json.dumps(demo_testbed.TestbedInventory().clients_config()))
    _clients(made, "run", "--config", made / "config.json", "--daemon")

    def verdict() -> dict:
        _clients(made, "stop", "--json", made / "result.json", check=False)
        return json.loads((made / "result.json").read_text())

    try:
        yield verdict
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            _clients(made, "stop", "--json", made / "result.json", check=False)


def nothing_lost(result: dict, acknowledged: int) -> None:
    """The witness's verdict: more than so many messages were acknowledged and read again, each once and in order."""
    counts = {key: result[key] for key in ("lost", "duplicated", "reordered", "aborted_visible")}
    print(f"{result['acked']} acknowledged, {counts}; longest stall {result['by_phase']}")
    assert counts == dict.fromkeys(counts, 0) and result["acked"] > acknowledged
    assert result["run"]["audit"]["done"], result["run"]["audit"]


def held(testbed: Testbed) -> dict[str, tuple]:
    """{path: (value, ACL)} of what lasts in ZooKeeper, the topics that the witness makes and deletes aside."""
    with testbed.zookeeper() as client:
        return {
            node.path: (_value(node.data), node.acl)
            for node in read_tree(client)
            if not node.stat.ephemeralOwner and znodes.kind(node.path) not in MOVES and ".admin." not in node.path
        }


def _clients(made: pathlib.Path, command: str, *options: object, check: bool = True) -> None:
    argv = [sys.executable, "-m", "canary_clients", command, "--dir", made / "run", *options]
    subprocess.run(list(map(str, argv)), cwd=ROOT, check=check, timeout=600)


def _value(data: bytes | None) -> object:
    try:
        return json.loads(data)
    except (TypeError, ValueError):
        return data
