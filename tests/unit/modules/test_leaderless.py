# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which partitions without a leader preferred_leader_election elects one for, over all states of two replicas."""

from __future__ import annotations

import itertools
import types

from ansible_collections.quorumshift.kafka.plugins.modules import preferred_leader_election


def test_only_where_no_replica_leads_and_one_in_sync_is_alive():
    sets = [set(), {1}, {2}, {1, 2}]
    for leader, in_sync, alive in itertools.product((-1, 1, 2), sets, sets):
        found = {"leader": leader, "replicas": [1, 2], "isr": sorted(in_sync)}
        admin = types.SimpleNamespace(partitions={("orders", 0): found}, brokers=dict.fromkeys(alive))
        due = preferred_leader_election.find_leaderless(admin)
        assert bool(due) == (leader == -1 and bool(in_sync & alive)), (leader, in_sync, alive)
