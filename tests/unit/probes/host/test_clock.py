# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of this machine, and of one that has none."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import clock


def test_the_clock_goes_on_within_one_boot():
    first, second = clock.read(), clock.read()
    assert len(first["boot_id"]) == 36 and first["boot_id"] == second["boot_id"]
    assert 0 < first["uptime_s"] <= second["uptime_s"]


def test_a_host_without_proc_or_the_clock_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(clock, "BOOT_ID", str(tmp_path / "boot_id"))
    assert "No such file" in clock.read()["error"]
    monkeypatch.undo()
    monkeypatch.delattr("time.CLOCK_BOOTTIME")
    assert "CLOCK_BOOTTIME" in clock.read()["error"]
