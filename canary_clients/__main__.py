# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import sys

from canary_clients.cli import main

if __name__ == "__main__":
    os.umask(0o077)  # its files hold credentials and what the cluster holds
    sys.exit(main())
