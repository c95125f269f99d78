# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run playbooks/rollback.yml from a test, and read what a migration left on the hosts."""

from __future__ import annotations

import re
from typing import Callable

from tests.system.testbed.running import Ran, Testbed


def back(testbed: Testbed, target: str, kill_when: Callable[[str], bool] | None = None, **extra: object) -> Ran:
    """Run playbooks/rollback.yml."""
    return testbed.play(
        "rollback", extra={"quorumshift_rollback_to": target, **extra}, kill_when=kill_when, timeout=1800
    )


def changed(ran: Ran, testbed: Testbed) -> list[str]:
    """Return the hosts on which a run changed something."""
    return [host for host in [*testbed.addresses, "localhost"] if ran.recap(host).get("changed")]


def phase(ran: Ran) -> str:
    """Return the phase on the last status screen of a run."""
    return re.findall(r"^Cluster \S+: (\w+)$", ran.text, re.MULTILINE)[-1]


def files(testbed: Testbed) -> dict[str, str]:
    """Return by host the digest of a broker's properties file, or the files of a controller and its service's state."""
    found = testbed.on_each(testbed.brokers, f"sha256sum {testbed.variable('broker_config_file', testbed.brokers[0])}")
    names = ("controller_log_dir", "controller_config_file", "controller_service")
    log_dir, file, service = (testbed.variable(name, testbed.controllers[0]) for name in names)
    left = f"ls {log_dir} {file} /etc/systemd/system/{service}.service.d"
    found += testbed.on_each(testbed.controllers, f"{left} 2>/dev/null; systemctl is-active {service}; true")
    return dict(zip([*testbed.brokers, *testbed.controllers], found))


def no_trace(testbed: Testbed) -> None:
    """Assert that ZooKeeper has its own controller and no trace of a migration."""
    with testbed.zookeeper() as client:
        assert not client.exists("/migration")
        assert client.get("/controller")[1].ephemeralOwner
