# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata of a small cluster, with every kind, in each view."""

from __future__ import annotations

import itertools
import json

from quorumshift_spark import normal_form as form
from quorumshift_spark import rules, views
from quorumshift_spark.normal_form import canonical
from quorumshift_spark.views import Shared

DIGESTS = form.Digests(b"a key of the cluster, 32 bytes..")
ZXID, OFFSET = 500, 900
ZOOKEEPER, LOG, BROKER, BASELINE = "zookeeper", "metadata_log", "broker:1", "baseline:zookeeper"

_STATE = {
    "topic_id": "4LpVqrIhR8CPQPMTHVv-eQ",
    "leader": 1,
    "leader_epoch": 7,
    "isr": [2, 1],
    "recovery_state": 0,
    "partition_epoch": 11,
}
_OF_LOG = {"elr": [2], "last_known_elr": [3], "directories": ["E1UYWavhQAyU62V1OOtFPg"]}
_REPLICAS = {"replicas": [1, 2, 3], "adding": [3], "removing": []}


def entities():
    """Return entities of every kind, with every field of any view."""
    return [
        form.topic("orders", "4LpVqrIhR8CPQPMTHVv-eQ"),
        form.topic("__consumer_offsets", "JACDP32aRuG92GqsO59rGw"),
        form.partition("orders", 0, {**_REPLICAS, **_STATE, **_OF_LOG}),
        form.partition("orders", 1, {**_REPLICAS, **_STATE, "leader": -1, "isr": [3], "removing": [1]}),
        form.partition("__consumer_offsets", 0, {**_REPLICAS, **_STATE, "recovery_state": 1}),
        form.config("topic", "orders", "retention.ms", "9000", DIGESTS),
        form.config("topic", "orders", "cleanup.policy", "compact,delete", DIGESTS),
        form.config("broker", "1", "listener.name.x.ssl.key.password", "hidden", DIGESTS),
        form.config("broker", None, "message.max.bytes", "2000000", DIGESTS),
        form.quota({"user": "al ice@x*~", "client-id": None}, "producer_byte_rate", 7),
        form.quota({"user": None}, "request_percentage", 50.5),
        form.quota({"client-id": "app/1"}, "consumer_byte_rate", 11),
        form.quota({"ip": "127.0.0.9"}, "connection_creation_rate", 5),
        form.scram("bob", "SCRAM-SHA-256", 4096, DIGESTS.scram("bob", "SCRAM-SHA-256", b"s", b"k", b"v", 4096)),
        form.acl("TOPIC", "LITERAL", "orders", "User:bob", "*", "READ", "ALLOW"),
        form.acl("GROUP", "PREFIXED", "g-", "User:CN=eve,O=x", "10.0.0.1", "ALL", "DENY"),
        form.delegation_token("E1UYWavhQAyU62V1OOtFPg", "User:a", "User:r", ["User:b", "User:a"], 1, 2, 3),
        form.producer_ids(6000, 5000, 1),
        form.feature("metadata.version", 21),
        form.migration("MIGRATION"),
        form.broker(
            1,
            {
                "fenced": False,
                "epoch": 40,
                "endpoints": [["PLAINTEXT", "b1", 9092, "PLAINTEXT"], ["SSL", "b1", 9093, "SSL"]],
                "rack": "r1",
                "log_dirs": ["E1UYWavhQAyU62V1OOtFPg"],
            },
        ),
        form.setting("min.insync.replicas", "2"),
        form.token_hmac("E1UYWavhQAyU62V1OOtFPg", DIGESTS.token("E1UYWavhQAyU62V1OOtFPg", b"hmac")),
    ]


_WITHOUT = {
    LOG: {("producer_ids", "start"), ("producer_ids", "broker")},
    BROKER: {
        *(("partition", name) for name in ("topic_id", "adding", "removing", "recovery_state", "partition_epoch")),
        *(("partition", name) for name in _OF_LOG),
        ("scram", "digest"),
        ("broker", "epoch"),
        ("broker", "log_dirs"),
    },
    ZOOKEEPER: {("broker", "log_dirs")},
}
_KINDS = {
    name: [kind for kind in form.KINDS if kind not in ("producer_ids", "migration")] for name in (BROKER, "broker:2")
}


def expanded(view, items):
    """Return the items of a view with an entity for each partition of its batches."""
    each = itertools.chain.from_iterable(item.items if isinstance(item, Shared) else [item] for item in items)
    return [entity for item in each for entity in views.entities(view, item)]


def in_view(view, entity):
    """Return an entity in a view: without the fields that it lacks, for brokers without secrets."""
    name = "metadata_log" if view.startswith(LOG) else view
    missing = _WITHOUT.get(name, ())
    fields = {field: text for field, text in entity.fields.items() if (entity.kind, field) not in missing}
    if name == BROKER and entity.kind == "config" and fields["value"].startswith('{"digest"'):
        fields["value"] = canonical({"digest": None})
    at = {} if name == BROKER else {"offset": OFFSET} if name == LOG else {"zxid": ZXID}
    return entity._replace(fields=fields, at=at)


def kinds(view):
    """Return the kinds that a view serves."""
    return tuple(_KINDS.get(view, form.STORED))


def comparisons():
    """Return comparisons with every relation."""
    names = (ZOOKEEPER, LOG, f"{LOG}:102", BROKER, BASELINE)
    return rules.plan("after_kraft", {name: kinds(name) for name in names})


def mutations(entity, field):
    """Yield (change, entity) with other values of one field."""
    value = json.loads(entity.fields[field])
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, (int, float)):
        others = [value + 1, value - 1]
    elif isinstance(value, str):
        others = [value + "x", ""]
    elif isinstance(value, dict):
        others = [{"digest": "0" * 64}, "clear"]
    elif value and isinstance(value[0], list):
        others = [[["OTHER", "b9", 1, "SSL"], *value], value[1:], [[*value[0][:2], 1, *value[0][3:]], *value[1:]]]
    elif value and isinstance(value[0], str):
        others = [[*value, "User:z"], value[1:]]
    else:
        others = [[*value, 99], value[1:] if value else [1]]
    for other in [*others, None]:
        yield f"{value} -> {other}", entity._replace(fields={**entity.fields, field: canonical(other)})
