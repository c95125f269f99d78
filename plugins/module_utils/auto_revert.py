# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a turn does with a node that did not come up: it goes back to its earlier file where that is safe, and stays
as it is elsewhere. On the host, by the turn's own worker, so that it happens whoever else is gone by then.
"""

from __future__ import annotations

import os
from typing import Any, Mapping

from . import restart_files, restart_steps
from .core import auto_revert, kraft_config, transitions
from .formats import metadata_summary, properties
from .probes import node, own_node, own_zookeeper
from .restart_record import Record, RestartError


class _Refused(RestartError):
    """Why nothing is put back."""


def after(spec: Mapping[str, Any], record: Record, directory: str, error: Exception, since: float) -> tuple[str, str]:
    """Put the node back, or leave it; return (outcome `put_back` or `failed`, message for the operator).

    `error`: why it did not come up, `since`: when it was stopped or started last, in epoch seconds. `spec` as for
    turn.begin, with `registered`: ids of the brokers whose registration stood in the quorum when the turn began.
    """
    record.forgiving = True
    transition = transitions.TRANSITIONS[spec["kind"]]
    unit, mode, earlier = spec["service"], spec["mode"], transition.before
    why = f"{unit} did not come up in mode {mode}: {error}."
    excerpt = getattr(error, "excerpt", "")
    try:
        if transition.stays:
            raise _Refused(transition.stays)
        old = _old_text(spec, directory, earlier)
        back = {**spec, "mode": earlier}
        if earlier == "zk":
            _to_plain(back, record, old, since)
        else:
            _under_the_quorum(back, record, old)
    except _Refused as refused:
        how = f"Mend the cause, then start {unit} on this host or run again: it stays in mode {mode}"
        return "failed", _joined(f"{why} Its properties file was not put back: {refused}. {how}.", excerpt)
    except Exception as second:
        there = kraft_config.mode_at_next_start(properties.parse(restart_files.read_text(spec["config_file"])))
        how = f"Its file starts it in mode {there}. Mend the cause, then start {unit} on this host or run again"
        own = getattr(second, "excerpt", "")
        reported = f"{why} Going back to mode {earlier} did not work either: {second}. {how}."
        again = own_node.without_times(own) == own_node.without_times(excerpt)
        return "failed", _joined(reported, excerpt, "" if again else own)
    reported = (
        f"{why} Its properties file was put back and it is up in mode {earlier} again. Mend the cause and run again."
    )
    return "reverted", _joined(reported, excerpt)


def _old_text(spec: Mapping[str, Any], directory: str, earlier: str) -> str:
    current, kept = restart_files.read_text(spec["config_file"]), restart_files.kept(spec, directory)
    for text in (current, restart_files.read_text(kept)):  # the current one when writing the new one did not work
        if text and kraft_config.mode_at_next_start(properties.parse(text)) == earlier:
            return text
    raise _Refused(f"no file of mode {earlier} was kept as {kept}")


def _to_plain(spec: Mapping[str, Any], record: Record, old: str, since: float) -> None:
    """To plain ZooKeeper mode, where no copy has begun and none can begin before the broker is back."""
    current, values = restart_files.read_text(spec["config_file"]), properties.parse(old)
    registered = set(spec["registered"])
    if own_node.may_have_registered(properties.parse(current), since):
        registered.add(str(spec["node_id"]))
    # Before the stop, which a process that comes up late does not deserve for nothing; and after it, right before.
    for prepare in (lambda: None, lambda: restart_steps.stop(spec, record, "stop again")):
        prepare()
        seen = _gather(values)
        refused = auto_revert.under_kraft(seen) or auto_revert.copy_at_hand(seen, spec["node_id"], registered)
        if refused:
            raise _Refused(refused)
    _write(spec, record, old)
    restart_steps.start(spec, record, values, {})
    refused = auto_revert.under_kraft(_gather(values))
    if refused:
        restart_steps.stop(spec, record, "stop again")
        _write(spec, record, current, "write the file")
        raise _Refused(f"{refused}, while it went back")


def _under_the_quorum(spec: Mapping[str, Any], record: Record, old: str) -> None:
    """To migration mode or KRaft mode, while controllers still write to ZooKeeper and take brokers of both."""
    restart_steps.stop(spec, record, "stop again")
    values = properties.parse(old)
    log = node.metadata_dir(values)
    try:
        state = metadata_summary.summarise(log)["zk_migration_state"] if os.path.isdir(log) else None
    except (OSError, ValueError) as error:
        raise _Refused(f"this host's metadata log could not be read: {error}") from None
    refused = auto_revert.under_final(state)
    if refused:
        raise _Refused(refused)
    before = own_node.registration(values, spec["node_id"], spec["mode"])
    _write(spec, record, old)
    restart_steps.start(spec, record, values, before)


def _gather(values: Mapping[str, str]) -> dict:
    try:
        return own_zookeeper.gather(values)
    except restart_steps.ZOOKEEPER_ERRORS as error:
        raise _Refused(f"/migration and /controller could not be read from this host: {error}") from None


def _write(spec: Mapping[str, Any], record: Record, text: str, name: str = "put the old file back") -> None:
    record.step(name)
    restart_files.replace(spec["config_file"], text, spec.get("owner"))


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
