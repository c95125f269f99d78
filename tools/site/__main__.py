# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the docs site in build/docs/html: ``python -m tools.site``, or ``make docs``.

1. Prepare an environment of its own, .build/site, from tools/site/requirements.txt.
2. Collect the Markdown pages of the checkout, with their links changed, and what antsibull-docs writes of modules,
   roles and plugins.
3. Build them with Sphinx. A warning is an error.
4. Write llms.txt, and each page as Markdown beside it.
5. Check every link, and that no page loads anything from another host.

Exit code 1 where a step fails. The site needs no server: open build/docs/html/index.html.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import yaml

from tools.checkout import ROOT, alone
from tools.site import ansible_labels, links, llms, pages

HERE = ROOT / "tools" / "site"
ENVIRONMENT = ROOT / ".build" / "site"
OUTPUT = ROOT / "build" / "docs"
SOURCE, SITE = OUTPUT / "source", OUTPUT / "html"
NAME = "quorumshift.kafka"
REFERENCE = "collection"  # what antsibull-docs writes
# It is on no Galaxy server: by default the pages would say so
CONFIG = f"""collection_url = {{
    {NAME} = https://github.com/quorumshift/kafka
}}
collection_install = {{
    {NAME} = ansible-galaxy collection install quorumshift-kafka-*.tar.gz
}}
"""
# Sections of the index whose links are the site's table of contents
CONTENTS = ("Before", "While it runs", "Afterwards", "Why it can be trusted", "Another move", "For contributors")


class Failed(Exception):
    """A step failed; the message says how."""


def call(*command: str, **more: str) -> None:
    """Run a command in the environment of the site. Raise Failed where it fails."""
    # antsibull-docs starts ansible-doc, which is the checkout's own
    path = os.pathsep.join([str(ENVIRONMENT / "bin"), str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", **more}
    print(f"site: {' '.join(command)}", flush=True)
    code = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    if code:
        raise Failed(f"{command[0]} ended with exit code {code}")


def prepare() -> None:
    """Install what builds the site, unless it is there."""
    required = HERE / "requirements.txt"
    stamp = hashlib.sha256(f"{sys.version}{required.read_text(encoding='utf-8')}".encode()).hexdigest()
    noted = ENVIRONMENT / ".stamp"
    if noted.exists() and noted.read_text(encoding="utf-8") == stamp:
        return
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    quiet = ("--quiet", "--disable-pip-version-check", "--root-user-action=ignore")
    call(str(ENVIRONMENT / "bin" / "pip"), "install", *quiet, "--require-hashes", "-r", str(required))
    noted.write_text(stamp, encoding="utf-8")


def collect() -> dict[str, str]:
    """Write the sources of the site; return {path in the site: Markdown as it was} of the pages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "_static").mkdir(parents=True)
    shutil.copy(HERE / "conf.py", SOURCE)
    shutil.copy(HERE / "static" / "site.css", SOURCE / "_static")
    (SOURCE / "ansible.inv").write_bytes(ansible_labels.inventory())
    found, texts = pages.find(), {}
    for source, name in found.items():
        linked = pages.link(source, (ROOT / source).read_text(encoding="utf-8"), found)
        for file in linked.files:
            target = SOURCE / Path(file).relative_to("docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, target)
        texts[name] = linked.text
    for name, text in texts.items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = pages.inline_pictures(text, lambda target, path=path: (path.parent / target).read_text(encoding="utf-8"))
        path.write_text(_with_contents(name, text, texts), encoding="utf-8")
    return texts


def _with_contents(name: str, text: str, texts: dict[str, str]) -> str:
    """Return a page with its place in the table of contents, which Sphinx asks for."""
    # No lexer of Sphinx knows it; as text it can be read
    text = text.replace("```mermaid", "```text")
    folder, _slash, file = name.rpartition("/")
    if folder == "messages" and file != "index.md":
        return f"---\norphan: true\n---\n{text}"  # 260 pages: the index lists them
    if name == "index.md":
        return (
            text
            + "".join(_toctree(heading, _listed(text, heading, texts)) for heading in CONTENTS)
            + _toctree("Reference", ["start.md", f"{REFERENCE}/index", "roles/index.md"])
        )
    if file == "index.md" and folder != "messages":
        return text + _toctree(
            "", sorted(Path(other).name for other in texts if other.startswith(f"{folder}/") and other != name)
        )
    return text


def _listed(text: str, heading: str, texts: dict[str, str]) -> list[str]:
    """Return the pages to which a section of the index links, each in the first section that has it."""
    earlier = {target for other in CONTENTS[: CONTENTS.index(heading)] for target in pages.sections(text)[other]}
    own = [
        target for target in pages.sections(text)[heading] if target in texts and target not in earlier | {"index.md"}
    ]
    return list(dict.fromkeys(own))


def _toctree(caption: str, names: list[str]) -> str:
    heading = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + heading + "\n" + "\n".join(names) + "\n```\n"


def write_roles(texts: dict[str, str]) -> None:
    """Write the page that lists the roles."""
    roles = sorted(name for name in texts if name.startswith("roles/"))
    rows = [f"- [{pages.title(texts[name])}]({Path(name).name}): {pages.summary(texts[name])}" for name in roles]
    text = "# Roles\n\nThe roles of which the playbooks are made.\n\n" + "\n".join(rows) + "\n"
    (SOURCE / "roles" / "index.md").write_text(
        text + _toctree("", [Path(name).name for name in roles]), encoding="utf-8"
    )


def build() -> None:
    """Build the site."""
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    texts = collect()
    write_roles(texts)
    (SOURCE / REFERENCE).mkdir()
    ansible = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build"), "ANSIBLE_HOME": str(ROOT / ".build" / "ansible_home")}
    (OUTPUT / "antsibull-docs.cfg").write_text(CONFIG, encoding="utf-8")
    call(
        "antsibull-docs",
        "--config-file",
        str(OUTPUT / "antsibull-docs.cfg"),
        "collection",
        "--use-current",
        "--squash-hierarchy",
        "--fail-on-error",
        "--dest-dir",
        str(SOURCE / REFERENCE),
        NAME,
        **ansible,
    )
    shutil.rmtree(SITE, ignore_errors=True)
    call(
        "sphinx-build",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "auto",
        "-d",
        str(OUTPUT / "doctrees"),
        str(SOURCE),
        str(SITE),
        QUORUMSHIFT_VERSION=version,
    )
    llms.write(SITE, texts)
    wrong = list(links.check(SITE))
    if wrong:
        raise Failed("\n".join(["links:", *wrong]))


def main() -> int:
    """Build the site, and say where it is."""
    with alone("site"):
        try:
            prepare()
            build()
        except Failed as failed:
            print(f"site: {failed}", file=sys.stderr)
            return 1
    count = sum(1 for _path in SITE.rglob("*.html"))
    print(f"site: {count} pages in {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
