#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spark_facts
short_description: Read what the verification needs of the Spark host
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Runs on the Spark host. Reads whether C(spark-submit), Java and the Python packages work, the free memory and disk
    space, and which servers the host reaches. Begins no Spark session.
  - The action plugin fills in the options from the variables of the role quorumshift. A host that is unreachable or
    cannot be read is a fact, which M(quorumshift.kafka.kraft_preflight) reports.
options:
  submit:
    description: The command C(spark-submit), with options where needed.
    type: list
    elements: str
  options:
    description: Further options of C(spark-submit), as a job has them.
    type: list
    elements: str
    default: []
  python:
    description: The Python of the driver. By default, the one that runs the module.
    type: path
  packages:
    description: The packages that a job imports.
    type: list
    elements: str
    default: []
  directories:
    description: Directories in which a job writes. Those of C(SPARK_LOCAL_DIRS) on the host are added.
    type: list
    elements: str
    default: []
  readable:
    description: Directories that a job reads.
    type: list
    elements: str
    default: []
  targets:
    description: The servers to which a job connects, by their C(kind), C(to) and C(address).
    type: list
    elements: dict
    default: []
  timeout:
    description: How many seconds one connection may take, name resolution included.
    type: float
    default: 5
attributes:
  check_mode: {support: full, description: Reads only.}
  diff_mode: {support: none, description: Changes nothing.}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Read the Spark host
  quorumshift.kafka.spark_facts:
    submit: [/opt/spark/bin/spark-submit]
    packages: [pyspark, pyarrow]
    directories: [/tmp]
  register: read_spark
"""

RETURN = r"""
spark:
  description:
    - C(command) with the versions of Spark and Java, or why it does not start; C(java), the Java that Spark takes;
      C(python) with the packages that are missing; C(memory_mib); C(directories) with their free space;
      C(unreadable) directories; C(tried), how many targets of each kind were tried, and C(failed), those that did not
      answer.
    - C(host) with C(unreachable) or C(error) of a host that could not be read.
  type: dict
  returned: always
"""

import sys

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.spark_host import spark_host


def main():
    """Read the host and exit."""
    module = AnsibleModule(
        argument_spec={
            "submit": {"type": "list", "elements": "str"},
            "options": {"type": "list", "elements": "str", "default": []},
            "python": {"type": "path"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "directories": {"type": "list", "elements": "str", "default": []},
            "readable": {"type": "list", "elements": "str", "default": []},
            "targets": {"type": "list", "elements": "dict", "default": []},
            "timeout": {"type": "float", "default": 5},
        },
        supports_check_mode=True,
    )
    given = module.params
    found = spark_host.collect(
        given["submit"] or ["spark-submit"],
        given["options"],
        given["python"] or sys.executable,
        given["packages"],
        given["directories"],
        given["readable"],
        given["targets"],
        given["timeout"],
    )
    module.exit_json(changed=False, spark=found)


if __name__ == "__main__":
    main()
