# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a restart that take time, each with its bound: stop, start, wait until the node is up."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration.restart_token import (
    check_stop,
    is_stopped,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.znodes import ZnodeError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import (
    config_providers,
    loading,
    own_log,
    own_node,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import own_zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import Record, RestartError

POLL_S = 0.1
BEGIN_S = 5.0
REGISTER = "register"
# A controller of Kafka 3.9 that lost its leadership while it wrote the first records to the empty log, and is elected
# again, ends with this error: QuorumController.logReplayTracker still has the lost records. A new process has not.
ELECTED_AGAIN = "Should not have ZK migrations enabled on a cluster running metadata.version"
ZOOKEEPER_ERRORS = (AddressError, SecurityError, ZnodeError, WireError)


class NotUp(RestartError):
    """A node was started and did not come up; `excerpt` quotes its own log, `ended`: whether its process ended."""

    def __init__(self, why: str, excerpt: str = "", ended: bool = False):
        super().__init__(why)
        self.excerpt, self.ended = excerpt, ended


class Ended(RestartError):
    """The process of a node ended while it was to come up."""

    ended = True


def stop(spec: Mapping[str, Any], record: Record, name: str = "stop") -> None:
    """Stop the service and wait until it is stopped. Raises RestartError where the restart may only start it."""
    refused = check_stop(spec)
    if refused:
        if is_stopped(service.read_state(spec["service"])):
            return
        raise RestartError(refused)
    record.step(name)
    stopping = time.time()
    log_from = _size(spec["log_file"])
    service.begin("stop", spec["service"])
    await_stopped(spec)
    record.values["unclean_stop"] = own_log.find_failed_shutdown(spec["log_file"], log_from)
    record.note(stopped_at=time.time(), stop_s=time.time() - stopping)


def await_stopped(spec: Mapping[str, Any]) -> None:
    """Wait until the service is stopped. Raises RestartError after `stop_timeout_s`."""
    wait(
        lambda: is_stopped(service.read_state(spec["service"])),
        Bound(spec["stop_timeout_s"]),
        lambda: f"service {spec['service']} to stop. State: {service.read_state(spec['service']).get('active_state')}",
    )


def start(spec: Mapping[str, Any], record: Record, values: Mapping[str, str], before: Mapping[str, Any]) -> None:
    """Start the service and wait until it is up in the mode of its properties `values`. Raises NotUp.

    `before`: the node's registration so far, which a new one must replace.
    """
    if values.get("zookeeper.connect") and not spec["mode"].startswith("controller"):
        _await_session_end(spec, values)
    try:
        _start(spec, record, values, before)
    except NotUp as error:
        if spec["mode"] != "controller_migration" or ELECTED_AGAIN not in error.excerpt:
            raise
        _start(spec, record, values, before, "start again")


def _start(
    spec: Mapping[str, Any], record: Record, values: Mapping[str, str], before: Mapping[str, Any], name: str = "start"
) -> None:
    record.step(name)
    starting = time.time()
    log_from = _size(spec["log_file"])
    earlier = service.read_state(spec["service"]).get("invocation")
    log_end = own_node.read_log_end(values, spec["mode"])
    try:
        service.begin("start", spec["service"])
        await_up(spec, record, values, before, starting, earlier, log_from, log_end)
    except (RestartError, service.ServiceError) as error:
        excerpt = own_log.excerpt(spec["log_file"], log_from, spec["service"], values)
        raise NotUp(str(error), excerpt, isinstance(error, Ended)) from None


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def await_up(
    spec: Mapping[str, Any],
    record: Record,
    values: Mapping[str, str],
    before: Mapping[str, Any],
    starting: float,
    earlier: str | None = None,
    log_from: int | None = None,
    log_end: int | None = None,
) -> None:
    """Wait until the node answers in its mode and is registered. `earlier`: systemd's invocation before the start;
    `log_end`: where its metadata log ended then (by default, where it ends now).

    Below the metadata.version from which on controllers register, one is up once it takes part in the quorum.

    Its `start_timeout_s` begins again with whatever it loads or recovers of its partitions, as its log shows from byte
    `log_from` on (by default, from its present end): after an unclean stop that takes minutes to hours.
    """
    log_file = spec["log_file"]
    if log_from is None:
        log_from = os.path.getsize(log_file) if os.path.exists(log_file) else 0
    log_end = own_node.read_log_end(values, spec["mode"]) if log_end is None else log_end
    load, bound = loading.Loading(log_file, log_from), Bound(spec["start_timeout_s"])
    seen = {"text": "none"}

    def advances() -> bool:
        if not load.advanced():
            return False
        record.progress(load.text)
        return True

    def last_seen() -> str:
        return f"{seen['text']}. Last progress in its log: {load.text}" if load.text else seen["text"]

    def runs() -> None:
        state = service.read_state(spec["service"])
        ended = state["manager"] == "systemd" and (is_stopped(state) or state["sub_state"] == "auto-restart")
        # systemd may begin the start a moment later.
        begun = state.get("invocation") != earlier or state.get("active_state") == "failed"
        if ended and (begun or time.time() - starting > BEGIN_S):
            raise Ended(f"{spec['service']} ended while it started (systemd: {state.get('result')}) (QS-RESTART-012)")

    def answers() -> bool:
        runs()
        running = own_node.read_running_mode(values, spec["config_file"], spec["service"])
        seen["text"] = f"its listener answers as {running}" if running else "its listener does not answer"
        return running == spec["mode"]

    wait(
        answers,
        bound,
        lambda: f"{spec['service']} to answer in mode {spec['mode']}. Last seen: {last_seen()}",
        advances=advances,
    )
    record.note(answered_at=time.time(), start_s=time.time() - starting)
    record.step(REGISTER)

    def registered() -> bool:
        runs()
        if spec["mode"] == "zk":
            seen["text"], alive = _find_in_zookeeper(spec, values)
            return alive
        log = own_node.read_own_log(values) if spec["mode"].startswith("controller") else None
        if log and not own_node.controllers_register(log):
            seen["text"] = f"its metadata log ends at offset {log['log_end_offset']}, as before"
            return own_node.is_following(values, log, log_end)
        registration = own_node.read_registration(values, spec["node_id"], spec["mode"])
        seen["text"] = f"registration {registration}"
        new = bool(registration) and registration["incarnation_id"] != before.get("incarnation_id")
        return new and _as_expected(registration, spec["mode"])

    where = "ZooKeeper" if spec["mode"] == "zk" else "the quorum"
    wait(registered, bound, lambda: f"{where} to register the node. Last seen: {last_seen()}", advances=advances)
    record.note(registered_at=time.time(), register_s=time.time() - starting)


class Bound:
    """How long a node may make no progress, in seconds, from now on or from its last progress on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew."""
        self._ends = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        """Return whether the node made no progress for so long."""
        return time.monotonic() >= self._ends


def wait(
    condition: Callable[[], bool],
    bound: Bound,
    what: Callable[[], str],
    advances: Callable[[], bool] = lambda: False,
) -> None:
    """Poll `condition` at least once. Raises RestartError with `what` when `bound` is over, which begins anew whenever
    something `advances`."""
    while not condition():
        if advances():
            bound.renew()
        elif bound.is_over():
            raise RestartError(f"waited {bound.seconds:.0f} s for {what()} (QS-RESTART-012)")
        time.sleep(POLL_S)


def _as_expected(registration: Mapping, mode: str) -> bool:
    """Return whether a registration matches this mode; a broker must also be unfenced."""
    if mode in ("controller_migration", "controller_final"):
        return registration["zk_migration_ready"] == (mode == "controller_migration")
    return not registration["fenced"] and registration["is_migrating_zk_broker"] == (mode == "zk_migration")


def _find_in_zookeeper(spec: Mapping[str, Any], values: Mapping[str, str]) -> tuple[str, bool]:
    try:
        alive = own_zookeeper.collect(config_providers.effective_values(values, spec["service"]))["brokers"]
    except ZOOKEEPER_ERRORS as error:
        return str(error), False
    return f"/brokers/ids holds {', '.join(alive) or 'no broker'}", str(spec["node_id"]) in alive


def _await_session_end(spec: Mapping[str, Any], values: Mapping[str, str]) -> None:
    """Wait until the session of a broker that did not shut down cleanly expires.

    Its /brokers/ids/<id> would keep the new process from starting (KafkaZkClient.registerBroker). If ZooKeeper cannot
    be read, do not wait: the start reports it.
    """
    session_s = config_values.number(values, "zookeeper.session.timeout.ms") / 1000

    def expired() -> bool:
        try:
            return (
                str(spec["node_id"])
                not in own_zookeeper.collect(config_providers.effective_values(values, spec["service"]))["brokers"]
            )
        except ZOOKEEPER_ERRORS:
            return True

    wait(expired, Bound(2 * session_s), lambda: "the stopped broker's ZooKeeper session to expire")
