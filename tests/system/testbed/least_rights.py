# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of docs/least-rights.md, as that page has them."""

from __future__ import annotations

import re

from tests.system.testbed.layout import ROOT, TestbedError

PAGE = ROOT / "docs" / "least-rights.md"


def sudoers() -> str:
    """Return the file for /etc/sudoers.d. Raise TestbedError if the page has none."""
    found = re.search(r"^```\n(# /etc/sudoers\.d/.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if not found:
        raise TestbedError(f"{PAGE} has no block that begins with # /etc/sudoers.d/")
    return found.group(1)
