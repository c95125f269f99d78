# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write to ZooKeeper: only to that of the run's cluster, and with a message where it rejects or does not answer."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zookeeper

try:
    from kazoo import exceptions as kazoo_exceptions
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError:
    kazoo_exceptions = KazooTimeoutError = None  # zookeeper.connect reports it


class WriteError(RuntimeError):
    """A znode was not written; the text is for the operator."""


@contextlib.contextmanager
def writing(failed: str) -> Iterator[None]:
    """Raise WriteError if ZooKeeper rejects or does not answer a write in this context.

    `failed` begins its text ("/controller was not deleted"). Write with the client's `..._async` methods and wait for
    each answer with a timeout: kazoo's plain methods wait for as long as ZooKeeper is down.
    """
    try:
        yield
    except kazoo_exceptions.NoAuthError:
        raise WriteError(
            f"{failed}: its ACL does not allow this to the user of quorumshift_zookeeper_client. Use the brokers' "
            "ZooKeeper credentials and run again (QS-GATE-006)"
        ) from None
    except KazooTimeoutError:
        raise WriteError(f"{failed}: ZooKeeper did not answer in time. Run again (QS-GATE-006)") from None
    except kazoo_exceptions.KazooException as error:
        raise WriteError(f"{failed}: {type(error).__name__}. Run again (QS-GATE-006)") from error


class Writer:
    """The only way in which the collection writes to ZooKeeper. Each method returns kazoo's asynchronous answer.

    A session belongs to one ensemble. So the cluster's id is compared in the session that writes, right before its
    first write: kazoo replaces a session that expired, and then may connect to another server of the connect string.
    Raises WriteError where ZooKeeper is of another cluster, zookeeper.ZooKeeperError where it cannot be read.
    """

    def __init__(self, client: Any, cluster_id: str, timeout: float):
        self._client = client
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._session: Any = None
        self.compare()

    def compare(self) -> None:
        """Compare /cluster/id in the current session."""
        require_cluster(self._client, self._cluster_id, self._timeout)
        self._session = self._client.client_id

    def set(self, path: str, data: bytes, version: int = -1) -> Any:
        """Set a znode's data if it has this version."""
        return self._compared().set_async(path, data, version=version)

    def create(self, path: str, data: bytes | None, acl: Any) -> Any:
        """Create a persistent znode."""
        return self._compared().create_async(path, data, acl=acl)

    def delete(self, path: str, version: int = -1) -> Any:
        """Delete a znode if it has this version."""
        return self._compared().delete_async(path, version=version)

    def set_acl(self, path: str, acl: Any, version: int = -1) -> Any:
        """Set a znode's ACL if it has this version."""
        return self._compared().set_acls_async(path, acl, version=version)

    def _compared(self) -> Any:
        if self._session is None or self._client.client_id != self._session:
            self.compare()
        return self._client


def require_cluster(client: Any, cluster_id: str, timeout: float) -> None:
    """Raise WriteError unless /cluster/id, read in the client's session, is this. Raises zookeeper.ZooKeeperError."""
    before = client.client_id
    stored = None
    for node in zookeeper.Reader(client, timeout=timeout).get_many([znodes.CLUSTER_ID]):
        with contextlib.suppress(znodes.ZnodeError):
            stored = znodes.cluster_id(node.data)
    refused = same_cluster.check_zookeeper(stored, cluster_id, zookeeper.servers_of(client))
    if refused:
        raise WriteError(refused)
    if before is None or client.client_id != before:
        raise WriteError("the ZooKeeper session ended while /cluster/id was read. Run again (QS-PHASE-004)")
