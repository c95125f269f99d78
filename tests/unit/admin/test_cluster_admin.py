# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No change is sent to a broker of another cluster, wherever the addresses lead that brokers advertise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import cluster_admin, feature_request
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests, apis
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import Security
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import WireError

BOOTSTRAP, ADVERTISED = HostPort("nat.example.com", 9092), HostPort("10.0.0.5", 9092)
OWN, OTHER = "phUKKf3TSny1o9Yap379dw", "AAAAf3TSny1o9Yap379dwA"
OFFERED = {api.api_key: (api.oldest, api.newest) for api in vars(apis).values() if isinstance(api, apis.Api)}
TOPIC, BROKER = (admin_requests.TOPIC, "orders"), (admin_requests.BROKER, "1")


@pytest.fixture
def servers(monkeypatch):
    """Brokers by their addresses: {address: cluster id}, and what they got. The cluster's one advertises ADVERTISED."""
    found = SimpleNamespace(ids={BOOTSTRAP: OWN, ADVERTISED: OTHER}, got=[], topics=[], fields={})

    class Connection:
        def __init__(self, address, *_given):
            self.address, self.sent = address, None

        def __enter__(self):
            return self

        def __exit__(self, *_exception):
            pass

        def api_versions(self):
            return SimpleNamespace(api_keys=OFFERED)

        def request(self, request, *_given):
            self.sent = request.api.name
            found.got.append((self.address, request.api.name))
            head = {
                "clusterId": found.ids[self.address],
                "controllerId": 1,
                "brokers": [{"nodeId": 1, "host": ADVERTISED.host, "port": ADVERTISED.port, "rack": None}],
            }
            fields = {**head, "topics": found.topics} if request.api == apis.METADATA else found.fields
            answer = f"{request.api.name}Response"
            data = messages.encode(answer, request.api.newest, fields)
            return apis.Answer(request.api, request.api.newest, data)

    for module in (cluster_admin, feature_request):
        monkeypatch.setattr(module, "KafkaConnection", Connection)
    return found


CHANGES = {
    "AlterPartitionReassignments": lambda admin: admin.reassign({("orders", 0): [1]}),
    "ElectLeaders": lambda admin: admin.elect_preferred([("orders", 0)]),
    "UpdateFeatures": lambda admin: admin.update_features({"group.version": (1, 1)}, False),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("wanted", [OWN, None])
def test_an_address_that_leads_to_another_cluster_gets_no_change(servers, name, wanted):
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, wanted)
    with pytest.raises(WireError, match=f"this broker is of cluster {OTHER}, and the task is for cluster {OWN}") as no:
        CHANGES[name](admin)
    assert not isinstance(no.value, feature_request.Unanswered)  # nothing was sent
    assert servers.got and {api for _address, api in servers.got} == {"Metadata"}
    servers.ids[ADVERTISED] = OWN
    CHANGES[name](admin)
    assert servers.got[-1] == (ADVERTISED, name)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_asked_before_a_change_keeps_it_from_being_sent(servers, name):
    servers.ids[ADVERTISED] = OWN
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, OWN)

    def refuse():
        raise RuntimeError("another run holds the lock")

    admin.before_change = refuse
    with pytest.raises(RuntimeError, match="another run"):
        CHANGES[name](admin)
    assert {api for _address, api in servers.got} == {"Metadata"}


def test_configs_are_not_changed_there_either(servers):
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, OWN)
    errors = admin.alter_configs({TOPIC: {"a": "1"}, BROKER: {"b": "2"}})
    assert set(errors) == {TOPIC, BROKER} and all("QS-ADMIN-001" in str(error) for error in errors.values())
    assert {api for _address, api in servers.got} == {"Metadata"}


def test_a_later_reading_asks_the_next_broker_and_never_takes_another_cluster(servers):
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, None)
    admin.refresh()
    assert admin.cluster_id == OWN and servers.got[-2:] == [(ADVERTISED, "Metadata"), (BOOTSTRAP, "Metadata")]
    servers.ids[BOOTSTRAP] = OTHER
    with pytest.raises(WireError, match="QS-ADMIN-001"):
        admin.refresh()
    with pytest.raises(cluster_admin.OtherCluster, match="Nothing was changed"):
        cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, OWN)


def test_a_topic_that_the_principal_may_not_describe_is_no_topic_that_does_not_exist(servers):
    servers.ids[ADVERTISED] = OWN
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, OWN)
    servers.topics = [{"name": name, "errorCode": code} for name, code in (("hidden", 29), ("gone", 3), ("orders", 0))]
    assert admin.denied(["orders", "hidden", "gone"]) == {"hidden"}


def test_log_directories_that_are_offline_are_named_and_have_no_space(servers):
    servers.ids[ADVERTISED] = OWN
    admin = cluster_admin.ClusterAdmin([BOOTSTRAP], Security(), 1, OWN)

    def replica(number, size, is_future=False):
        return {"partitionIndex": number, "partitionSize": size, "isFutureKey": is_future}

    listed = [{"name": "orders", "partitions": [replica(0, 7), replica(1, 5, True)]}]
    one = {"logDir": "/d1", "topics": listed, "totalBytes": 100, "usableBytes": 60}
    servers.fields = {"results": [one, {"logDir": "/d2", "errorCode": 56, "totalBytes": -1, "usableBytes": -1}]}
    assert admin.log_dirs(1) == ({("orders", 0): 7}, [(60, 100, 12)], ["/d2"])
    servers.fields = {"results": [{**one, "totalBytes": -1, "usableBytes": -1}]}
    assert admin.log_dirs(1) == ({("orders", 0): 7}, [], []), "before Kafka 3.3"
