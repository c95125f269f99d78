# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storing a fingerprint."""

from __future__ import annotations

import json
import pathlib
import stat

import pytest
from quorumshift_spark.fingerprint import store
from quorumshift_spark.fingerprint.compare import Data, Fingerprint
from quorumshift_spark.fingerprint.coordinators import Coordinators, Group, Transaction
from quorumshift_spark.fingerprint.plan import PartitionState, Place, Sample

STATE = PartitionState("orders", 0, "id", 4, 0, 10, False, True, -1, -1, 1000)
CHUNKS = {("orders", 0): [Place(0, 10, False, 1), Place(10, 20, False, -2)], ("t", 1): [Place(0, 10, True, 3)]}
FINGERPRINT = Fingerprint(
    "cluster",
    123,
    {"orders": "id", "other": "id-2"},
    {STATE.tp: STATE},
    CHUNKS,
    Data("0123456789abcdef-0123456789abcdef", {"part-0.parquet": 7}),
    Coordinators({"readers": Group("STABLE", {("orders", 0): 7})}, {"t": Transaction(5, 2)}, {"a": 1}),
    {"orders": Sample(percent=5.0, seed=3)},
    {"orders": 0.05},
    {"chunk": 2},
)


def test_written_fingerprint_is_read_back(tmp_path: pathlib.Path) -> None:
    store.write(str(tmp_path), FINGERPRINT)
    assert store.read(str(tmp_path)) == FINGERPRINT
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damaged_baseline_is_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(store.StoreError, match=r"fingerprint\.json is not a baseline"):
        store.read(str(tmp_path))
    store.write(str(tmp_path), FINGERPRINT)
    path = tmp_path / store.NAME
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "taken_ms": 124}))
    with pytest.raises(store.StoreError, match=r"fingerprint\.json does not match its SHA-256"):
        store.read(str(tmp_path))
    path.write_text(json.dumps({**written, "version": 4}))
    with pytest.raises(store.StoreError, match=r"another version than 5, which this release reads\. Use the release"):
        store.read(str(tmp_path))
    path.write_text(json.dumps(written)[:-9])
    with pytest.raises(store.StoreError, match=r"fingerprint\.json is not a baseline"):
        store.read(str(tmp_path))
