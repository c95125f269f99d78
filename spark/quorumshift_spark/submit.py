# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script of spark-submit: runs the job of a name.

spark-submit --py-files quorumshift_spark.zip submit.py metadata_parity --input DIR/job.json
"""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    sys.exit(importlib.import_module(f"quorumshift_spark.{sys.argv[1]}").main(sys.argv[2:]))
