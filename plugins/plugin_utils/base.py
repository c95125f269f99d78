# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection's action plugins share: the run, the nodes, options filled in from variables, live progress.

An action plugin runs in the control process. There one run is one thing over all plays, the facts of all hosts are at
hand, and a line reaches the operator's terminal (and AWX) while a wait goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import sys
import time
from typing import Any, Callable, Mapping

from ansible import constants
from ansible.errors import AnsibleAction, AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils import basic
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import module_start, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.module_utils.facts import NodeFacts
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import inputs, report, variable_specs, waits, whole_run
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

display = Display()

OLDEST_ANSIBLE = (2, 16)  # meta/runtime.yml and docs/compatibility.md say the same
KEEPS_TEXTS = (2, 19)  # templates keep texts and numbers from here on, whatever jinja2_native says

# what Ansible says before ssh's own reason
_ABOUT_SSH = re.compile(r"^(?:Task failed: )?(?:.*Make sure this host can be reached over (?:ssh|SSH): )?")
_WAITED = re.compile(r" \(\d+ s\)$")
PLAN = "plan.json"
REPEATED_S = 15.0  # a wait without news says so again after this many seconds
GROUPS = {"broker": "kafka_broker", "controller": "kafka_controller"}
SET_BY = "_set_by"  # ends the name of the fact that says which process of Ansible set another fact


# Once: Ansible imports an action in the control process, from which it forks the workers
variable_specs.specs()
report.compile_templates()


class QuorumshiftAction(ActionBase):
    """An action that knows its run, fills in options and shows progress.

    Its row of inputs.yml has the options that are filled in and those that the action takes for itself (both are
    documented in the module). A subclass overrides `act`, or `done` alone.

    `session` is what the run knows of itself, {run, cluster_id, phase, ...}: a fact of localhost that the actions run
    and status set.
    """

    def run(self, tmp=None, task_vars=None):
        self._supports_check_mode = True
        result = super().run(tmp, task_vars)
        self.vars = task_vars
        self._hostvars: dict[str, Mapping[str, Any]] = {}
        self._facts: dict[str, Mapping[str, Any]] = {}
        self.began = time.time()
        self.host: str = self._task.delegate_to or task_vars["inventory_hostname"]
        self.session: Mapping[str, Any] = self.facts_of("localhost").get("quorumshift_session") or {}
        self._written: RunArtifacts | None = None
        args = dict(self._task.args)
        self.own = {option: args.pop(option) for option in self.row.takes if option in args}
        try:
            refused = self.refusal()
            result.update({"failed": True, "msg": refused} if refused else self.act(args))
            if isinstance(result.get("msg"), str):  # may quote a log, a tool or an exception
                result["msg"] = mask(result["msg"])
        except OSError as error:
            why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            result.update({"failed": True, "msg": f"On the control node: {why}. Fix that and run again (QS-HOST-002)"})
        except AnsibleConnectionFailure as error:
            if self._task.ignore_unreachable:
                raise
            # As a failure it reaches the step's rescue, and ends the playbook: Ansible starts the next play after an
            # unreachable host, and runs no rescue for it.
            said = ". ".join(filter(None, [" ".join(str(error).split()), self.advice_if_unreachable()]))
            result.update({"failed": True, "msg": mask(f"{self.host} is unreachable: {said} (QS-RUN-004)")})
        except Exception as error:
            # As of a wrong password of sudo. Raised in a loop, before ansible-core 2.19, it ends the loop, and no
            # failed_when is asked: one host would keep the run lock open on those after it
            if isinstance(error, AnsibleError) and not isinstance(error, AnsibleAction):
                result.update({"failed": True, "msg": mask(f"{self.host}: {error}")})
            else:
                result.update({"failed": True, "msg": f"{type(error).__name__}: {error}"})
                raise
        finally:
            self._mark_facts(result)
            if result.get("failed"):
                result["msg"] = message_ids.move_to_end(str(result.get("msg") or ""), message_ids.NO_ID)
            if result.get("failed") and not self._task.ignore_errors:
                # A journal that cannot be written would hide the reason
                with contextlib.suppress(OSError):
                    self.note_failure(self._task.name, result.get("msg"))
            if result.get("failed") and self._task.failed_when == [False]:
                self.say(f"failed on {self.host}: {self._task.name}: {result.get('msg')}")  # Ansible shows ok
            self._report()
        return result

    def refusal(self) -> str | None:
        """Return why this task may not run, None when it may.

        Excluded hosts and tasks would leave a phase detected from half the facts, or a step without its gate.
        """
        core = tuple(map(int, re.findall(r"\d+", ansible_version)[:2]))
        if core < OLDEST_ANSIBLE:
            oldest = ".".join(map(str, OLDEST_ANSIBLE))
            return (
                f"ansible-core {ansible_version} is too old: {oldest} or newer is needed. "
                f"pip install 'ansible-core>={oldest}'. Nothing was changed (QS-RUN-010)"
            )
        # There a template makes a number of a text that reads as one: the confirmation token 73e704 becomes infinity
        if core < KEEPS_TEXTS and constants.config.get_config_value("DEFAULT_JINJA2_NATIVE"):
            return (
                f"jinja2_native is on, and ansible-core {ansible_version} then makes numbers of tokens such as 73e704. "
                "Set ANSIBLE_JINJA2_NATIVE=false, which is the default. Nothing was changed (QS-RUN-010)"
            )
        return whole_run.find_exclusion() or self._after_failure() or self._unlocked()

    def _after_failure(self) -> str | None:
        """Return that this run has failed already, None while it goes on and for a clean-up."""
        if not self._journals() or run_outcome.is_clean_up(self.module_name, self._task.args):
            return None
        return run_outcome.refusal(self.journal(), self.step, self.batch)

    def journal(self) -> list[Mapping]:
        """Return the events of this run. One that may change something has journaled its begin."""
        artifacts = self._artifacts()
        events: list[Mapping] = [*artifacts.events()]
        return run_outcome.require_begin(events, artifacts.journal) if self.session.get("run_lock") else events

    def _unlocked(self) -> str | None:
        """Return why this run may change nothing, as long as it does not hold the run lock; None when it may."""
        if self.session.get("run_lock") or not self._journals():
            return None
        if not run_outcome.needs_lock(self.module_name, self._task.args):
            return None
        return (
            "This run does not hold the run lock of the cluster, so it may change nothing. Nothing was "
            "changed (QS-RUN-005)"
        )

    def _journals(self) -> bool:
        """Return whether this task belongs to a run that keeps a journal."""
        return bool(self.session.get("run")) and not self._task.check_mode

    @property
    def module_name(self) -> str:
        """Return the name of the module without its collection."""
        return (self._task.resolved_action or self._task.action).rpartition(".")[2]

    @property
    def row(self) -> inputs.Inputs:
        """Return what this action fills in and takes for itself."""
        return inputs.find(self.module_name)

    @property
    def step(self) -> str:
        """Return the name of the step that this task belongs to; "" outside of a step."""
        return str(self._templar.template(self.vars.get("step_name") or ""))

    @property
    def batch(self) -> list[str]:
        """Return the hosts of the play's batch that are left."""
        return list(self.vars.get("ansible_play_batch") or ())

    def act(self, args: dict) -> dict:
        """Do the work; the result becomes the task's. Plugins override this."""
        args = self.fill(args)
        result = self.run_in_slices(args)
        if not result.get("failed") and not self._task.check_mode:
            self.done(args, result)
        return result

    def done(self, args: Mapping[str, Any], result: dict) -> None:
        """Show and journal a result that is no failure, outside of check mode. Plugins override this."""

    def module(self, args: Mapping[str, Any], name: str | None = None) -> dict:
        """Run a module on the task's host, by default the one of the same name."""
        result = self._execute_module(
            module_name=name or self._task.resolved_action or self._task.action,
            module_args=dict(args),
            task_vars=self._with_interpreter(),
        )
        return self._without_start(result) if module_start.is_not_started(result) else result

    def action(self, name: str, **args: Any) -> dict:
        """Run an action of Ansible itself on this task's host, as the action `template` runs `copy`."""
        task = self._task.copy()
        task.args, task.async_val = args, 0
        action = self._shared_loader_obj.action_loader.get(
            f"ansible.legacy.{name}",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=self._with_interpreter())

    def _without_start(self, result: dict) -> dict:
        """Return the result of a module that did not start on its host, with the reason instead of its output."""
        interpreter = (getattr(self, "_used_interpreter", None) or "").lstrip("#!") or "/usr/bin/python3"
        command = f"{shlex.quote(interpreter)} -c {module_start.PROBE} 2>&1; cat /etc/os-release 2>&1"
        output = self._low_level_execute_command(command).get("stdout", "")
        why = module_start.reason(interpreter, output, result.get("module_stderr") or "", oldest_host_python())
        return {"failed": True, "changed": False, "msg": f"{self.host}: {why}.", "rc": result.get("rc")}

    def run_in_slices(self, args: dict) -> dict:
        """Run a module that waits in slices (probe_module.ProbeModule.wait), and show its progress between them:
        what is new at once, and every REPEATED_S that nothing is."""
        shown, at = "", 0.0
        while True:
            result = self.module(args)
            if result.get("failed") or result.get("done", True):
                return result
            seen = _WAITED.sub("", result["progress"])
            if seen != shown or time.monotonic() - at >= REPEATED_S:
                self.say_wait(result["progress"])
                shown, at = seen, time.monotonic()
            args["carry"] = result["carry"]

    def renew(self, result: dict, kind: str) -> dict:
        """Return the result of a task whose host refused its gate token. Where the token expired on its way, the task
        is no failure a few times: its role asks for a new token."""
        if result.get("outcome") != gates.EXPIRED or self._task.check_mode:
            return result
        earlier = [event for event in self.artifacts().events() if event["name"] == gates.TOKEN_EXPIRED]
        times = sum((event["host"], event["restart_kind"]) == (self.host, kind) for event in earlier)
        if times >= gates.RENEWALS:
            why = f"This is renewal {times}: the machines or the network are too slow, or something suspends them"
            return {**result, "msg": f"{result['msg']} {why}. Run again."}
        self.artifacts().note("event", gates.TOKEN_EXPIRED, host=self.host, restart_kind=kind, reason=result["msg"])
        self.say(f"{self.host}: {result['msg']} The admission is asked for again")
        result.pop("exception", None)  # Ansible would show it as an error
        return {**result, "failed": False}

    def say(self, text: str) -> None:
        """Show one line of progress."""
        display.display(_printable(text))

    def say_wait(self, text: str) -> None:
        """Show what a wait saw last, which the next line replaces: the callback `screen` shows it in place, and the log
        gets it. Without that screen it is a line of progress."""
        line = _printable(text)
        display.display(line, log_only=waits.note(self.vars["inventory_hostname"], line.strip()))

    # The run ----------------------------------------------------------------------------------------------------

    def facts_of(self, host: str) -> Mapping[str, Any]:
        """Return the facts of a host that this process of Ansible has set; {} when there are none. A fact cache keeps
        those of earlier runs, which say nothing of this one."""
        hostvars = self.vars["hostvars"]
        if host not in self._facts and host in hostvars:
            # A module's facts have no templates: to look for some in those of 300 hosts takes seconds a task
            facts = hostvars.raw_get(host).get("ansible_facts") or {}
            own = process_mark()
            names = (name[: -len(SET_BY)] for name in facts if name.endswith(SET_BY) and facts[name] == own)
            self._facts[host] = {name: facts[name] for name in names if name in facts}
        return self._facts.get(host, {})

    @staticmethod
    def _mark_facts(result: dict) -> None:
        """Let the facts of a result say which process of Ansible set them."""
        facts = result.get("ansible_facts")
        if facts:
            names = [name for name in facts if name.startswith("quorumshift_")]
            facts.update({name + SET_BY: process_mark() for name in names})

    def _variables_of(self, host: str) -> Mapping[str, Any]:
        """Return the variables of a host. Ansible collects them anew at each access, so a task keeps what it got."""
        if host not in self._hostvars:
            self._hostvars[host] = self.vars["hostvars"][host]
        return self._hostvars[host]

    def artifacts(self) -> RunArtifacts:
        """Return the artifacts of this run, to write to them: the report is renewed when the task ends."""
        self._written = self._artifacts()
        return self._written

    def _artifacts(self) -> RunArtifacts:
        root = self.variable("quorumshift_artifacts_dir") or os.path.join(os.getcwd(), "quorumshift-artifacts")
        cluster_id, run = self.session.get("cluster_id") or "unknown", self.session.get("run") or "unknown"
        return RunArtifacts(root, cluster_id, run, journals=not self._task.check_mode)

    def planned(self) -> dict | None:
        """Return the plan that this run made at its beginning; None where it made none."""
        text = self._artifacts().read(PLAN)
        return json.loads(text) if text else None

    def note_failure(self, task: str, reason: str | None, host: str = "") -> None:
        """Journal a failure, which ends the run for all hosts: the first one is the run's reason. What was refused
        after it is no news."""
        if not self._journals() or run_outcome.is_refusal(reason):
            return
        self.artifacts().note("event", run_outcome.FAILED, host=host or self.host, task=task, reason=reason)

    def _report(self) -> None:
        """Renew the report where this task wrote artifacts. A report that cannot be written stops no run."""
        if self._written is None:
            return
        try:
            report.write(self._written)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            display.warning(f"the report in {self._written.directory} could not be written: {reason}")

    def run_key(self) -> str:
        """Return the key of this run, under which secrets travel sealed; it lives as long as this Ansible process."""
        path = os.path.join(constants.DEFAULT_LOCAL_TMP, "quorumshift-key")
        if not os.path.exists(path):
            # Forks of several hosts may come here at once: the key appears complete or not at all, and the first stays.
            own = f"{path}.{os.getpid()}"
            with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
                stream.write(secrets.token_hex(32))
            with contextlib.suppress(FileExistsError):
                os.link(own, path)
            os.unlink(own)
        with open(path, encoding="ascii") as stream:
            return stream.read()

    # Variables and facts ------------------------------------------------------------------------------------------

    def variable(self, name: str, host: str | None = None) -> Any:
        """Return a variable's templated value for a host (the play's current one by default), None when it is not set.

        Another host's value is its own, else the role's default, and never this host's.
        """
        if host in (None, self.vars["inventory_hostname"]):
            value = self.vars.get(name)
        else:
            own = self._variables_of(host)
            value = own[name] if name in own else self._role_defaults().get(name)
        return variable_specs.convert_text(name, self._templar.template(value)) if value is not None else None

    def _role_defaults(self) -> Mapping[str, Any]:
        role = self._task._role
        return role.get_default_vars(dep_chain=self._task.get_dep_chain()) if role else {}

    def fill(self, args: Mapping[str, Any], action: str | None = None) -> dict:
        """Return args with the options of this action, or of another one, filled in where the task does not give
        them."""
        filled = dict(args)
        sources = (inputs.find(action) if action else self.row).fills
        for option, source in sources.items():
            if filled.get(option) is None:
                value = self._value(source)
                if value not in (None, ""):
                    filled[option] = value
        if "bootstrap_servers" in sources and not filled.get("bootstrap_servers"):
            raise AnsibleActionFail(
                "quorumshift_bootstrap_servers is not set. Set it in the inventory, for the group all. "
                "Nothing was changed. (QS-CONNECT-002)"
            )
        return filled

    def taken(self, option: str) -> Any:
        """Return the value of an option that the action takes for itself, from its source where the task gives none."""
        value, source = self.own.get(option), self.row.takes[option]
        return self._value(source) if source and not value else value

    def connection(self) -> dict[str, Any]:
        """Return the options of connections from their variables, None for those that are not set."""
        return {option: self._value(source) for option, source in inputs.CONNECTION.items()}

    def _value(self, source: inputs.Source) -> Any:
        if inputs.KNOWN in source:
            return self._known(source[inputs.KNOWN])
        if inputs.OF_PLAY in source:
            return self.variable(source[inputs.OF_PLAY])
        return self._of_host(source, self.host, self.role)

    def _known(self, name: str) -> Any:
        """Return what the control node knows: of the run, of the nodes, or of the task's host."""
        known: dict[str, Callable[[], Any]] = {
            "run": lambda: self.session.get("run"),
            "cluster_id": lambda: self.session.get("cluster_id"),
            "run_key": self.run_key,
            "nodes": self.nodes,
            "excluded": self.excluded,
            "host": lambda: self.host,
            "role": lambda: self.role,
            # not of `nodes`: each host's task asks for its own
            "node_id": lambda: self._node(self.host, self.role).get("node_id"),
            "dead_destination_hosts": self.dead_destination_hosts,
            "controllers": lambda: [node["address"] for node in self.nodes().values() if node["role"] == "controller"],
            "expected": self.expected,
        }
        return known[name]()

    def _of_host(self, source: inputs.Source, host: str, role: str) -> Any:
        name = source.get(inputs.OF_HOST) or source.get(role)
        return self.variable(name, host) if name else None

    def node_option(self, option: str, host: str, role: str) -> Any:
        """Return the value of a node's option on a host, which has the role `broker` or `controller`."""
        return self._of_host(inputs.NODE[option], host, role)

    @property
    def role(self) -> str:
        """Return the role of the task's host: `broker` or `controller`."""
        return "broker" if self.host in self.vars["groups"].get(GROUPS["broker"], []) else "controller"

    def nodes(self) -> dict[str, NodeFacts]:
        """Return the facts of every broker and controller of the inventory that is not excluded, as the probe modules
        take them."""
        excluded = self.listed("quorumshift_exclude_hosts")
        nodes: dict[str, Any] = {}
        for role, group in GROUPS.items():
            for host in self.vars["groups"].get(group, []):
                if host not in excluded:
                    nodes[host] = {**self._node(host, role), "twice": host in nodes}
        return nodes

    def expected(self) -> dict[str, list[int]]:
        """Return the ids of the nodes of the inventory that are not excluded, by role. One that was not read has none:
        a run that changes something has read all of them."""
        found: dict[str, list[int]] = {role: [] for role in GROUPS}
        for node in self.nodes().values():
            if isinstance(node.get("node_id"), int):
                found[node["role"]].append(node["node_id"])
        return found

    def excluded(self) -> dict[str, dict]:
        """Return the same for hosts in quorumshift_exclude_hosts; role None for one in neither group."""
        roles = {host: role for role, group in GROUPS.items() for host in self.vars["groups"].get(group, [])}
        named = self.listed("quorumshift_exclude_hosts")
        return {host: self._node(host, roles[host]) if host in roles else {"role": None} for host in named}

    def listed(self, name: str) -> list[str]:
        """Return a variable that is a list, or was typed as one with commas."""
        value = self.variable(name) or []
        return value.split(",") if isinstance(value, str) else list(value)

    def advice_if_unreachable(self) -> str:
        """Return what the operator can do where this task's host is unreachable, "" where there is nothing special."""
        return ""

    def dead_destination_hosts(self) -> dict[str, int]:
        """Return the id of each host of the other ensemble's servers that the operator named dead."""
        named = [host.strip() for host in self.listed("zk_migrate_dead_hosts")]
        return {host: number(self.variable("zk_migrate_myid", host)) for host in named}

    def _node(self, host: str, role: str) -> dict:
        node = dict(self.facts_of(host).get("quorumshift_node") or {})
        node.update({"role": role, "reached": bool(node)})
        node["clock"] = self.facts_of(host).get("quorumshift_clock") or {}
        node["host_address"] = str(self.variable("ansible_host", host) or host)
        if not node["reached"]:
            node["error"] = explain_unread(host, self._variables_of(host).get("quorumshift_gathered"))
            node["node_id"] = number(self.variable("quorumshift_node_id", host))
        if role == "controller":
            if node.get("node_id") is None:
                node["node_id"] = number(self.variable("quorumshift_node_id", host))
            node["address"] = controller_address(self, host)
        return node

    def _with_interpreter(self) -> dict:
        """Return the task's variables so that what runs on the control node runs with Ansible's own Python.

        The probe modules need kazoo and confluent-kafka, which are in Ansible's environment and not in the system's; a
        delegated task would take the play's interpreter otherwise.
        """
        if self.host not in constants.LOCALHOST:
            return self.vars
        changed = {**self.vars, "ansible_python_interpreter": sys.executable}
        delegated = self.vars.get("ansible_delegated_vars") or {}
        if self.host in delegated:
            own = {**delegated[self.host], "ansible_python_interpreter": sys.executable}
            changed["ansible_delegated_vars"] = {**delegated, self.host: own}
        return changed


def _printable(text: str) -> str:
    """Return a line of progress as it is shown."""
    return f"    {escape_invisible(message_ids.move_to_end(mask(text)))}"


def oldest_host_python() -> tuple[int, int]:
    """Return the oldest Python on hosts that both this ansible-core and this collection support."""
    cores = getattr(basic, "_PY_MIN", None)  # a truth, no version, up to ansible-core 2.16, which runs on Python 2.7
    return max(module_start.OLDEST, cores) if isinstance(cores, tuple) else module_start.OLDEST


def process_mark() -> str:
    """Return the name of this process of Ansible, which no other process has had."""
    return os.path.basename(constants.DEFAULT_LOCAL_TMP)


def number(value: Any) -> Any:
    """Return a variable as an int where it is one, as in a quoted `"101"`: as text it would equal no broker's id."""
    return int(value) if re.fullmatch(r"-?\d+", str(value).strip()) else value


def explain_unread(host: str, gathered: Mapping[str, Any] | None) -> str:
    """Return why a host's facts are missing, from the registered result of the task that was to read them."""
    if gathered is None:
        return "--limit or --start-at-task excluded it (QS-PHASE-006)"
    said = format_reason(host, gathered.get("unread") or gathered.get("msg", ""))
    return said if gathered.get("unreachable") else f"its facts could not be read: {said} (QS-PHASE-006)"


def format_reason(host: str, text: Any) -> str:
    """Return what a module or a connection says of a host, in one line, without its name and Ansible's own words."""
    said = message_ids.drop_full_stop(" ".join(str(text).split()))
    return _ABOUT_SSH.sub("", re.sub(rf"^{re.escape(host)}: ", "", said))


def controller_address(action: QuorumshiftAction, host: str) -> str:
    """Return a controller's `host:port`, at which brokers, controllers and the tool connect to it."""
    where = str(action.variable("quorumshift_controller_host", host) or action.variable("ansible_host", host) or host)
    port = action.variable("quorumshift_controller_port", host) or 9093
    return f"[{where}]:{port}" if ":" in where else f"{where}:{port}"
