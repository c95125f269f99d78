# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/rollback.yml in the hands of a test, and what of a migration is on the hosts."""

from __future__ import annotations

import re
from typing import Callable

from tools.e2e.testbed import Ran, Testbed


def back(testbed: Testbed, target: str, kill_when: Callable[[str], bool] | None = None, **extra: object) -> Ran:
    """Run playbooks/rollback.yml."""
    return testbed.play(
        "rollback", extra={"quorumshift_rollback_to": target, **extra}, kill_when=kill_when, timeout=1800
    )


def changed(ran: Ran, testbed: Testbed) -> list[str]:
    """The hosts on which a run changed something."""
    return [host for host in [*testbed.addresses, "localhost"] if ran.recap(host).get("changed")]


def phase(ran: Ran) -> str:
    """The phase on the screen that a run printed last."""
    return re.findall(r"^Cluster \S+: (\w+)$", ran.text, re.MULTILINE)[-1]


def files(testbed: Testbed) -> dict[str, str]:
    """By host the brokers' properties files, and what of Kafka is on the controllers' hosts."""
    messages = testbed.on_each(testbed.brokers, "sha256sum /etc/kafka/server.properties")
    left = "ls /var/lib/kafka/metadata /etc/kafka/controller.properties /etc/systemd/system/kafka-controller.service.d"
    messages += testbed.on_each(testbed.controllers, f"{left} 2>/dev/null; systemctl is-active kafka-controller; true")
    return dict(zip([*testbed.brokers, *testbed.controllers], messages))


def no_trace(testbed: Testbed) -> None:
    """ZooKeeper has its own controller, and nothing of a migration."""
    with testbed.zookeeper() as client:
        assert not client.exists("/migration")
        assert client.get("/controller")[1].ephemeralOwner
