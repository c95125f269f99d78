# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of a rehearsal: its inventory, and the collection's playbooks as processes of their own.

The inventory is new, and has the hosts of the rehearsal alone. So no playbook of a rehearsal can reach a host of the
cluster, whatever variables say. Secrets of connections are not written: the inventory reads them from the environment
of the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Mapping, NamedTuple

import yaml
from ansible import constants, context
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import estimate
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import rehearsal_id, run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import durations
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts, private

FORWARD, BACK, FINALIZE = "forward", "back", "finalize"
RUNS = (  # name, playbook, the phase at its end
    (FORWARD, "migrate", "dual_write"),
    (BACK, "rollback", "zk"),
    (FORWARD, "migrate", "dual_write"),
    (FINALIZE, "migrate", "finalized"),
)
_GIVEN = {BACK: {"quorumshift_rollback_to": "zk"}}
_TOKEN = re.compile(r"quorumshift_finalize_token=(?P<token>[\w:'\"-]+)")
_ENVIRONMENT = "QUORUMSHIFT_REHEARSAL_SECRETS"
_SECRET = re.compile(r"pass|secret|token|credential", re.IGNORECASE)
_OF_CONNECTION = re.compile(
    r"^ansible_(host|port|user|connection|password|pipelining|timeout|python_interpreter|remote_tmp|private_key_file"
    r"|(ssh|become|shell|paramiko|scp|sftp)(_\w+)?)$"
)
_SHARED = (  # what the cluster's runs and the rehearsal's have in common; all else is the rehearsal's own
    *("quorumshift_probe_host", "quorumshift_probe_timeout", "quorumshift_verify", "quorumshift_spark_host"),
    *("quorumshift_spark_master", "quorumshift_spark_submit", "quorumshift_spark_python", "quorumshift_spark_conf"),
    *("quorumshift_spark_options", "quorumshift_spark_timeout_s", "quorumshift_spark_wait_s"),
    *("quorumshift_zookeeper_read_rate", "quorumshift_zookeeper_read_latency_ms", "quorumshift_stable_s"),
    *("quorumshift_gate_timeout_s", "quorumshift_roll_timeout_s", "quorumshift_stop_timeout_s"),
    *("quorumshift_start_timeout_s", "quorumshift_copy_timeout_s", "quorumshift_artifacts_dir"),
)
_TYPED = {  # options of ansible-playbook that reach hosts
    "remote_user": "--user",
    "private_key_file": "--private-key",
    "ssh_common_args": "--ssh-common-args",
    "ssh_extra_args": "--ssh-extra-args",
    "sftp_extra_args": "--sftp-extra-args",
    "scp_extra_args": "--scp-extra-args",
    "become_method": "--become-method",
    "become_user": "--become-user",
    "forks": "--forks",
}
_POLL_S = 1.0
_REPEATED_S = 60.0  # a step is shown again after this many seconds
_END_S = 20.0
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG (prctl(2))


class Inventory(NamedTuple):
    """The text of an inventory, and the secrets that it reads from the environment."""

    text: str
    secrets: Mapping[str, Any]


def inventory(action: Any, plan: Mapping[str, Any]) -> Inventory:
    """Return the inventory of a rehearsal: by host a broker and a controller, under names of their own."""
    secrets: Dict[str, Any] = {}

    def kept(host: str, name: str, value: Any) -> Any:
        if not _is_secret(name, value):
            return _plain(value)
        secrets.setdefault(host, {})[name] = _plain(value)
        lookup = f"lookup('ansible.builtin.env', '{_ENVIRONMENT}', default='{{}}') | from_json"
        return f"{{{{ ({lookup}).get({host!r}, {{}}).get({name!r}, '') }}}}"

    def connection(host: str) -> Dict[str, Any]:
        known = action.vars["hostvars"]  # it has no method `get`
        own = known[host] if host in known else {}  # noqa: SIM401
        found = {name: kept(host, name, own[name]) for name in own if _OF_CONNECTION.match(name)}
        found.setdefault("ansible_host", host)
        typed = action._play_context
        for name, value in (("ansible_become_password", typed.become_pass), ("ansible_password", typed.password)):
            if value and name not in found:  # typed for -K or -k
                found[name] = kept(host, name, value)
        return found

    hosts, directory = plan["hosts"], next(iter(plan["hosts"].values()))["directory"]
    shared = {
        name: kept("all", name, value) for name in _SHARED for value in [action.variable(name)] if value is not None
    }
    brokers = {
        f"rehearsal-broker-{number}": {**connection(host), **_files(hosts[host], "broker")}
        for host, number in plan["brokers"].items()
    }
    controllers = {
        f"rehearsal-controller-{number}": {
            **connection(host),
            **_files(hosts[host], "controller"),
            "quorumshift_node_id": number,
            "quorumshift_controller_host": hosts[host]["address"],
        }
        for host, number in plan["controllers"].items()
    }
    variables = {
        **shared,
        "quorumshift_bootstrap_servers": ",".join(plan["bootstrap"]),
        "quorumshift_zookeeper_connect": plan["servers"] + next(iter(hosts.values()))["chroot"],
        "quorumshift_broker_config_file": f"{directory}/broker.properties",
        "quorumshift_broker_service": core.unit(core.BROKER),
        "quorumshift_broker_log_file": f"{directory}/logs/broker.log",
        "quorumshift_controller_config_file": f"{directory}/controller.properties",
        "quorumshift_controller_service": core.unit(core.CONTROLLER),
        "quorumshift_controller_log_file": f"{directory}/logs/controller.log",
        "quorumshift_controller_log_dir": f"{directory}/metadata",
        "quorumshift_controller_port": next(iter(hosts.values()))["ports"]["controller"],
        "quorumshift_zookeeper_config_file": f"{directory}/zookeeper.cfg",
        "quorumshift_zookeeper_admin_port": 0,
        "quorumshift_soak": "0s",
    }
    beside = {
        str(host): connection(str(host))
        for host in (shared.get("quorumshift_probe_host"), shared.get("quorumshift_spark_host"))
        if host not in (None, "localhost")
    }
    tree = {
        "all": {
            "vars": variables,
            "hosts": beside,
            "children": {
                "kafka_broker": {"hosts": brokers},
                "kafka_controller": {"hosts": controllers},
                "zookeeper": {"hosts": dict.fromkeys(controllers)},
            },
        }
    }
    return Inventory("---\n" + yaml.safe_dump(_plain(tree), sort_keys=False, width=200), secrets)


def _files(options: Mapping[str, Any], role: str) -> Dict[str, Any]:
    return {
        "quorumshift_kafka_home": options["kafka_home"],
        "quorumshift_kafka_user": options["owner"],
        "quorumshift_state_dir": f"{options['directory']}/state/{role}",
    }


def _is_secret(name: str, value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_is_secret(str(key), entry) for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return any(_is_secret("", entry) for entry in value)
    return bool(value) and bool(_SECRET.search(name) or (isinstance(value, str) and mask(value) != value))


def _plain(value: Any) -> Any:
    """Return a value of Ansible's own types as YAML can write it."""
    return json.loads(json.dumps(value, default=str))


def play(
    action: Any,
    name: str,
    playbook: str,
    inventory_path: str,
    place: str,
    secrets: Mapping[str, Any],
    before: List[Dict[str, Any]],
) -> Dict[str, Any]:
    """Run a playbook of the collection on the rehearsal, and return {name, run, seconds, code, phase, failure, log,
    ...}: `failure` is "" if it ended well."""
    number = len(before) + 1
    log = os.path.join(place, f"{number}-{name}.log")
    given = dict(_GIVEN.get(name, {}))
    if name == FINALIZE:
        token = _find_token(before[-1]["log"])
        if not token:
            failure = "The run before it printed no confirmation token."
            return {**dict.fromkeys(("run", "phase")), "name": name, "seconds": 0.0, "failure": failure, "log": log}
        given["quorumshift_finalize_token"] = token
    command = [sys.executable, "-m", "ansible", "playbook", "-i", inventory_path, *_typed()]
    for key, value in given.items():
        command += ["-e", json.dumps({key: value})]
    command.append(f"quorumshift.kafka.{playbook}")
    runs = set(_runs(place))
    began, began_at = time.monotonic(), time.time()
    with open(log, "w", encoding="utf-8", opener=private) as stream:
        code = _wait(action, command, _environment(secrets), stream, name, place, runs)
    seconds = time.monotonic() - began
    run = max(set(_runs(place)) - runs, default=None)
    done = {"name": name, "playbook": playbook, "run": run, "seconds": round(seconds, 1), "code": code, "log": log}
    artifacts = RunArtifacts(os.path.dirname(place), os.path.basename(place), run) if run else None
    events = artifacts.events() if artifacts else []
    failed = run_outcome.outcome(events) if events else None
    failure = "" if code == 0 else (f"{mask(failed.sentence)}." if failed else f"it ended with exit code {code}.")
    if code == 0 and not run:
        failure = "it left no journal."
    done.update(
        phase=_phase(place),
        failure=failure,
        gates=[
            {key: event.get(key) for key in ("name", "result", "seconds", "reason")}
            for event in events
            if event["kind"] == "gate"
        ],
        preflight=_preflight(artifacts),
        before_s=round(max(0.0, events[0]["t"] - began_at), 1) if events else 0.0,
        events=[event for event in events if event["kind"] == "restart" or event["name"] in _STEPS],
    )
    how = "ended" if not failure else "failed"
    action.say(f"rehearsal: {name} {how} after {durations.format_duration(seconds)}, in the phase {done['phase']}")
    return done


_STEPS = (run_outcome.STEP_BEGUN, run_outcome.STEP_ENDED)


def measured(run: Mapping[str, Any]) -> estimate.Measured:
    """Return what a run of `play` took."""
    return estimate.measure(run["name"], run["seconds"], run["events"], run["run"])


def _wait(action, command, environment, stream, name, place, runs) -> int:
    """Run the command and show the step that it is at; return its exit code. It ends with this process."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=subprocess.STDOUT,
        preexec_fn=_die_with_parent,
        start_new_session=True,
    )
    began, shown, at = time.monotonic(), "", 0.0
    control_process = os.getppid()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_S)
            if os.getppid() != control_process:  # a killed playbook leaves its worker, which would go on
                raise RuntimeError("the control process of the rehearsal has ended (QS-REHEARSE-005)")
            newest = max(set(_runs(place)) - runs, default=None)
            step = _step(place, newest) if newest else "reads the nodes"
            if step != shown or time.monotonic() - at >= _REPEATED_S:
                action.say_wait(f"rehearsal: {name}: {step} ({time.monotonic() - began:.0f} s)")
                shown, at = step, time.monotonic()
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGTERM)


def _environment(secrets: Mapping[str, Any]) -> Dict[str, str]:
    """Return the environment of a run: without what would report it as one of the cluster's."""
    own = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    return {
        **own,
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(map(str, constants.COLLECTIONS_PATHS)),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.minimal",  # one of stdout, which is not loaded: so none is
        "ANSIBLE_CACHE_PLUGIN": "memory",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "PYTHONUNBUFFERED": "1",
        _ENVIRONMENT: json.dumps(secrets),
    }


_DROPPED = (
    *("ANSIBLE_LOG_PATH", "ANSIBLE_CALLBACK_PLUGINS", "ANSIBLE_INVENTORY", "ANSIBLE_LIMIT", "ANSIBLE_RUN_TAGS"),
    *("ANSIBLE_SKIP_TAGS", "ANSIBLE_STRATEGY", "ANSIBLE_CHECK_MODE_MARKERS", "ANSIBLE_DISPLAY_FAILED_STDERR"),
    *(
        "AWX_JOB_ID",
        "JOB_ID",
        "TOWER_JOB_ID",
        "AWX_ISOLATED_DATA_DIR",
        "RUNNER_OMIT_EVENTS",
        "RUNNER_ONLY_FAILED_EVENTS",
    ),
)


def _typed() -> List[str]:
    found = []
    for option, flag in _TYPED.items():
        value = context.CLIARGS.get(option)
        if value:
            found.append(f"{flag}={value}")
    return [*found, "--become"] if context.CLIARGS.get("become") else found


def _runs(place: str) -> List[str]:
    """Return the runs that have a journal, oldest first."""
    return sorted(name for name in os.listdir(place) if os.path.exists(os.path.join(place, name, "journal.jsonl")))


def _step(place: str, run: str) -> str:
    events = RunArtifacts(os.path.dirname(place), os.path.basename(place), run).events()
    steps = [event for event in events if event["name"] == run_outcome.STEP_BEGUN]
    if not steps:
        return "begins"
    hosts = [host for host in steps[-1].get("hosts") or () if host != "localhost"]
    return steps[-1]["step"] + (f": {', '.join(hosts)}" if len(hosts) == 1 else "")


def _phase(place: str) -> str | None:
    """Return the phase in which the newest run left the rehearsal, by its status."""
    with contextlib.suppress(OSError, ValueError, KeyError), open(
        os.path.join(place, "status.json"), encoding="utf-8"
    ) as file:
        return json.load(file)["phase"]
    return None


def _preflight(artifacts: RunArtifacts | None) -> List[Dict[str, Any]]:
    """Return the findings of a run's preflight."""
    text = artifacts.read("preflight.json") if artifacts else None
    found = json.loads(text) if text else []
    findings = found.get("findings", []) if isinstance(found, dict) else found
    return [{key: finding.get(key) for key in ("id", "severity", "seen", "do")} for finding in findings]


def newest_report(root: str) -> Dict[str, Any] | None:
    """Return rehearsal.json of the rehearsal that ended last, None without one. Raises OSError, ValueError."""
    paths = glob.glob(os.path.join(glob.escape(os.path.expanduser(root)), f"{rehearsal_id.PREFIX}*", "rehearsal.json"))
    if not paths:
        return None
    with open(max(paths, key=os.path.getmtime), encoding="utf-8") as stream:
        return {**json.load(stream), "ended_at": max(map(os.path.getmtime, paths))}


def estimates_of(kept: Mapping[str, Any]) -> List[estimate.Estimate]:
    """Return the estimates of a report."""
    return [
        estimate.Estimate(**{**each, "lines": [estimate.Line(**line) for line in each["lines"]]})
        for each in kept["estimates"]
    ]


def real_runs(root: str, kept: Mapping[str, Any]) -> List[estimate.Measured]:
    """Return the whole runs of a report's cluster that began after the rehearsal was begun. A journal begins once the
    nodes are read: a run gets the seconds that this took in the rehearsal's run of its name."""
    nodes, found = estimate.Nodes(**kept["nodes"]), []
    before = {run["name"]: run["before_s"] for run in kept["runs"]}
    cluster_id = kept["source"]["cluster_id"]
    for name in RunArtifacts(root, cluster_id, "any").runs():
        events = RunArtifacts(root, cluster_id, name).events() if re.fullmatch(r"[\w-]+", name) else []
        if not events or events[0]["t"] < kept["began_at"] or run_outcome.outcome(events) is not None:
            continue
        run = estimate.measure("", events[-1]["t"] - events[0]["t"], events, name)
        kind = estimate.name_of(run, nodes)
        if kind in before:
            found.append(run._replace(name=kind, seconds=run.seconds + before[kind]))
    return found


def _find_token(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as stream:
        found = [match["token"].strip("'\"") for match in _TOKEN.finditer(stream.read())]
    return found[-1] if found else ""


def write(path: str, text: str) -> None:
    """Write a file that only its owner may read."""
    with open(path, "w", encoding="utf-8", opener=private) as stream:
        stream.write(text)
