# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of modules. The plain fragment describes them; a module says with `support` how far it has each."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and return what would change without changing it.
  diff_mode:
    description: Returns what has changed, or would change in check mode, when in diff mode.
  platform:
    description: The operating systems of the host where the module runs.
    support: full
    platforms: posix
"""

    # Used together with the plain fragment
    READS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - The module changes nothing. Check mode makes no difference.
  diff_mode:
    support: N/A
    details:
      - The module changes nothing.
"""

    # Used together with the plain fragment
    LINUX = r"""
options: {}
attributes:
  platform:
    description: The operating systems of the host where the module runs.
    support: full
    platforms: linux
"""
