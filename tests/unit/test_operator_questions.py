# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ten questions of an operator at night are each answered within a minute from the index of the docs.

The reader looks for the row of the index that shares most words with the question, follows its links, and reads there,
and behind the links of what was read, once more: at most two clicks, and MINUTE words on each page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from tools import reference
from tools.checkout import ROOT
from tools.site import pages

INDEX = "docs/README.md"
MINUTE = 200  # words that a person reads in a minute
CLICKS = 2
# In an operator's words, and what the answer must say
QUESTIONS = {
    "The playbook stopped with some id at the end, now what?": r"first id is the cause",
    "Is my cluster all right? What should I type?": r"It prints the phase, every node and what blocks the next step",
    "I closed my terminal while a broker was half restarted": r"A restart that has begun on\s+a host ends by itself",
    "How can I stop it from restarting further brokers?": r"quorumshift\.kafka\.pause",
    "It is locked by a colleague's run, which is dead": r"quorumshift_force_unlock",
    "The broker does not come up any more": r"did not start in the expected mode",
    "Clients log that their topic does not exist": r"topic\.metadata\.propagation\.max\.ms=1000",
    "ZooKeeper is down, all brokers are in KRaft mode": r"they serve as before",
    "The disk of a controller is lost": r"quorumshift_format_token=TOKEN",
    "Can we still go back, and how?": r"quorumshift_rollback_to=zk",
}
_COMMON = {
    "a",
    "an",
    "and",
    "are",
    "at",
    "by",
    "do",
    "does",
    "how",
    "i",
    "in",
    "is",
    "it",
    "its",
    "my",
    "not",
    "of",
    "or",
}
_COMMON |= {"the", "that", "their", "to", "what", "which", "while", "with", "was", "we", "can", "all", "any", "some"}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - _COMMON


def rows() -> list[tuple[str, list[str]]]:
    """Return (question, targets) of each row of the index's table."""
    text = (ROOT / INDEX).read_text(encoding="utf-8")
    table = text[text.index("\n## At night") : text.index("\n## Before")]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return [(asked, re.findall(r"\]\(([^)]+)\)", answered)) for asked, answered in cells]


def read(source: str, target: str) -> tuple[str, str]:
    """Return (path, what a person reads there in a minute): the page from the link's place on."""
    name, _hash, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(source), name)) if name else source
    text = (ROOT / path).read_text(encoding="utf-8")
    if anchor:
        headings = list(re.finditer(r"^#+ (.+)$", text, re.MULTILINE))
        (heading,) = [found for found in headings if reference.slug(found[1]) == anchor][:1]
        text = text[heading.end() :]
    return path, " ".join(text.split()[:MINUTE])


def found_from(source: str, targets: list[str], clicks: int = 1) -> Iterator[tuple[int, str]]:
    """Yield (clicks, text) of what is read from links on."""
    for target in targets:
        if re.match(r"[a-z]+:", target) or not re.search(r"\.md(#|$)|^#", target):
            continue
        path, text = read(source, target)
        yield clicks, text
        if clicks < CLICKS:
            yield from found_from(path, re.findall(r"\]\(([^)\s]+)\)", text), clicks + 1)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_read_within_a_minute(question):
    shared = sorted(((len(words(question) & words(asked)), asked, targets) for asked, targets in rows()), reverse=True)
    (most, asked, targets), (second, other, _targets) = shared[:2]
    assert most > second, f"{asked!r} and {other!r} share as many words with the question"
    answers = [clicks for clicks, text in found_from(INDEX, targets) if re.search(QUESTIONS[question], text)]
    assert answers, f"{asked!r} leads to no page that says {QUESTIONS[question]!r} in its first {MINUTE} words"


def test_a_page_that_says_nothing_is_noticed():
    assert not [1 for _clicks, text in found_from(INDEX, ["compatibility.md"]) if "quorumshift_format_token" in text]


def test_the_index_leads_to_every_page():
    """Pages of single messages, roles and decisions are listed by an index of their own."""
    found = pages.find()
    text = (ROOT / INDEX).read_text(encoding="utf-8")
    linked = {os.path.normpath(f"docs/{target.partition('#')[0]}") for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    listed = ("docs/messages/QS-", "docs/adr/0", "roles/")
    assert {path for path in found if not path.startswith(listed)} - linked == {INDEX}
