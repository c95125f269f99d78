# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of findings that `preflight` and `upgrade_audit` print. Pure."""

from __future__ import annotations

import textwrap
from typing import Mapping, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight

WIDTH = 120


def table(findings: Sequence[Mapping], checks: Sequence[str], titles: Mapping[str, str] = preflight.TITLE) -> list[str]:
    """Return the findings as lines: blocking ones, warnings, waived ones, then the checks without findings. `titles`:
    {check id: title}."""
    groups: dict[str, list[Mapping]] = {"blocks": [], "warns": [], "waived": []}
    for finding in findings:
        groups["waived" if finding["waived"] else finding["severity"]].append(finding)
    passed = [check for check in checks if check not in {finding["id"] for finding in findings}]
    counts = f"blocking {len(groups['blocks'])}, warnings {len(groups['warns'])}"
    counts += f", waived {len(groups['waived'])}" if groups["waived"] else ""
    lines = [f"{len(checks)} checks, {len(passed)} passed. Findings: {counts}"]
    width = max((len(finding["id"]) for finding in findings), default=0)
    for name, group in groups.items():
        for finding in group:
            begin = f"  {name:<6}  {finding['id']:<{width}}  "
            do = finding["do"]
            end = f"waived: {finding['waived']}" if finding["waived"] else f"{do[:1].upper()}{do[1:]}."
            lines += ["", *_wrap(begin, [finding["seen"], end])]
    return (
        [*lines, "", *_wrap("  passed: ", [", ".join(titles.get(check, check) for check in passed)])]
        if passed
        else lines
    )


def _wrap(begin: str, paragraphs: Sequence[str]) -> list[str]:
    """Return the wrapped paragraphs to the right of `begin`."""
    wrapper = textwrap.TextWrapper(
        WIDTH - len(begin), subsequent_indent="", break_long_words=False, break_on_hyphens=False
    )
    lines = [line for paragraph in paragraphs for line in wrapper.wrap(paragraph)]
    return [begin + lines[0], *(" " * len(begin) + line for line in lines[1:])]
