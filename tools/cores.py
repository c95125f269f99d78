# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests that play on other releases of ansible-core: python -m tools.cores [--quick] [RELEASE ...].

Each release has a virtual environment in .build/cores, with the packages that requirements.in pins. Without RELEASE all
of `CORES` are run, with --quick the oldest and the newest, and of the tests those of what differs between releases.
Exit code 0: all passed; 1: tests failed; 77: this host has the Python of none.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.checkout import ROOT
from tools.pythons import find_python

# The newest of each release on PyPI when this was written, and the Python to run it with
CORES = {
    "2.16.19": "3.11",
    "2.17.14": "3.11",
    "2.18.19": "3.11",
    "2.20.10": "3.12",
    "2.21.5": "3.12",
}
DIRECTORY = ROOT / ".build" / "cores"
SKIPPED = 77
PACKAGES = (
    *("ansible-runner", "confluent-kafka", "crc32c", "cryptography", "hypothesis", "jinja2", "jsonschema"),
    *("kafka-python", "kazoo", "librt", "numpy", "pandas", "pure-sasl", "pyarrow", "pyspark", "pytest", "pytest-xdist"),
)
# Since 2.19 a conditional must return a truth. 2.16.19 and 2.18 refuse others where this is set.
ENV = {"ANSIBLE_ALLOW_BROKEN_CONDITIONALS": "false", "PYTHONPATH": str(ROOT / ".build"), "LC_ALL": "C.UTF-8"}
QUICK = ("tests/unit/roles/test_unreachable.py", "tests/unit/roles/test_ansible_releases.py")
UNIT = tuple(
    f"tests/unit/{name}" for name in ("action", "callback", "doc_fragments", "modules", "plugin_utils", "roles")
)
# Playbooks on real servers: reading, and changing a cluster
REAL = (
    "tests/integration/test_support_bundle.py",
    "tests/integration/test_features_playbook.py",
    "tests/integration/test_restart_batches.py",
)


def pinned() -> dict[str, str]:
    """Return the versions that requirements.in pins, by name."""
    text = (ROOT / "requirements.in").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w-]+)==([\w.]+)$", text, re.M))


def environment(core: str) -> Path | None:
    """Return the Python of a release's virtual environment, made where it is missing; None without its interpreter."""
    python = find_python(CORES[core])
    if python is None:
        return None
    versions = pinned()
    wanted = [f"ansible-core=={core}", *(f"{name}=={versions[name]}" for name in PACKAGES)]
    directory = DIRECTORY / core
    own, stamp = directory / "bin" / "python", directory / "packages.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(wanted):
        return own
    print(f"cores: installing ansible-core {core} with Python {CORES[core]}", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(directory)], check=True)
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    cache = {"PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(ROOT / ".build" / "cache" / "pip"))}
    subprocess.run(pip, check=True, env={**os.environ, **cache})
    stamp.write_text("\n".join(wanted), encoding="utf-8")
    return own


def sessions(quick: bool) -> list[tuple[str, ...]]:
    """Return what runs on each release, as arguments of its Python."""
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    if quick:
        return [(*pytest, *QUICK)]
    return [
        (*pytest, "-n", "2", "--dist", "loadfile", *UNIT),
        ("-m", "tools.failure_proof", "--sample", "--seed", "0", "--jobs", "2"),
        ("-m", "tools.failure_proof", "--sample", "--seed", "1", "--jobs", "2"),
        (*pytest, *REAL),
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.cores", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the oldest and the newest release, and few tests")
    parser.add_argument("release", nargs="*", choices=[[], *CORES], help="only these")
    given = parser.parse_args(arguments)
    ends = [*CORES][:: len(CORES) - 1]
    ran, failed = [], []
    for core in given.release or (ends if given.quick else CORES):
        python = environment(core)
        if python is None:
            print(f"cores: ansible-core {core} is left out: this host has no Python {CORES[core]}", flush=True)
            continue
        ran.append(core)
        for session in sessions(given.quick):
            print(f"cores: ansible-core {core}: {' '.join(session)}", flush=True)
            if subprocess.run([str(python), *session], cwd=ROOT, env={**os.environ, **ENV}, check=False).returncode:
                failed.append(f"{core}: {' '.join(session)}")
    for text in failed:
        print(f"cores: failed on ansible-core {text}")
    if not ran:
        print("cores: this host has the Python of no release")
        return SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
