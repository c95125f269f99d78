# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' image: Debian by debootstrap, then image/Containerfile."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.system.testbed import jars
from tests.system.testbed.layout import AUTHORITIES, LIBS, STATE, SUDO, TESTBED, TestbedError, digest_of
from tests.system.testbed.podman import image_exists, podman

_SOURCES = TESTBED / "image"
_SUITE = "bookworm"
_PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-apt",
    "iproute2",
    "openssh-server",
    "iptables",
    "ca-certificates",
    "procps",
    "openjdk-17-jre-headless",
    *(("sudo", "libpam-systemd") if SUDO else ()),
    *(("sudo", "krb5-kdc") if AUTHORITIES else ()),  # one image for the variants `oauth` and `gssapi`
)
_DEBIAN = "http://deb.debian.org/debian"


def name() -> str:
    """Return the image's name; the tag changes with the image's sources."""
    return f"localhost/quorumshift-host:{digest_of(_SOURCES, TESTBED / 'jars.sha256', also=_rootfs_name())[:12]}"


def _rootfs_name() -> str:
    inputs = " ".join((_SUITE, *_PACKAGES))
    return f"localhost/quorumshift-rootfs:{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"


def build() -> bool:
    """Build the image unless it exists; return whether it was built."""
    if image_exists(name()):
        return False
    jars.resolve()
    if not image_exists(_rootfs_name()):
        _bootstrap()
    context = STATE / "context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(_SOURCES, context, symlinks=True)
    (context / "libs").mkdir()
    for jar in LIBS.glob("*.jar"):
        os.link(jar, context / "libs" / jar.name)
    for attempt in (1, 2):
        try:
            _build_from(context)
            break
        except TestbedError as error:
            # the steps that succeeded are kept as layers; cds.sh runs servers, and an election may go wrong once
            if attempt == 2:
                raise
            print(f"testbed: the image's build failed, tried once more: {error}", file=sys.stderr, flush=True)
    shutil.rmtree(context)
    return True


def _build_from(context: Path) -> None:
    podman(
        "build",
        "--quiet",
        "--layers",
        "--network=none",
        "--ulimit=nofile=20000:20000",
        f"--build-arg=ROOTFS={_rootfs_name()}",
        f"--tag={name()}",
        str(context),
    )


def remove_older() -> None:
    """Remove images of older sources that no container uses."""
    kept = {name(), _rootfs_name(), *podman("ps", "--all", "--format", "{{.Image}}").splitlines()}
    for image in podman("images", "--format", "{{.Repository}}:{{.Tag}}").splitlines():
        if image not in kept and "<none>" not in image:
            podman("rmi", image)


def _bootstrap() -> None:
    rootfs = STATE / "rootfs"
    shutil.rmtree(rootfs, ignore_errors=True)
    rootfs.mkdir(parents=True)
    log = STATE / "debootstrap.log"
    with log.open("w") as output:
        done = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(rootfs), _mirror()],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"},
            check=False,
        )
    if done.returncode:
        raise TestbedError(f"debootstrap failed with {done.returncode}; the end of {log}:\n{log.read_text()[-2000:]}")
    with subprocess.Popen(["tar", "-C", str(rootfs), "-c", "."], stdout=subprocess.PIPE) as tar:
        podman("import", "--quiet", "-", _rootfs_name(), stdin=tar.stdout)
    shutil.rmtree(rootfs)


def _mirror() -> str:
    """Return the Debian mirror in this machine's apt sources, or Debian's default."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for file in (f for f in sources if f.is_file()):
        text = file.read_text(errors="replace")
        for uri in re.findall(r"^(?:deb(?:\s+\[[^]]*\])?\s+|URIs:\s*)(\S+/debian/?)(?=\s|$)", text, re.MULTILINE):
            return uri
    return _DEBIAN
