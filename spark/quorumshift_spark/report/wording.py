# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats names, keys, values and numbers for a report. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import printable
from markupsafe import Markup

from quorumshift_spark import normal_form

_KINDS = {
    "config": "config",
    "scram": "SCRAM credential",
    "acl": "ACL",
    "delegation_token": "delegation token",
    "producer_ids": "producer ids",
    "migration": "state of the migration",
    "setting": "setting of a node's file",
    "token_hmac": "HMAC of a delegation token",
    "chunk": "chunk of records",
    "key": "key of a compacted topic",
    "group_offset": "committed offset",
    "log": "partition's log",
}
_VIEWS = {"zookeeper": "ZooKeeper", "metadata_log": "metadata log", "cluster": "cluster now"}
_PARTS = {"metadata_log": "metadata log of controller", "baseline": "baseline of"}
_TOKEN = re.compile(r"\w+|\W")
_MASK = "********"


class Line(NamedTuple):
    """A line of a value. `name`: "" or the field; `pieces`: (text, whether it differs from the other sides)."""

    name: str
    pieces: List[Tuple[str, bool]]


def visible(value: Any) -> Any:
    """Return a text with codes in place of invisible characters; other values unchanged."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable.escape_invisible(value, newlines=True)


def kind(name: str) -> str:
    """Return a kind for the operator."""
    return _KINDS.get(name, name.replace("_", " "))


def view(name: str) -> str:
    """Return a view for the operator: `metadata_log:101` is the metadata log of controller 101."""
    family, colon, part = str(name).partition(":")
    if not colon:
        return _VIEWS.get(family, family.replace("_", " "))
    return f"{_PARTS.get(family, family)} {view(part) if family == 'baseline' else part}"


def broker_id(name: str) -> int | None:
    """Return the id of a view `broker:<id>`, None of another view."""
    family, _colon, part = str(name).partition(":")
    return int(part) if family == "broker" and part.isdecimal() else None


def brokers(ids: Iterable[int]) -> str:
    """Return brokers for the operator: `brokers 1 to 12, 15`."""
    spans: List[List[int]] = []
    for broker in sorted(set(ids)):
        if spans and spans[-1][1] == broker - 1:
            spans[-1][1] = broker
        else:
            spans.append([broker, broker])
    shown = ", ".join(
        f"{first} to {last}" if last > first + 1 else f"{first}, {last}" if last > first else f"{first}"
        for first, last in spans
    )
    return f"broker{'s' if len(spans) > 1 or spans[0][0] < spans[0][1] else ''} {shown}"


def views(names: Iterable[str]) -> str:
    """Return views for the operator: `ZooKeeper, metadata log of controllers 101, 102 and brokers 1 to 300`."""
    texts: Dict[str, str] = {}
    of_controllers: List[str] = []
    ids: List[int] = []
    for name in names:
        family, _colon, part = str(name).partition(":")
        broker = broker_id(name)
        if broker is not None:
            ids.append(broker)
            texts["broker"] = brokers(ids)
        elif family == "metadata_log" and part:
            of_controllers.append(part)
            plural = "s" if len(of_controllers) > 1 else ""
            texts["of_controllers"] = f"metadata log{plural} of controller{plural} {', '.join(of_controllers)}"
        elif family == "baseline":
            texts["baseline"] = "baseline"
        else:
            texts[name] = view(name)
    shown = list(texts.values())
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else ""


def number(value: Any) -> str:
    """Return a count with thousands separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else "–"


def seconds(value: Any) -> str:
    """Return seconds with one decimal."""
    return f"{value:,.1f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else "–"


def key(of_kind: str, text: str) -> str:
    """Return a key for the operator; the text itself if it is not a key of this kind."""
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
        return normal_form.readable_key(of_kind, text)
    except (ValueError, TypeError, LookupError):
        return str(text)


def sides(of_kind: str, key_text: str, values: Mapping[str, str | None]) -> Dict[str, List[Line] | None]:
    """Return each side's value as lines, with differences marked; None where the side does not have it."""
    hidden = of_kind == "config" and _is_secret(key_text)
    parsed = {name: None if text is None else _parsed(text, hidden) for name, text in values.items()}
    present = [value for value in parsed.values() if value is not None]
    if all(value == {} for value in present):  # an entity without fields (an ACL)
        return {name: None if value is None else [Line("", [("exists", False)])] for name, value in parsed.items()}
    if present and all(isinstance(value, dict) for value in present):
        return {name: None if value is None else _named(value, present) for name, value in parsed.items()}
    texts = {name: None if value is None else _text(value) for name, value in parsed.items()}
    present = [text for text in texts.values() if text is not None]
    return {name: None if text is None else [Line("", _marked(text, present))] for name, text in texts.items()}


def _parsed(text: str, hidden: bool) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, TypeError):
        value = str(text)
    if hidden and not isinstance(value, dict) and value is not None:
        return _MASK  # secrets are digests; any other value of a secret is masked
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
    """Return (piece, differs) for a text: the common beginning and end of all texts, by words, and the rest between."""
    if len(set(texts)) < 2:
        return [(text, False)]
    tokens, others = _TOKEN.findall(text), [_TOKEN.findall(other) for other in texts]
    room = min(map(len, others))
    ahead = next((at for at in range(room) if len({other[at] for other in others}) > 1), room)
    behind = next((at for at in range(room - ahead) if len({other[-1 - at] for other in others}) > 1), room - ahead)
    end = len(tokens) - behind
    pieces = [(tokens[:ahead], False), (tokens[ahead:end], True), (tokens[end:], False)]
    return [("".join(part), differs) for part, differs in pieces if part] or [("", False)]
