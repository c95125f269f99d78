# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stores a fingerprint as the next run's baseline: `fingerprint.json`.

What the chunks contain stays where executors wrote it (data.py); the file names these files with their sizes, and the
chunks with the numbers of their rows. It holds the SHA-256 of itself, so that a modified baseline is rejected. Up to
version 4 tables beside it held the content of the chunks.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Mapping

from quorumshift_spark.fingerprint import compare
from quorumshift_spark.fingerprint.compare import Data, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Transaction
from quorumshift_spark.fingerprint.plan import PartitionState, Place, Sample

VERSION = 5
NAME = "fingerprint.json"


class StoreError(Exception):
    """A baseline cannot be used. The message names the file, the reason and what to do."""


def write(directory: str, fingerprint: Fingerprint) -> None:
    """Write a fingerprint to an existing directory, mode 0600. Raises OSError."""
    of = fingerprint.coordinators
    kept = {
        **fingerprint._asdict(),
        "version": VERSION,
        "partitions": [state._asdict() for state in sorted(fingerprint.partitions.values())],
        "chunks": [[*tp, places] for tp, places in sorted(fingerprint.chunks.items())],
        "coordinators": {
            "groups": {
                name: [group.state, [[*tp, offset] for tp, offset in sorted(group.offsets.items())]]
                for name, group in sorted(of.groups.items())
            },
            "transactions": of.transactions,
            "retentions": of.retentions,
        },
    }
    path = os.path.join(directory, NAME)
    descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({**kept, "sha256": _sha256(kept)}, file)
    os.replace(path + ".new", path)


def _sha256(kept: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def read(directory: str) -> Fingerprint:
    """Read a baseline. Raises StoreError."""
    path = os.path.join(directory, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept.pop("version") != VERSION:
            raise StoreError(
                f"{path} has another version than {VERSION}, which this release reads. Use the release of Quorumshift "
                "that made this baseline. Or, before controllers are started, delete the file and run the gate again: "
                'it makes a new baseline. Or continue without it: -e \'{"quorumshift_fingerprint_topics": '
                "[]}' (QS-VERIFY-005)"
            )
        if kept.pop("sha256") != _sha256({**kept, "version": VERSION}):
            raise StoreError(f"{path} does not match its SHA-256. Give an intact baseline (QS-VERIFY-005)")
        of = kept.pop("coordinators")
        groups = {
            name: Group(state, {(topic, number): offset for topic, number, offset in offsets})
            for name, (state, offsets) in of["groups"].items()
        }
        transactions = {name: Transaction(*last) for name, last in of["transactions"].items()}
        kept.update(
            partitions=compare.states([PartitionState(**state) for state in kept["partitions"]]),
            chunks={(topic, number): [Place(*place) for place in places] for topic, number, places in kept["chunks"]},
            data=Data(*kept["data"]),
            coordinators=Coordinators(groups, transactions, of["retentions"]),
            samples={topic: Sample(*sample) for topic, sample in kept["samples"].items()},
        )
        return Fingerprint(**kept)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} is not a baseline of data_fingerprint ({error.__class__.__name__}: {error}). Give the output "
            "directory of a run that passed (QS-VERIFY-005)"
        ) from error
