# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the package: runs the job of a name, or says which there are.

`python -m quorumshift_spark JOB ...`, or `spark-submit submit.py JOB ...`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Sequence

JOBS = {
    "metadata_parity": "compare what ZooKeeper, the metadata log, brokers and a baseline have of a cluster's metadata",
    "data_fingerprint": "compare a cluster's records, groups and transactional ids with a baseline",
    "ensemble_parity": "compare Kafka's znodes on the servers of two ZooKeeper ensembles",
}
USAGE = """usage: spark-submit [options of Spark] --py-files quorumshift_spark.zip submit.py JOB --input DIR/job.json
       python -m quorumshift_spark JOB --input DIR/job.json

jobs:
{jobs}

JOB --help says what a job reads and writes, with an example. The archive: python package.py quorumshift_spark.zip"""


def usage() -> str:
    """Return the text of --help."""
    return USAGE.format(jobs="\n".join(f"  {name:<17} {text}" for name, text in JOBS.items()))


def main(arguments: Sequence[str]) -> int:
    """Run a job and return its exit code; 2 where no job has this name."""
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help"):
        print(usage())
        return 0
    if name not in JOBS:
        print(f"{usage()}\n\nno job has the name {name!r}" if name else usage(), file=sys.stderr)
        return 2
    return importlib.import_module(f"quorumshift_spark.{name}").main(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
