# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed: systemd hosts with a ZooKeeper-mode Kafka cluster that can be reset in seconds.

The environment variable TESTBED_VARIANT chooses the variant: `secure` has secured listeners, `other` another layout,
`racks` 18 brokers in three racks, `sudo` a login other than root, which logind cleans up after, `journey` an older
release and homes of newer ones.

python -m tests.system.testbed jars | image | up | reset | down | clean | status | ssh HOST [COMMAND...]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from contextlib import contextmanager
from typing import Iterator

from tests.system.testbed import cluster, image, jars, podman, ssh
from tests.system.testbed.layout import BUILD, HOSTS, Network, TestbedError, host_named, require_known_variant


@contextmanager
def _locked() -> Iterator[None]:
    """Allow one changing command at a time; a second one waits."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "testbed.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command for the testbed of this checkout ({lock.name})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(message: str) -> None:
    """Print a progress line."""
    print(f"testbed: {message}", flush=True)


def _timed(done: str, begun: float) -> None:
    say(f"{done} ({time.monotonic() - begun:.1f} s)")


def _ssh(arguments: argparse.Namespace) -> None:
    host = host_named(arguments.host)
    address = Network().address(host)
    os.execvp("ssh", ssh.argv(address, *arguments.remote))


def _status(_arguments: argparse.Namespace) -> None:
    podman.require_tools()
    podman.configure()
    states = podman.containers()
    network = Network()
    for host in HOSTS:
        state = states.get(host.container, "absent")
        print(f"{host.name}  {network.address(host):15}  id {host.node_id:<3}  {host.rack}  {state}")
    if podman.running():
        print(cluster.health(network).sentence)


def _change(arguments: argparse.Namespace) -> None:
    begun = time.monotonic()
    with _locked():
        if arguments.command == "jars":
            changed = any([jars.resolve(), *map(jars.resolve_release, arguments.releases)])
            _timed("jars resolved and checked" if changed else "jars are complete", begun)
            return
        podman.require_tools()
        podman.configure()
        if arguments.command == "image":
            changed = image.build()
            _timed("image built" if changed else "image exists", begun)
        elif arguments.command == "up":
            cluster.up(say)
            _timed("up", begun)
        elif arguments.command == "reset":
            cluster.reset(say)
            _timed("reset to the seeded state", begun)
        elif arguments.command == "down":
            cluster.down()
            _timed("down", begun)
        else:
            podman.remove_everything()
            cluster.remove_state()
            _timed("removed hosts, network, images and storage of this checkout", begun)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.testbed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("jars", "resolve the jars of Kafka, ZooKeeper and Spark's Kafka source into .build and check them"),
        ("image", "build the hosts' image"),
        ("up", "start the hosts and the cluster; make image and seed the first time"),
        ("reset", "replace hosts and cluster by the seeded state"),
        ("down", "remove the hosts; keep image and seed"),
        ("clean", "remove hosts, network, images and storage"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=_change)
        if name == "jars":
            command.add_argument(
                "releases", nargs="*", metavar="RELEASE", help="another release of Kafka, such as 4.1.1"
            )
    commands.add_parser("status", help="show the hosts and the cluster's health").set_defaults(run=_status)
    shell = commands.add_parser("ssh", help="open a shell or run a command on a host")
    shell.add_argument("host", metavar="HOST")
    shell.add_argument("remote", nargs=argparse.REMAINDER, metavar="COMMAND")
    shell.set_defaults(run=_ssh)
    arguments = parser.parse_args()
    try:
        require_known_variant()
        arguments.run(arguments)
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
