# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mask secrets in text that others wrote: log excerpts, exceptions, the output of tools.

A secret is found by its syntax, or because it is the exact value of a known setting. A value that is too short is not
masked by itself, since that would make a log unreadable. Runs on managed hosts: standard library only.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK, PREFIX, is_secret

SHORTEST = 6
_NAMES = (
    r"passw(?:or)?d|passphrase|(?<![a-z])pwd|secret|credential|token|jaas|api[._-]?key|access[._-]?key|account[._-]?key"
    r"|private[._-]?key|master[._-]?key|keystore\.key|user[._-]info|stored[._-]?key|server[._-]?key|(?<![a-z])salt|hmac"
    r"|(?<![\w.-])user_|(?<!by)(?<!com)pass(?![\w.-])|super[._-]?digest"  # ansible_become_pass, STORE_PASS, -keypass
)
_NAMED = re.compile(_NAMES, re.IGNORECASE)
_WHOLE = re.compile(r"passw(?:or)?d|passphrase|secret|[\w-]+[._-][\w.-]+", re.IGNORECASE)
# In double quotes with escapes, in double quotes that are escaped themselves, or in single quotes
_STRING = r'"(?:\\.|[^"\\])*"|\\"(?:\\{3}"|\\\\|(?!\\")[^"])*\\"|' + r"'(?:\\.|[^'\\])*'"
_NOTHING = re.compile(r"(null|none|true|false|\[hidden\]?|\[redacted\]?|\*{4,}|\(secret\)|)[.,;]?$", re.IGNORECASE)
# A confirmation that the operator types and messages print; a type of metadata record, which messages count
_NO_SETTING = re.compile(r"quorumshift_\w+|[A-Z_]+_RECORD")
_SEALED = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9+/=]+")
_PEM = re.compile(
    r"-----BEGIN ([A-Z0-9 ]+)-----(?! \*)(?:(?:(?!-----).)*-----END \1-----|(?:[A-Za-z0-9+/=\s]|\\[nr])*)", re.DOTALL
)
_USERINFO = re.compile(r"(://)(?:[^/\s@:,\"']*:(?!\d+,\d+@)[^/\s@\"']+|[^/\s@:,\"']+)@")
_URL_PASSWORD = re.compile(r"://[^/\s@:,\"']*:([^/\s@\"']+)@")
_AUTHORIZATION = re.compile(
    r"""(\b(?:proxy-)?authorization["']?[ \t]*[:=][ \t]*["']?)(?:digest\b[^\r\n]*|[^\r\n"']+)""", re.IGNORECASE
)
_BEARER = re.compile(r"\b((?:Bearer|Basic) )[A-Za-z0-9+/=._~-]{8,}")
_JAAS = re.compile(
    r"(LoginModule[\s\\]+(?:required|requisite|sufficient|optional))"
    rf"(?:[\s\\]+(?:n\s*)?[\w.-]+[ \t]*=[ \t]*(?:{_STRING}|[^\s;\"']+|[\"'][^\r\n]*))+",
    re.IGNORECASE,
)
# What Kafka prints of a configuration at a start (AbstractConfig.logAll)
_PRINTED = re.compile(r"^([ \t]+)([\w-]+(?:\.[\w-]+)+)( = )(.*)$", re.MULTILINE)
_COMMENTED = re.compile(r"([ \t]*[#!][#! \t]*([\w-]+(?:\.[\w-]+)+)[ \t]*[=:][ \t]*)(.*)")
_NAME = rf"[\w.-]{{0,100}}?(?:{_NAMES})[\w.-]{{0,100}}"  # bounded, so that long words take no long time
_ARGUMENT = re.compile(rf"(?<!\S)(--?{_NAME}[ \t]+)({_STRING}|[^\s-]\S*)", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""(?P<quote>\\?["'])?(?<![\w.-])(?P<name>{_NAME})(?(quote)(?P=quote))(?P<sign>[ \t]*(?:=>?|:)[ \t]*)""",
    re.IGNORECASE,
)
# An unquoted value ends before what follows it in a list of settings; it may contain anything else.
_VALUE = re.compile(
    rf"{_STRING}|(?!\s)[^\r\n]*?(?=,[ \t]*[\w.-]+=|[ \t]+-*[\w.-]+=|[}})\]]+[ \t]*(?:\W|$)|[ \t]\||$)", re.MULTILINE
)
# One search finds most texts that have nothing to mask.
_HINT = re.compile(
    rf"{_NAMES}|{re.escape(PREFIX)}|://|-----BEGIN|authorization|LoginModule|bearer |basic |^[ \t]+[\w.-]+ = ",
    re.IGNORECASE | re.MULTILINE,
)
_ORDINARY = re.compile(r"true|false|[\d.]+|/.*|([\w$]+\.){2,}[\w$]+|[a-z]{1,12}", re.IGNORECASE)


def known_secrets(settings: Mapping[str, Any]) -> list[str]:
    """Return the values of settings that text may repeat: of secret names, and of names that Kafka does not define.

    A value that a harmless setting has too, or that is a number, a path, a class or a plain word, is only masked if
    the setting's name says that it is a secret.
    """
    harmless = " ".join(str(value) for key, value in settings.items() if not is_secret(key))
    values: set[str] = set()
    for key, setting in settings.items():
        value = str(setting or "")
        if not is_secret(key):
            continue
        if "jaas" in key:
            values.update(secret.strip("\"'") for _found, secret in _secret_values(value))
        elif _NAMED.search(key) or not (_ORDINARY.fullmatch(value) or value in harmless):
            values.add(value)
    return sorted(values)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Return text with secrets masked, and the ids of messages at its end.

    `secrets`: values that may be in it; those shorter than SHORTEST are left.
    """
    names = message_ids.find_ids(text)
    if names:  # an unquoted value would be masked to its line's end, with the id
        return f"{mask(message_ids.strip_ids(text), secrets)} ({' '.join(names)})"
    for secret in sorted((candidate for candidate in secrets if len(candidate) >= SHORTEST), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return mask_syntax(text)


def mask_syntax(text: str) -> str:
    """Return text with what its syntax shows to be a secret masked. Ids of messages stay where they are."""
    if not _HINT.search(text):
        return text
    text = _PEM.sub(rf"-----BEGIN \1----- {MASK}", _SEALED.sub(MASK, text))
    text = _USERINFO.sub(rf"\1{MASK}@", text)
    text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _JAAS.sub(rf"\1 {MASK}", text)
    text = _PRINTED.sub(_printed, text)
    text = _ARGUMENT.sub(rf"\1{MASK}", text)
    return _mask_values(text)


def assigned_secrets(text: str) -> list[str]:
    """Return the values in a text that are assigned to a name of a secret, and the passwords in its URLs."""
    found = [secret.strip("\"'\\") for _found, secret in _secret_values(text)]
    return [*found, *_URL_PASSWORD.findall(text)] if "://" in text else found


def mask_comment(line: str) -> str:
    """Return a comment of a properties file with secrets masked: it may hold a setting that was commented out."""
    found = _COMMENTED.match(line)
    return f"{found[1]}{MASK}" if found and is_secret(found[2]) and not _NOTHING.match(found[3]) else mask(line)


def mask_all(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a value with all text in it masked, also what a mapping holds under the name of a secret setting."""
    if isinstance(value, str):
        return mask(value, secrets)
    if isinstance(value, Mapping):
        return {
            key: MASK
            if isinstance(item, str) and "." in str(key) and is_secret_name(str(key))
            else mask_all(item, secrets)
            for key, item in value.items()
        }
    return [mask_all(item, secrets) for item in value] if isinstance(value, (list, tuple)) else value


def is_secret_name(name: str) -> bool:
    """Return whether a name says that its value is a secret. Kafka's harmless settings do not."""
    return bool(_NAMED.search(name)) and is_secret(name) and not _NO_SETTING.fullmatch(name)


def _printed(found: re.Match) -> str:
    if not is_secret(found[2]) or _NOTHING.match(found[4]):
        return found[0]
    return f"{found[1]}{found[2]}{found[3]}{MASK}"


def _mask_values(text: str) -> str:
    pieces, done = [], 0
    for found, value in _secret_values(text):
        if found.end() < done:
            continue  # in a value that is masked already
        quoted = re.match(r"\\?[\"']", value)
        if ":" in found["sign"] and not quoted:
            if not (found["quote"] or _WHOLE.fullmatch(found["name"])):
                continue  # prose: "token: it expired"
            value = value.split()[0]
        quote = quoted[0] if quoted else ""
        pieces += [text[done : found.end()], f"{quote}{MASK}{quote}"]
        done = found.end() + len(value)
    return "".join([*pieces, text[done:]])


def _secret_values(text: str) -> Iterator[tuple[re.Match, str]]:
    """Yield (name and sign, value as written) of each assignment whose name says that it is a secret."""
    for found in _ASSIGNED.finditer(text):
        value = _VALUE.match(text, found.end())
        if value and is_secret_name(found["name"]) and not _NOTHING.match(value[0].strip("\"'\\")):
            yield found, value[0]
