# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets on their way from a broker's file to a controller's: sealed under a key of the run.

A sealed value can be shown, stored in facts and compared (the same secret seals to the same text within a run)
without telling the secret; only a host that is given the run's key opens it. Deterministic authenticated
encryption in the manner of SIV (RFC 5297), with HMAC-SHA256 as its pseudo-random function, because managed hosts
have the standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

PREFIX = "sealed:"
MASK = "********"
# Kafka's settings of ConfigDef.Type.PASSWORD, and whatever is named like one.
_SECRET = re.compile(
    r"password(?!\.encoder\.(keyfactory|cipher|key\.length|iterations))|secret|jaas|keystore\.key$|master\.key"
)


class SealError(ValueError):
    """A sealed value that this key does not open."""


def is_secret(key: str) -> bool:
    """Say whether a configuration key holds a secret."""
    return bool(_SECRET.search(key))


def seal(run_key: str, secret: str) -> str:
    """Return `secret` sealed under `run_key`: `sealed:` and base64 of a 16-byte tag and the ciphertext."""
    plain = secret.encode()
    tag = _prf(run_key, "tag", plain)[:16]
    return PREFIX + base64.b64encode(tag + _mask(run_key, tag, plain)).decode()


def unseal(run_key: str, value: str) -> str:
    """Return the secret in a sealed value; a value without the prefix is returned as it is."""
    if not value.startswith(PREFIX):
        return value
    try:
        raw = base64.b64decode(value[len(PREFIX) :])
    except ValueError:
        raise SealError("a sealed value is torn: read the nodes again in this run") from None
    plain = _mask(run_key, raw[:16], raw[16:])
    if not hmac.compare_digest(_prf(run_key, "tag", plain)[:16], raw[:16]):
        raise SealError("a sealed value was made under another run's key: read the nodes again in this run")
    return plain.decode()


def masked(key: str, value: str) -> str:
    """Return what may be shown of a property's value."""
    return MASK if is_secret(key) else value


def _mask(run_key: str, tag: bytes, text: bytes) -> bytes:
    stream = b"".join(_prf(run_key, "stream", tag + block.to_bytes(4, "big")) for block in range(len(text) // 32 + 1))
    return bytes(a ^ b for a, b in zip(text, stream))


def _prf(run_key: str, purpose: str, message: bytes) -> bytes:
    key = hashlib.sha256(f"{purpose}:{run_key}".encode()).digest()
    return hmac.new(key, message, hashlib.sha256).digest()
