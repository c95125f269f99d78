# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run make targets on a new minimal Debian 12 with empty caches.

Usage: ``python -m tools.fresh_host [--keep] [TARGET...]`` (make targets; default: lint unit integration build).

debootstrap creates .build/fresh/root with only git, make and python3. The committed state of this checkout is cloned
into it. ``make setup`` runs there twice (the second one must be quick), then each target, as root, with an empty
environment and no standard input. The host's resolver and its additional certificate authorities are copied, since its
network is used. New mount and process namespaces unmount and end everything with the first process. At the end, files
left in the new host's home directory and /tmp are listed.

Not covered: the testbed (podman does not run in this chroot), and Pythons other than Debian's.
Exit code 0: every run succeeded. Timings go to build/test-fresh/host.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tools.checkout import ROOT

BASE = ROOT / ".build" / "fresh"
HOST = BASE / "root"
CHECKOUT = "/home/operator/quorumshift"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
SOURCES = f"""\
deb {MIRROR} {RELEASE} main
deb {MIRROR} {RELEASE}-updates main
deb http://deb.debian.org/debian-security {RELEASE}-security main
"""
QUICK_S = 5
LIMITS_S = {"debootstrap": 600, "setup": 900, "setup again": 60}
TARGET_LIMIT_S = 1500
LOCAL_AUTHORITIES = Path("/usr/local/share/ca-certificates")

# runs in new mount and process namespaces; $1 is the new root, the rest the command
ENTER = """\
set -e
root="$1"; shift
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@"
"""


def sudo(*argv: str) -> list[str]:
    return list(argv) if os.geteuid() == 0 else ["sudo", *argv]


def timed(name: str, argv: list[str]) -> dict:
    """Run a command with its output to ours; return {name, seconds, exit_code}, exit_code None beyond its limit."""
    limit_s = LIMITS_S.get(name, TARGET_LIMIT_S)
    print(f"\n=== fresh host: {name} (limit {limit_s} s)", flush=True)
    begun = time.monotonic()
    code: int | None = None
    try:
        # unshare --kill-child ends everything inside with it
        code = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=limit_s, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"fresh host: {name}: exceeded its limit of {limit_s} s", flush=True)
    return {"name": name, "seconds": round(time.monotonic() - begun, 1), "exit_code": code}


def inside(*argv: str) -> list[str]:
    unshare = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", str(HOST))
    return sudo(*unshare, *argv)


def in_checkout(*argv: str) -> list[str]:
    environment = []
    if authorities():
        # pip has its own list of authorities
        environment = ["env", "PIP_CERT=/etc/ssl/certs/ca-certificates.crt"]
    return inside("/usr/bin/env", "-C", CHECKOUT, *environment, *argv)


def authorities() -> list[Path]:
    return sorted(LOCAL_AUTHORITIES.rglob("*.crt"))


def write(path: Path, content: str) -> None:
    subprocess.run(sudo("tee", str(path)), input=content, text=True, stdout=subprocess.DEVNULL, check=True)


def equip() -> None:
    """Give the new host a network, package sources and a clone of the committed state."""
    write(HOST / "etc/apt/sources.list", SOURCES)
    write(HOST / "etc/resolv.conf", Path("/etc/resolv.conf").read_text(encoding="utf-8"))
    for certificate in authorities():
        subprocess.run(sudo("cp", str(certificate), f"{HOST}{LOCAL_AUTHORITIES}/"), check=True)
    subprocess.run(inside("update-ca-certificates"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    checkout = f"{HOST}{CHECKOUT}"
    subprocess.run(sudo("mkdir", "-p", str(Path(checkout).parent)), check=True)
    subprocess.run(sudo("git", "clone", "--quiet", "--no-hardlinks", f"file://{ROOT}", checkout), check=True)


def leftovers() -> list[str]:
    """Return the new files in the new host's home directory and /tmp, two levels deep."""
    find = ("find", "root", "tmp", "-mindepth", "1", "-maxdepth", "2", "-newer", "etc/resolv.conf")
    listed = subprocess.run(sudo(*find), cwd=HOST, stdout=subprocess.PIPE, text=True, check=True)
    return sorted(f"/{line}" for line in listed.stdout.splitlines())


def remove_host() -> None:
    subprocess.run(sudo("rm", "-rf", "--one-file-system", str(BASE)), check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run make targets on a new minimal Debian 12.")
    parser.add_argument("--keep", action="store_true", help="keep .build/fresh/root")
    parser.add_argument("targets", nargs="*", default=["lint", "unit", "integration", "build"])
    arguments = parser.parse_args()
    remove_host()
    BASE.mkdir(parents=True)
    include = "ca-certificates,git,make,python3"
    debootstrap = ("debootstrap", "--variant=minbase", f"--include={include}", RELEASE, str(HOST), MIRROR)
    with (BASE / "debootstrap.log").open("w") as log:
        begun = time.monotonic()
        print(f"=== fresh host: debootstrap {RELEASE} (limit {LIMITS_S['debootstrap']} s)", flush=True)
        made = subprocess.run(
            sudo(*debootstrap), stdout=log, stderr=log, timeout=LIMITS_S["debootstrap"], check=False
        ).returncode
    runs = [{"name": "debootstrap", "seconds": round(time.monotonic() - begun, 1), "exit_code": made}]
    if made:
        print((BASE / "debootstrap.log").read_text(encoding="utf-8")[-2000:], file=sys.stderr)
        return 1
    equip()
    runs.append(timed("setup", in_checkout("make", "setup")))
    if runs[-1]["exit_code"] == 0:
        runs.append(timed("setup again", in_checkout("make", "setup")))
        if runs[-1]["seconds"] > QUICK_S:
            print(f"fresh host: a second setup took longer than {QUICK_S} s", file=sys.stderr)
            runs[-1]["exit_code"] = runs[-1]["exit_code"] or 1
        runs += [timed(target, in_checkout("make", target)) for target in arguments.targets]
    left = leftovers()
    print(f"\n{'run':<14}{'seconds':>9}  exit code")
    for run in runs:
        print(f"{run['name']:<14}{run['seconds']:>9}  {run['exit_code']}")
    print(f"left outside the checkout: {', '.join(left) or 'nothing'}")
    print("not covered: the testbed, make molecule, make demo")
    output = ROOT / "build" / "test-fresh"
    output.mkdir(parents=True, exist_ok=True)
    (output / "host.json").write_text(json.dumps({"runs": runs, "left": left}, indent=2) + "\n", encoding="utf-8")
    if not arguments.keep:
        remove_host()
    return 0 if all(run["exit_code"] == 0 for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
