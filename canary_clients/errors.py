# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of the verification clients."""

from __future__ import annotations


class ClientsError(Exception):
    """A wrong config, an unusable directory or a failed start; the text is for the operator."""
