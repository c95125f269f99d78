# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Revert a node that did not come up to its earlier properties file, where that is safe.

The restart worker on the host does it, so that it happens even if the control node is down by then.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple

from . import home_link, restart_files, restart_steps
from .core import auto_revert, kraft_config, restart_token, transitions
from .formats import metadata_summary, properties
from .formats.record_batch import LogError
from .probes import config_providers, node, own_log, own_node, own_zookeeper, service
from .restart_record import Record, RestartError


class Earlier(NamedTuple):
    """What a node had before its restart in an upgrade: its properties file, and where the link of its
    release led, None if the restart does not switch it."""

    file: bytes
    home: str | None


class _Refused(RestartError):
    """The reason why the node is not reverted."""


def after(spec: Mapping[str, Any], record: Record, directory: str, error: Exception, since: float) -> tuple[str, str]:
    """Revert the node where that is safe; return (outcome `reverted` or `failed`, message for the operator).

    `error`: why it did not come up; `since`: when it was last stopped or started, in epoch seconds; `spec` as for
    restart_worker.begin.
    """
    record.forgiving = True
    transition = transitions.of(spec["kind"])
    unit, mode, earlier = spec["service"], spec["mode"], transition.before
    why = f"{unit} did not come up in mode {mode}: {error}."
    excerpt = getattr(error, "excerpt", "")
    try:
        if transition.stays:
            raise _Refused(transition.stays)
        refused = restart_token.no_stop(spec)
        if refused and not restart_steps.is_stopped(service.state(unit)):
            raise _Refused(refused)
        old = _old_file(spec, directory, earlier)
        reverted = {**spec, "mode": earlier}
        if earlier == "zk":
            _revert_to_zk(reverted, record, old, since)
        else:
            _revert_under_kraft(reverted, record, old)
    except _Refused as refused:
        how = f"It stays in mode {mode}. Fix the cause, then start {unit} on this host or run again"
        return "failed", _joined(f"{why} Its properties file was not reverted: {refused}. {how}.", excerpt)
    except Exception as second:
        next_mode = kraft_config.mode_at_next_start(properties.parse(restart_files.read_bytes(spec["config_file"])))
        how = f"Its file starts it in mode {next_mode}. Fix the cause, then start {unit} on this host or run again"
        second_excerpt = getattr(second, "excerpt", "")
        message = f"{why} Reverting to mode {earlier} failed too: {second}. {how}."
        same = own_log.without_times(second_excerpt) == own_log.without_times(excerpt)
        return "failed", _joined(message, excerpt, "" if same else second_excerpt)
    message = (
        f"{why} Its properties file was reverted and it is up in mode {earlier} again. Fix the cause and run again."
    )
    return "reverted", _joined(message, excerpt)


def upgrade(spec: Mapping[str, Any], record: Record, earlier: Earlier, error: Exception) -> tuple[str, str]:
    """Give a node that did not come up with another release or file its earlier ones back, and start it.

    A node may always run the release of before the upgrade: inter.broker.protocol.version and metadata.version are not
    raised before all nodes run the new one. Servers of both ZooKeeper ensembles have the same data until the cut, which
    is after the restarts of all brokers. Return as `after`.
    """
    record.forgiving = True
    unit, release = spec["service"], spec.get("release") or {}
    new = f"Kafka {release['version']}" if release else f"the new {spec['config_file']}"
    why = f"{unit} did not come up with {new}: {error}."
    excerpt = getattr(error, "excerpt", "")
    try:
        refused = restart_token.no_stop(spec)
        if refused and not restart_steps.is_stopped(service.state(unit)):
            raise _Refused(refused)
        if not restart_steps.is_stopped(service.state(unit)):
            restart_steps.stop(spec, record, "stop again")
        if earlier.home:
            record.step("switch the release back")
            home_link.switch(release["home"], earlier.home)
        if restart_files.read_bytes(spec["config_file"]) != earlier.file:
            _write(spec, record, earlier.file)
        values = properties.parse(earlier.file)
        before = own_node.registration(values, spec["node_id"], spec["mode"])
        restart_steps.start(spec, record, values, before)
    except Exception as second:
        now = f" {release['home']} leads to {home_link.target(release['home'])}." if release else ""
        message = f"{why} Restoring what it had before failed too: {second}.{now} Fix the cause and run again."
        second_excerpt = getattr(second, "excerpt", "")
        same = own_log.without_times(second_excerpt) == own_log.without_times(excerpt)
        return "failed", _joined(message, excerpt, "" if same else second_excerpt)
    has = f"with {earlier.home}" if earlier.home else "with its earlier properties file"
    return "reverted", _joined(f"{why} It is up again {has}. Fix the cause and run again.", excerpt)


def _old_file(spec: Mapping[str, Any], directory: str, earlier: str) -> bytes:
    current, kept = restart_files.read_bytes(spec["config_file"]), restart_files.kept(spec, directory)
    for data in (current, restart_files.read_bytes(kept)):  # the current file, if writing the new one failed
        if data and kraft_config.mode_at_next_start(properties.parse(data)) == earlier:
            return data
    raise _Refused(f"no properties file of mode {earlier} is kept as {kept}")


def _revert_to_zk(spec: Mapping[str, Any], record: Record, old: bytes, since: float) -> None:
    """Revert to plain ZooKeeper mode if the initial copy has not begun and cannot begin before the broker is up."""
    current, values = restart_files.read_bytes(spec["config_file"]), properties.parse(old)
    registered = set(spec["registered"])
    if own_node.may_have_registered(properties.parse(current), since):
        registered.add(str(spec["node_id"]))
    # Checked before the stop, because a process that is only late must not be stopped in vain; and again after it.
    for prepare in (lambda: None, lambda: restart_steps.stop(spec, record, "stop again")):
        prepare()
        seen = _read_zookeeper(spec["service"], values)
        refused = auto_revert.under_kraft(seen) or auto_revert.copy_at_hand(seen, spec["node_id"], registered)
        if refused:
            raise _Refused(refused)
    _write(spec, record, old)
    restart_steps.start(spec, record, values, {})
    refused = auto_revert.under_kraft(_read_zookeeper(spec["service"], values))
    if refused:
        restart_steps.stop(spec, record, "stop again")
        _write(spec, record, current, "write the file")
        raise _Refused(f"while it was reverted: {refused}")


def _revert_under_kraft(spec: Mapping[str, Any], record: Record, old: bytes) -> None:
    """Revert to migration or KRaft mode while the controllers write to ZooKeeper and accept brokers of both modes."""
    restart_steps.stop(spec, record, "stop again")
    values = properties.parse(old)
    log = node.metadata_dir(values)
    try:
        state = metadata_summary.summarise(log)["zk_migration_state"] if os.path.isdir(log) else None
    except (OSError, ValueError, LogError) as error:
        raise _Refused(f"this host's metadata log could not be read: {error}") from None
    refused = auto_revert.under_final(state)
    if refused:
        raise _Refused(refused)
    before = own_node.registration(values, spec["node_id"], spec["mode"])
    _write(spec, record, old)
    restart_steps.start(spec, record, values, before)


def _read_zookeeper(unit: str, values: Mapping[str, str]) -> dict:
    try:
        return own_zookeeper.gather(config_providers.effective(values, unit))
    except restart_steps.ZOOKEEPER_ERRORS as error:
        raise _Refused(f"/migration and /controller could not be read from this host: {error}") from None


def _write(spec: Mapping[str, Any], record: Record, data: bytes, name: str = "revert the file") -> None:
    record.step(name)
    restart_files.replace(spec["config_file"], data, spec.get("owner"))


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
