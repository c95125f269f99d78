# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the archive of Java classes (AppCDS) with which the servers of the tests start.

    python -m tests.integration.class_archive

A broker's start takes 1.0 s of CPU with it, 1.7 s without. Each kind of server runs once and records its classes.
Nothing is made where the archive exists: the jars of `.build/kafka/libs` never change.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import HostPort

from tests.integration import servers


def main() -> None:
    """Record the classes, write the archive and rename it into its place."""
    if servers.CLASS_ARCHIVE.exists():
        return
    with servers.workdir("class_archive") as home:
        _run_servers(home, ("-Xshare:off", f"-XX:DumpLoadedClassList={home}/%p.classes"))
        names = sorted({name for path in home.glob("*.classes") for name in path.read_text().splitlines()})
        listed, archive = home / "all.classes", home / "made.jsa"
        listed.write_text("\n".join(names) + "\n")
        dump = ("-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={archive}")
        done = subprocess.run(servers.java(dump), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode or not archive.exists():
            raise RuntimeError(f"no archive of classes: {done.stdout}{done.stderr}")
        os.replace(archive, servers.CLASS_ARCHIVE)
    print(f"{servers.CLASS_ARCHIVE}: {len(names)} classes")


def _run_servers(home: pathlib.Path, jvm: tuple[str, ...]) -> None:
    """Run a server of each kind; each writes its classes when it ends in order."""
    with servers.zookeeper(home, jvm=jvm) as zookeeper:
        with servers.zk_broker(home, 1, zookeeper.connect, jvm=jvm) as broker:
            broker.stop()
        zookeeper.stop()
    address = HostPort("127.0.0.1", servers.free_port())
    voters = f"101@{address}"
    with servers.kraft_controller(home, 101, address, voters, jvm=jvm) as controller:
        with servers.kraft_broker(home, 2, voters, jvm=jvm) as broker:
            broker.stop()
        controller.stop()


if __name__ == "__main__":
    main()
