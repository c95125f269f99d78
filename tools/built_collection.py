# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the collection, install its tarball outside the checkout, and check that it works there.

1. ``ansible-galaxy collection build`` into build/collection.
2. Check the members: only files that git tracks or would track, no tools or tests of the checkout, none above
   ``MEMBER_LIMIT``; the tarball is below ``TARBALL_LIMIT``.
3. Check every file for what it imports or starts with ``python -m``: if that is the checkout's, it ships.
4. Install it without a network into a new directory. With only that on Ansible's path and another working directory,
   every playbook passes ``--syntax-check`` by its full name, and ``ansible-doc`` shows every module and role.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from tools.checkout import ROOT, alone, checkout_files
from tools.imports import COLLECTION, imported_names

OUTPUT = ROOT / "build" / "collection"
GENERATED = {"MANIFEST.json", "FILES.json"}
CHECKOUT_ONLY = (
    ".",
    "Makefile",
    "tools/",
    "requirements",
    "ansible.cfg",
    "pyproject.toml",
    "build/",
    "noxfile.py",
    "antsibull-nox",
)
KIB = 1024
MEMBER_LIMIT = 512 * KIB
TARBALL_LIMIT = 4096 * KIB
RUNS_IN_CHECKOUT = ("extensions/molecule/", "tests/")
SHIPPED_TESTS = "tests/sanity/"  # ansible-test's and Galaxy's
IMPORT_ROOTS = ("", "spark/")  # directories on Python's path, besides the collection's own
# `python -m NAME`, as a command line or as a list of arguments
STARTED = re.compile(r"""(?<![\w-])-m["',\s]+(?:-\s+)?([A-Za-z_][\w.]*)""")
COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
STARTS_PROGRAMS = (".py", ".yml", ".yaml", ".j2", ".sh")
INVENTORY = """\
[kafka_broker]
b1 quorumshift_node_id=1
[kafka_controller]
c1 quorumshift_node_id=101
[zookeeper]
b1
"""


class Wrong(Exception):
    """The collection must not ship; the message says why."""


def call(*argv: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a command of the .venv and return its output. Raise ``Wrong`` with the output if it fails."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / argv[0]), *argv[1:]],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Wrong(f"{' '.join(argv)} (exit code {done.returncode}):\n{done.stdout.strip()}")
    return done.stdout


def build() -> Path:
    shutil.rmtree(OUTPUT, ignore_errors=True)
    call("ansible-galaxy", "collection", "build", "--output-path", str(OUTPUT))
    (tarball,) = OUTPUT.glob("*.tar.gz")
    return tarball


def check_members(tarball: Path) -> int:
    """Return the number of files in the tarball. Raise ``Wrong`` if one must not ship."""
    ours = set(checkout_files())
    with tarfile.open(tarball) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
    wrong = []
    for member in members:
        if member.name in GENERATED:
            continue
        if member.name.startswith((*CHECKOUT_ONLY, *RUNS_IN_CHECKOUT)) and not member.name.startswith(SHIPPED_TESTS):
            wrong.append(f"{member.name}: belongs to the checkout; add it to build_ignore in galaxy.yml")
        elif member.name not in ours:
            wrong.append(f"{member.name}: git ignores it; add it to build_ignore in galaxy.yml")
        elif member.size > MEMBER_LIMIT:
            wrong.append(f"{member.name}: {member.size // KIB} KiB, limit {MEMBER_LIMIT // KIB}; shrink or ignore it")
    if tarball.stat().st_size > TARBALL_LIMIT:
        wrong.append(f"{tarball.name}: {tarball.stat().st_size // KIB} KiB, limit {TARBALL_LIMIT // KIB}")
    if wrong:
        raise Wrong("\n".join(wrong))
    return len(members)


def check_references(tarball: Path) -> int:
    """Return how many modules of the checkout the files of the tarball name. Raise ``Wrong`` if one does not ship."""
    ours = checkout_files()
    with tarfile.open(tarball) as archive:
        files = [member for member in archive.getmembers() if member.isfile() and member.name.endswith(STARTS_PROGRAMS)]
        texts = {member.name: archive.extractfile(member).read().decode() for member in files}
    shipped = list(texts)
    count, wrong = 0, []
    for name, text in texts.items():
        if name.endswith(".py"):
            named = {*imported_names(text, name), *_started(ast.parse(text, name))}
        else:
            named = set(STARTED.findall(COMMENT.sub("", text)))
        for module in sorted(named):
            own = module.removeprefix(f"{COLLECTION}.")
            roots = ("",) if own != module else IMPORT_ROOTS
            if own == module and not any(_has(ours, root + own.partition(".")[0]) for root in roots):
                continue  # another package's
            count += 1
            paths = [root + part.replace(".", "/") for root in roots for part in (own, own.rpartition(".")[0]) if part]
            if not any(_has(shipped, path) for path in paths):
                wrong.append(f"{name}: needs {module}, which is not in the tarball; add {name} to build_ignore")
    if wrong:
        raise Wrong("\n".join(wrong))
    return count


def _started(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a program starts, or names in a text for its user; not those in docstrings."""
    notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        values = (
            node.elts if isinstance(node, (ast.List, ast.Tuple)) else node.args if isinstance(node, ast.Call) else []
        )
        texts = [value.value if isinstance(value, ast.Constant) else None for value in values]
        yield from (name for flag, name in zip(texts, texts[1:]) if flag == "-m" and isinstance(name, str))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield from STARTED.findall(node.value)


def _has(files: list[str], module: str) -> bool:
    """Return whether one of the files is a module's, or in its package."""
    return any(name == f"{module}.py" or (name.startswith(f"{module}/") and name.endswith(".py")) for name in files)


def check_installed(tarball: Path, directory: Path) -> list[str]:
    """Install into ``directory`` and check it there; return the names that were checked."""
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    full_name = f"{galaxy['namespace']}.{galaxy['name']}"
    collections = directory / "collections"
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    settings = directory / "ansible.cfg"
    settings.touch()
    env.update(ANSIBLE_CONFIG=str(settings), ANSIBLE_HOME=str(directory), ANSIBLE_COLLECTIONS_PATH=str(collections))
    call(
        "ansible-galaxy",
        "collection",
        "install",
        "--offline",
        "-p",
        str(collections),
        str(tarball),
        cwd=directory,
        env=env,
    )
    installed = collections / "ansible_collections" / galaxy["namespace"] / galaxy["name"]
    inventory = directory / "inventory.ini"
    inventory.write_text(INVENTORY, encoding="utf-8")
    playbooks = sorted(path.stem for path in (installed / "playbooks").glob("*.yml"))
    if "migrate" not in playbooks:
        raise Wrong(f"playbooks/migrate.yml is not in the tarball; there are: {', '.join(playbooks) or 'none'}")
    checked = [f"{full_name}.{name}" for name in playbooks]
    # all in one process: each would load Ansible and the same roles again. It ends at the first wrong one and names it.
    call("ansible-playbook", *checked, "--syntax-check", "-i", str(inventory), cwd=directory, env=env)
    for kind, names in (
        ("module", sorted(path.stem for path in (installed / "plugins" / "modules").glob("*.py"))),
        ("role", sorted(path.name for path in (installed / "roles").glob("*") if path.is_dir())),
    ):
        full = [f"{full_name}.{name}" for name in names]
        if full:
            shown = call("ansible-doc", "--type", kind, "--json", *full, cwd=directory, env=env)
            checked += full
            for name in full:
                if f'"{name}"' not in shown:
                    raise Wrong(f"ansible-doc --type {kind} {name} shows nothing")
    return checked


def main() -> int:
    try:
        with alone("collection"):
            tarball = build()
            files = check_members(tarball)
            print(f"{check_references(tarball)} references to our own modules, all in the tarball", flush=True)
            print(f"{tarball.relative_to(ROOT)}: {files} files, {tarball.stat().st_size // KIB} KiB", flush=True)
        with tempfile.TemporaryDirectory(prefix="quorumshift-") as directory:
            for name in check_installed(tarball, Path(directory)):
                print(f"installed: {name} ok")
    except Wrong as wrong:
        print(f"build: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
