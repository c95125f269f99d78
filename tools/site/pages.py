# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Markdown files of the checkout are pages of the site, and how their links change on the way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tools.checkout import ROOT

REPOSITORY = "https://github.com/quorumshift/kafka/blob/main/"
_OUTSIDE = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "canary_clients/README.md": "canary_clients.md",
}
# Code as it is: nothing in it is a link
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r'(?P<before>\]\(|src=")(?P<target>[^)"\s]+)(?P<after>\)|")')
_PICTURE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+\.svg)\)$", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


class Linked(NamedTuple):
    """A page with its links changed, and the files that it needs beside it, as paths from the checkout's root."""

    text: str
    files: frozenset[str]


def find() -> dict[str, str]:
    """Return {path in the checkout: path in the site} of every page."""
    found = dict(_OUTSIDE)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if not name.startswith("awx/"):  # a project that is copied elsewhere
            found[f"docs/{name}"] = re.sub(r"(^|/)README\.md$", r"\1index.md", name)
    for path in sorted((ROOT / "roles").glob("*/README.md")):
        found[path.relative_to(ROOT).as_posix()] = f"roles/{path.parent.name}.md"
    return found


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page, and whether each is code."""
    for number, part in enumerate(_CODE.split(text)):
        yield part, number % 2 == 1


def link(source: str, text: str, pages: dict[str, str]) -> Linked:
    """Return a page with links that lead somewhere from its place in the site. `source`: its path in the checkout."""
    files: set[str] = set()
    here = os.path.dirname(pages[source])

    def moved(match: re.Match) -> str:
        target, hash_sign, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), target))
        if f"{path}/README.md" in pages:
            path = f"{path}/README.md"
        if path in pages:
            new = os.path.relpath(pages[path], here)
        elif path.startswith("docs/") and (ROOT / path).is_file():
            files.add(path)
            new = os.path.relpath(path.removeprefix("docs/"), here)
        else:
            new = REPOSITORY + path
        return f"{match['before']}{new}{hash_sign}{anchor}{match['after']}"

    changed = [part if is_code else _LINK.sub(moved, part) for part, is_code in parts(text)]
    return Linked("".join(changed), frozenset(files))


def inline_pictures(text: str, read: Callable[[str], str]) -> str:
    """Return a page whose SVG pictures stand in it: their text can be selected and found, and scrolls on a phone.

    `read`: returns a picture by its path from the page."""

    def inlined(match: re.Match) -> str:
        picture = re.sub(r"^<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->", "", read(match["target"]), flags=re.DOTALL).strip()
        label = match["alt"].replace('"', "&quot;")
        # A blank line would end the HTML
        picture = re.sub(r"\n\s*\n", "\n", picture)
        return f'<div class="picture" role="img" aria-label="{label}" tabindex="0">\n{picture}\n</div>'

    return "".join(part if is_code else _PICTURE.sub(inlined, part) for part, is_code in parts(text))


def title(text: str) -> str:
    """Return the heading of a page."""
    found = _HEADING.search(text)
    return re.sub(r"[`*]", "", found[2]) if found else ""


def summary(text: str) -> str:
    """Return the first sentence of a page's first paragraph, '' where it begins with something else."""
    body = _HEADING.sub("", text, count=1).strip()
    paragraph = " ".join(body.split("\n\n")[0].split())
    if paragraph.startswith(("|", "-", "#", "```", "<", "!", ">")):
        return ""
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph)
    return re.split(r"(?<=[.:!?])\s", plain)[0]


def sections(text: str) -> dict[str, list[str]]:
    """Return the targets of a page's links, by the heading of second level above them."""
    found: dict[str, list[str]] = {}
    for heading, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE):
        found[heading] = [
            match["target"] for part, is_code in parts(body) if not is_code for match in _LINK.finditer(part)
        ]
    return found
