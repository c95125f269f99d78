# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ``ansible-test sanity`` on the checkout, with all its tests: python -m tools.sanity [--quick] [OPTIONS].

ansible-test needs a real directory ansible_collections/NAMESPACE/NAME in a git repository, no symbolic link. So the
checkout's files are copied to .build/sanity. Virtual environments and caches go to .build/sanity/home. The tests
`compile` and `import` run under every Python that ansible-core supports and this host has, with --quick under the
oldest, the newest and this one; the missing ones are listed first. The tests that take longest run beside the others,
each part in a copy of its own. `pylint` reads what the tarball ships: ruff reads the tests and tools too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ansible_test
from ansible_test._util.target.common.constants import CONTROLLER_PYTHON_VERSIONS, REMOTE_ONLY_PYTHON_VERSIONS

from tools.checkout import ROOT, alone, checkout_files
from tools.pythons import find_python

BASE = ROOT / ".build" / "sanity"
HOME = BASE / "home"
ALONE = ("pylint", "import")  # the tests that take longest
# Runs in each virtual environment. The first of a Python installs pip, the others copy its files with the compiled ones
SHIM = """
import ensurepip
import os
import shutil
import sys
import sysconfig
import tempfile

packages = sysconfig.get_paths()["purelib"]
kept = os.path.join(KEPT, "%d.%d.%d" % sys.version_info[:3])
if os.path.isdir(kept):
    for name in os.listdir(kept):
        source, target = os.path.join(kept, name), os.path.join(packages, name)
        (shutil.copytree if os.path.isdir(source) else shutil.copy2)(source, target)
else:
    ensurepip.bootstrap(upgrade=True, default_pip=True)
    os.makedirs(KEPT, exist_ok=True)
    copy = os.path.join(tempfile.mkdtemp(dir=KEPT), "packages")
    shutil.copytree(packages, copy)
    try:
        os.rename(copy, kept)
    except OSError:  # another part of the tests was first
        pass
    shutil.rmtree(os.path.dirname(copy))
"""
SHIPPED = ("plugins/", "spark/")  # with Python in them
QUICK = "--quick"


def copy_checkout(part: str) -> Path:
    """Return a copy of the checkout for a part of the tests."""
    shutil.rmtree(BASE / part, ignore_errors=True)
    copy = BASE / part / "ansible_collections" / "quorumshift" / "kafka"
    for name in checkout_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=copy, check=True)
    return copy


def provide_pip() -> None:
    """Make ansible-test install pip with Python's ensurepip instead of a script that it would download.

    The name of the cached script contains the pip version that ansible-core expects (_internal/python_requirements.py).
    """
    source = Path(ansible_test.__path__[0], "_internal", "python_requirements.py").read_text(encoding="utf-8")
    versions = set(re.findall(r"pip='([\d.]+)'", source))
    if not versions:
        raise SystemExit(
            "sanity: no pip version in ansible-core's python_requirements.py; adapt provide_pip in tools/sanity.py"
        )
    cache = HOME / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in versions:
        shim = f"KEPT = {str(HOME / 'pip')!r}\n{SHIM}"
        (cache / f"get_pip_{version.replace('.', '_')}.py").write_text(shim, encoding="utf-8")


def provide_pythons(quick: bool) -> Path:
    """Return a directory for PATH with a pythonX.Y for each supported Python of this host; of the quick ones, three."""
    directory = BASE / "bin"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    supported = (*REMOTE_ONLY_PYTHON_VERSIONS, *CONTROLLER_PYTHON_VERSIONS)
    found = {version: path for version in supported if (path := find_python(version))}
    own = "{}.{}".format(*sys.version_info[:2])
    found[own] = sys.executable
    absent = [version for version in supported if version not in found]
    if quick:
        found = {version: found[version] for version in {min(found, key=_number), own, max(found, key=_number)}}
    for version, path in found.items():
        # a link to a virtual environment's Python would lose the environment
        wrapper = directory / f"python{version}"
        wrapper.write_text(f'#!/bin/sh\nexec "{path}" "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
    print(
        f"sanity: compile and import under Python {', '.join(sorted(found, key=_number))}; not on this host: "
        f"{', '.join(absent) or 'none'}"
    )
    return directory


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def run(arguments: list[str], quick: bool) -> int:
    """Run the tests that `arguments` choose, or all of them in parts; return 0 if all passed."""
    provide_pip()
    path = f"{provide_pythons(quick)}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    env = {**os.environ, "HOME": str(HOME), "PATH": path, "PIP_QUIET": "1"}
    ansible_test = [str(Path(sys.executable).parent / "ansible-test"), "sanity", "--color", "no"]
    parts = {name: ["--test", name] for name in ALONE}
    parts["pylint"] += SHIPPED
    parts["others"] = [option for name in ALONE for option in ("--skip-test", name)]
    if arguments:
        parts = {"chosen": arguments}

    def run_part(name: str) -> int:
        command = [*ansible_test, *parts[name]]
        done = subprocess.run(
            command, cwd=copy_checkout(name), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.flush()
        return done.returncode

    sys.stdout.flush()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return max(pool.map(run_part, parts))


def main(arguments: list[str]) -> int:
    with alone("sanity"):
        return run([text for text in arguments if text != QUICK], QUICK in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
