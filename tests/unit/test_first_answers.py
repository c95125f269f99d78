# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests against real servers do not take a first answer for the last one."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
SERVERS = "integration/servers.py"


def callers(pattern: str) -> set[str]:
    """Return the files of the tests against real servers that have this pattern, as paths below tests/."""
    return {
        path.relative_to(TESTS).as_posix()
        for folder in ("integration", "spark")
        for path in (TESTS / folder).rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_metadata_is_asked_for_where_no_answer_is_asked_for_again():
    # a broker that just started has none, and librdkafka raises then
    assert callers(r"\.list_topics\(") == {SERVERS}


def test_topics_are_created_where_one_that_exists_is_no_failure():
    # these two await no answer, or ask for the topic themselves
    others = {"integration/test_partition_metadata.py", "integration/test_zk_controller_restore.py"}
    assert callers(r"(?<!servers)\.create_topics\(") == {SERVERS, *others}
