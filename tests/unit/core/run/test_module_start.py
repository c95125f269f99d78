# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that could not start on a host says why, and what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import module_start

from tools import pythons

RHEL8 = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nVERSION_ID="8.10"\n'
UBUNTU = "ID=ubuntu\nVERSION_ID=18.04\n"
DEBIAN = 'ID=debian\nVERSION_ID="12"\n'


@pytest.mark.parametrize(
    ("output", "stderr", "said"),
    [
        (
            "Python 3 6\n" + RHEL8,
            "",
            "Python 3.6 is too old: /p. RHEL 8: dnf install python3.12. Then set ansible_python",
        ),
        ("Python 3 6\n" + UBUNTU, "", "Python 3.6 is too old: /p. Ubuntu 18.04: apt install python3.8. Then set"),
        ("Python 2 7\n" + DEBIAN, "", "Python 2.7 is too old: /p. Install Python 3.8 or newer. Then set"),
        ("sh: 1: /p: not found\n" + RHEL8, "", "there is no Python at /p. RHEL 8: dnf install python3.12. Then set"),
        ("sh: 1: /p: not found\n", "", "there is no Python at /p. Install Python 3.8 or newer. Then set"),
        ("Python 3 12\n", "x\nModuleNotFoundError: zlib\n", "the module did not start: ModuleNotFoundError: zlib. Run"),
        ("Python 3 8\n", "", "the module did not start: it printed nothing. Run"),
    ],
)
def test_the_reason_names_the_python_and_the_way_out(output, stderr, said):
    assert module_start.reason("/p", output, stderr, (3, 8)).startswith(said)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"failed": True, "module_stdout": "", "_ansible_parsed": False}, True),
        ({"failed": True, "msg": "ansible-core requires a minimum of Python version 3.8. Current version: 3.7"}, True),
        ({"failed": True, "msg": "no such file"}, False),
        ({"changed": False, "module_stdout": "x"}, False),
    ],
)
def test_a_module_that_ran_keeps_its_own_message(result, expected):
    assert module_start.is_not_started(result) is expected


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8", f"{sys.version_info[0]}.{sys.version_info[1]}"])
def test_the_probe_runs_in_old_pythons(version):
    found = pythons.find_python(version)
    if not found:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run(f"{found} -c {module_start.PROBE}", shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == f"Python {version.replace('.', ' ')}\n"
