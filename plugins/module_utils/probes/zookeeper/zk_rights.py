# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read who the tool is in ZooKeeper, and the ACLs of the znodes that it writes. Reads only."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any, Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity

try:
    from kazoo import exceptions as kazoo_exceptions
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError:
    kazoo_exceptions = KazooTimeoutError = None  # zookeeper.connect reports it

_READ = 1  # ZooDefs.Perms
_WHO_AM_I = 107  # ZooDefs.OpCode, since ZooKeeper 3.7


class _WhoAmI:
    """The request whoAmI as kazoo sends its own; the answer is [(scheme, user)] (zookeeper.jute, WhoAmIResponse)."""

    type = _WHO_AM_I

    @classmethod
    def serialize(cls) -> bytes:
        """Return the body of the request, which is empty."""
        return b""

    @classmethod
    def deserialize(cls, answer: bytes, offset: int) -> list[tuple[str, str]]:
        """Return the identities in an answer."""
        (count,) = struct.unpack_from(">i", answer, offset)
        texts, at = [], offset + 4
        for _text in range(2 * max(count, 0)):
            (size,) = struct.unpack_from(">i", answer, at)
            at += 4
            texts.append(bytes(answer[at : at + max(size, 0)]).decode())
            at += max(size, 0)
        return list(zip(texts[::2], texts[1::2]))


def collect(client: Any, security: ZkSecurity, topics: Iterable[str], timeout: float) -> dict:
    """Return {identities: [[scheme, id]], complete: whether these are all, acls: {path: [{perms, scheme, id}]}}
    of the znodes that a rollback writes or deletes: of each topic, the state of its partition 0. A znode that does not
    exist is left out. `readable_secrets`: paths of znodes with secrets that every client may read; None where the tool
    may not read them.

    `client`: a kazoo client in the cluster's chroot, connected with `security`. Raises zookeeper.ZooKeeperError.
    """
    identities, complete = _identities(client, security, timeout)
    paths = ["/", znodes.CONTROLLER_EPOCH, *(znodes.partition_state_path(name, 0) for name in topics)]
    acls = dict(zookeeper.Reader(client, timeout=timeout).acls_many(paths))
    return {
        "identities": identities,
        "complete": complete,
        "acls": {path: acl for path, acl in acls.items() if acl is not None},
        "readable_secrets": _readable_secrets(client, timeout),
    }


def _readable_secrets(client: Any, timeout: float) -> list[str] | None:
    reader = zookeeper.Reader(client, timeout=timeout)
    try:
        parents = reader.children_many(znodes.SECRETS)
        paths = [f"{parent}/{name}" for parent, names in parents for name in names or ()]
        return [path for path, acl in reader.acls_many(paths) if acl and any(map(_is_for_all, acl))]
    except zookeeper.ZooKeeperError:
        return None


def _is_for_all(entry: Mapping[str, Any]) -> bool:
    return entry["scheme"] == "world" and bool(entry["perms"] & _READ)


def _identities(client: Any, security: ZkSecurity, timeout: float) -> tuple[list[list[str]], bool]:
    own = []
    by_server = security.sasl_mechanism or (security.tls and security.tls.certfile)  # decides what the identity is
    if security.digest:  # whoAmI names the user alone
        user, hashed = security.digest.partition(":")[0], hashlib.sha1(security.digest.encode()).digest()
        own.append(["digest", f"{user}:{base64.b64encode(hashed).decode()}"])
    if security.sasl_username:
        own.append(["sasl", security.sasl_username])
    answer = client.handler.async_result()
    client._call(_WhoAmI(), answer)
    try:
        named = answer.get(timeout=timeout)
    except kazoo_exceptions.UnimplementedError:
        return own, not by_server
    except KazooTimeoutError:
        raise zookeeper.ZooKeeperError(
            f"ZooKeeper did not answer whoAmI within {timeout:g} s (QS-CONNECT-005)"
        ) from None
    except kazoo_exceptions.KazooException as error:
        raise zookeeper.ZooKeeperError(
            f"ZooKeeper did not answer whoAmI: {type(error).__name__} (QS-CONNECT-005)"
        ) from error
    return own + [[scheme, user] for scheme, user in named if scheme != "digest"], True
