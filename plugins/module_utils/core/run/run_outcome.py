# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run stands, by the events of its journal. Pure.

A run goes on while no event says `failed` and every step that began has ended. Each step journals its begin with its
hosts, and its end once all of them are still there. So a failure that no task journals, such as a host that became
unreachable in a module of Ansible, leaves a step without an end, and that ends the run too. Ansible itself starts the
next play after an unreachable host.
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids

REFUSED = "QS-RUN-012"
"""The id of `refusal`."""
BEGUN, FAILED, ENDED, OK, ADVISED = "begun", "failed", "ended", "ok", "advised"
STEP_BEGUN, STEP_ENDED = "step begun", "step ended"
RESTART_BEGUN = "restart begun"

CLEAN_UPS: dict[str, Mapping[str, tuple]] = {
    "node_facts": {},  # reads a node; changes nothing
    "node_restart": {"part": ("await",)},  # a restart that was begun ends on its host in any case: its end is journaled
    "broker_unregister": {},  # a broker that reverted may not stay registered in the quorum
    "zk_cut": {"state": ("healed",)},  # a host that stays fenced serves no client until its deadline
    "zk_move_state": {"direction": ("none",)},  # says how to go on after the failure
    "run": {"state": ("closed",)},
    "run_step": {"state": ("failed", "lost", "advised", "over")},
}
"""What may still run after the run failed: {module: the options with which it is a clean-up}."""

CHANGES: dict[str, Mapping[str, tuple]] = {
    "broker_unregister": {},
    "controller_wipe": {},
    "kafka_features": {},
    "kafka_home": {"state": ("switched",)},
    "kafka_quorum": {"state": ("dynamic", "added", "removed", "replaced", "unregistered")},
    "node_restart": {},
    "partition_reassignment": {},
    "restore_zk_controller": {},
    "service_stop": {},
    "zk_decommission": {"state": ("archived", "stopped")},
    "zk_leftovers": {"state": ("absent",)},
    "zk_partition_states": {},
    "zk_restore": {"state": ("restored",)},
    "zk_source_mark": {},
}
"""What changes a cluster for a run, and so needs the run lock: {module: the options with which it does}. Not zk_cut: a
promotion that was interrupted is finished first, since no lock can be read while Kafka reaches no ZooKeeper."""


class Failure(NamedTuple):
    """What ended a run: the task or step, the host ("" if unknown), and why."""

    task: str
    host: str
    reason: str

    @property
    def sentence(self) -> str:
        """Return why the run ended, as a sentence without its period."""
        where = " on ".join(part for part in (f'"{self.task}"', self.host) if part)
        return f"The run ended at {where}: {message_ids.drop_full_stop(self.reason) or 'the reason is above'}"


def require_begin(events: Iterable[Mapping], path: str) -> list[Mapping]:
    """Return the events of the journal at a path, where the begin of the run is among them. Otherwise the journal was
    removed, or is another one, and a failure takes its place.
    """
    events = list(events)
    if any(event.get("name") == BEGUN for event in events):
        return events
    why = f"the journal {path} has no begin of this run. Something removed it or has replaced it (QS-RUN-013)"
    return [{"name": FAILED, "task": "the journal", "host": "the control node", "reason": why}, *events]


def failures(events: Iterable[Mapping]) -> list[Failure]:
    """Return the failures that a run's tasks journaled, the first one first."""
    return [
        Failure(str(event.get("task", "")), str(event.get("host", "")), str(event.get("reason") or ""))
        for event in events
        if event.get("name") == FAILED
    ]


def advice(events: Iterable[Mapping]) -> str:
    """Return the newest next step that a failed step gave the operator; '' if none did."""
    return next((str(event["do"]) for event in reversed(list(events)) if event.get("name") == ADVISED), "")


def find_unended(events: Iterable[Mapping]) -> list[Mapping]:
    """Return the events of the steps that began and have not ended, oldest first."""
    begun: list[Mapping] = []
    for event in events:
        if event.get("name") == STEP_BEGUN:
            begun.append(event)
        elif event.get("name") == STEP_ENDED:
            begun = [step for step in begun if (step["step"], step["hosts"]) != (event["step"], event["hosts"])]
    return begun


def outcome(events: Iterable[Mapping]) -> Failure | None:
    """Return what a run failed at when nothing more of it is to come; None if it ended well."""
    events = list(events)
    return next(iter([*failures(events), *map(_explain_step, find_unended(events))]), None)


def refusal(events: Iterable[Mapping], step: str, hosts: Collection[str]) -> str | None:
    """Return why a task of a step on these hosts may not run, None when it may.

    `step`: the name of the task's step, `hosts`: those of its batch that are left."""
    events = list(events)
    others = [event for event in find_unended(events) if event["step"] != step or not set(hosts) <= set(event["hosts"])]
    failure = next(iter([*failures(events), *map(_explain_step, others)]), None)
    return f"{failure.sentence}. Nothing more was done (QS-RUN-012)" if failure else None


def is_refusal(reason: str | None) -> bool:
    """Return whether a task failed because the run had failed before it (`refusal`)."""
    return message_ids.find_ids(reason)[-1:] == [REFUSED]


def find_unawaited(events: Iterable[Mapping], host: str) -> Mapping | None:
    """Return the event of a restart that the run began on a host and whose end it has not journaled, None without."""
    begun = None
    for event in events:
        if event.get("host") == host and event.get("name") == RESTART_BEGUN:
            begun = event
        elif event.get("host") == host and event.get("kind") == "restart":
            begun = None
    return begun


def is_clean_up(module: str, options: Mapping) -> bool:
    """Return whether a module with these options may run after the run failed (`CLEAN_UPS`)."""
    return _is_listed(CLEAN_UPS, module, options)


def needs_lock(module: str, options: Mapping) -> bool:
    """Return whether a module with these options changes the cluster for a run (`CHANGES`)."""
    return _is_listed(CHANGES, module, options)


def _is_listed(table: Mapping[str, Mapping], module: str, options: Mapping) -> bool:
    wanted = table.get(module)
    return wanted is not None and all(options.get(option) in values for option, values in wanted.items())


def explain_lost() -> str:
    """Return why a step failed that lost a host."""
    return "the host became unreachable. The cause is above (QS-RUN-004)"


def _explain_step(begun: Mapping) -> Failure:
    hosts = ", ".join(begun["hosts"])
    return Failure(str(begun["step"]), hosts, _explain_without_end(hosts))


def _explain_without_end(hosts: str) -> str:
    """Return why a run ended in which a step has no end."""
    return f"the step did not end on {hosts}. The cause is above (QS-RUN-004)"
