# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redact whole files by value: known secrets in every usual encoding, and names of hosts. Pure.

`masking` finds a secret by its syntax. This finds one whatever is around it, as long as its value is known: as it is,
escaped for JSON, HTML, Java properties or a shell, encoded for a URL, and in base64 at any of the three positions that
its first byte can have. `find_survivor` reads the text the other way round: it decodes it, and looks for the values.
"""

from __future__ import annotations

import base64
import html
import html.entities
import ipaddress
import re
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK

SHORTEST = masking.SHORTEST
"""Characters of the shortest secret that is searched by value: a shorter one is in ordinary words."""
_LEVELS = 5  # of JSON in JSON
_LINE = 16  # characters of a line that counts alone, of a secret with several lines such as a key
_QUOTES = {"'": (r"'\\*\"'\\*\"'", r"'\\+''", "''"), " ": (r"\+",)}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\([\s\S])")
_ENTITIES: Dict[str, List[str]] = {}
for _name, _char in html.entities.html5.items():
    if _name.endswith(";"):
        _ENTITIES.setdefault(_char, []).append(_name)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "b": "\b"}
_WORD, _ADDRESS = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{2,39}(?![\w:])")
_IP_NAME = re.compile(r"(?<![\w-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![\w-])")  # of a cloud's machines


class Redacted(NamedTuple):
    """A text without secrets, and how many places in it were replaced."""

    text: str
    replaced: int


class Secrets:
    """The secrets that no file may show. `short`: how many are too short to be searched by value."""

    def __init__(self, values: Iterable[str]):
        known = {part for value in values for part in _parts(value) if part.strip("*")}
        self.values = sorted((part for part in known if len(part) >= SHORTEST), key=lambda part: (-len(part), part))
        self.short = sum(1 for part in known if len(part) < SHORTEST)
        self._plain = [re.compile(_pattern(value)) for value in self.values]
        cores = sorted(
            {core for value in self.values for core in base64_cores(value)}, key=lambda core: (-len(core), core)
        )
        # A character at each end has some bits of the secret
        self._base64 = [re.compile(rf"[A-Za-z0-9+/_-]?{_pattern(core)}[A-Za-z0-9+/_-]?={{0,2}}") for core in cores]
        self._cores = [re.compile(_pattern(core)) for core in cores]

    def replace(self, text: str) -> Redacted:
        """Return a text with each secret replaced by `MASK`, in each of its forms."""
        replaced = 0
        for pattern in self._plain:
            text, count = pattern.subn(MASK, text)
            replaced += count
        for core, pattern in zip(self._cores, self._base64):
            if core.search(text):
                text, count = pattern.subn(MASK, text)
                replaced += count
        return Redacted(text, replaced)

    def find_survivor(self, text: str) -> bool:
        """Return whether a text has a secret still, in any form. It is decoded, not compared with `replace`."""
        return any(value in view for view in _decoded(text) for value in self.values) or self._in_base64(text)

    def _in_base64(self, text: str) -> bool:
        runs = set(_BASE64.findall(text)) | set(_BASE64.findall(urllib.parse.unquote(text)))
        decoded = b"\0".join(_decode(run[at:]) for run in runs for at in range(4))
        return any(value.encode("utf-8", "surrogatepass") in decoded for value in self.values)


def base64_cores(value: str) -> Iterator[str]:
    """Yield what base64 has of a secret whatever is before and after it: for each of the three positions of its first
    byte, in both alphabets (RFC 4648)."""
    plain = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        text = base64.b64encode(bytes(before) + plain).decode()
        core = text[-(-8 * before // 6) : 8 * (before + len(plain)) // 6]
        yield core
        yield core.translate({ord("+"): "-", ord("/"): "_"})


def find_secrets(value: Any) -> set[str]:
    """Return the secrets in a variable: what is under the name of one, the values that text assigns
    to such a name (JAAS, options of a command), and the passwords in URLs."""
    if isinstance(value, str):
        return set(masking.assigned_secrets(value))
    if isinstance(value, Mapping):
        found: set[str] = set()
        for key, item in value.items():
            named = masking.is_secret_name(str(key)) and "jaas" not in str(key).lower()
            found |= {*_leaves(item)} if named else find_secrets(item)
        return found
    return {secret for item in value for secret in find_secrets(item)} if isinstance(value, (list, tuple)) else set()


def mask_named(value: Any) -> tuple[Any, int]:
    """Return a JSON-able value without what its names and the syntax of its texts show to be secrets, and how many
    texts were changed."""
    if isinstance(value, str):
        masked = masking.mask_syntax(value)
        return masked, int(masked != value)
    if isinstance(value, Mapping):
        kept, count = {}, 0
        for key, item in value.items():
            kept[key], changed = _mask_leaves(item) if masking.is_secret_name(str(key)) else mask_named(item)
            count += changed
        return kept, count
    if isinstance(value, (list, tuple)):
        items = [mask_named(item) for item in value]
        return [item for item, _changed in items], sum(changed for _item, changed in items)
    return value, 0


class Hosts:
    """Pseudonyms of hosts and addresses, the same in all files of a bundle.

    `names`: host names and addresses that are known. Other addresses, and other hosts in the domains of the known
    ones, get a pseudonym where they are seen first. Loopback and wildcard addresses stay.
    """

    def __init__(self, names: Iterable[str]):
        known = sorted({name.strip("[]").lower().rstrip(".") for name in names})
        self._known = [name for name in known if re.search("[a-z]", name) and not _is_address(name) and _is_other(name)]
        self._given: dict[str, str] = {}
        for name in self._known:
            self._pseudonym(name, "host")
        domains = sorted({name.partition(".")[2] for name in self._known if name.count(".") >= 2}, key=_longest)
        patterns = [rf"(?:[A-Za-z0-9_-]+\.)+{re.escape(domain)}" for domain in domains]
        patterns += [re.escape(name) for name in sorted(self._known, key=_longest)]
        self._pattern = re.compile(f"{_WORD}(?:{'|'.join(patterns)}){_ADDRESS}", re.IGNORECASE) if patterns else None

    def replace(self, text: str) -> Redacted:
        """Return a text with each host name and address replaced."""
        replaced = 0
        for pattern in filter(None, (self._pattern, _IP_NAME)):
            text, count = pattern.subn(lambda match: self._pseudonym(match[0].lower(), "host"), text)
            replaced += count
        counted = [0]

        def address(match: re.Match) -> str:
            if not _is_address(match[0]) or not _is_other(match[0]):
                return str(match[0])
            counted[0] += 1
            return self._pseudonym(str(ipaddress.ip_address(match[0])), "address")

        return Redacted(_IPV6.sub(address, _IPV4.sub(address, text)), replaced + counted[0])

    def find_survivor(self, text: str) -> bool:
        """Return whether a text has a known host name, or an address, still."""
        if self._pattern and any(
            match[0].lower() not in self._given.values() for match in self._pattern.finditer(text)
        ):
            return True
        found = [*_IPV4.findall(text), *_IPV6.findall(text)]
        return any(_is_address(match) and _is_other(match) for match in found)

    def _pseudonym(self, name: str, kind: str) -> str:
        if name not in self._given:
            number = sum(1 for given in self._given.values() if given.startswith(kind)) + 1
            self._given[name] = f"{kind}-{number}"
        return self._given[name]


def _parts(value: str) -> Iterator[str]:
    """Yield a secret, also trimmed as Kafka takes it, and without the escapes of a JAAS string; and each long line of
    one that has several: a log may show it line by line."""
    yield from {value, value.strip(), _unescape(value)}
    lines = re.split(r"\r?\n|\\n", value)
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= _LINE and not line.startswith("-----"))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield str(value)


def _mask_leaves(value: Any) -> tuple[Any, int]:
    if isinstance(value, Mapping):
        kept = {key: _mask_leaves(item) for key, item in value.items()}
        return {key: item for key, (item, _changed) in kept.items()}, sum(changed for _item, changed in kept.values())
    if isinstance(value, (list, tuple)):
        items = [_mask_leaves(item) for item in value]
        return [item for item, _changed in items], sum(changed for _item, changed in items)
    if value in (None, "", MASK) or isinstance(value, bool):
        return value, 0
    return MASK, 1


def _pattern(value: str) -> str:
    """Return an expression for a text in which any character that is no letter or digit may be escaped or encoded."""
    return "".join(char if char.isascii() and char.isalnum() else _any_form(char) for char in value)


def _any_form(char: str) -> str:
    code = ord(char)
    plain = char.encode("utf-8", "surrogatepass")
    units = char.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        r"\\*" + re.escape(char),
        "".join(rf"\\+u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4)),
        "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in plain),
        "".join(rf"\\+x(?i:{byte:02x})" for byte in plain),
        rf"&(?:amp;)?#0*{code};",
        rf"&(?:amp;)?#[xX]0*(?i:{code:x});",
        *(rf"&(?:amp;)?{name}" for name in _ENTITIES.get(char, ())),
        *_QUOTES.get(char, ()),
    ]
    letter = next((letter for letter, text in _LETTERS.items() if text == char), "")
    forms += [rf"\\+{letter}"] if letter else []
    if not char.isascii():
        forms += [re.escape(plain.decode("latin-1"))]  # UTF-8 that was read as Latin-1
    return f"(?:{'|'.join(sorted(forms, key=len, reverse=True))})"


def _decoded(text: str) -> Iterator[str]:
    """Yield a text as it is, and as it is once each encoding is undone."""
    yield text
    for decode in (urllib.parse.unquote, urllib.parse.unquote_plus, html.unescape, _unescape, _unquote_shell):
        seen = text
        for _level in range(_LEVELS):
            once = decode(seen)
            if once == seen:
                break
            yield once
            yield _unquote_shell(once)
            seen = once


def _unquote_shell(text: str) -> str:
    return text.replace("'\"'\"'", "'").replace("'\\''", "'").replace("''", "'")


def _unescape(text: str) -> str:
    def char(match: re.Match) -> str:
        if match[3] is not None:
            return _LETTERS.get(match[3], match[3])
        return chr(int(match[1] or match[2], 16))

    joined = _ESCAPED.sub(char, text) if "\\" in text else text
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins the halves of a pair


def _decode(run: str) -> bytes:
    even = run[: len(run) - (1 if len(run) % 4 == 1 else 0)]
    return base64.b64decode(even.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(even) % 4))


def _longest(name: str) -> tuple[int, str]:
    return -len(name), name


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_other(text: str) -> bool:
    """Return whether a name or an address means one host, and not each."""
    if _is_address(text):
        address = ipaddress.ip_address(text)
        return not (address.is_loopback or address.is_unspecified)
    return text.lower().partition(".")[0] not in ("localhost", "ip6-localhost")
