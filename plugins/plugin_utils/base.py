# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this collection's action plugins share: the run, the nodes, the options from variables, live progress.

An action plugin runs in the control process. That is where one run is one thing over all plays, where what the
hosts told comes together, and from where lines reach the operator's terminal (and AWX) while a wait goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import time
from typing import Any, Iterable, Mapping

from ansible import constants, context
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import report
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

display = Display()

# Connection options of the probe modules and the variables from which they are taken when a task does not give them.
_CONNECTION = {
    "bootstrap_servers": "quorumshift_bootstrap_servers",
    "zookeeper_connect": "quorumshift_zookeeper_connect",
    "client": "quorumshift_client",
    "controller_client": "quorumshift_controller_client",
    "zookeeper_client": "quorumshift_zookeeper_client",
    "timeout": "quorumshift_probe_timeout",
}
_SPECIAL_TAGS = ("all", "always", "tagged", "untagged")
_UNTOUCHED = "Every run finds by itself what is done. Nothing was changed"
_WAITED = re.compile(r" \(\d+ s\)$")
PLAN = "plan.json"
REPEATED_S = 15.0  # after which what is awaited is told again
GROUPS = {"broker": "kafka_broker", "controller": "kafka_controller"}


class QuorumshiftAction(ActionBase):
    """An action that knows its run and shows progress.

    `session` is what the run knows of itself, {run, cluster_id, phase}, kept as a fact of localhost by
    migration_state, the first action of every playbook.
    """

    def run(self, tmp=None, task_vars=None):
        self._supports_check_mode = True
        result = super().run(tmp, task_vars)
        self.vars = task_vars
        self.began = time.time()
        self.session: Mapping[str, Any] = self.facts_of("localhost").get("quorumshift_session") or {}
        self._left: RunArtifacts | None = None
        refused = self.refused()
        try:
            result.update({"failed": True, "msg": refused} if refused else self.act(dict(self._task.args)))
            if result.get("failed") and self.ends_run(result):
                self.ended(result.get("msg"), self._task.name)
        except OSError as error:
            why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            result.update({"failed": True, "msg": f"on the control node: {why}. Mend that and run again"})
        except AnsibleConnectionFailure as error:
            if not self._task.ignore_unreachable:
                self.ended(f"{self._task.delegate_to or task_vars['inventory_hostname']}: {error}", self._task.name)
            raise
        finally:
            self._report()
        return result

    def ends_run(self, result: Mapping[str, Any]) -> bool:
        """Say whether nothing but the end may follow this task's failure. Plugins override this."""
        return True

    def refused(self) -> str | None:
        """Return why this task may not be part of what was asked to run; None when it may.

        Left-out hosts and tasks would leave a cluster judged in part, or a step without what goes before it.
        """
        if self.vars.get("ansible_limit"):
            return f"--limit {self.vars['ansible_limit']} leaves hosts out: run without it. {_UNTOUCHED}"
        tags = [tag for tag in self.vars.get("ansible_run_tags") or () if tag != "all"]
        # Tasks of the collection carry no tag of their own, so skipping others, as molecule does, leaves none out.
        tags += [tag for tag in self.vars.get("ansible_skip_tags") or () if tag in _SPECIAL_TAGS]
        if tags:
            return f"--tags or --skip-tags {', '.join(tags)} leave tasks out: run without them. {_UNTOUCHED}"
        if context.CLIARGS.get("start_at_task"):
            return f"--start-at-task leaves tasks out: run without it. {_UNTOUCHED}"
        return self._over()

    def _over(self) -> str | None:
        """Return that this run has failed, None while it goes on.

        Ansible goes on to the next play when a host became unreachable, and so past the barrier of a roll.
        """
        if not self.session.get("run") or self._task.check_mode:
            return None
        last = (self._artifacts().events() or [{}])[-1]
        if last.get("name") != "ended" or last.get("result") != "failed":
            return None
        return f'This run has ended at "{last["task"]}": {last["reason"]}. Nothing more was done'

    def act(self, args: dict) -> dict:
        """Do the work; the result becomes the task's. Plugins override this."""
        return self.in_slices(args)

    def module(self, args: Mapping[str, Any]) -> dict:
        """Run the module of the same name where the task is to run it."""
        return self._execute_module(
            module_name=self._task.resolved_action or self._task.action,
            module_args=dict(args),
            task_vars=self._with_interpreter(),
        )

    def in_slices(self, args: dict) -> dict:
        """Run a module that waits in slices (probe_module.ProbeModule.wait), showing its progress between them: at once
        what is new, and now and then that nothing is."""
        shown, at = "", 0.0
        while True:
            result = self.module(args)
            if result.get("failed") or result.get("done", True):
                return result
            seen = _WAITED.sub("", result["progress"])
            if seen != shown or time.monotonic() - at >= REPEATED_S:
                self.say(result["progress"])
                shown, at = seen, time.monotonic()
            args["carry"] = result["carry"]

    def say(self, text: str) -> None:
        """Show one line of progress."""
        display.display(f"    {text}")

    # The run ----------------------------------------------------------------------------------------------------

    def facts_of(self, host: str) -> Mapping[str, Any]:
        """Return the ansible_facts of a host ({} when it has none)."""
        hostvars = self.vars["hostvars"]
        return (hostvars[host].get("ansible_facts") or {}) if host in hostvars else {}

    def artifacts(self) -> RunArtifacts:
        """Return the evidence of this run, for something to be left in it."""
        self._left = self._artifacts()
        return self._left

    def _artifacts(self) -> RunArtifacts:
        where = self.variable("quorumshift_artifacts_dir") or os.path.join(os.getcwd(), "quorumshift-artifacts")
        return RunArtifacts(where, self.session.get("cluster_id") or "unknown", self.session.get("run") or "unknown")

    def planned(self) -> dict | None:
        """Return the plan that this run has made at its beginning; None where it made none."""
        text = self._artifacts().read(PLAN)
        return json.loads(text) if text else None

    def ended(self, reason: str | None, task: str) -> None:
        """Journal that the run failed, once: the task that failed first tells why."""
        if not self.session.get("run") or self._task.check_mode:
            return
        events = self.artifacts().events()
        if not (events and events[-1]["name"] == "ended"):
            self.artifacts().note("event", "ended", result="failed", reason=reason, task=task)

    def _report(self) -> None:
        """Renew the report where this task left evidence. A report that cannot be written stops no run."""
        if self._left is None:
            return
        try:
            report.write(self._left)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            display.warning(f"the report in {self._left.directory} could not be written: {reason}")

    def run_key(self) -> str:
        """Return the key of this run, under which secrets travel sealed; it lives as long as this Ansible process."""
        path = os.path.join(constants.DEFAULT_LOCAL_TMP, "quorumshift-key")
        if not os.path.exists(path):
            # Forks of several hosts come here at once: the key appears whole or not at all, and the first one stays.
            own = f"{path}.{os.getpid()}"
            with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
                stream.write(secrets.token_hex(32))
            with contextlib.suppress(FileExistsError):
                os.link(own, path)
            os.unlink(own)
        with open(path, encoding="ascii") as stream:
            return stream.read()

    # What the hosts told ----------------------------------------------------------------------------------------

    def variable(self, name: str, host: str | None = None) -> Any:
        """Return a variable's templated value for a host (this task's by default), None when it is not set."""
        if host is None:
            value = self.vars.get(name)
        else:
            value = self.vars["hostvars"][host].get(name)
        return self._templar.template(value) if value is not None else None

    def connection(self, args: dict, options: Iterable[str] = tuple(_CONNECTION)) -> dict:
        """Return args with the connection options filled in from the quorumshift_* variables."""
        found = {option: self.variable(_CONNECTION[option]) for option in options if option not in args}
        given = {**args, **{option: value for option, value in found.items() if value is not None}}
        if "bootstrap_servers" in options and not given.get("bootstrap_servers"):
            raise AnsibleActionFail(
                "quorumshift_bootstrap_servers is not set: put it into the inventory, for the group all. "
                "Nothing was changed."
            )
        return given

    def nodes(self) -> dict[str, dict]:
        """Return what is known of every broker and controller of the inventory that is not gone, as the probe modules
        take it."""
        excluded, reported = self.listed("quorumshift_exclude_hosts"), {}
        for role, group in GROUPS.items():
            for host in self.vars["groups"].get(group, []):
                if host not in excluded:
                    reported[host] = {**self._node(host, role), "twice": host in reported}
        return reported

    def excluded(self) -> dict[str, dict]:
        """Return the same for hosts in quorumshift_exclude_hosts; role None for one in neither group."""
        roles = {host: role for role, group in GROUPS.items() for host in self.vars["groups"].get(group, [])}
        named = self.listed("quorumshift_exclude_hosts")
        return {host: self._node(host, roles[host]) if host in roles else {"role": None} for host in named}

    def listed(self, name: str) -> list[str]:
        """Return a variable that is a list, or was typed as one with commas."""
        value = self.variable(name) or []
        return value.split(",") if isinstance(value, str) else list(value)

    def _node(self, host: str, role: str) -> dict:
        node = dict(self.facts_of(host).get("quorumshift_node") or {})
        node.update({"role": role, "reached": bool(node)})
        node["host_address"] = str(self.variable("ansible_host", host) or host)
        if not node["reached"]:
            node["error"] = unread(self.vars["hostvars"][host].get("quorumshift_gathered"))
            node["node_id"] = self.variable("quorumshift_node_id", host)
        if role == "controller":
            node["node_id"] = node.get("node_id") or self.variable("quorumshift_node_id", host)
            node["address"] = controller_address(self, host)
        return node

    def _with_interpreter(self) -> dict:
        """Return the task's variables so that what runs on the control node runs with Ansible's own Python.

        The probe modules need kazoo and confluent-kafka, which stand in Ansible's environment and not in the
        system's; a delegated task would take the play's interpreter otherwise.
        """
        target = self._task.delegate_to or self.vars.get("inventory_hostname")
        if target not in constants.LOCALHOST:
            return self.vars
        changed = {**self.vars, "ansible_python_interpreter": sys.executable}
        delegated = self.vars.get("ansible_delegated_vars") or {}
        if target in delegated:
            reported = {**delegated[target], "ansible_python_interpreter": sys.executable}
            changed["ansible_delegated_vars"] = {**delegated, target: reported}
        return changed


class ProbeAction(QuorumshiftAction):
    """An action of a probe module: nodes and connection options filled in."""

    def act(self, args: dict) -> dict:
        return self.in_slices(self.filled(args))

    def filled(self, args: dict) -> dict:
        """Return args with nodes, connection and session filled in where the task does not give them."""
        args = self.connection(args)
        args.setdefault("nodes", self.nodes())
        args.setdefault("excluded", self.excluded())
        for option in ("run", "cluster_id"):
            if option in args and not args[option]:
                args[option] = self.session.get(option)
        return args


def unread(gathered: Mapping[str, Any] | None) -> str:
    """Return why a host's facts are missing, from the registered result of the task that was to read them."""
    if gathered is None:
        return "it was left out by --limit or --start-at-task"
    said = " ".join(str(gathered.get("msg", "")).split())
    return f"it is unreachable: {said}" if gathered.get("unreachable") else f"its facts could not be read: {said}"


def controller_address(action: QuorumshiftAction, host: str) -> str:
    """Return a controller's `host:port` as everybody dials it."""
    where = action.variable("quorumshift_controller_host", host) or action.variable("ansible_host", host) or host
    port = action.variable("quorumshift_controller_port", host) or 9093
    where = str(where)
    return f"[{where}]:{port}" if ":" in where else f"{where}:{port}"
