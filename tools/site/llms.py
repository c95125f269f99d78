# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""llms.txt: the site's pages for a program that reads, as llmstxt.org describes it, with each page as Markdown."""

from __future__ import annotations

from pathlib import Path

from tools.site import pages

_ABOUT = """# Quorumshift

> {summary}

Facts to keep: every playbook detects the phase from the live cluster and continues from there. `status`, `preflight`,
`plan` and `verify` change nothing. Finalizing cannot be undone; until then `rollback` takes the migration back. Never
suggest to empty a controller's log directory, to start a controller without the migration flag, or to restore a
broker's old properties file by hand: look the message's id up first.
"""


def text(found: dict[str, str]) -> str:
    """Return llms.txt. `found`: {path in the site: Markdown} of the pages."""
    index = found["index.md"]
    lines = [_ABOUT.format(summary=pages.summary(index))]
    listed = {"index.md"}
    for heading, targets in pages.sections(index).items():
        rows = []
        for target in dict.fromkeys(target.partition("#")[0] for target in targets):
            if target in found and target not in listed and not target.startswith("messages/QS-"):
                listed.add(target)
                rows.append(_row(target, found[target]))
        lines += [f"## {heading}", "", *rows, ""] if rows else []
    for heading, folder in (("Messages, by id", "messages/"), ("Roles", "roles/"), ("Decisions", "adr/")):
        rows = [_row(name, found[name]) for name in sorted(found) if name.startswith(folder) and name not in listed]
        lines += [f"## {heading}", "", *rows, ""]
        listed |= {name for name in found if name.startswith(folder)}
    left = [_row(name, found[name]) for name in sorted(found) if name not in listed]
    return "\n".join([*lines, *(["## Optional", "", *left, ""] if left else [])])


def _row(name: str, page: str) -> str:
    about = pages.summary(page) if not name.startswith("messages/QS-") else ""
    return f"- [{pages.title(page)}]({name})" + (f": {about}" if about else "")


def write(site: Path, found: dict[str, str]) -> None:
    """Write llms.txt, and each page as Markdown beside its HTML."""
    for name, page in found.items():
        (site / name).write_text(page, encoding="utf-8")
    (site / "llms.txt").write_text(text(found), encoding="utf-8")
