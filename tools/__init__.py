# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools of a checkout. None of them is part of the collection."""

from __future__ import annotations

import sys
from pathlib import Path

# the collection, as Ansible finds it
sys.path.append(str(Path(__file__).resolve().parents[1] / ".build"))
