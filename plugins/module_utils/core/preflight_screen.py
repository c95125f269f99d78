# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `preflight` prints: the findings as a table, the gravest first. Pure."""

from __future__ import annotations

import textwrap
from typing import Mapping, Sequence

WIDTH = 120


def table(findings: Sequence[Mapping], checks: Sequence[str]) -> list[str]:
    """Return what the preflight found as lines for people, the gravest first."""
    groups: dict[str, list[Mapping]] = {"blocks": [], "warns": [], "waived": []}
    for one in findings:
        groups["waived" if one["waived"] else one["severity"]].append(one)
    counts = [f"{len(groups[name])} {token}" for name, token in (("blocks", "in the way"), ("warns", "to look at"))]
    counts += [f"{len(groups['waived'])} waived"] if groups["waived"] else []
    quiet = [name for name in checks if name not in {one["id"] for one in findings}]
    lines = [f"{len(checks)} checks: {', '.join(counts)}; {len(quiet)} found nothing"]
    width = max((len(one["id"]) for one in findings), default=0)
    for name, found in groups.items():
        for one in found:
            begin = f"  {name:<6}  {one['id']:<{width}}  "
            end = [f"waived: {one['waived']}"] if one["waived"] else _sentence(one["do"])
            lines += ["", *_wrapped(begin, [one["seen"], *end])]
    return [*lines, "", *_wrapped("  found nothing: ", [", ".join(quiet)])] if quiet else lines


def _sentence(do: str) -> list[str]:
    return [f"{do[:1].upper()}{do[1:]}."]


def _wrapped(begin: str, paragraphs: Sequence[str]) -> list[str]:
    """Return paragraphs below each other, beside `begin`."""
    wrapper = textwrap.TextWrapper(
        WIDTH - len(begin), subsequent_indent="", break_long_words=False, break_on_hyphens=False
    )
    lines = [line for one in paragraphs for line in wrapper.wrap(one)]
    return [begin + lines[0], *(" " * len(begin) + line for line in lines[1:])]
