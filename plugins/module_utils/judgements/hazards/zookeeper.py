# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hazards: what ZooKeeper holds."""

from __future__ import annotations

from typing import Iterable

from .. import clean_up, kraft_config
from .facts import Facts, Found, values_of


def zookeeper(facts: Facts) -> Iterable[Found]:
    """ZooKeeper can be read, and it is the brokers' own."""
    ours = facts.zookeeper.get("connect")
    theirs = {host: values_of(node).get("zookeeper.connect") for host, node in facts.brokers.items()}
    for host, text in sorted(theirs.items()):
        if ours and text and _chroot(text) != _chroot(ours):
            yield Found(
                f"quorumshift_zookeeper_connect has the chroot {_chroot(ours) or '/'}, zookeeper.connect of {host} has "
                f"{_chroot(text) or '/'}",
                f"set quorumshift_zookeeper_connect to {text}",
            )
            return
    if not facts.zookeeper.get("reached"):
        yield Found(
            f"ZooKeeper could not be read: {facts.zookeeper.get('error')}",
            "mend the connection, quorumshift_zookeeper_connect or quorumshift_zookeeper_client",
        )
    elif facts.metadata is None:
        yield Found(
            f"ZooKeeper's metadata could not be read: {facts.metadata_error}",
            "mend the connection or quorumshift_zookeeper_client, or raise quorumshift_probe_timeout",
        )


def _chroot(connect: str) -> str:
    return connect.partition("/")[2].strip().rstrip("/") and "/" + connect.partition("/")[2].strip().rstrip("/")


def stale_migration(facts: Facts) -> Iterable[Found]:
    """No trace of an earlier attempt in ZooKeeper: with it the copy is skipped and ZooKeeper's metadata deleted."""
    migration = facts.zookeeper.get("migration") or {}
    do = clean_up.migration_znode(facts.cluster)
    if migration.get("malformed"):
        yield Found(f"/migration is malformed: {migration['malformed']}", do)
    elif (migration.get("kraft_metadata_offset") or -1) > 0:
        yield Found(
            f"/migration says that a copy was done up to offset {migration['kraft_metadata_offset']}, yet the cluster "
            "runs in ZooKeeper mode: a new quorum would skip the copy and delete topics, ACLs and configs in ZooKeeper",
            do,
        )


def unreadable(facts: Facts) -> Iterable[Found]:
    """ZooKeeper holds nothing that the copy would fail on, or lose."""
    for problem in (facts.metadata or {}).get("problems", []):
        yield Found(
            f"ZooKeeper {problem['path']}: {problem['reason']}",
            "mend or remove it: the copy would fail on it, or lose it",
        )


def encoder_secret(facts: Facts) -> Iterable[Found]:
    """Encrypted dynamic configs can be decrypted by the controllers."""
    if facts.metadata is None:
        return
    encrypted = sorted(
        f"{key} of broker {entity or 'default'}"
        for entity, values in facts.metadata["configs"]["broker"].items()
        for key, value in values.items()
        if isinstance(value, dict)
    )
    if not encrypted:
        return
    shown = ", ".join(encrypted[:3])
    for host, node in sorted(facts.brokers.items()):
        if values_of(node) and kraft_config.ENCODER_SECRET not in values_of(node):
            yield Found(
                f"ZooKeeper holds encrypted configs ({shown}), and {host} has no {kraft_config.ENCODER_SECRET}",
                f"set {kraft_config.ENCODER_SECRET} as where they were written: controllers would copy ciphertext",
            )
