# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker loses its AlterPartition thread in a rollback: the restarts in plain ZooKeeper mode take it first."""

from __future__ import annotations

import re
import zipfile

import pytest

from tests.integration import servers
from tests.integration.test_stuck_leaders import ENDED, TAKEN
from tests.system.e2e.rollbacks import back, changed, files, no_trace, phase

FIRST, WAITS, STUCK = "b1", "b2", "b3"
FAST = {"quorumshift_verify": False, "quorumshift_soak": "0s"}
# sorts after Kafka's jars: the AppCDS archive stays valid for a class path that only grows at its end
JAR, WHEN = "/opt/kafka/libs/zz-taken-metrics.jar", "/run/taken"


@pytest.fixture(scope="module")
def plain(fresh, tmp_path_factory):
    """Dual-write with a broker whose new network clients can fail to register metrics; the plain mode's files."""
    home = tmp_path_factory.mktemp("taken")
    jar = home / "taken.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in servers.compile_java(TAKEN, home).glob("*.class"):
            archive.write(path, path.name)
    fresh.send(STUCK, [jar], JAR)
    settings = f"metric.reporters=TakenMetrics\\ntaken.metrics.when={WHEN}\\n"
    fresh.run(STUCK, f"chmod a+r {JAR}; printf '{settings}' >> /etc/kafka/server.properties; systemctl restart kafka")
    fresh.wait_in_sync()
    before = files(fresh)
    ran = fresh.play(extra=FAST)
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    return before


def test_a_stuck_leader_is_restarted_before_the_next_batch(fresh, plain):
    armed = []

    def when_one_is_plain(line):
        if "PLAY [Stop and mask the controllers that follow" in line:
            fresh.run(STUCK, f"touch {WHEN}")
            armed.append(line)
        return bool(armed) and f"{FIRST} is up" in line

    killed = back(fresh, "zk", quorumshift_canary=FIRST, kill_when=when_one_is_plain, **FAST)
    assert killed.code != 0 and armed, killed.text

    ran = back(fresh, "zk", quorumshift_canary=WAITS, **FAST)
    assert ran.code == 0 and phase(ran) == "zk", ran.text
    assert f"{ENDED} (kafka" in fresh.run(STUCK, f"grep -F '{ENDED}' /var/log/kafka/server.log | tail -1")
    assert f"zk: {WAITS} (canary: chosen), then {STUCK}" in ran.text, ran.text
    assert re.search(rf"{STUCK} keeps the replicas of {FIRST} out of sync.* The run restarts it next", ran.text)
    assert ran.text.index(f"{STUCK} is up") < ran.text.index(f"{WAITS} is up"), ran.text
    assert re.search(r"without a leader while it restarts .*no other replica is in sync: \S+", ran.text), ran.text
    assert files(fresh) == plain
    no_trace(fresh)
    fresh.wait_in_sync()
    again = back(fresh, "zk", **FAST)
    assert again.code == 0 and changed(again, fresh) == [], again.text
