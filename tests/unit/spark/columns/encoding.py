# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random partition records."""

from __future__ import annotations

import base64

from tests.unit.formats import metadata_batches


def record(record_type, version=0, /, **values):
    """Return the value of a metadata record; fields that the version does not have are left out."""
    return metadata_batches.record(record_type, values, version)


def uuid(random):
    """Return a uuid as Kafka's text."""
    return base64.urlsafe_b64encode(random.randbytes(16))[:22].decode()


def ids(random, longest=4):
    """Return broker ids; rarely more of them than the fast decoders take."""
    length = random.randint(120, 140) if random.random() < 0.02 else random.randint(0, longest)
    return [random.choice((random.randint(0, 40), random.randint(-(1 << 31), (1 << 31) - 1))) for _id in range(length)]


def partition(random):
    """Return a partition record of any version, as partitions are or with the fields that are rarely set."""
    values = {
        "partitionId": random.randint(0, 70000),
        "topicId": uuid(random),
        "replicas": ids(random),
        "isr": ids(random),
        "leader": random.randint(-1, 40),
        "leaderEpoch": random.randint(0, 1 << 30),
        "partitionEpoch": random.randint(0, 1 << 30),
        "directories": [uuid(random) for _replica in range(random.randint(0, 3))],
    }
    rare = {
        "removingReplicas": ids(random),
        "addingReplicas": ids(random),
        "leaderRecoveryState": 1,
        "eligibleLeaderReplicas": ids(random),
        "lastKnownElr": ids(random),
    }
    values.update({name: value for name, value in rare.items() if random.random() < 0.2})
    return record("PARTITION_RECORD", random.randint(0, 2), **values)


def change(random):
    """Return a partition change record of any version with some of its fields."""
    values = {
        "isr": ids(random),
        "leader": random.randint(-1, 40),
        "replicas": ids(random),
        "removingReplicas": ids(random),
        "addingReplicas": ids(random),
        "leaderRecoveryState": random.randint(0, 1),
        "directories": [uuid(random)],
        "eligibleLeaderReplicas": ids(random),
        "lastKnownElr": ids(random),
    }
    some = {name: value for name, value in values.items() if random.random() < 0.3}
    place = {"partitionId": random.randint(0, 70000), "topicId": uuid(random)}
    return record("PARTITION_CHANGE_RECORD", random.randint(0, 2), **place, **some)
