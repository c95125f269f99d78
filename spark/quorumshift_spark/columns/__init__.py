# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders of a cluster's partitions into Arrow columns: of the metadata log, a broker's Metadata, ZooKeeper's states.

A partition is what is many in a cluster. Each decoder reads the common form of all rows together, and checks every byte
that it assumes. What is not in that form goes through the generic decoder (plugins/module_utils/formats), which also
reports what is malformed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

IDS = pa.list_(pa.int32())
TOPIC_ID = pa.string()
"""Kafka's base64 text, as TOPIC_RECORD, ZooKeeper and the answers of brokers have it."""
PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", TOPIC_ID),
        ("partition", pa.int32()),
        ("replicas", IDS),
        ("adding", IDS),
        ("removing", IDS),
        ("isr", IDS),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("recovery_state", pa.int8()),
        ("partition_epoch", pa.int32()),
        ("elr", IDS),
        ("last_known_elr", IDS),
        ("directories", pa.list_(pa.string())),
        ("at", pa.int64()),
    ]
)
"""A partition as a view has it. Null: the view does not have the field. `replicas` has the order of preference, and
`directories` that of the replicas; the other lists are sorted. `at`: the offset or zxid of the last change."""


def sorted_lists(lists: pa.ListArray) -> pa.ListArray:
    """Return these lists of int32, each sorted ascending."""
    lengths = np.asarray(lists.value_lengths().fill_null(0))
    values = np.asarray(lists.flatten()).astype(np.int64)
    rows = np.repeat(np.arange(len(lists)), lengths) << 32
    # One sort by (row, value): values are shifted to be positive, so that they fit the lower half
    keys = rows | (values + (1 << 31))
    keys.sort()
    ordered = ((keys & 0xFFFFFFFF) - (1 << 31)).astype(np.int32)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, pa.array(ordered), mask=mask)
