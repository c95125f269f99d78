# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of a request, by enumeration of all that a server may offer; requests in each of their versions."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.messages import messages
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import (
    admin_requests,
    apis,
    broker_requests,
)

PARTITIONS = [("t", 3), ("t", 1), ("u", 0)]
REQUESTS = [
    broker_requests.metadata(None),
    broker_requests.metadata(["t", "u"]),
    broker_requests.configs([(2, "t"), (4, "1")], True, ["k"]),
    broker_requests.configs([(2, "t")], False),
    broker_requests.client_quotas(),
    broker_requests.scram(),
    broker_requests.acls(),
    broker_requests.cluster_acls(),
    broker_requests.client_metrics(),
    broker_requests.delegation_tokens(),
    broker_requests.no_delegation_tokens(),
    broker_requests.ends_of_replicas(PARTITIONS),
    broker_requests.ends_of_leaders(PARTITIONS),
    admin_requests.alter_reassignments({("t", 3): [1, 2], ("t", 1): None}, 5),
    admin_requests.list_reassignments(5),
    admin_requests.elect_preferred(PARTITIONS, 5),
    admin_requests.update_features({"metadata.version": (21, admin_requests.UPGRADE)}, True, 9),
    admin_requests.alter_configs({(admin_requests.BROKER, "1"): {"k": "v", "z": None}}),
    admin_requests.log_dirs(None),
    admin_requests.log_dirs(PARTITIONS),
    admin_requests.add_voter("c", 1, messages.ZERO_UUID, [("C", "h", 1)], 5),
    admin_requests.remove_voter("c", 1, messages.ZERO_UUID),
    admin_requests.unregister_controller(1),
]


@pytest.mark.parametrize("api", apis.ALL, ids=lambda api: api.name)
def test_the_newest_version_that_both_know_is_used(api):
    for first, last in itertools.combinations_with_replacement(range(api.newest + 4), 2):
        both = range(max(api.oldest, first), min(api.newest, last) + 1)
        assert api.version({api.api_key: (first, last)}) == (both[-1] if both else None)
    assert api.version({}) is None and api.version({api.api_key: (0, -1)}) is None


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: asked.api.name)
def test_a_request_can_be_said_in_each_of_its_versions(asked):
    """Nothing that is asked for is left out: what a version has no place for would be an error."""
    for version in range(asked.api.oldest, asked.api.newest + 1):
        decoded = messages.decode(f"{asked.api.name}Request", version, asked.body(version))
        assert {name: decoded[name] for name in asked.fields} == _with_defaults(asked, version)


def _with_defaults(asked, version):
    def whole(fields, given):
        return {
            field.name: whole_field(field, given[field.name]) if field.name in given else field.default
            for field in fields
        }

    def whole_field(field, value):
        if field.fields and isinstance(value, list):
            return [whole(field.fields, each) for each in value]
        return value

    fields = messages.fields_of(f"{asked.api.name}Request", version)
    return {field.name: whole_field(field, asked.fields[field.name]) for field in fields if field.name in asked.fields}


def test_the_cluster_and_its_rights_come_from_metadata_where_describe_cluster_is_not_offered():
    asked = apis.METADATA.request(topics=[], allowAutoTopicCreation=False, includeClusterAuthorizedOperations=True)
    assert asked.body(9)
    with pytest.raises(messages.MessageError, match="no such field"):
        asked.body(12)


def test_before_version_3_no_log_directory_means_that_none_may_be_described():
    for version in range(apis.DESCRIBE_LOG_DIRS.oldest, apis.DESCRIBE_LOG_DIRS.newest + 1):
        for results in ([], [{"errorCode": 0, "logDir": "/d", "topics": []}]):
            data = messages.encode("DescribeLogDirsResponse", version, {"results": results})
            found = broker_requests.read_log_dirs(apis.Answer(apis.DESCRIBE_LOG_DIRS, version, data))
            assert found["errorCode"] == (31 if version < 3 and not results else 0), version
            assert all(each["totalBytes"] == -1 for each in found["results"])
