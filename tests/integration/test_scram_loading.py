# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which SCRAM credentials Kafka's own loader loses, on random logs, against what metadata.scram_loading says."""

from __future__ import annotations

import base64
import pathlib
import random
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.enums import SCRAM_MECHANISMS
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary

from tests.integration import servers
from tests.unit.formats import metadata_batches as batches

pytestmark = pytest.mark.real
LOADER = pathlib.Path(__file__).with_name("LoadedCredentials.java")
LOGS = 600
PUT, REMOVE = "USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"
FIELDS = {"salt": b"salt", "storedKey": b"key", "serverKey": b"key", "iterations": 4096}


class Log:
    """A random log of users: what was written so far, and who is there."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = [self._name() for dummy in range(self.random.choice((1, 2, 3, 8, 30, 120)))]
        self.users = set()
        self.parts = 0

    def _name(self):
        return "".join(self.random.choice("abcXYZ019-_.ü日\U0001f600") for dummy in range(self.random.randint(1, 12)))

    def change(self):
        """Return the record of a change: a user is set, or one that is there is removed."""
        if self.users and self.random.random() < self.random.choice((0.2, 0.5, 0.8)):
            mechanism, name = user = self.random.choice(sorted(self.users))
            self.users.discard(user)
            return batches.record(REMOVE, {"name": name, "mechanism": mechanism})
        mechanism, name = user = self.random.choice((1, 2)), self.random.choice(self.names)
        self.users.add(user)
        return batches.record(PUT, {"name": name, "mechanism": mechanism, **FIELDS})

    def part(self):
        """Return a batch of changes, or batches of a transaction, which may be aborted."""
        changes = [self.change() for dummy in range(self.random.randint(1, 8))]
        if self.random.random() < 0.7:
            return [changes]
        self.parts += 1
        return [[batches.BEGIN], changes, [self.change()], [batches.END]]

    def write(self, directory):
        directory.mkdir()
        offset = 0
        if self.random.random() < 0.5:
            offset = 100
            values = [change for dummy in range(self.random.randint(0, 3)) for change in self._sets()]
            parts = [[batches.SNAPSHOT_HEADER], *([values] if values else []), [batches.SNAPSHOT_FOOTER]]
            raw, at = b"", 0
            for part in parts:
                raw += batches.batch(at, part)
                at += len(part)
            (directory / f"{offset:020d}-0000000001.checkpoint").write_bytes(raw)
        for _segment in range(self.random.randint(1, 3)):
            raw, base = b"", offset
            self.parts += 1
            for _part in range(self.random.randint(1, 4)):
                for part in self.part():
                    raw += batches.batch(offset, part)
                    offset += len(part)
            (directory / f"{base:020d}.log").write_bytes(raw)

    def named(self):
        """Return {(mechanism, name)} of who is there."""
        return {(SCRAM_MECHANISMS[mechanism], name) for mechanism, name in self.users}

    def _sets(self):
        name = self.random.choice(self.names)
        self.users.add((1, name))
        yield batches.record(PUT, {"name": name, "mechanism": 1, **FIELDS})


def test_losses_are_those_of_kafkas_own_loader(tmp_path):
    logs = [Log(seed) for seed in range(LOGS)]
    for number, log in enumerate(logs):
        log.write(tmp_path / str(number))
    command = [*servers.java(), str(LOADER), *(str(tmp_path / str(number)) for number in range(LOGS))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("users")]
    assert len(lines) == LOGS
    lost = exact = 0
    for number, (log, line) in enumerate(zip(logs, lines)):
        kept = {(name.partition("/")[0], base64.b64decode(name.partition("/")[2]).decode()) for name in line}
        missing = {mechanism for mechanism, _name in log.named() - kept}
        directory = str(tmp_path / str(number))
        found = set(metadata_summary.summarise(directory, with_history=True)["scram_losses"]["restart"])
        assert missing <= found, f"log {number}: Kafka loses {log.named() - kept}"
        if log.parts == 1:  # a later part may bring users back
            assert missing == found, f"log {number}: Kafka loses nothing"
            exact += bool(missing)
        lost += bool(missing)
    assert exact > 10 and LOGS // 20 < lost < LOGS // 2  # all cases are among the logs
