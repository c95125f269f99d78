# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script of spark-submit: runs the job of a name. Without one it says which there are.

spark-submit --py-files quorumshift_spark.zip submit.py metadata_parity --input DIR/job.json
"""

from __future__ import annotations

import sys

from quorumshift_spark.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
