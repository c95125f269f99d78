# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep retired words out, and report how readable the documents are: `python -m tools.prose`.

Exit code 1 where a tracked file, or the subject of the newest commit, has a word of tools/retired_words.yml, or
where the sentences of a document are longer on average than MEAN_WORDS. The longest sentences are listed.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt

from tools.checkout import ROOT, checkout_files
from tools.yaml_files import read_yaml

WORDS = ROOT / "tools" / "retired_words.yml"
MEAN_WORDS, LONG_WORDS, LISTED = 20.0, 30, 12
# Recorded facts and logs are what servers and hosts said; this list names the words themselves.
_NOT_PROSE = re.compile(r"(fixtures/|\.(svg|png|gz|xml|sha256|jsonl?|txt)$|^LICENSE$|retired_words\.yml$|^\.ci/)")


class Retired(NamedTuple):
    """`pattern` is not to be written, `instead` is; `except_in`: a pattern of paths where it may stay."""

    pattern: re.Pattern
    instead: str
    except_in: re.Pattern | None


def retired() -> list[Retired]:
    """Return the words of tools/retired_words.yml."""
    rules = read_yaml(WORDS)
    return [
        Retired(
            re.compile(rule["words"], re.IGNORECASE),
            rule["instead"],
            re.compile(rule["except_in"]) if rule.get("except_in") else None,
        )
        for rule in rules
    ]


def found_in(name: str, text: str, rules: list[Retired]) -> Iterator[str]:
    """Yield a line for each retired word in a text."""
    for rule in rules:
        if rule.except_in and rule.except_in.search(name):
            continue
        for match in rule.pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: {match[0]!r} is retired: write {rule.instead}"


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a document: of its paragraphs, list items and table cells, without code."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type != "inline":
            continue
        parts = [
            " "
            if child.type in ("softbreak", "hardbreak")
            else "code"
            if child.type == "code_inline"
            else child.content
            for child in token.children or ()
        ]
        found += [
            sentence.strip() for sentence in re.split(r"(?<=[.!?])\s+", "".join(parts)) if len(sentence.split()) > 2
        ]
    return found


def main() -> int:
    rules, lines, long = retired(), [], []
    for name in checkout_files():
        if _NOT_PROSE.search(name):
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # no text
        lines += found_in(name, text, rules)
        if name.endswith(".md"):
            counts = [len(sentence.split()) for sentence in sentences(text)]
            mean = statistics.mean(counts) if counts else 0.0
            over = sum(count > LONG_WORDS for count in counts)
            print(f"{name}: {len(counts)} sentences, {mean:.1f} words on average, {over} over {LONG_WORDS}")
            long += [(len(sentence.split()), name, sentence) for sentence in sentences(text)]
            if mean > MEAN_WORDS:
                lines.append(f"{name}: {mean:.1f} words a sentence, more than {MEAN_WORDS:g}")
    print("The longest sentences:")
    for count, name, sentence in sorted(long, reverse=True)[:LISTED]:
        print(f"  {count} words, {name}: {sentence}")
    log = subprocess.run(["git", "log", "-1", "--format=%s"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    lines += found_in("the newest commit's subject", log.stdout, rules)
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
