# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Revert a node that did not come up to its earlier properties file, where that is safe.

The restart worker on the host does it, so that it happens even if the control node is down by then.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import (
    kraft_config,
    restart_token,
    transitions,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.restart import revert_conditions
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata import metadata_summary
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.records.record_batch import LogError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    config_providers,
    node,
    own_log,
    own_node,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import (
    home_link,
    restart_files,
    restart_hook,
    restart_record,
    restart_steps,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import Record, RestartError


class Earlier(NamedTuple):
    """What a node had before its restart changed its release or its properties file, as its record keeps it.

    `file`: the kept properties file, in the node's `configs`, '' if the file is not changed; `wrote`: the digest of the
    new one; `home`: the link or directory of Kafka, '' if the release is not changed; `to`, `version`: the new release;
    `target`: where the link led, '' where no earlier release is known, or where it is installed in place;
    `from_version`: the earlier one; `levels`: of what the cluster used, above which no earlier release may run.
    """

    file: str = ""
    wrote: str = ""
    home: str = ""
    to: str = ""
    version: str = ""
    target: str = ""
    from_version: str = ""
    levels: Mapping[str, Any] = {}

    @property
    def is_in_place(self) -> bool:
        """Return whether the operator's hook installs the releases."""
        return bool(self.home) and home_link.is_in_place({"home": self.home, "to": self.to})

    @property
    def release(self) -> str:
        """Return how the earlier release is named, '' if none is known."""
        if self.is_in_place:
            return f"Kafka {self.from_version}" if self.from_version not in ("", self.version) else ""
        return self.target


def keep_earlier(spec: Mapping[str, Any], directory: str, old: bytes, new: bytes, left: Mapping[str, Any]) -> Earlier:
    """Return what a node has before its restart, and keep its properties file where that is changed.

    `old`, `new`: the file's bytes; `left`: of a restart that did not end well and left the node down. Raises
    RestartError as home_link.read_earlier.
    """
    found, before = Earlier(), Earlier(**left)
    if before.file and old != new:
        found = found._replace(file=before.file, wrote=_digest(new))
    elif before.file:
        found = found._replace(file=before.file, wrote=before.wrote)
    elif old != new:
        restart_files.keep(spec, directory, old)
        found = found._replace(file=restart_files.kept_path(spec, directory), wrote=_digest(new))
    release = spec.get("release")
    if release:
        known: dict[str, Any] = {key: str(release[key]) for key in ("home", "to", "version")}
        if before.home == known["home"] and (before.target or before.from_version):
            known.update(target=before.target, from_version=before.from_version, levels=before.levels)
        else:
            known.update(home_link.read_earlier(release, spec["service"]), levels=_levels(properties.parse(new)))
        found = found._replace(**known)
    return found


def find_left(spec: Mapping[str, Any], directory: str) -> Earlier:
    """Return what the node had before its newest restart, if that did not end well: as far as the host still has what
    that restart changed. What was corrected since is not taken back.

    `spec`: of a restart that keeps the node's mode. One that changes it reverts by its own rules.
    """
    keeps = spec["kind"] == REPAIR or transitions.KINDS[spec["kind"]].is_plain
    found = Earlier(**restart_record.read_left(directory)) if keeps and spec["mode"] in _KEPT else Earlier()
    if found.file and _digest(restart_files.read_bytes(spec["config_file"])) != found.wrote:
        found = found._replace(file="", wrote="")
    if found.is_in_place:
        steps = restart_record.read(directory).get("steps") or []
        switched = restart_hook.STEP[restart_hook.STOPPED] in [step["name"] for step in steps]
    else:
        switched = os.path.realpath(found.home) == os.path.realpath(found.to)
    return found if switched else found._replace(home="", to="", version="", target="", from_version="", levels={})


def _levels(values: Mapping[str, str]) -> dict[str, Any]:
    """Return what the cluster uses, by this host: the levels of finalized features, and the properties file's
    inter.broker.protocol.version."""
    log: Mapping[str, Any] = own_node.read_own_log(values) or {}
    return {**(log.get("features") or {}), kraft_config.PROTOCOL: values.get(kraft_config.PROTOCOL, "")}


def _find_raised(had: Earlier, values: Mapping[str, str]) -> str:
    """Return what of the cluster's levels was raised since, '' if nothing was: no earlier release may run then."""
    now, seen = _levels(values), []
    for name, level in now.items():
        before = had.levels.get(name, "" if name == kraft_config.PROTOCOL else 0)
        if level != before if name == kraft_config.PROTOCOL else level > before:
            seen.append(f"{name} was {before or 'not set'} before and is {level or 'not set'} now")
    return ", ".join(seen)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


REPAIR = "repair"
_KEPT = {mode for kind in transitions.KINDS.values() if kind.is_plain for mode in kind.before}


class _Refused(RestartError):
    """The reason why the node is not reverted."""


def revert(spec: Mapping[str, Any], record: Record, directory: str, error: Exception, since: float) -> tuple[str, str]:
    """Revert the node where that is safe; return (outcome `reverted` or `failed`, message for the operator).

    `error`: why it did not come up; `since`: when it was last stopped or started, in epoch seconds; `spec` as for
    restart_worker.begin.
    """
    record.forgiving = True
    kind = transitions.KINDS[spec["kind"]]
    unit, mode, earlier = spec["service"], spec["mode"], kind.left
    why = f"{unit} did not come up in mode {mode}: {error}."
    excerpt = getattr(error, "excerpt", "")
    try:
        if kind.stays:
            raise _Refused(kind.stays)
        refused = restart_token.check_stop(spec)
        if refused and not restart_steps.is_stopped(service.read_state(unit)):
            raise _Refused(refused)
        old = _old_file(spec, directory, earlier)
        reverted = {**spec, "mode": earlier}
        if earlier == "zk":
            _revert_to_zk(reverted, record, old, since)
        else:
            _revert_under_kraft(reverted, record, old)
    except _Refused as refused:
        how = f"It stays in mode {mode}. Fix the cause, then start {unit} on this host or run again"
        return "failed", _join(
            f"{why} Its properties file was not reverted: {refused}. {how}. (QS-RESTART-014)", excerpt
        )
    except Exception as second:
        next_mode = kraft_config.mode_at_next_start(properties.parse(restart_files.read_bytes(spec["config_file"])))
        how = f"Its file starts it in mode {next_mode}. Fix the cause, then start {unit} on this host or run again"
        second_excerpt = getattr(second, "excerpt", "")
        message = f"{why} Reverting to mode {earlier} failed too: {second}. {how}. (QS-RESTART-014)"
        same = own_log.strip_times(second_excerpt) == own_log.strip_times(excerpt)
        return "failed", _join(message, excerpt, "" if same else second_excerpt)
    message = (
        f"{why} Its properties file was reverted and it is up in mode {earlier} again. Fix the cause and run "
        "again. (QS-RESTART-013)"
    )
    return "reverted", _join(message, excerpt)


def revert_upgrade(spec: Mapping[str, Any], record: Record, error: Exception) -> tuple[str, str]:
    """Give a node that did not come up with another release or file its earlier ones back, and start it.

    A node may always run the release of before the upgrade: inter.broker.protocol.version and metadata.version are not
    raised before all nodes run the new one. Servers of both ZooKeeper ensembles have the same data until the cut, which
    is after the restarts of all brokers. Return as `revert`.
    """
    record.forgiving = True
    had, unit = Earlier(**record.values["earlier"]), spec["service"]
    new = f"Kafka {had.version}" if had.home else f"the new {spec['config_file']}"
    why = f"{unit} did not come up with {new}: {error}."
    excerpt = getattr(error, "excerpt", "")
    kept = os.path.join(record.directory, host_state.CONFIGS, os.path.basename(had.file))
    text = restart_files.read_bytes(kept if had.file else spec["config_file"])
    try:
        if had.file and not text:
            raise _Refused(f"its earlier properties file {kept} is missing (QS-RESTART-005)")
        if not had.file and (not had.release or (had.is_in_place and not spec.get("hook"))):
            raise _Refused(
                f"{had.home} had {new} before this restart already, and what ran before is not known (QS-RESTART-005)"
                if had.home
                else "its properties file had been changed before this restart already (QS-RESTART-005)"
            )
        raised = (
            _find_raised(had, properties.parse(restart_files.read_bytes(spec["config_file"]))) if had.release else ""
        )
        if raised:
            raise _Refused(f"{raised}, so no earlier release may run (QS-RESTART-005)")
        refused = None if getattr(error, "ended", False) and not _answers(spec) else restart_token.check_stop(spec)
        if not restart_steps.is_stopped(service.read_state(unit)):
            if refused:
                raise _Refused(refused)
            restart_steps.stop({**spec, "only_start": False}, record, "stop again")
        if had.file:
            _write(spec, record, text)
        if had.release and not had.is_in_place:
            record.step("switch the release back")
            home_link.switch(had.home, had.target)
        try:
            restart_hook.run(spec, record, restart_hook.STOPPED, had.from_version, reverts=True)
        except restart_hook.HookFailed as failed:  # the node is not left down for it
            why = f"{why} {failed}."
        if had.is_in_place and had.from_version:
            home_link.require_installed(had.home, had.from_version)
        values = properties.parse(restart_files.read_bytes(spec["config_file"]))
        before = own_node.read_registration(values, spec["node_id"], spec["mode"])
        restart_steps.start(spec, record, values, before)
    except _Refused as refused:
        return "failed", _join(
            f"{why} It did not get back what it had before: {refused}. Fix the cause and run again. (QS-RESTART-005)",
            excerpt,
        )
    except Exception as second:
        now = f" {had.home} leads to {home_link.read_target(had.home)}." if had.target else ""
        message = f"{why} Restoring what it had before failed too: {second}.{now} Fix the cause and run again."
        second_excerpt = getattr(second, "excerpt", "")
        same = own_log.strip_times(second_excerpt) == own_log.strip_times(excerpt)
        return "failed", _join(message, excerpt, "" if same else second_excerpt)
    has = f"with {had.release}" if had.release else "with its earlier properties file"
    return "reverted", _join(f"{why} It is up again {has}. Fix the cause and run again. (QS-RESTART-005)", excerpt)


def _answers(spec: Mapping[str, Any]) -> bool:
    values = properties.parse(restart_files.read_bytes(spec["config_file"]))
    return own_node.read_running_mode(values, spec["config_file"], spec["service"]) is not None


def _old_file(spec: Mapping[str, Any], directory: str, earlier: str) -> bytes:
    current, kept = restart_files.read_bytes(spec["config_file"]), restart_files.kept_path(spec, directory)
    for text in (current, restart_files.read_bytes(kept)):  # the current file, if writing the new one failed
        if text and kraft_config.mode_at_next_start(properties.parse(text)) == earlier:
            return text
    raise _Refused(f"no properties file of mode {earlier} is kept as {kept} (QS-RESTART-014)")


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
        refused = revert_conditions.check_under_kraft(seen) or revert_conditions.check_copy_at_hand(
            seen, spec["node_id"], registered
        )
        if refused:
            raise _Refused(refused)
    _write(spec, record, old)
    restart_steps.start(spec, record, values, {})
    refused = revert_conditions.check_under_kraft(_read_zookeeper(spec["service"], values))
    if refused:
        restart_steps.stop(spec, record, "stop again")
        _write(spec, record, current, "write the file")
        raise _Refused(f"while it was reverted: {refused} (QS-RESTART-014)")


def _revert_under_kraft(spec: Mapping[str, Any], record: Record, old: bytes) -> None:
    """Revert to migration or KRaft mode while the controllers write to ZooKeeper and accept brokers of both modes."""
    restart_steps.stop(spec, record, "stop again")
    values = properties.parse(old)
    log = node.metadata_dir(values)
    try:
        state = metadata_summary.summarise(log)["zk_migration_state"] if os.path.isdir(log) else None
    except (OSError, ValueError, LogError) as error:
        raise _Refused(f"this host's metadata log could not be read: {error} (QS-RESTART-014)") from None
    refused = revert_conditions.check_under_final(state)
    if refused:
        raise _Refused(refused)
    before = own_node.read_registration(values, spec["node_id"], spec["mode"])
    _write(spec, record, old)
    restart_steps.start(spec, record, values, before)


def _read_zookeeper(unit: str, values: Mapping[str, str]) -> dict:
    try:
        return own_zookeeper.collect(config_providers.effective_values(values, unit))
    except restart_steps.ZOOKEEPER_ERRORS as error:
        raise _Refused(
            f"/migration and /controller could not be read from this host: {error} (QS-RESTART-014)"
        ) from None


def _write(spec: Mapping[str, Any], record: Record, data: bytes, name: str = "revert the file") -> None:
    record.step(name)
    restart_files.replace(spec["config_file"], data, spec.get("owner"))


def _join(message: str, *excerpts: str) -> str:
    return "\n".join(part for part in (message_ids.move_to_end(message), *excerpts) if part)
