# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for writes that ZooKeeper rejects or does not answer."""

from __future__ import annotations

import contextlib
from typing import Iterator

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
            "ZooKeeper credentials and run again"
        ) from None
    except KazooTimeoutError:
        raise WriteError(f"{failed}: ZooKeeper did not answer in time. Run again") from None
    except kazoo_exceptions.KazooException as error:
        raise WriteError(f"{failed}: {type(error).__name__}. Run again") from error
