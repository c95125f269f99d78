# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m quorumshift_spark.report DIRECTORY`: write report.html for the result.json in DIRECTORY."""

from __future__ import annotations

import sys

from quorumshift_spark import report

if __name__ == "__main__":
    print(report.write(sys.argv[1]))
