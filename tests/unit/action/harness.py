# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an action plugin with everything but Ansible's connection: its module returns what the test says."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.context_objects import CLIArgs
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import base
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

RUN, CLUSTER = "20261121T000000-aaaa", "cluster-1"
GROUPS = {"kafka_broker": ["b1", "b2"], "kafka_controller": ["c1"]}


class HostVars(dict):
    """Variables of hosts without templates."""

    raw_get = dict.__getitem__


class Harness:
    """One run: its variables, its facts by host, what was printed, what the modules were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
        self.artifacts = RunArtifacts(str(tmp_path), CLUSTER, RUN)
        self.printed: list[str] = []
        self.asked: list[dict] = []
        self.results: list[dict] = []
        self.check_mode = False
        self.ignore_unreachable = self.ignore_errors = False
        self.failed_when: list = []
        self.variables: dict[str, Any] = {
            "quorumshift_artifacts_dir": str(tmp_path),
            "quorumshift_bootstrap_servers": ["b1:9094"],
            "quorumshift_state_dir": "/var/lib/quorumshift",
            "quorumshift_broker_service": "kafka",
            "quorumshift_controller_service": "kafka-controller",
            "quorumshift_broker_config_file": "/etc/kafka/server.properties",
            "quorumshift_controller_config_file": "/etc/kafka/controller.properties",
        }
        self.hostvars: dict[str, dict] = {host: {} for hosts in GROUPS.values() for host in hosts}
        self.hostvars["localhost"] = {}
        self.session: dict[str, Any] = {"run": RUN, "cluster_id": CLUSTER, "phase": "zk", "run_lock": {"number": 1}}
        monkeypatch.setattr(ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
        monkeypatch.setattr(base.display, "display", lambda text, *_args, **_options: self.printed.append(text))
        monkeypatch.setattr(base.QuorumshiftAction, "run_key", lambda self: "ab" * 32)
        self.note_begin()
        self.cliargs({})
        self._monkeypatch = monkeypatch

    def note_begin(self) -> None:
        """Journal that the run of the session began."""
        root = self.variables["quorumshift_artifacts_dir"]
        RunArtifacts(root, CLUSTER, self.session["run"]).note("event", run_outcome.BEGUN, user="ops")

    def cliargs(self, given: dict[str, Any]) -> None:
        """Set the options of ansible-playbook."""
        context.CLIARGS = CLIArgs({"args": ("playbooks/migrate.yml",), **given})

    def facts(self, host: str, **facts: Any) -> None:
        """Set facts of a host, as an action of this process does."""
        marks = {f"{name}{base.SET_BY}": base.process_mark() for name in facts}
        self.hostvars[host].setdefault("ansible_facts", {}).update({**facts, **marks})

    def run(self, name: str, args: dict | None = None, *results: dict, host: str = "localhost", **more: Any) -> dict:
        """Run an action on a host; `results` are what its module returns, call after call."""
        module = importlib.import_module(f"ansible_collections.quorumshift.kafka.plugins.action.{name}")
        self.action = action = object.__new__(module.ActionModule)
        self.results = list(results)
        if self.session:
            self.facts("localhost", quorumshift_session=self.session)
        action._task = SimpleNamespace(
            args=dict(args or {}),
            name=f"task {name}",
            action=f"quorumshift.kafka.{name}",
            resolved_action=f"quorumshift.kafka.{name}",
            delegate_to=more.get("delegate_to"),
            check_mode=self.check_mode,
            ignore_unreachable=self.ignore_unreachable,
            ignore_errors=self.ignore_errors,
            failed_when=self.failed_when,
            _role=None,
            get_dep_chain=lambda: None,
        )
        action._templar = SimpleNamespace(template=lambda value: value)
        action.module = self._module
        variables = {
            **self.variables,
            "inventory_hostname": host,
            "groups": GROUPS,
            "hostvars": HostVars({host: {**self.variables, **own} for host, own in self.hostvars.items()}),
            "ansible_play_hosts_all": more.get("play_hosts_all", [host]),
            "ansible_play_hosts": more.get("play_hosts", [host]),
            "ansible_play_batch": more.get("play_hosts", [host]),
            **more.get("variables", {}),
        }
        return action.run(task_vars=variables)

    def _module(self, args: dict, _name: str | None = None) -> dict:
        self.asked.append(dict(args))
        return dict(self.results.pop(0)) if len(self.results) > 1 else dict((self.results or [{}])[0])

    def events(self, name: str | None = None) -> list[dict]:
        """Return the events of the run's journal: those of a name, or all but the begin of the run."""
        found = self.artifacts.events()
        return [event for event in found if event["name"] == name or (not name and event["name"] != run_outcome.BEGUN)]


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Harness:
    """Return a run of its own."""
    before = context.CLIARGS
    yield Harness(monkeypatch, tmp_path)
    context.CLIARGS = before
