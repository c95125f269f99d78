# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A token endpoint for SASL OAUTHBEARER: RFC 6749's client credentials over TLS, tokens signed with RS256.

`token_server.py CONFIG`: a JSON file with `address`, `port`, `certfile`, `keyfile`, `clients` ({id: secret}), `key`
({n, e, d} as decimal text), `issuer`, `audience` and `lifetime_s`. Standard library only: it runs on a testbed's host.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import ssl
import sys
import time
import urllib.parse
from typing import Any

KEY_ID = "testbed"
HEADER = json.dumps({"alg": "RS256", "typ": "JWT", "kid": KEY_ID}).encode()
# RFC 8017: DigestInfo of SHA-256
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def encoded(data: bytes) -> str:
    """Return base64url without padding (RFC 7515)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims: dict[str, Any], key: dict[str, str]) -> str:
    """Return a JSON web token."""
    modulus, exponent = int(key["n"]), int(key["d"])
    size = (modulus.bit_length() + 7) // 8
    head = encoded(HEADER)
    body = f"{head}.{encoded(json.dumps(claims).encode())}"
    digest = _DIGEST_INFO + hashlib.sha256(body.encode()).digest()
    padded = b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest
    signature = pow(int.from_bytes(padded, "big"), exponent, modulus).to_bytes(size, "big")
    return f"{body}.{encoded(signature)}"


def key_set(key: dict[str, str]) -> str:
    """Return the public key as a JSON web key set (RFC 7517), which brokers read."""

    def number(name: str) -> str:
        value = int(key[name])
        return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))

    public = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": KEY_ID, "n": number("n"), "e": number("e")}
    return json.dumps({"keys": [public]})


def claims_of(client: str, config: dict[str, Any], now: float) -> dict[str, Any]:
    """Return the claims of a client's token."""
    return {
        "iss": config["issuer"],
        "aud": config["audience"],
        "sub": client,
        "scope": "kafka",
        "iat": int(now),
        "exp": int(now) + config["lifetime_s"],
    }


class Server(http.server.ThreadingHTTPServer):
    """The endpoint; `issued` counts tokens by client."""

    daemon_threads = True

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__((config["address"], config["port"]), _Handler)
        self.config = config
        self.issued: dict[str, int] = {}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(config["certfile"], config["keyfile"])
        self.socket = context.wrap_socket(self.socket, server_side=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        client = self._client()
        if self.path == "/elsewhere":
            self._answer(307, {}, {"Location": "/token"})
        elif client is None:
            self._answer(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
        elif form.get("grant_type") != ["client_credentials"]:
            self._answer(400, {"error": "unsupported_grant_type"})
        else:
            self.server.issued[client] = self.server.issued.get(client, 0) + 1
            token = signed(claims_of(client, self.server.config, time.time()), self.server.config["key"])
            lifetime = self.server.config["lifetime_s"]
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": lifetime})

    def _client(self) -> str | None:
        kind, _space, given = self.headers.get("Authorization", "").partition(" ")
        try:
            client, _colon, secret = base64.b64decode(given).decode().partition(":")
        except ValueError:
            return None
        clients = self.server.config["clients"]
        return client if kind == "Basic" and secret and clients.get(client) == secret else None

    def _answer(self, code: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        fixed = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        for name, value in {**fixed, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing: a request has a client's secret."""


def main() -> None:
    """Serve until the process ends."""
    with open(sys.argv[1], encoding="utf-8") as file:
        Server(json.load(file)).serve_forever()


if __name__ == "__main__":
    main()
