# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of ansible-playbook that exclude hosts or tasks."""

from __future__ import annotations

from ansible import context

_SPECIAL_TAGS = ("all", "always", "tagged", "untagged")


def find_exclusion() -> str | None:
    """Return which option of the command excludes hosts or tasks, and what to do; None if none does."""
    given = context.CLIARGS
    # Tasks of the collection have no tags of their own, so skipping other tags, as molecule does, excludes none.
    tags = [tag for tag in given.get("tags") or () if tag != "all"]
    tags += [tag for tag in given.get("skip_tags") or () if tag in _SPECIAL_TAGS]
    excluding = {
        f"--limit {given.get('subset')} excludes hosts": given.get("subset"),
        f"--tags or --skip-tags {', '.join(tags)} exclude tasks": tags,
        "--start-at-task excludes tasks": given.get("start_at_task"),
        "--step excludes tasks": given.get("step"),
    }
    found = next((text for text, is_given in excluding.items() if is_given), None)
    return found and f"{found}. Run the whole playbook: it skips what is done. Nothing was changed (QS-RUN-011)"
