# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens of SASL OAUTHBEARER: from a token endpoint (RFC 6749, client credentials) or from a file.

A token is kept in this process until a fifth of its lifetime is left, and never written anywhere.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    OauthLogin,
    Security,
    SecurityError,
    Tls,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import bounded

_LARGEST_ANSWER = 1 << 20
_LEAST_LIFETIME_S = 1.0


class TokenError(Exception):
    """There is no token; the text names endpoint or file, and the reason, without a secret."""


class Token(NamedTuple):
    """An access token, until when it is valid, and from when on a new one is asked for, in epoch seconds."""

    value: str
    expires_at: float
    renew_at: float

    def __repr__(self) -> str:
        return "Token(…)"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the client's secret to another server."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


_LOCK = threading.Lock()
_KEPT: Dict[OauthLogin, Token] = {}


def fetch(login: OauthLogin, timeout: float) -> Token:
    """Return a valid token. Raises TokenError, SecurityError for an unusable CA file."""
    if login.token_file:
        return _from_file(login)
    with _LOCK:
        kept = _KEPT.get(login)
        if kept is None or time.time() >= kept.renew_at:
            try:
                kept = _KEPT[login] = bounded.run(lambda: _from_endpoint(login, timeout), timeout)
            except bounded.TimedOut:
                raise _failed(login, f"no whole answer within {timeout:g} s") from None
        return kept


def librdkafka(security: Security, timeout: float) -> Dict[str, Any]:
    """Return settings for confluent-kafka, with tokens for OAUTHBEARER. Raises SecurityError, also for GSSAPI."""
    if security.kerberos is not None:
        raise SecurityError(
            f"{security.option}.sasl_mechanism is GSSAPI, which the wheels of confluent-kafka lack. The comparison of "
            "records needs another login: unset quorumshift_fingerprint_topics, or use a listener with another one "
            "(QS-CONNECT-007)"
        )
    token = {} if security.oauth is None else {"oauth_cb": _callback(security.oauth, timeout)}
    return {**security.librdkafka(), **token}


def _callback(login: OauthLogin, timeout: float) -> Any:
    """Return the `oauth_cb` of a confluent-kafka client: (token, time of its end)."""

    def answer(_config: str) -> Tuple[str, float]:
        token = fetch(login, timeout)
        return token.value, token.expires_at

    return answer


def _from_file(login: OauthLogin) -> Token:
    """Return the token in a file, which another program renews: it is read for each login."""
    where = f"{login.option}.sasl_oauthbearer_token_file: {login.token_file}"
    try:
        with open(str(login.token_file), encoding="utf-8") as file:
            value = file.read(_LARGEST_ANSWER).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise SecurityError(f"{where}: {reason} (QS-CONNECT-007)") from error
    if not value or any(character.isspace() or ord(character) > 126 for character in value):
        raise SecurityError(f"{where}: its content is no token (QS-CONNECT-007)")
    expires_at = expiry(value)
    now = time.time()
    if expires_at is not None and expires_at <= now:
        raise TokenError(
            f"{where}: the token expired {now - expires_at:.0f} s ago. Let the program that writes it write a new one "
            "(QS-CONNECT-004)"
        )
    return Token(value, expires_at or now + 60, now)


def expiry(token: str) -> float | None:
    """Return the claim `exp` of a JSON web token, None of any other token. Its signature is the servers' matter."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def _from_endpoint(login: OauthLogin, timeout: float) -> Token:
    secret = f"{login.client_id}:{login.client_secret}"
    form = {"grant_type": "client_credentials", **({"scope": login.scope} if login.scope else {})}
    request = urllib.request.Request(
        str(login.token_endpoint_url),
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}",
        },
    )
    context = Tls(
        cafile=login.cafile, option=login.option, names={"cafile": f"{login.option}.sasl_oauthbearer_cafile"}
    ).context()
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect())
    asked = time.time()
    try:
        with opener.open(request, timeout=max(timeout, 0.001)) as answer:
            body = answer.read(_LARGEST_ANSWER)
    except urllib.error.HTTPError as error:
        with error:
            raise _failed(login, f"it answered {error.code}{_explain(error.read(_LARGEST_ANSWER))}") from None
    except urllib.error.URLError as error:
        raise _failed(login, _reason(error.reason)) from None
    except (OSError, ValueError) as error:
        raise _failed(login, _reason(error)) from None
    try:
        found = json.loads(body)
        value = found["access_token"]
        if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
            raise ValueError("no token")
        expires_at = expiry(value) or asked + float(found["expires_in"])
    except (ValueError, KeyError, TypeError):
        raise _failed(login, "its answer has no access_token with expires_in") from None
    lifetime = expires_at - asked
    if lifetime < _LEAST_LIFETIME_S:
        raise _failed(login, f"its token is valid for {lifetime:.0f} s: compare the clocks of both hosts")
    return Token(value, expires_at, asked + 0.8 * lifetime)


def _failed(login: OauthLogin, reason: str) -> TokenError:
    return TokenError(f"no token from {login.token_endpoint_url} for {login.client_id!r}: {reason} (QS-CONNECT-004)")


def _reason(error: Any) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message} (sasl_oauthbearer_cafile)"
    return getattr(error, "strerror", None) or str(error)


def _explain(body: bytes) -> str:
    """Return the error of RFC 6749 in an answer, which repeats no credential."""
    try:
        found = json.loads(body)
        texts = [str(found[key]) for key in ("error", "error_description") if found.get(key)]
    except (ValueError, AttributeError):
        return ""
    return f" {': '.join(texts)[:200]}" if texts else ""
