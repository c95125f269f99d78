# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a built site: what leads nowhere, and what it would load from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Hosts to which a page may lead; whether they answer is not asked
KNOWN_HOSTS = frozenset(
    {
        "cwiki.apache.org",
        "docs.ansible.com",
        "github.com",
        "issues.apache.org",
        "kafka.apache.org",
        "zookeeper.apache.org",
    }
)
_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])
        if _LOADS.get(tag) in given:
            self.loaded.append(given[_LOADS[tag]])


@lru_cache(maxsize=None)
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check(site: Path) -> Iterator[str]:
    """Yield what is wrong, as lines."""
    for path in sorted(site.rglob("*.html")):
        name, page = path.relative_to(site).as_posix(), _read(path)
        for target in page.loaded:
            if urlsplit(target).netloc:
                yield f"{name} loads {target}: the site needs no other host"
            elif not (path.parent / unquote(urlsplit(target).path)).exists() and not target.startswith("data:"):
                yield f"{name} loads {target}, which does not exist"
        for target in page.links:
            wrong = _check_link(site, path, target)
            if wrong:
                yield f"{name} links to {target}{wrong}"


def _check_link(site: Path, path: Path, target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        return "" if parts.hostname in KNOWN_HOSTS else ", a host that tools/site/links.py does not know"
    if parts.scheme:
        return "" if parts.scheme == "mailto" else ", a scheme that no page may have"
    found = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
    if found.is_dir():
        found /= "index.html"
    if not found.is_relative_to(site) or not found.exists():
        return ", which does not exist"
    anchor = unquote(parts.fragment)
    if anchor and found.suffix == ".html" and anchor not in _read(found).ids:
        return ", which has no such place"
    return ""
