# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which SCRAM credentials a node of Kafka 3.9 loses when it loads its metadata log.

A node applies the log in parts. Of each user in a part it keeps the last change, in a java.util.HashMap, and applies
these in the map's order to the users that it has. ScramDelta.apply drops the mechanism when a removal leaves no user,
and loses what it adds afterwards. A node that starts applies at once what is newer than its checkpoint. So it loses all
users of a mechanism if the first one in the map's order was removed, and the checkpoint has none.

Sources: org.apache.kafka.image.ScramDelta, loader.MetadataBatchLoader (parts end where a transaction begins, and at the
end of each read), kafka.raft.KafkaMetadataLog.read (one segment, 8 MiB), java.util.HashMap and String.hashCode.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, Iterable, List, Set

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.enums import SCRAM_MECHANISMS, name_from_code
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_log import (
    MARKERS,
    OpenLog,
    decode_batch,
    segment_batches,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata.metadata_schemas import API_KEYS
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import Batch, read_batches

READ_BYTES = 8 << 20
"""KafkaRaftClient.MAX_FETCH_SIZE_BYTES"""

_PUT = API_KEYS["USER_SCRAM_CREDENTIAL_RECORD"]
_REMOVE = API_KEYS["REMOVE_USER_SCRAM_CREDENTIAL_RECORD"]
_BEGIN = API_KEYS["BEGIN_TRANSACTION_RECORD"]
_ABORT = API_KEYS["ABORT_TRANSACTION_RECORD"]
_WANTED = frozenset((_PUT, _REMOVE))
_FRAME = re.compile(b"\x01[%b]\0" % bytes(sorted(_WANTED | MARKERS)))

Losses = Dict[str, List[str]]
"""{mechanism: the removed users that come first}"""


def losses(log: OpenLog, end_offset: int) -> Losses:
    """Return what a node loses that loads the open `log` below `end_offset`, by mechanism; {} if nothing.

    The parts are those of Kafka's reads, and as if the log were read at once, since a node that fetches reads less
    regularly. Raises as metadata_log.scan_log does, except for checksums.
    """
    as_read, at_once = _Loading(), _Loading()
    if log.checkpoint:
        for batch in read_batches(log.checkpoint_file, log.checkpoint.path, check_crc=False):
            _load(batch, log.checkpoint.path, 0, sys.maxsize, (as_read, at_once))
        as_read.end()
        at_once.end()
    read, last = 0, ""
    for batch, path in segment_batches(log, end_offset, check_crc=False):
        read += batch.size
        if path != last or read > READ_BYTES:
            as_read.end()
            read, last = batch.size, path
        _load(batch, path, log.start_offset, end_offset, (as_read, at_once))
    found: Losses = {}
    for loading in (as_read, at_once):
        loading.end()
        found.update({mechanism: sorted(users) for mechanism, users in loading.lost.items()})
    return found


def _load(batch: Batch, path: str, low: int, high: int, loadings: Iterable[_Loading]) -> None:
    if batch.is_control or not _FRAME.search(batch.records):
        return
    for _offset, _time, api_key, _version, fields in decode_batch(batch, path, low, high, _WANTED, later=True):
        for loading in loadings:
            loading.take(api_key, fields)


def sort_as_hash_map(users: Iterable[str]) -> List[str]:
    """Return the keys of a HashMap in the order of its iteration. `users`: in the order in which they came.

    A bucket of eight and more may become a tree, whose root comes first. Users' names do not collide so often.
    """
    users = list(users)
    buckets = 16
    while len(users) * 4 > buckets * 3:
        buckets *= 2
    return sorted(users, key=lambda user: _hash(user) & (buckets - 1))


def _hash(text: str) -> int:
    """Return HashMap.hash of a String."""
    value, data = 0, text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return value ^ value >> 16


class _Loading:
    """A node's credentials while it loads. `lost`: {mechanism: users whose removal dropped it}."""

    def __init__(self) -> None:
        self.users: Dict[str, Set[str]] = {}
        self.changes: Dict[str, Dict[str, bool]] = {}
        self.lost: Dict[str, Set[str]] = {}
        self.in_transaction = False

    def take(self, api_key: int, fields: Dict[str, Any] | None) -> None:
        """Process a record or a marker of a transaction."""
        if api_key in MARKERS:
            if api_key == _BEGIN:
                self.end()
            elif api_key == _ABORT:
                self.changes = {}
            self.in_transaction = api_key == _BEGIN
        elif fields is not None:
            mechanism = name_from_code(SCRAM_MECHANISMS, fields["mechanism"])
            self.changes.setdefault(mechanism, {})[fields["name"]] = api_key == _PUT

    def end(self) -> None:
        """Apply the changes, as ScramDelta.apply, unless a transaction is open."""
        if self.in_transaction:
            return
        for mechanism, changes in self.changes.items():
            users, removed = self.users.setdefault(mechanism, set()), set()
            dropped: Set[str] = set()
            for user in sort_as_hash_map(changes):
                if changes[user]:
                    users.add(user)
                    continue
                users.discard(user)
                removed.add(user)
                if not users:
                    dropped = set(removed)
            if dropped and users:
                self.lost.setdefault(mechanism, set()).update(dropped)
        self.changes = {}
