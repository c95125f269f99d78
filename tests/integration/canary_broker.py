# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real broker for the tests of the verification clients."""

from __future__ import annotations

import pathlib
import re
import time
from typing import Any, Callable, Dict, Iterator

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from canary_clients import ledger, verdict
from tests.integration.servers import KafkaServer, free_port, kraft_broker, kraft_controllers, workdir

LIMIT_S = 240  # for what stands still
NO_DAMAGE = {"lost": 0, "duplicated": 0, "reordered": 0, "aborted_visible": 0}


@pytest.fixture(scope="module")
def home() -> Iterator[pathlib.Path]:
    with workdir("clients") as directory:
        yield directory


@pytest.fixture(scope="module")
def broker(home: pathlib.Path) -> Iterator[KafkaServer]:
    address = HostPort("127.0.0.1", free_port())
    with kraft_controllers(home, [address]), kraft_broker(home, 1, f"101@{address}") as server:
        yield server


@pytest.fixture
def settings(broker: KafkaServer, request: pytest.FixtureRequest) -> Dict[str, Any]:
    """A small config with its own topics, so that one test's damage does not reach the next test."""
    return {
        "bootstrap_servers": str(broker.address),
        "topic_prefix": f"canary-{re.sub('[^a-z0-9]+', '-', request.node.name.lower())[:60]}",
        "replication_factor": 1,
        "min_insync_replicas": 1,
        "member_restart_s": 10,
        "start_timeout_s": 90,
        "admin": {"interval_s": 1, "acls": False},
    }


def until(is_so: Callable[[], Any], seen: Callable[[], Any] = lambda: None) -> None:
    """Wait until something is so. `seen`: what is shown where it never is."""
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline, seen()
        time.sleep(0.2)


def recorded(directory: pathlib.Path) -> Dict[str, Any]:
    """Return the verdict of what a run has recorded so far."""
    return verdict.evaluate(ledger.read(directory), [], running=True)


def flows(directory: pathlib.Path, messages: int = 300) -> None:
    """Wait until clients received so many messages from now on: how long that takes is the machine's affair."""
    before = recorded(directory)["received"]
    until(lambda: recorded(directory)["received"] >= before + messages, lambda: recorded(directory))


def runs(pid: int) -> bool:
    """Return whether a process runs: where process 1 is not an init, an orphan stays as a zombie."""
    try:
        return " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def counted(result: Dict[str, Any]) -> Dict[str, int]:
    return {kind: result[kind] for kind in NO_DAMAGE}
