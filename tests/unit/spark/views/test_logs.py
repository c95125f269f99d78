# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The views of ZooKeeper, the log and the baseline: data of a real Kafka 3.9.2, and data that Kafka would reject."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import pathlib
import pickle
import random
import shutil
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import zk_metadata
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_image import (
    PARTITION_FIELDS,
    TYPES,
    Image,
    InconsistentLog,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import (
    Record,
    read_records,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper as probe
from ansible_collections.quorumshift.kafka.plugins.module_utils.zk_write import backup_file
from quorumshift_spark import normal_form as form
from quorumshift_spark import rules
from quorumshift_spark.compare import LEFT_ONLY
from quorumshift_spark.excuses import Evidence
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.recheck import outcomes_of
from quorumshift_spark.views import Absent, Statement, ViewError, baseline, metadata_log, partition, zookeeper
from quorumshift_spark.views.metadata_log import LogSource, MetadataLogView, entities, removed
from quorumshift_spark.views.password_encoder import UndecodablePassword, decode

from tests.unit.formats import metadata_batches as made
from tests.unit.spark.realistic import DIGESTS, expanded

NAMES = {
    "replicas": "replicas",
    "adding": "addingReplicas",
    "removing": "removingReplicas",
    "leader": "leader",
    "leader_epoch": "leaderEpoch",
    "isr": "isr",
    "recovery_state": "leaderRecoveryState",
    "partition_epoch": "partitionEpoch",
}
UNIT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "encodersecret"
PASSWORD = "listener.name.external.ssl.key.password"


@pytest.fixture(scope="module")
def tree():
    backup = backup_file.Backup(str(UNIT / "fixtures" / "kafka_3.9.2_znodes.jsonl.gz"))
    return list(backup.check().znodes())


def read(tree, secrets=(SECRET,)):
    problems = []
    return expanded("zookeeper", zookeeper.Znodes(DIGESTS, secrets).read(tree, problems)), problems


def node(path, value, **stat):
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return znodes.Znode(path, data, None, znodes.Stat(*([0] * 11))._replace(**stat))


# --- ZooKeeper -----------------------------------------------------------------------------------------


def test_tree_of_kafka_has_every_kind_of_entity(tree):
    found, problems = read(tree)
    assert problems == []
    normalised = zk_metadata.normalise(tree)
    count = {kind: sum(entity.kind == kind for entity in found) for kind in zookeeper.ZooKeeperView.kinds}
    assert count == {
        "topic": len(normalised["topics"]),
        "partition": sum(len(topic["partitions"]) for topic in normalised["topics"].values()),
        "config": sum(len(entity) for kind in normalised["configs"].values() for entity in kind.values()),
        "quota": sum(len(quota["quotas"]) for quota in normalised["quotas"]),
        "scram": sum(len(user) for user in normalised["scram"].values()),
        "acl": len(normalised["acls"]),
        "delegation_token": len(normalised["delegation_tokens"]),
        "producer_ids": 1,
        "feature": 0,
        "broker": len(normalised["broker_ids"]),
    }
    assert len({(entity.kind, entity.key) for entity in found}) == len(found)
    by_path = {n.path: n.stat for n in tree}
    quota = next(e for e in found if e.key == '[[["user","al ice@x*~"]],"producer_byte_rate"]')
    assert quota.fields == {"value": "1024.0"}
    assert quota.at == {"zxid": by_path["/config/users/al%20ice%40x%2A%7E"].mzxid}


def test_every_entity_is_read_again_from_its_znodes(tree):
    by_path = {n.path: n for n in tree}
    found, dummy = read(tree)
    for entity in found:
        chains = zookeeper._chains(entity.kind, entity.key)
        home = [by_path[path] for chain in chains for path in chain if path in by_path]
        again, dummy = read(home)
        assert entity in again, (entity, chains)


def test_absence_is_the_last_change_of_the_nearest_znode(tree):
    by_path = {n.path: n for n in tree}

    def absence(kind, *key):
        return zookeeper._absence(kind, zookeeper._chains(kind, canonical(list(key))), by_path)

    def below(path, child):
        stat, deleted = by_path[path].stat, zookeeper.deletions(by_path[path].stat)
        return {"zxid": max(stat.pzxid, stat.mzxid), "under": path, "child": f"{path}/{child}", "deletions": deleted}

    assert absence("config", "topic", "orders", "segment.ms") == {"zxid": by_path["/config/topics/orders"].stat.mzxid}
    assert absence("topic", "missing") == below("/brokers/topics", "missing")
    assert absence("quota", [["client-id", "c"], ["user", "missing"]], "k") == below("/config/users", "missing")
    plain = by_path["/brokers/topics/plain"].stat
    assert absence("partition", "plain", 9) == {"zxid": plain.mzxid, "created": plain.czxid}
    assert absence("partition", "missing", 0) == below("/brokers/topics", "missing")
    assert zookeeper._absence("topic", [["/", "/brokers/topics"]], {}) == {"zxid": 0}


def test_partition_without_state_has_null_fields_and_state_without_topic_is_ignored():
    topic = node("/brokers/topics/t", {"version": 3, "topic_id": "id", "partitions": {"0": [1]}}, mzxid=4)
    stray = node("/brokers/topics/t/partitions/7/state", {"leader": 1, "leader_epoch": 0, "controller_epoch": 1})
    found, problems = read([topic, stray])
    assert problems == []
    partition = found[1]
    assert partition.fields["leader"] == partition.fields["isr"] == partition.fields["partition_epoch"] == "null"
    assert partition.fields["replicas"] == "[1]" and partition.at == {"zxid": 4}


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("/brokers/topics/t", b"{", "is not JSON"),
        ("/config/users/u", {"version": 1, "config": {"producer_byte_rate": "x"}}, "not a number"),
        ("/config/users/u", {"version": 1, "config": {"SCRAM-SHA-256": "salt=!,stored_key=a"}}, "SCRAM"),
        ("/kafka-acl/Shelf/a", {"version": 1, "acls": [{}]}, "principal"),
        ("/kafka-acl/Topic/a/b", None, None),
        ("/brokers/ids/one", {}, "not a broker id"),
        ("/delegation_token/tokens/t", {"version": 9}, "has version 9"),
    ],
)
def test_unreadable_znode_is_a_problem_without_its_value(path, value, reason):
    found, problems = read([node(path, value)])
    assert found == []
    if reason is None:
        assert problems == []
        return
    (problem,) = problems
    assert problem.where == path and reason in problem.reason
    assert "salt=!" not in problem.reason


def test_acl_with_a_slash_in_the_resource_name_is_a_problem():
    entry = {"principal": "User:a", "permissionType": "Allow", "host": "*", "operation": "Read"}
    found, (problem,) = read([node("/kafka-acl/Group/a/b", {"version": 1, "acls": [entry]})])
    assert found == [] and "slash" in problem.reason


# --- passwords -----------------------------------------------------------------------------------------


def encoded(tree):
    broker = next(n for n in tree if n.path == "/config/brokers/1")
    return json.loads(broker.data)["config"][PASSWORD]


def test_password_of_kafka_is_decoded_with_new_or_old_secret(tree):
    text = encoded(tree)
    assert decode(text, [SECRET]) == decode(text, ["newer", SECRET]) == "topsecret"


@pytest.mark.parametrize("secrets", [[], ["wrong"], ["wrong", "too"]])
def test_password_without_its_secret_is_unread(tree, secrets):
    with pytest.raises(UndecodablePassword) as error:
        decode(encoded(tree), secrets)
    assert encoded(tree) not in str(error.value)
    found, (problem,) = read(tree, secrets)
    assert PASSWORD in problem.reason
    unread = next(e for e in found if e.key == canonical(["broker", "1", PASSWORD]))
    assert unread.fields["value"].startswith('{"unread":')


@pytest.mark.parametrize("text", ["plain", "salt:x", "keyLength:128"])
def test_value_that_is_not_encoded_is_not_shown(text):
    with pytest.raises(UndecodablePassword, match="not in the format") as error:
        decode(text, [SECRET])
    assert text not in str(error.value)


def test_wrong_secrets_never_decode(tree):
    """Padding alone accepts one wrong key in 256; the length check must reject it."""
    text = encoded(tree).replace("iterations:4096", "iterations:1")
    for number in range(600):
        with pytest.raises(UndecodablePassword):
            decode(text, [f"wrong {number}"])


def test_secret_has_the_same_digest_in_zookeeper_and_in_the_log(tree):
    found, dummy = read(tree)
    image = Image()
    apply(image, 0, "CONFIG_RECORD", resourceType=4, resourceName="1", name=PASSWORD, value="topsecret")
    bob = next(n for n in tree if n.path == "/config/users/bob")
    text = json.loads(bob.data)["config"]["SCRAM-SHA-512"]
    credential = znodes.scram_credential(text, bob.path, "SCRAM-SHA-512")
    salt, stored, server = (form._raw(credential[name]) for name in ("salt", "stored_key", "server_key"))
    keys = {"salt": salt, "storedKey": stored, "serverKey": server, "iterations": credential["iterations"]}
    apply(image, 1, "USER_SCRAM_CREDENTIAL_RECORD", name="bob", mechanism=2, **keys)
    of_log = list(entities(image, DIGESTS))
    assert len(of_log) == 2
    for entity in of_log:
        twin = next(e for e in found if (e.kind, e.key) == (entity.kind, entity.key))
        assert twin.fields == entity.fields
    other = form.Digests(b"another key, of another cluster")
    assert [e.fields for e in entities(image, other)] != [e.fields for e in of_log]


# --- the log -------------------------------------------------------------------------------------------


def apply(image, offset, kind, **fields):
    image.apply(Record(offset, 1, 0, kind, 0, fields, False))


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory):
    home = tmp_path_factory.mktemp("recorded")
    with tarfile.open(UNIT / "formats" / "data" / "metadata_log.tar.xz") as tar:
        tar.extractall(home)
    return str(home / "__cluster_metadata-0")


def test_log_of_kafka_agrees_with_its_summary(log_directory, monkeypatch):
    monkeypatch.setattr(metadata_log, "_PIECE", 10_000)
    summary = metadata_summary.summarise(log_directory)
    view = MetadataLogView(LogSource(summary["log_end_offset"], directory=log_directory), DIGESTS)
    first, *others = view.parts()
    *items, statement = view.read(first)
    found = [item for item in items if not isinstance(item, pa.RecordBatch)]
    assert statement == Statement({"offset": summary["log_end_offset"], "epoch": summary["last_epoch"]}, [])
    count = {kind: sum(entity.kind == kind for entity in found) for kind in form.STORED}
    assert all(count[kind] > 0 for kind in ("topic", "config", "quota", "acl", "scram"))
    partitions = sum(len(item) for item in items if isinstance(item, pa.RecordBatch))
    for part in others:
        *batches, of_part = view.read(part)
        assert of_part == statement
        partitions += sum(map(len, batches))
    image = Image.from_records(read_records(log_directory, types=TYPES))
    assert partitions == sum(map(len, image.partitions.values())) > 0 and others
    assert count["broker"] == len(summary["brokers"]) and count["feature"] == len(summary["features"])
    assert all(0 <= entity.at["offset"] < summary["log_end_offset"] for entity in found)
    missing = ("topic", '["missing"]')
    again, dummy = view.reread({("topic", found[0].key), missing})
    assert again[("topic", found[0].key)] == found[0]
    assert again[missing] == Absent({}), "the log does not show whether it ever existed"


def test_log_that_ends_before_the_high_watermark_is_an_error(log_directory):
    end = metadata_summary.summarise(log_directory)["log_end_offset"]
    view = MetadataLogView(LogSource(end + 5, directory=log_directory), DIGESTS, "metadata_log:102")
    with pytest.raises(
        ViewError, match=f"_log:102: the log ends at offset {end} .* 5 short of the high watermark {end + 5}"
    ):
        view.parts()


def test_a_log_with_the_leaders_bytes_is_a_copy(log_directory, tmp_path):
    end = metadata_summary.summarise(log_directory)["log_end_offset"]
    directory = shutil.copytree(log_directory, tmp_path / "voter")

    def voter():
        leader = MetadataLogView(LogSource(end, directory=log_directory), DIGESTS)
        source = LogSource(end, directory=str(directory))
        view = MetadataLogView(source, DIGESTS, "metadata_log:102", leader=leader)
        return view, view.parts()

    view, (piece,) = voter()
    (statement,) = view.read(pickle.loads(pickle.dumps(piece)))
    assert statement.state["copy_of"] == "metadata_log" and statement.state["offset"] == end
    segment = max(directory.glob("*.log"))
    raw = segment.read_bytes()
    segment.write_bytes(raw + b"\0" * 40)  # preallocated, or a batch that is not complete
    assert len(voter()[1]) == 1
    segment.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(ViewError, match=r"_log:102: .*wrong checksum"):
        voter()


def test_missing_log_is_named(tmp_path):
    view = MetadataLogView(LogSource(1, directory=str(tmp_path / "no")), DIGESTS)
    with pytest.raises(ViewError, match=r"metadata_log: .*/no"):
        view.parts()


def test_partitions_that_are_read_again_are_those_of_the_image(log_directory):
    image = Image.from_records(read_records(log_directory, types=TYPES))
    end = metadata_summary.summarise(log_directory)["log_end_offset"]
    keys = {
        ("partition", canonical([image.topics[topic_id][0], number])): (topic_id, values)
        for topic_id, partitions in image.partitions.items()
        for number, values in partitions.items()
    }
    found, dummy = MetadataLogView(LogSource(end, directory=log_directory), DIGESTS).reread(keys)
    for key, (topic_id, values) in keys.items():
        fields = dict(zip(PARTITION_FIELDS, values))
        expected = form.partition(
            *form.key_of(key[1]), {"topic_id": topic_id, **{ours: fields[theirs] for ours, theirs in NAMES.items()}}
        )
        assert {name: found[key].fields[name] for name in expected.fields} == expected.fields
        assert found[key].at == {"offset": values[-1]}


UUIDS = [f"{letter * 21}A" for letter in "TUVW"]


def random_values(chance, count):
    """Yield records that Kafka could log: topics, partitions, configs, quotas, users and ACLs come, change and go."""
    topics, acls, number = {}, set(), 0
    for _value in range(count):
        kind = chance.randrange(7)
        if kind == 0 and len(topics) < 2:
            number += 1
            topics[number] = min({"t0", "t1"}.difference(topics.values()))
            uuid = base64.urlsafe_b64encode(bytes([number]) * 16).rstrip(b"=").decode()
            yield made.topic(topics[number], number)
            yield made.record(
                "PARTITION_RECORD",
                {
                    "topicId": uuid,
                    "partitionId": 0,
                    "replicas": [1, 2],
                    "isr": [1, 2],
                    "leader": 1,
                    "partitionEpoch": 0,
                    "leaderEpoch": 0,
                },
            )
        elif kind == 1 and topics:
            topic = chance.choice([*topics])
            uuid = base64.urlsafe_b64encode(bytes([topic]) * 16).rstrip(b"=").decode()
            if chance.random() < 0.3:
                del topics[topic]
                yield made.record("REMOVE_TOPIC_RECORD", {"topicId": uuid})
            else:
                yield made.record(
                    "PARTITION_CHANGE_RECORD", {"topicId": uuid, "partitionId": 0, "leader": chance.choice((1, 2))}
                )
        elif kind == 2:
            yield made.config(4, "", chance.choice("ab"), chance.choice(("1", "2", None)))
        elif kind == 3:
            entity = {"entityType": "user", "entityName": chance.choice("uv")}
            value = {"entity": [entity], "key": "k", "value": chance.random(), "remove": chance.random() < 0.3}
            yield made.record("CLIENT_QUOTA_RECORD", value)
        elif kind == 4:
            yield made.feature("group.version", chance.choice((0, 1)))
        elif kind == 5 and len(acls) < 2:
            acl = chance.choice(sorted({*UUIDS} - acls))
            acls.add(acl)
            more = {"resourceType": 2, "patternType": 3, "operation": 3, "permissionType": 3, "host": "*"}
            name = f"x{UUIDS.index(acl) % 2}"  # two ids may have the same content
            given = {"id": acl, "resourceName": name, "principal": "User:a", **more}
            yield made.record("ACCESS_CONTROL_ENTRY_RECORD", given)
        elif kind == 6 and acls:
            acl = chance.choice(sorted(acls))
            acls.discard(acl)
            yield made.record("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": acl})


@pytest.mark.parametrize("seed", range(8))
def test_what_keys_were_between_two_snapshots_is_what_kafka_had(tmp_path, seed):
    """Each state in the order of the records, and no other; of a recreated topic only partitions of the last one."""
    batches = [made.batch(offset, [value]) for offset, value in enumerate(random_values(random.Random(seed), 120))]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(batches))
    begin, end = len(batches) // 2, len(batches)
    image, states = Image(), {}
    for record in read_records(str(tmp_path), types=TYPES):
        image.apply(record)
        of_partitions = (partition("metadata_log", row, row["at"]) for row in metadata_log._partitions(image))
        for entity in itertools.chain(entities(image, DIGESTS), of_partitions):
            if record.offset >= begin and entity.at["offset"] == record.offset:
                states.setdefault((entity.kind, entity.key), []).append(entity)
    gone = {key for key, at in metadata_log.removed(image).items() if at >= begin}
    view = MetadataLogView(LogSource(begin, directory=str(tmp_path)), DIGESTS)
    view.source = view.source._replace(end_offset=end)
    found, _statement = view.reread(states.keys() | gone)
    assert states and view.between.keys() | {key for key in states if key[0] == "partition"} == states.keys() | gone
    for key, sides in view.between.items():
        listed = states.get(key, [])
        if key[0] == "partition":
            listed = [
                entity
                for entity in listed
                if entity.fields["topic_id"] in {f'"{topic_id}"' for topic_id in image.topics}
            ]
        assert [side for side in sides if not isinstance(side, Absent)] == listed
        absent = [side for side in sides if isinstance(side, Absent)]
        assert len(absent) == (key in gone) and (not isinstance(found[key], Absent) or absent == [found[key]])
    view.reread(states)
    assert view.between == {}


def test_every_record_of_the_recorded_log_is_applied_once(log_directory):
    image = Image.from_records(read_records(log_directory, types=TYPES))
    assert len({(e.kind, e.key) for e in entities(image, DIGESTS)}) == len(list(entities(image, DIGESTS)))


def partition_record(**fields):
    values = {
        "partitionId": 0,
        "topicId": "T",
        "replicas": [1, 2],
        "isr": [2, 1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderRecoveryState": 0,
        "leaderEpoch": 3,
        "partitionEpoch": 9,
        "eligibleLeaderReplicas": None,
        "lastKnownElr": None,
        "directories": [],
    }
    return {**values, **fields}


def change_record(**fields):
    lists = ("isr", "replicas", "removingReplicas", "addingReplicas", "eligibleLeaderReplicas", "lastKnownElr")
    unset = dict.fromkeys((*lists, "directories"))
    return {"partitionId": 0, "topicId": "T", **unset, "leader": -2, "leaderRecoveryState": -1, **fields}


@pytest.fixture
def image():
    made = Image()
    apply(made, 0, "TOPIC_RECORD", name="t", topicId="T")
    apply(made, 1, "PARTITION_RECORD", **partition_record())
    apply(made, 2, "CONFIG_RECORD", resourceType=2, resourceName="t", name="retention.ms", value="1")
    return made


def there(image):
    return {(entity.kind, entity.key): entity for entity in entities(image, DIGESTS)}


def test_partition_change_sets_its_fields_and_raises_epochs(image):
    def values(*names):
        fields = dict(zip((*PARTITION_FIELDS, "at"), image.partitions["T"][0]))
        return tuple(fields[name] for name in names)

    epochs = "leaderEpoch", "partitionEpoch", "at"
    apply(image, 5, "PARTITION_CHANGE_RECORD", **change_record(isr=[1]))
    assert values("isr", "leader", "replicas", *epochs) == ([1], 1, [1, 2], 3, 10, 5)
    apply(image, 6, "PARTITION_CHANGE_RECORD", **change_record(leader=-1, leaderRecoveryState=1))
    assert values("isr", "leader", "leaderRecoveryState", *epochs) == ([1], -1, 1, 4, 11, 6)
    apply(image, 7, "PARTITION_CHANGE_RECORD", **change_record(leader=-1, replicas=[3], addingReplicas=[3, 1]))
    # a record with the same leader is an election as well (PartitionRegistration.merge)
    assert values("replicas", "addingReplicas", *epochs) == ([3], [3, 1], 5, 12, 7)


def test_removed_topic_removes_its_partitions_and_configs(image):
    apply(image, 8, "REMOVE_TOPIC_RECORD", topicId="T")
    assert there(image) == {}
    for key in (("topic", '["t"]'), ("partition", '["t",0]'), ("config", '["topic","t","retention.ms"]')):
        assert removed(image)[key] == 8


def test_recreated_topic_has_its_new_id(image):
    apply(image, 8, "REMOVE_TOPIC_RECORD", topicId="T")
    apply(image, 9, "TOPIC_RECORD", name="t", topicId="U")
    assert there(image)[("topic", '["t"]')].fields == {"id": '"U"'}


@pytest.mark.parametrize(
    ("create", "remove", "key"),
    [
        (
            ("CONFIG_RECORD", {"resourceType": 4, "resourceName": "", "name": "n", "value": "v"}),
            ("CONFIG_RECORD", {"resourceType": 4, "resourceName": "", "name": "n", "value": None}),
            ("config", '["broker",null,"n"]'),
        ),
        (
            (
                "CLIENT_QUOTA_RECORD",
                {"entity": [{"entityType": "user", "entityName": None}], "key": "k", "value": 1.0, "remove": False},
            ),
            (
                "CLIENT_QUOTA_RECORD",
                {"entity": [{"entityType": "user", "entityName": None}], "key": "k", "value": 0.0, "remove": True},
            ),
            ("quota", '[[["user",null]],"k"]'),
        ),
        (
            (
                "USER_SCRAM_CREDENTIAL_RECORD",
                {"name": "u", "mechanism": 1, "salt": b"s", "storedKey": b"k", "serverKey": b"v", "iterations": 1},
            ),
            ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "u", "mechanism": 1}),
            ("scram", '["u","SCRAM-SHA-256"]'),
        ),
        (
            (
                "ACCESS_CONTROL_ENTRY_RECORD",
                {
                    "id": "A",
                    "resourceType": 2,
                    "resourceName": "t",
                    "patternType": 4,
                    "principal": "User:a",
                    "host": "*",
                    "operation": 3,
                    "permissionType": 2,
                },
            ),
            ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "A"}),
            ("acl", '["TOPIC","PREFIXED","t","User:a","*","READ","DENY"]'),
        ),
        (
            (
                "DELEGATION_TOKEN_RECORD",
                {
                    "tokenId": "i",
                    "owner": "User:a",
                    "requester": "User:a",
                    "renewers": [],
                    "issueTimestamp": 1,
                    "expirationTimestamp": 2,
                    "maxTimestamp": 3,
                },
            ),
            ("REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": "i"}),
            ("delegation_token", '["i"]'),
        ),
        (
            ("FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": 3}),
            ("FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": 0}),
            ("feature", '["f"]'),
        ),
    ],
)
def test_remove_record_removes_the_entity(create, remove, key):
    image = Image()
    apply(image, 3, create[0], **create[1])
    assert there(image)[key].at == {"offset": 3}
    apply(image, 7, remove[0], **remove[1])
    assert there(image) == {}
    assert removed(image)[key] == 7


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("PARTITION_RECORD", partition_record(topicId="X")),
        ("PARTITION_CHANGE_RECORD", change_record(topicId="X")),
        ("PARTITION_CHANGE_RECORD", change_record(partitionId=5)),
        ("REMOVE_TOPIC_RECORD", {"topicId": "X"}),
        ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "X"}),
        ("FENCE_BROKER_RECORD", {"id": 1, "epoch": 2}),
    ],
)
def test_record_that_kafka_would_reject_is_an_error(image, kind, fields):
    with pytest.raises(InconsistentLog, match="offset 12"):
        apply(image, 12, kind, **fields)


# --- the baseline --------------------------------------------------------------------------------------

KEY = b"k" * 32


def written(path, **about):
    metadata = {
        "cluster_id": "C",
        "gate": "g",
        "nonce": "n",
        "key_id": baseline.key_id(KEY),
        "states": {"zookeeper": {"zxid": 7}},
    }
    with baseline.BaselineWriter(path, {**metadata, **about}, KEY) as writer:
        for kind in ("topic", "acl"):
            rows = [{"view": "zookeeper", "kind": kind, "key": '["t"]', "fields": '{"id":"é"}', "at": '{"zxid":3}'}]
            writer.write(pa.Table.from_pylist(rows, baseline.SCHEMA))
        row = {"view": "zookeeper", "kind": "partition", "topic": "t", "partition": 3, "isr": [1, 2], "changed": 9}
        writer.write(pa.Table.from_pylist([row], baseline.SCHEMA))
    return path


@pytest.mark.parametrize("is_apart", [False, True])
def test_baseline_is_read_back(tmp_path, is_apart):
    path = written(str(tmp_path / "e.parquet"))
    assert (tmp_path / "e.parquet").stat().st_mode & 0o077 == 0
    view = baseline.BaselineView(path, "zookeeper", "C", KEY)
    if is_apart:
        view.carry_files()
    parts = view.parts()
    assert len(parts) == 3
    if is_apart:
        os.unlink(path)
    for part, kind in zip(parts, ("topic", "acl")):
        entity, statement = view.read(part)
        assert entity == form.Entity(kind, '["t"]', {"id": '"é"'}, {"zxid": 3})
        assert statement == Statement({"zxid": 7}, [])
    batch, dummy = view.read(parts[2])
    row = {name: value for name, value in batch.to_pylist()[0].items() if value is not None}
    assert row == {"topic": "t", "partition": 3, "isr": [1, 2], "at": 9}


@pytest.mark.parametrize(
    ("about", "cluster", "key", "message"),
    [
        ({}, "D", KEY, "is of cluster C, not of D"),
        ({}, "C", b"x" * 32, "another digest key"),
        ({"format": 9}, "C", KEY, "has format 9"),
    ],
)
def test_baseline_that_cannot_be_compared_is_rejected(tmp_path, about, cluster, key, message):
    path = written(str(tmp_path / "e.parquet"), **about)
    with pytest.raises(ViewError, match=message):
        baseline.BaselineView(path, "zookeeper", cluster, key).parts()


def test_a_baseline_that_someone_else_wrote_is_rejected(tmp_path):
    """Who can write the file can compute any checksum without a key."""
    path, other = (written(str(tmp_path / name)) for name in ("e.parquet", "f.parquet"))
    table = pq.read_table(path)
    with baseline.BaselineWriter(path, baseline.about(path), b"another key, of 32 bytes or more") as writer:
        writer.write(table.slice(1))
    with pytest.raises(ViewError, match="does not match its signature"):
        baseline.BaselineView(path, "zookeeper", "C", KEY).parts()
    os.unlink(other + baseline.SIGNATURE)
    with pytest.raises(ViewError, match="has no signature"):
        baseline.BaselineView(other, "zookeeper", "C", KEY).parts()


def test_a_changed_byte_of_a_baseline_is_no_difference(tmp_path):
    path = written(str(tmp_path / "e.parquet"))
    data = pathlib.Path(path).read_bytes()

    def rows():
        view = baseline.BaselineView(path, "zookeeper", "C", KEY)
        return [str(item) for part in view.parts() for item in expanded("baseline:zookeeper", view.read(part))]

    expected, damaged = rows(), 0
    for at in range(0, len(data), 7):
        pathlib.Path(path).write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            assert rows() == expected, at
        except ViewError as error:
            damaged += "the file is damaged" in str(error)
    assert damaged > 20


def test_file_that_is_not_a_baseline_is_named(tmp_path):
    for content in (None, b"", b"PAR1"):
        path = tmp_path / "e.parquet"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ViewError, match=r"e\.parquet"):
            baseline.about(str(path))


def test_failed_writer_leaves_no_file(tmp_path):
    with pytest.raises(RuntimeError), baseline.BaselineWriter(str(tmp_path / "e.parquet"), {}, KEY):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


# --- ZooKeeper in parts --------------------------------------------------------------------------------


class Tree:
    """A reader of given znodes, replaces probes.zookeeper.zookeeper.Reader."""

    window = 2

    def __init__(self, nodes):
        self.nodes = {n.path: n for n in nodes}
        self.pace = probe.Pace(self.window)

    def zxid(self):
        return 141

    def get_many(self, paths):
        return [self.nodes[path] for path in paths if path in self.nodes]

    def children_many(self, paths):
        for path in paths:
            names = {p[len(path) + 1 :].split("/")[0] for p in self.nodes if p.startswith(path + "/")}
            yield path, sorted(names) if path in self.nodes else None

    def stat_many(self, paths):
        return [(path, self.nodes[path].stat if path in self.nodes else None) for path in paths]

    def tree(self, root):
        return [n for path, n in sorted(self.nodes.items()) if path == root or path.startswith(root + "/")]


@pytest.fixture
def view(tree, monkeypatch):
    made = zookeeper.ZooKeeperView("h:1", None, DIGESTS, [SECRET], cluster_id="Qs7KfZk2TIK1n0nQ5Qm3Tw")
    made.at = Tree(tree)

    @contextlib.contextmanager
    def session(sharing=1):
        yield made.at

    monkeypatch.setattr(made, "_session", session)
    return made


@pytest.mark.parametrize("topics_a_part", [1, 2, 2000])
def test_every_entity_is_in_exactly_one_part(view, tree, monkeypatch, topics_a_part):
    monkeypatch.setattr(zookeeper, "TOPICS_A_PART", topics_a_part)
    parts = view.parts()
    assert {part.of for part in parts} == {len(parts)}
    # created after the topics were listed, with names before, between and after theirs
    for name in ("0", "b", "zz"):
        made = node(f"/brokers/topics/{name}", {"version": 3, "topic_id": name, "partitions": {"0": [1]}})
        view.at.nodes[made.path] = made
    found, counted = [], {}
    for part in parts:
        *entities, statement = expanded("zookeeper", view.read(part))
        assert (statement.state["zxid"], statement.problems) == (141, [])
        counted.update(statement.state["deletions"])
        found += entities
    complete, dummy = read(view.at.nodes.values())
    assert sorted(map(str, found)) == sorted(map(str, complete))
    assert {"/brokers/topics", "/config/topics", "/config/users", "/kafka-acl/Topic"} <= set(counted)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100, 0])
def test_no_more_tasks_than_share_the_rate_read(view, monkeypatch, at_once):
    """A bound for any number of executors: each task takes its share of the rate, and all that is read is in one."""
    monkeypatch.setattr(zookeeper, "TOPICS_A_PART", 1)
    parts = view.parts(at_once)
    topics = len(dict(view.at.children_many(["/brokers/topics"]))["/brokers/topics"])
    assert len(parts) == min(at_once or topics + 1, topics + 1) and {part.of for part in parts} == {len(parts)}
    assert sorted(what for part in parts for what in part.others) == ["acls", "configs", "rest"]
    assert [part.low for part in parts] == [None, *(part.high for part in parts[:-1])] and parts[-1].high is None


def test_reread_returns_entities_and_absences(view, tree):
    complete, dummy = read(tree)
    keys = {(entity.kind, entity.key) for entity in complete}
    absent = {
        ("topic", '["missing"]'),
        ("partition", '["missing",0]'),
        ("partition", '["plain",9]'),
        ("scram", '["x","y"]'),
    }
    found, statement = view.reread(keys | absent)
    assert [found[(entity.kind, entity.key)] for entity in complete] == complete
    by_path = view.at.nodes
    topics, plain = by_path["/brokers/topics"].stat, by_path["/brokers/topics/plain"].stat
    deleted = {"under": "/brokers/topics", "child": "/brokers/topics/missing"}
    deleted["deletions"] = zookeeper.deletions(topics)
    assert found[("topic", '["missing"]')] == Absent({"zxid": topics.pzxid, **deleted})
    assert found[("partition", '["plain",9]')] == Absent({"zxid": plain.mzxid, "created": plain.czxid})
    assert statement == Statement({"zxid": 141}, [])


def test_another_cluster_at_the_connect_string_is_rejected(view):
    view.probe()
    view.at.nodes["/cluster/id"] = node("/cluster/id", {"version": "1", "id": "other"})
    with pytest.raises(ViewError, match="holds cluster other, not Qs7KfZk2TIK1n0nQ5Qm3Tw"):
        view.probe()
    del view.at.nodes["/cluster/id"]
    with pytest.raises(ViewError, match="holds no Kafka cluster"):
        view.probe()


def test_migration_returns_offset_and_zxid(view):
    with pytest.raises(probe.ZooKeeperMissing, match="no migration is in progress"):
        view.migration()
    names = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_offset", "kraft_metadata_epoch")
    view.at.nodes["/migration"] = node("/migration", {"version": 0, **dict.fromkeys(names, 5)}, mzxid=9)
    assert view.migration() == (5, 9)
    view.at.nodes["/migration"] = node("/migration", None)
    with pytest.raises(probe.ZooKeeperError, match="null data"):
        view.migration()


def test_a_record_that_contradicts_a_newer_checkpoint_shows_no_change(tmp_path):
    """The checkpoint has what a record removed, and lacks what records set: a fault of the node that wrote it."""
    of_partition = {"topicId": UUIDS[0], "partitionId": 0, "replicas": [1], "isr": [1], "leader": 1}
    partition_set = made.record("PARTITION_RECORD", of_partition)
    changed = made.record("PARTITION_CHANGE_RECORD", {"topicId": UUIDS[0], "partitionId": 0, "isr": [1]})
    topic = made.record("TOPIC_RECORD", {"name": "t", "topicId": UUIDS[0]})
    before = [topic, partition_set, made.config(4, "", "set", "1"), made.config(4, "", "removed", "1")]
    since = [made.config(4, "", "set", "2"), made.config(4, "", "removed", None), changed]
    (tmp_path / f"{0:020d}.log").write_bytes(made.batch(0, before) + made.batch(4, since))
    summed_up = [made.batch(0, [made.SNAPSHOT_HEADER]), made.batch(1, [topic, before[3]])]
    (tmp_path / f"{7:020d}-{1:010d}.checkpoint").write_bytes(
        b"".join([*summed_up, made.batch(3, [made.SNAPSHOT_FOOTER])])
    )
    view = MetadataLogView(LogSource(7, str(tmp_path)), DIGESTS)
    history = view.history(4)
    keys = {name: ("config", canonical(["broker", None, name])) for name in ("set", "removed")}
    assert [history.last(keys["set"], (), is_there) for is_there in (True, False)] == [4, None]
    assert [history.last(keys["removed"], (), is_there) for is_there in (True, False)] == [None, 5]
    of_topic = ("partition", canonical(["t", 0])), [UUIDS[0]]
    assert [history.last(*of_topic, is_there) for is_there in (True, False)] == [6, None]
    comparison = rules.Comparison("baseline:metadata_log", rules.LOG, rules.SINCE, form.STORED)
    evidence = Evidence({comparison.left: {"offset": 4}}, log=view)
    then = form.config("broker", None, "set", "1", DIGESTS, {"offset": 2})
    sides = {comparison.left: then, comparison.right: Absent({})}
    assert outcomes_of(keys["set"], sides, [comparison], evidence)[comparison].outcome == LEFT_ONLY


def test_a_newer_snapshot_of_a_round_is_searched_for_what_kafka_does_not_have(tmp_path):
    """A record that comes while the job runs: the keys that are read again are of that snapshot."""
    first, newer = tmp_path / "first", tmp_path / "newer"
    for directory in (first, newer):
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(made.batch(0, [made.topic("a", 1), made.NO_OP]))
    with open(newer / f"{0:020d}.log", "ab") as file:
        file.write(made.batch(2, [b"\x01\xaf\x75\x00\x00"]))
    view = MetadataLogView(LogSource(2, str(first)), DIGESTS)
    key = ("topic", canonical(["a"]))
    view.reread([key])
    assert view.not_compared == [{}]
    view.source = LogSource(3, str(newer))
    found, _statement = view.reread([key])
    assert not isinstance(found[key], Absent)
    assert view.not_compared[-1] == {"record=15023v0": {"count": 1, "first": "offset 2"}}


def test_an_unknown_type_is_in_the_state_and_an_unknown_version_an_error(tmp_path):
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(made.batch(0, [made.topic("a", 1), b"\x01\xaf\x75\x00\x00"]))
    view = MetadataLogView(LogSource(2, str(tmp_path)), DIGESTS)
    *_items, statement = [item for part in view.parts() for item in view.read(part)]
    assert statement.state["not_compared"] == {"record=15023v0": {"count": 1, "first": "offset 1"}}
    assert statement.problems == []
    path.write_bytes(made.batch(0, [made.topic("a", 1), b"\x01\x02\x01\x00"]))
    with pytest.raises(ViewError, match=r"TOPIC_RECORD version 1.*nothing accepts it.*QS-VERIFY-009"):
        list(itertools.chain.from_iterable(map(view.read, view.parts())))
