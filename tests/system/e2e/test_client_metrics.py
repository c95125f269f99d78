# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`status` warns of client metrics in dual-write, before a new active controller fails to write them to ZooKeeper."""

from __future__ import annotations

from tests.system.e2e.rollbacks import phase

TOOL = (
    "/opt/kafka/bin/kafka-configs.sh --bootstrap-server $(hostname -I | cut -d' ' -f1):9092 --alter "
    "--entity-type client-metrics --entity-name all-clients"
)


def test_status_warns_of_client_metrics(fresh):
    ran = fresh.play(extra={"quorumshift_soak": "0s"})
    assert ran.code == 0 and phase(ran) == "dual_write", ran.text
    assert "client metrics" not in ran.text
    fresh.run("b1", f"{TOOL} --add-config metrics=org.apache.kafka.,interval.ms=60000")
    status = fresh.play("status")
    assert "client metrics are configured (all-clients). ZooKeeper cannot store them" in status.text, status.text
    fresh.run("b1", f"{TOOL} --delete-config metrics,interval.ms")
    status = fresh.play("status")
    assert "client metrics" not in status.text, status.text
