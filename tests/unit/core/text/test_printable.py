# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No name from a cluster reaches a terminal, a report or a table with a control character."""

from __future__ import annotations

import json
import sys
import unicodedata

import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_all, escape_invisible
from quorumshift_spark import normal_form as form
from quorumshift_spark import result, rules
from quorumshift_spark.compare import compare
from quorumshift_spark.views import Absent

PAINTED = "User:x\x1b[2K\r\x1b[1A1200 comparisons agree\n\x9b2J\u202e"


def test_no_character_that_controls_a_terminal_is_left():
    """By Unicode's own categories: control, format, line and paragraph separators."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {char for char in escape_invisible(every) if unicodedata.category(char) in ("Cc", "Zl", "Zp")}
    assert not left
    bidirectional = {
        char for char in escape_invisible(every) if unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO")
    }
    assert not bidirectional
    assert escape_invisible("zoë/日本") == "zoë/日本"
    assert escape_invisible("a\nb", newlines=True) == "a\nb"


def test_a_painted_principal_is_shown_as_text_in_all_that_a_job_writes(tmp_path):
    acl = form.acl("TOPIC", "LITERAL", "orders", PAINTED, "*", "READ", "ALLOW")
    comparison = rules.Comparison("zookeeper", "metadata_log", rules.ZOOKEEPER_LOG, ("acl",))
    (difference,) = compare(comparison, acl.kind, acl.key, acl, Absent({})).differences
    found = result.empty(result.DIFFER, [f"1 differences, the first: {difference.text()}"])
    found.update(nonce="n", gate="after_copy", cluster_id="c", differences=[result.listed(difference)])
    result.write(str(tmp_path), found)
    result.write_differences(str(tmp_path), [result.row(difference, "zookeeper", "metadata_log")])
    written = json.loads((tmp_path / result.NAME).read_text())
    rows = pq.read_table(tmp_path / result.DIFFERENCES).to_pylist()
    for text in (*written["reasons"], written["differences"][0]["text"], rows[0]["key"]):
        assert text == escape_invisible(text) and "1200 comparisons agree" in text and "u001b" in text
    assert written["digest"] == result.digest(written)
    # A key stays JSON with the same meaning
    assert json.loads(rows[0]["key"]) == json.loads(acl.key)


def test_lists_of_names_are_visible():
    assert advice.format_names([PAINTED]) == escape_invisible(PAINTED)
    assert escape_all({PAINTED: [PAINTED, 1, None]}) == {
        escape_invisible(PAINTED): [escape_invisible(PAINTED), 1, None]
    }
