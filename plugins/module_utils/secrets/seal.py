# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seal secrets under a key of the run, to carry them from a broker's file to a controller's.

A sealed value does not reveal the secret, so it can be shown, stored in facts and compared: within a run, equal secrets
have equal sealed values. Only a host that is given the run's key can open it. The scheme is deterministic authenticated
encryption in the manner of SIV (RFC 5297) with HMAC-SHA256, because managed hosts have only the standard library.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import zlib
from typing import Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values, harmless_configs

PREFIX = "sealed:"
MASK = "********"
_USERINFO = re.compile(r"://[^/\s@]*@")


class SealError(ValueError):
    """This key does not open a sealed value."""


def is_secret(key: str) -> bool:
    """Return whether a configuration key's value must not be shown: it is a password of Kafka, or the key is not
    Kafka's own, so that it may be a plugin's password."""
    return config_values.plain_name(key) not in harmless_configs.HARMLESS


def seal_properties(run_key: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties with the secrets sealed, also a user in a URL. Secrets are trimmed, as Kafka does."""
    return {
        key: seal(run_key, config_values.trim(value)) if is_secret(key) or _USERINFO.search(value) else value
        for key, value in properties.items()
    }


def seal(run_key: str, secret: str) -> str:
    """Return `secret` sealed under `run_key`: `sealed:` and base64 of a 16-byte tag and the ciphertext."""
    plain = secret.encode("utf-8", "surrogatepass")
    tag = _prf(run_key, "tag", plain)[:16]
    return PREFIX + base64.b64encode(tag + _mask(run_key, tag, plain)).decode()


def unseal(run_key: str, value: str) -> str:
    """Return the secret of a sealed value; return a value without the prefix unchanged."""
    if not value.startswith(PREFIX):
        return value
    try:
        raw = base64.b64decode(value[len(PREFIX) :])
    except ValueError:
        raise SealError(
            "a sealed value is damaged: gather the nodes' facts again in this run (QS-CONNECT-010)"
        ) from None
    plain = _mask(run_key, raw[:16], raw[16:])
    if not hmac.compare_digest(_prf(run_key, "tag", plain)[:16], raw[:16]):
        raise SealError("a sealed value is of another run: gather the nodes' facts again in this run (QS-CONNECT-010)")
    return plain.decode("utf-8", "surrogatepass")


def seal_bytes(run_key: str, data: bytes) -> str:
    """Return the content of a file sealed, compressed before."""
    return seal(run_key, base64.b64encode(zlib.compress(data)).decode())


def unseal_bytes(run_key: str, value: str, most: int) -> bytes:
    """Return what `seal_bytes` sealed. Raises SealError, also for more than `most` bytes."""
    try:
        opened = zlib.decompressobj()
        data = opened.decompress(base64.b64decode(unseal(run_key, value)), most)
    except (ValueError, zlib.error) as error:
        if isinstance(error, SealError):
            raise
        raise SealError(
            "a sealed value is damaged: gather the nodes' facts again in this run (QS-CONNECT-010)"
        ) from None
    if opened.unconsumed_tail or not opened.eof:
        raise SealError(f"a sealed value has more than {most} bytes (QS-CONNECT-010)")
    return data


def mask_value(key: str, value: str) -> str:
    """Return a property's value, or MASK if it must not be shown."""
    return MASK if is_secret(key) else _USERINFO.sub(f"://{MASK}@", value)


def _mask(run_key: str, tag: bytes, text: bytes) -> bytes:
    stream = b"".join(_prf(run_key, "stream", tag + block.to_bytes(4, "big")) for block in range(len(text) // 32 + 1))
    return bytes(a ^ b for a, b in zip(text, stream))


def _prf(run_key: str, purpose: str, message: bytes) -> bytes:
    key = hashlib.sha256(f"{purpose}:{run_key}".encode()).digest()
    return hmac.new(key, message, hashlib.sha256).digest()
