# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the demo parses from the output of a run."""

from __future__ import annotations

from tests.system.demo import screen

# from a real run
DUAL_WRITE = """
TASK [quorumshift.kafka.finalize : Stop here for the soak] *********************
Cluster Ozpu3kAuTNesugjwtwjjsQ: dual_write
  zk  controllers_starting  controllers_ready  brokers_joining  copying  hybrid  [dual_write]  finalizing  finalized

  node    id  runs as               starts as             state     version   lag
  b1     1  kraft                 kraft                 online    3.9.2     0
  c3   103  controller_migration  controller_migration  online    3.9.2     0

  quorum: leader 103, epoch 1, voters 101, 102, 103, high watermark 7545
  ZooKeeper: written up to offset 7544, lag 0
  gates passed: before_controllers, before_trigger, after_copy, after_kraft
  watch: a restart of any node begins the soak again; a broker's restart changes the confirmation token

  next: soak until 2026-11-22 14:28:42 UTC (23 h 59 min to go), then finalize
        ansible-playbook -i .build/testbed/inventory.yml playbooks/migrate.yml -e quorumshift_finalize_token=Ozp:1e7d4b
ok: [localhost]

PLAY RECAP *********************************************************************
b1                         : ok=7    changed=2    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
localhost                  : ok=35   changed=5    unreachable=0    failed=0    skipped=4    rescued=0    ignored=0
"""
FINALIZED = """
Cluster Ozpu3kAuTNesugjwtwjjsQ: finalized

  quorum: leader 101, epoch 4, voters 101, 102, 103, high watermark 9120
  gates passed: none in the run artifacts here

  next: nothing: the migration is done
"""


def test_stop_in_dual_write_shows_the_next_command_and_its_time():
    shown = screen.read(DUAL_WRITE)
    assert shown.cluster_id == "Ozpu3kAuTNesugjwtwjjsQ"
    assert shown.phase == "dual_write"
    assert shown.leader == 103
    assert shown.gates == ["before_controllers", "before_trigger", "after_copy", "after_kraft"]
    assert shown.command == [
        "ansible-playbook",
        "-i",
        ".build/testbed/inventory.yml",
        "playbooks/migrate.yml",
        "-e",
        "quorumshift_finalize_token=Ozp:1e7d4b",
    ]
    assert shown.soak_until == 1795357722


def test_last_screen_is_read():
    shown = screen.read(DUAL_WRITE + FINALIZED)
    assert (shown.phase, shown.leader, shown.gates, shown.command, shown.soak_until) == (
        "finalized",
        101,
        [],
        None,
        None,
    )


def test_colours_are_ignored():
    coloured = "\x1b[0;32m" + FINALIZED.strip() + "\x1b[0m"
    assert screen.read(coloured).phase == "finalized"


def test_run_that_failed_early_has_no_screen_and_no_recap():
    assert screen.read("fatal: [localhost]: FAILED!") is None
    assert screen.recap("fatal: [localhost]: FAILED!") == {}


def test_recap_is_read_by_host():
    recap = screen.recap(DUAL_WRITE)
    assert recap["b1"] == screen.Recap(ok=7, changed=2, unreachable=0, failed=0)
    assert sum(host.changed for host in recap.values()) == 7
