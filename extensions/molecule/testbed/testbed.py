# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bed: six systemd hosts with a ZooKeeper-mode Kafka cluster on them, to migrate again and again.

TESTBED_VARIANT=secure in the environment chooses the variant with secured listeners.

testbed.py jars | image | up | reset | down | clean | status | ssh HOST [COMMAND...]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from contextlib import contextmanager
from typing import Iterator

import cluster
import image
import jars
import podman
from inventory import SSH_OPTIONS
from layout import BUILD, HOSTS, SSH_KEY, BedError, Network, host_named, require_known_variant


@contextmanager
def _locked() -> Iterator[None]:
    """One changing command at a time; a second one waits and says so."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "bed.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another testbed.py of this checkout ({lock.name})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(message: str) -> None:
    """A line for the person at the terminal."""
    print(f"bed: {message}", flush=True)


def _timed(done: str, begun: float) -> None:
    say(f"{done} ({time.monotonic() - begun:.1f} s)")


def _ssh(arguments: argparse.Namespace) -> None:
    host = host_named(arguments.host)
    address = Network().address(host)
    options = [part for option in SSH_OPTIONS for part in ("-o", option)]
    os.execvp("ssh", ["ssh", "-i", str(SSH_KEY), *options, f"root@{address}", *arguments.remote])


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
            made = jars.resolve()
            _timed("jars resolved and checked" if made else "jars are there", begun)
            return
        podman.require_tools()
        podman.configure()
        if arguments.command == "image":
            made = image.build()
            _timed("image built" if made else "image is there", begun)
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
            cluster.forget()
            _timed("removed hosts, network, images and storage of this checkout", begun)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        (
            "jars",
            "resolve the jars of Kafka, ZooKeeper and Spark's Kafka source into .build and check them",
        ),
        ("image", "build the hosts' image"),
        ("up", "start the hosts and the cluster; seeds it the first time"),
        ("reset", "put hosts and cluster back to the freshly seeded state"),
        ("down", "remove the hosts; image and seeded state stay"),
        ("clean", "remove hosts, network, images and storage"),
    ):
        commands.add_parser(name, help=text).set_defaults(run=_change)
    commands.add_parser("status", help="the hosts and the cluster's health").set_defaults(run=_status)
    ssh = commands.add_parser("ssh", help="a shell or a command on a host")
    ssh.add_argument("host", metavar="HOST")
    ssh.add_argument("remote", nargs=argparse.REMAINDER, metavar="COMMAND")
    ssh.set_defaults(run=_ssh)
    arguments = parser.parse_args()
    try:
        require_known_variant()
        arguments.run(arguments)
    except BedError as error:
        print(f"bed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
