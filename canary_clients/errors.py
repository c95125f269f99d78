# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the witness refuses to do, in words for the operator."""

from __future__ import annotations


class ClientsError(Exception):
    """A wrong config, an unusable directory, a cluster that does not let the witness start. The text is the message."""
