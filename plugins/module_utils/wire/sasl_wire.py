# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client side of SASL PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677) and OAUTHBEARER (RFC 7628), without I/O."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Dict

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_ITERATIONS = 1_000_000  # hashing cannot be interrupted, so a higher count could exceed the deadline


class SaslError(Exception):
    """The server's message is malformed, or does not prove that the server knows the credential."""


def plain_token(username: str, password: str) -> bytes:
    """Return PLAIN's single message, without an authorization identity."""
    return f"\0{username}\0{password}".encode()


def bearer_message(token: str) -> bytes:
    """Return OAUTHBEARER's first message, without an authorization identity."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def explain_bearer(answer: bytes) -> str:
    """Return the status with which a server rejects a token."""
    try:
        found = json.loads(answer)
        return ", ".join(f"{key} {str(found[key])[:100]}" for key in ("status", "scope") if found.get(key))
    except (ValueError, AttributeError, TypeError):
        return "without a status that can be read"


class Scram:
    """One SCRAM exchange without channel binding: first(), final(server's first), verify(server's final).

    Names and passwords are UTF-8 without SASLprep, as in Kafka's ScramFormatter.
    """

    def __init__(self, mechanism: str, username: str, password: str, nonce: str = "") -> None:
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or base64.b64encode(os.urandom(24)).decode()
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return the client-first-message."""
        return f"n,,{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client-final-message. Raises SaslError."""
        fields = _fields(server_first)
        try:
            nonce, salt, iterations = fields["r"], base64.b64decode(fields["s"]), int(fields["i"])
        except (KeyError, ValueError) as error:
            raise SaslError("the server's first SCRAM message is malformed (QS-CONNECT-004)") from error
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's SCRAM nonce does not continue the client's (QS-CONNECT-004)")
        if not 1 <= iterations <= _MOST_ITERATIONS:
            raise SaslError(
                f"the server requests {iterations} SCRAM iterations, the maximum is {_MOST_ITERATIONS} (QS-CONNECT-004)"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        message = ",".join((self._first_bare, server_first.decode(), without_proof)).encode()
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(key ^ signature for key, signature in zip(client_key, client_signature))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Raise SaslError unless the server proves that it holds the user's credential."""
        fields = _fields(server_final)
        if "e" in fields:
            raise SaslError(f"the server reports {fields['e']} (QS-CONNECT-004)")
        try:
            signature = base64.b64decode(fields["v"])
        except (KeyError, ValueError) as error:
            raise SaslError("the server's final SCRAM message is malformed (QS-CONNECT-004)") from error
        if not hmac.compare_digest(signature, self._server_signature):
            raise SaslError(
                "the server's SCRAM signature is wrong: it does not hold this user's credential (QS-CONNECT-004)"
            )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _fields(message: bytes) -> Dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise SaslError("the server's SCRAM message is not UTF-8 (QS-CONNECT-004)") from error
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)
