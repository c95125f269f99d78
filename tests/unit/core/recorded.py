# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts recorded from real runs (tests/system/e2e/record_facts.py); each test gets its own copy."""

from __future__ import annotations

import functools
import gzip
import json
import pathlib

DIRECTORY = pathlib.Path(__file__).parents[1] / "fixtures" / "facts"
NAMES = sorted(path.name.split(".")[0] for path in DIRECTORY.glob("*.json.gz"))


def facts(name: str) -> dict:
    """Return the facts recorded under this name."""
    return json.loads(_text(name))


@functools.lru_cache(maxsize=None)
def _text(name: str) -> str:
    with gzip.open(DIRECTORY / f"{name}.json.gz", "rt", encoding="utf-8") as stream:
        return stream.read()


def unreached(facts: dict, host: str, answers: bool) -> dict:
    """Return the facts of a run that could not log in to the host; without `answers` its listener is down as well."""
    node = facts["nodes"][host]
    kept = ("role", "address", "host_address", *(("running", "metadata_version") if answers else ()))
    facts["nodes"][host] = {key: node[key] for key in kept if key in node}
    facts["nodes"][host].update(reached=False, error="it was unreachable", next=None, node_id=node["node_id"])
    if not answers:
        facts["nodes"][host].update(running=None, running_error="timed out")
    return facts


def down(facts: dict, host: str) -> dict:
    """Return the facts with the host's broker or controller stopped."""
    facts["nodes"][host].update(running=None, running_error="connection refused: nothing listens there")
    facts["nodes"][host]["service"].update(active=False, main_pid=0)
    return facts
