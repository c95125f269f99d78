# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real broker for the tests of the verification clients."""

from __future__ import annotations

import pathlib
import re
from typing import Any, Dict, Iterator

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from tests.integration.servers import KafkaServer, free_port, kraft_broker, kraft_controllers, workdir

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


def counted(result: Dict[str, Any]) -> Dict[str, int]:
    return {kind: result[kind] for kind in NO_DAMAGE}
