# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a report says things: names of views and kinds, keys, values, numbers. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from markupsafe import Markup

from quorumshift_spark import normal_form

_KINDS = {
    "config": "config",
    "scram": "SCRAM credential",
    "acl": "ACL",
    "delegation_token": "delegation token",
    "producer_ids": "producer ids",
    "chunk": "chunk of records",
    "key": "key of a compacted topic",
    "group_offset": "committed offset",
    "log": "partition's log",
}
_VIEWS = {"zookeeper": "ZooKeeper", "metadata_log": "metadata log", "cluster": "cluster now"}
_PARTS = {"metadata_log": "metadata log of controller", "baseline": "baseline of"}
# Format characters that change how other text reads (bidirectional overrides, zero-width), and control characters.
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_TOKEN = re.compile(r"\w+|\W")
_MASK = "********"


class Line(NamedTuple):
    """A line of a value: an optional name, and pieces of text, those that differ from the other sides marked."""

    name: str
    pieces: List[Tuple[str, bool]]


def visible(value: Any) -> Any:
    """Text with a code in place of each character that would not be seen; other values unchanged."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def kind(name: str) -> str:
    """A kind as people say it."""
    return _KINDS.get(name, name.replace("_", " "))


def view(name: str) -> str:
    """A view as people say it: `metadata_log:101` is the metadata log of controller 101."""
    family, colon, part = str(name).partition(":")
    if not colon:
        return _VIEWS.get(family, family.replace("_", " "))
    return f"{_PARTS.get(family, family)} {view(part) if family == 'baseline' else part}"


def number(value: Any) -> str:
    """A count with its thousands apart."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else "–"


def seconds(value: Any) -> str:
    """Seconds, in tenths."""
    return f"{value:,.1f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else "–"


def key(of_kind: str, text: str) -> str:
    """A key as an operator reads it; the text itself where it is none of ours."""
    try:
        parts = json.loads(text)
        if of_kind == "log":
            return f"{parts[0]}-{parts[1]}"
        if of_kind == "chunk":
            return f"{parts[0]}-{parts[1]}, offsets {parts[2]} to {parts[3] - 1}"
        if of_kind == "key":
            return f"{parts[0]}-{parts[1]}" + (f", key with hash {parts[2]}" if len(parts) > 2 else "")
        if of_kind == "group_offset":
            return f"group {parts[0]} in {parts[1]}-{parts[2]}"
        return normal_form.shown_key(of_kind, text)
    except (ValueError, TypeError, LookupError):
        return str(text)


def sides(of_kind: str, key_text: str, values: Mapping[str, str | None]) -> Dict[str, List[Line] | None]:
    """Each side's value as lines, with what differs between them marked; None where the side does not have it."""
    hidden = of_kind == "config" and _is_secret(key_text)
    parsed = {name: None if text is None else _parsed(text, hidden) for name, text in values.items()}
    there = [value for value in parsed.values() if value is not None]
    if all(value == {} for value in there):  # an entity whose key says all (an ACL), or which has no such field
        return {name: None if value is None else [Line("", [("is there", False)])] for name, value in parsed.items()}
    if there and all(isinstance(value, dict) for value in there):
        return {name: None if value is None else _named(value, there) for name, value in parsed.items()}
    texts = {name: None if value is None else _text(value) for name, value in parsed.items()}
    shown = [text for text in texts.values() if text is not None]
    return {name: None if text is None else [Line("", _marked(text, shown))] for name, text in texts.items()}


def _parsed(text: str, hidden: bool) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, TypeError):
        value = str(text)
    if hidden and not isinstance(value, dict) and value is not None:
        return _MASK  # secrets come as digests; should one ever come as it is, it ends here
    return value


def _is_secret(key_text: str) -> bool:
    try:
        name = json.loads(key_text)[-1]
    except (ValueError, TypeError, LookupError):
        return True
    return normal_form.is_secret(str(name))


def _named(value: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> List[Line]:
    lines = []
    for name, item in value.items():
        text = _text(item)
        lines.append(Line(name, _marked(text, [_text(other[name]) for other in others if name in other])))
    return lines


def _text(value: Any) -> str:
    return value if isinstance(value, str) else normal_form.canonical(value)


def _marked(text: str, texts: Sequence[str]) -> List[Tuple[str, bool]]:
    """The text in pieces: what all texts begin and end with alike, in whole words, and between them what differs."""
    if len(set(texts)) < 2:
        return [(text, False)]
    tokens, others = _TOKEN.findall(text), [_TOKEN.findall(one) for one in texts]
    room = min(map(len, others))
    ahead = next((at for at in range(room) if len({one[at] for one in others}) > 1), room)
    behind = next((at for at in range(room - ahead) if len({one[-1 - at] for one in others}) > 1), room - ahead)
    end = len(tokens) - behind
    pieces = [(tokens[:ahead], False), (tokens[ahead:end], True), (tokens[end:], False)]
    return [("".join(part), differs) for part, differs in pieces if part] or [("", False)]
