# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""partition_reassignment in process, on a model of a cluster: what a cancellation reports, what a failure leaves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import reassign_sender, reassigner
from ansible_collections.quorumshift.kafka.plugins.module_utils.admin.cluster_admin import LogDirs
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassign_plan, reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.kafka_wire import KafkaError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import Unreachable
from ansible_collections.quorumshift.kafka.plugins.modules import partition_reassignment as module_of
from ansible_collections.quorumshift.kafka.plugins.modules import partition_reassignment_info

ADDRESS = HostPort("b1", 9092)
LOST = Unreachable(ADDRESS, "closed", "the server closed the connection")
FLYING = {"replicas": [3, 1, 2], "adding": [3], "removing": [2]}
CONNECTIONS = SimpleNamespace(bootstrap=(ADDRESS,), zookeeper=None, client=SimpleNamespace(principal="User:tool"))


class Failed(Exception):
    """The module has failed; `args[0]` is its message."""


class Module:
    """The module with these options."""

    check_mode = False
    _diff = False

    def __init__(self, tmp_path, **options):
        self.warnings = []
        self.params = {
            **{"state": "present", "partitions": None, "src": None, "document": None, "additional": False},
            **{"missing": "refused", "shrink": None, "foreign_throttles": "refused", "throttle_bytes_s": None},
            **{"wait": True, "wait_s": 0.0, "carry": {}, "stall_timeout_s": 900, "max_in_flight": None, "pace_s": 0},
            **{"cordon": [], "preserve_throttles": False, "state_dir": str(tmp_path), "run": None},
            **options,
        }

    def warn(self, text):
        self.warnings.append(text)

    def fail_json(self, msg, **_more):
        raise Failed(msg)


class Cluster:
    """Brokers 1 to 3, topics t and u of one partition each."""

    cluster_id = "Qs7KfZk2TIK1n0nQ5Qm3Tw"

    def __init__(self):
        self.brokers = dict.fromkeys((1, 2, 3), (ADDRESS, None))
        self.partitions = {(topic, 0): {"replicas": [1, 2], "leader": 1, "isr": [1, 2]} for topic in ("t", "u")}
        self.moving, self.values, self.comes, self.error, self.free = {}, {}, {}, None, 1 << 40

    def refresh(self):
        pass

    def in_flight(self, _again_s=0.0):
        return {partition: dict(FLYING) for partition in self.moving}

    def reassign(self, targets):
        if self.error:
            raise self.error
        for partition, target in targets.items():
            self.moving.pop(partition, None)
            if target is not None:
                self.moving[partition] = target
        self.moving.update(self.comes)
        return dict.fromkeys(targets)

    def configs(self, resources, keys):
        found = {resource: {key: self.values.get((*resource, key)) for key in keys} for resource in resources}
        return {resource: {key: value for key, value in own.items() if value} for resource, own in found.items()}

    def alter_configs(self, changes):
        for resource, values in changes.items():
            self.values.update({(*resource, key): value for key, value in values.items()})
        return {}

    def log_dirs(self, _broker, _partitions=None):
        return LogDirs(dict.fromkeys(self.partitions, 100), [reassign_plan.Directory(self.free, self.free, 0)], [])

    def throttled(self):
        return {value for value in self.values.values() if value}


def move(tmp_path, cluster, **options):
    """Return (result, warnings) of a move of t-0 to 3 and 1."""
    module = Module(tmp_path, document={"partitions": [{"topic": "t", "partition": 0, "replicas": [3, 1]}]}, **options)
    return module_of.move(module, cluster, CONNECTIONS), module.warnings


def test_a_cancellation_names_what_was_not_in_flight_and_what_came_meanwhile(tmp_path):
    cluster = Cluster()
    cluster.moving, cluster.comes = {("t", 0): (3, 1)}, {("u", 0): (3, 1)}
    module = Module(tmp_path, state="cancelled", wait_s=None)
    found = module_of.cancelled(module, cluster, CONNECTIONS)
    assert found["done"] and found["came"] == ["u-0"] and found["idle"] == []
    assert "1 reassignments began during the cancellation and are in flight: u-0" in str(module.warnings)
    assert found["undo"] == reassignment.render({("t", 0): [3, 1]})
    cluster.comes = {}
    listed = [{"topic": "t", "partition": 0}, {"topic": "u", "partition": 0}]
    module = Module(tmp_path, state="cancelled", wait_s=None, partitions=listed)
    found = module_of.cancelled(module, cluster, CONNECTIONS)
    assert found["idle"] == ["t-0"] and found["came"] == [] and "not in flight" in str(module.warnings)


def test_an_answer_that_is_lost_preserves_the_throttles_and_says_how_to_remove_them(tmp_path, monkeypatch):
    monkeypatch.setattr(reassign_sender, "_AGAIN_S", 0)
    monkeypatch.setattr(reassign_sender.send, "__defaults__", (0,))
    cluster = Cluster()
    cluster.error = LOST
    with pytest.raises(Failed, match=r"1 reassignments were sent, and they may have begun") as failed:
        move(tmp_path, cluster, throttle_bytes_s=1000)
    assert "The throttles are preserved, since partitions may move under them" in str(failed.value)
    assert "--delete-config" in str(failed.value) and "1000" in cluster.throttled()
    # the next run has no rate, and goes on with the recorded one
    cluster.error = None
    result, _warnings = move(tmp_path, cluster)
    assert result["throttle_bytes_s"] == 1000 and not result["done"]


def test_a_refusal_leaves_no_throttle_and_has_the_command_that_grants_the_right(tmp_path):
    cluster = Cluster()
    cluster.error = KafkaError(ADDRESS, 31, "AlterPartitionReassignments")
    with pytest.raises(Failed, match="CLUSTER_AUTHORIZATION_FAILED") as failed:
        move(tmp_path, cluster, throttle_bytes_s=1000)
    assert "kafka-acls.sh --bootstrap-server b1:9092" in str(failed.value) and "they were removed" in str(failed.value)
    assert cluster.throttled() == set() and not list(tmp_path.glob("*/throttles.json"))


def test_a_move_in_parts_without_a_throttle_needs_no_record_that_cannot_be_written(tmp_path, monkeypatch):
    def refused(*_given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reassigner.host_state, "make_directory", refused)
    cluster = Cluster()
    result, warnings = move(tmp_path, cluster, max_in_flight=1)
    assert cluster.moving and not result["done"] and "Nothing is throttled" in str(warnings)
    with pytest.raises(reassigner.RecordError, match="cannot be written"):
        move(tmp_path, Cluster(), throttle_bytes_s=1000)


def test_a_broker_without_room_gets_nothing(tmp_path):
    cluster = Cluster()
    cluster.free = 99
    with pytest.raises(reassign_plan.ReassignmentError, match="broker 3 would get 100 bytes in 1 replicas, and has 99"):
        move(tmp_path, cluster)
    assert cluster.moving == {}


def test_throttles_of_the_interrupted_move_are_not_taken_from_what_is_still_to_be_sent(tmp_path):
    cluster = Cluster()
    result, _warnings = move(tmp_path, cluster, throttle_bytes_s=1000, max_in_flight=1)
    cluster.moving.clear()  # killed, and what it had sent was cancelled elsewhere: nothing is in flight
    assert not result["done"]
    result, _warnings = move(tmp_path, cluster)
    assert result["throttle_bytes_s"] == 1000 and cluster.moving and "1000" in cluster.throttled()


class Hiding(Cluster):
    """A cluster with a topic that the principal may not describe, on brokers 1 and 3. `lost`: brokers that do not
    answer; `comes`: a topic that is created after the first reading of the metadata; `late`: one that is deleted."""

    def __init__(self, lost=(), hidden=("hidden", 0), offline=()):
        super().__init__()
        self.lost, self.hidden, self.offline, self.refreshed, self.asked = lost, hidden, offline, 0, []

    def refresh(self):
        self.refreshed += 1
        self.partitions["new", 0] = {"replicas": [1, 3], "leader": 1, "isr": [1, 3]}

    def log_dirs(self, broker, _partitions=None):
        if broker in self.lost:
            raise LOST
        held = {partition for partition, found in self.partitions.items() if broker in found["replicas"]}
        held |= {self.hidden} if broker in (1, 3) and self.hidden else set()
        return LogDirs(dict.fromkeys(held, 100), [], list(self.offline))

    def denied(self, topics):
        self.asked.append(set(topics))
        return {"hidden"} & set(topics)


def plan(tmp_path, cluster, **options):
    given = {"drain": [], "drain_racks": [], "add": None, "replication_factor": None, "cordon": [], "topics": []}
    return partition_reassignment_info.collect(
        {**given, "state_dir": str(tmp_path), **options}, cluster, CONNECTIONS, True
    )


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({"drain": [3]}, ()),  # nothing else is on 3: it would count as empty
        ({"drain": [1]}, ()),
        ({"drain": [3], "topics": ["t", "hid*"]}, ()),
        ({"drain": [3]}, (3,)),  # 3 does not say it, and 1 has a replica of the same partition
        ({"drain": [9]}, ()),  # a dead broker
        ({"replication_factor": 3, "topics": ["*"]}, ()),
    ],
)
def test_no_plan_leaves_out_what_the_principal_may_not_describe(tmp_path, options, lost):
    with pytest.raises(reassignment.ReassignmentError, match=r"topics that the principal may not describe") as refused:
        if options.get("topics") == ["t", "hid*"]:
            cluster = Hiding(lost)
            cluster.partitions["hide", 0] = {"replicas": [1, 2], "leader": 1, "isr": [1, 2]}
            plan(tmp_path, cluster, **options)
        else:
            plan(tmp_path, Hiding(lost), **options)
    assert "hidden-0" in str(refused.value) and "--allow-principal User:tool --operation Describe --topic '*'" in str(
        refused.value
    )
    assert "Nothing was changed" in str(refused.value) and str(refused.value).endswith("(QS-ADMIN-016)")


@pytest.mark.parametrize(
    "options",
    [{"drain": [2]}, {"drain": [3], "topics": ["t"]}, {"add": "3"}, {"replication_factor": 3, "topics": ["u"]}],
)
def test_a_plan_that_has_nothing_to_do_with_them_is_made(tmp_path, options):
    assert plan(tmp_path, Hiding(), **options)["copies"]["warnings"] == []


def test_a_topic_that_was_just_created_is_planned_and_none_is_asked_for(tmp_path):
    cluster = Hiding(hidden=("new", 0))
    found = plan(tmp_path, cluster, drain=[3])
    assert found["plan"]["partitions"] == [{"topic": "new", "partition": 0, "replicas": [1, 2]}]
    assert cluster.refreshed == 1 and cluster.asked == [] and found["copies"]["warnings"] == []


def test_a_drain_names_strays_and_what_is_not_known(tmp_path):
    found = plan(tmp_path, Hiding(hidden=("old", 7)), drain=[3], topics=["t"])
    assert found["plan"]["partitions"] == []
    assert found["copies"]["warnings"] == [
        "broker 3 has directories of partitions that do not exist: old-7. Their topics are being deleted, or the "
        "directories are strays. No plan moves them"
    ]
    unknown = "it is not known whether broker 3 has replicas of topics that the principal may not describe: "
    found = plan(tmp_path, Hiding(lost=[3], hidden=None), drain=[3])
    assert found["copies"]["warnings"] == [unknown + str(LOST)] and found["unmeasured"] == [str(LOST)]
    found = plan(tmp_path, Hiding(hidden=None, offline=["/d2"]), drain=[3])
    assert found["copies"]["warnings"] == [unknown + "broker 3 has directories that are offline: /d2"]
    dead = Hiding(hidden=None)
    dead.partitions["t", 0]["replicas"] = [9, 1]
    found = plan(tmp_path, dead, drain=[9])
    assert [each["topic"] for each in found["plan"]["partitions"]] == ["t"]
    assert found["copies"]["warnings"] == [unknown.replace("broker 3", "broker 9") + "broker 9 is not alive"]
