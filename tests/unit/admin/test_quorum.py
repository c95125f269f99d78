# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of the voters says that the leader refuses: also after another one was made, as in a replacement."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin.quorum_change import Joining
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError

CLUSTER, OLD, NEW = "phUKKf3TSny1o9Yap379dw", "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


@pytest.fixture
def changer(monkeypatch):
    """A quorum of 101 and 102, whose leader removes voters and refuses to add any."""
    voters = [(101, NEW), (102, OLD)]

    def read(_admin):
        listed = [{"id": node_id, "directory_id": directory, "log_end_offset": 5} for node_id, directory in voters]
        return {"leader_id": 101, "high_watermark": 5, "voters": listed, "observers": []}

    def send(_changer, request):
        if request.api.name == "RemoveRaftVoter":
            voters.remove((102, OLD))
            return None
        return KafkaError(HostPort("c1", 9093), 35, request.api.name)

    monkeypatch.setattr(quorum, "read", read)
    monkeypatch.setattr(quorum.Changer, "_send", send)
    return quorum.Changer(SimpleNamespace(refresh=lambda: None), None, 1, 5)


def add(changer):
    with pytest.raises(quorum.Refused) as refused:
        changer.add(CLUSTER, Joining(102, NEW, (("CONTROLLER", "c2", 9093),)))
    return str(refused.value)


def test_a_refused_change_changed_nothing(changer):
    assert add(changer).endswith(". Nothing was changed (QS-QUORUM-009)")


def test_after_a_removal_it_is_not_true_that_nothing_was_changed(changer):
    changer.remove(CLUSTER, 102, OLD)
    assert "Nothing was changed" not in add(changer)
