# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be true after a failure, and where a run breaks it."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_lock, run_outcome

from tools.failure_proof import boundary
from tools.failure_proof.boundary import CRASHED, FAILED, UNREACHABLE, UNREACHABLE_AFTER
from tools.failure_proof.engine import ROOT, output
from tools.failure_proof.world import CLUSTER, DESTINATIONS, IDS, SOURCES, World


class CleanUp(NamedTuple):
    """A change that may begin after a failure. `does`: the module's state or action, None for any; `task`: the end of
    the task's name, None for any."""

    module: str
    does: str | None
    task: str | None
    why: str


class Tolerated(NamedTuple):
    """A call whose failure need not end the run: its end is then that of a run without a failure."""

    module: str
    task: str
    why: str


ARCHIVING = (
    "Fetch the snapshots of the other voters",
    "Take a snapshot of the metadata log on the quorum's leader",
    "Archive the ZooKeeper server's snapshot of before the copy, and the log after it",
    "Archive each server's snapshot, and the log after it",
)
"""Tasks that have an archive made on a host, fetch it, and remove it there."""
TOLERATED = (
    Tolerated("stat", "Find the source server's configuration", "one source server that can be read is enough"),
    Tolerated("zk_cut_check", "Read the source server's settings", "one source server that can be read is enough"),
    Tolerated("async_status", "Fetch the snapshots of the other voters", "the job is asked again until it has ended"),
    *(Tolerated("file", task, "the archives are removed again where the comparison ends") for task in ARCHIVING),
)
# A voter that gives no snapshot of its log is named by the comparison, which is incomplete and closes the gate. Those
# of the others are taken until there: archives in scratch directories, which the role removes.
OF_ONE_VOTER = (
    "Begin a snapshot of the metadata log on each other voter",
    "Fetch the snapshots of the other voters",
)
REMOVALS = ("Remove the archives from the hosts",)
ARCHIVES = ("metadata_snapshot", "zk_tree_snapshot")
HOSTS = (*IDS, *SOURCES, *DESTINATIONS)  # on which archives are made
SNAPSHOT = ("metadata_snapshot", None)
CLOSED = ("run", "closed")
LOCKED = ("run", "locked")
UNREGISTER = "Remove the broker's registration from the quorum"
CLEAN_UPS = (
    CleanUp("run", "closed", None, "the lock says how the run ended"),
    CleanUp("file", "absent", "Remove the scratch directories", "they hold credentials and metadata in clear text"),
    CleanUp("file", "absent", "End Spark without a job", "no task gives it one, and it keeps a host's memory"),
    CleanUp("zk_cut", "healed", None, "a host that is fenced serves no client until it is healed"),
    *(CleanUp("file", "absent", task, "they hold credentials in clear text") for task in (*REMOVALS, *ARCHIVING)),
    CleanUp("broker_unregister", None, UNREGISTER, "a broker that reverted may not count for the initial copy"),
)


class Printed(NamedTuple):
    """A command that `status` prints: the playbook's name, and the extra variables."""

    playbook: str
    variables: dict[str, str]

    def equals_except_token(self, other: Printed | None) -> bool:
        """Return whether it equals the other command except for the token, which depends on when the nodes started."""
        token = "quorumshift_finalize_token"
        if other is None or (self.playbook, self.variables.keys()) != (other.playbook, other.variables.keys()):
            return False
        return all(value == other.variables[name] for name, value in self.variables.items() if name != token)


class Clean(NamedTuple):
    """A run without a failure: its calls, what changes, where it leads, and the command that `status` prints then."""

    calls: list[dict[str, Any]]
    changing: frozenset[tuple]
    final: Any
    locked: frozenset[str]
    following: Printed | None = None


UNKNOWN = Clean([], frozenset(), None, frozenset())
"""Of a run that was not recorded: what changes is then seen by its effect alone."""


def clean(world: World, name: str) -> Clean:
    """Return what the run `name` did."""
    calls = [call for call in boundary.read_calls(world, name) if call["at"] == "end"]
    changing = frozenset(signature(call) for call in calls if call["mutated"] and not call["check"])
    locked = frozenset(call["target"] for call in calls if signature(call) == LOCKED)
    return Clean(calls, changing, final(world), locked)


def signature(call: dict[str, Any]) -> tuple:
    """Return what a call does: module, and state or action."""
    return call["module"], call["does"]


def final(world: World) -> Any:
    """Return where a run led: what runs where, with which release, and the state of the migration."""
    state = world.state()
    nodes = {
        name: (service["mode"], service["masked"], state["versions"][name])
        for name, service in state["services"].items()
    }
    zookeeper = state["zookeeper"]["owner"], state["zookeeper"]["migration"] is not None
    files = {name: world.config_file(name).exists() for name in IDS}
    members = {
        name: [
            None if member.get("state") in (None, "none", "healed") else member["state"],
            member.get("mode"),
            member.get("config"),
        ]
        for name, member in state["stubs"].get("members", {}).items()
    }
    stubs = {**state["stubs"], "members": members}
    found = [nodes, zookeeper, files, state["metadata_version"], state["log"]["state"], stubs]
    return json.loads(json.dumps(found))


def is_clean_up(call: dict[str, Any]) -> bool:
    """Return whether a call is a listed clean-up."""
    return any(
        clean_up.module == call["module"]
        and clean_up.does in (None, call["does"])
        and (not clean_up.task or call["task"].endswith(clean_up.task))
        for clean_up in CLEAN_UPS
    )


def is_tolerated(call: dict[str, Any]) -> bool:
    """Return whether the run may go on although this call failed."""
    return any(task.module == call["module"] and call["task"].endswith(task.task) for task in TOLERATED)


def violations(world: World, recorded: Clean, kinds: dict[boundary.Key, str], code: int | None, name: str) -> list[str]:
    """Return what is wrong after a run that failed: its exit code, what it still began, what it said, what it left."""
    found = []
    calls = boundary.read_calls(world, name)
    hit = next((index for index, call in enumerate(calls) if call.get("injected")), None)
    if hit is None:
        return ["the failure was not reached"]
    faults = set(kinds.values())
    injected = [call for call in calls if call.get("injected")]
    text = output(world, name)
    if code == 0 and all(map(is_tolerated, injected)):
        elsewhere = "a tolerated failure: the run leads elsewhere than without it"
        return [*([] if recorded.final in (None, final(world)) else [elsewhere]), *_unnamed_archives(world, text)]
    if code is None:
        found.append("the run did not end in its time")
    if code == 0:
        found.append("exit code 0")
    if faults <= set(boundary.LOSES) and all(map(is_tolerated, injected)):
        # the run goes on to the next call that needs the host
        lost = (index for index, call in enumerate(calls) if index > hit and call.get("result") == "unreachable")
        hit = next(lost, hit)
    # Ansible starts one task on all hosts of a batch at once, or as forks allow: those are begun already
    same = {(call["play"], call["uuid"]) for call in injected}
    collects = all(call["task"].endswith(OF_ONE_VOTER) for call in injected)
    for call in calls[hit:]:
        if collects and signature(call) == SNAPSHOT:
            continue
        if call["at"] != "end" or call.get("injected") or call["check"] or (call["play"], call["uuid"]) in same:
            continue
        if (
            (call["mutated"] or signature(call) in recorded.changing)
            and not is_clean_up(call)
            and call["result"] != "unreachable"
        ):
            began = f"{call['module']} {call['does'] or ''}".strip()
            refused = str(call["result"]).startswith("failed")
            found.append(
                f"{began} ran on {call['target']} after the failure ({call['task']}{': it refused' if refused else ''})"
            )
    if faults <= {FAILED, CRASHED, UNREACHABLE, UNREACHABLE_AFTER}:
        found += _message(text, [*injected, calls[hit]])
        found += _unnamed_archives(world, text)
    found += _left(world, recorded, calls, faults, injected)
    return list(dict.fromkeys(found))


def _unnamed_archives(world: World, text: str) -> list[str]:
    """Return the archives, with secrets in clear text, that a run left on hosts without naming their directories."""
    directories = (world.state_dir(host) / CLUSTER / name for host in HOSTS for name in ARCHIVES)
    return [
        f"{path} is left, and the run does not say so"
        for path in directories
        if path.exists() and str(path) not in text
    ]


def _message(text: str, injected: list[dict[str, Any]]) -> list[str]:
    """Return why what was printed does not name the host and the cause."""
    host = injected[0]["target"]
    # where the failure is tolerated, Ansible's message of a module that printed no JSON is what is left of it
    words = ("injected", NO_JSON) if injected[0].get("injected") == CRASHED else ("injected",)
    lines = [line for line in text.splitlines() if any(word in line for word in words)]
    if not lines:
        return ["the message does not name the cause"]
    found = [] if any(host in line for line in lines) else [f"the message does not name the host {host}"]
    blamed = {name for words in _ENDED_ON.findall(text) for name in words.split(", ")}
    if blamed and not blamed & {call[where] for call in injected for where in ("target", "host")}:
        found.append(f"the message blames {', '.join(sorted(blamed))} instead of {host}")
    failed = _FAILED.findall(text)
    if failed and not _ENDS_WITH_ID.search(failed[-1]):
        found.append(f"the last message ends with no id: {failed[-1][-200:]}")
    return found


_FAILED = re.compile(r'^fatal: .*?FAILED! => .*?"msg": "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_ENDS_WITH_ID = re.compile(r"\(QS-[A-Z]+-\d{3}(?: QS-[A-Z]+-\d{3})*\)$")


NO_JSON = "Module result deserialization failed"
_ENDED_ON = re.compile(r'The run ended at \\?"[^"]+" on ([\w, ]+): ')


def journal(world: World, run: str) -> list[dict[str, Any]]:
    """Return the journal of a run on the control node."""
    path = world.root / "artifacts" / CLUSTER / run / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def locks(world: World) -> dict[str, dict[str, Any]]:
    """Return each host's run lock."""
    found = {}
    for host in IDS:
        path = world.node_dir(host) / "run_lock.json"
        if path.exists():
            found[host] = json.loads(path.read_text())
    return found


def run_of(world: World) -> str | None:
    """Return the newest run with a journal."""
    paths = (world.root / "artifacts" / CLUSTER).glob("*/journal.jsonl")
    runs = sorted((path.stat().st_mtime, path.parent.name) for path in paths)
    return runs[-1][1] if runs else None


def taken(calls: list[dict[str, Any]]) -> set[str]:
    """Return the hosts on which the run took the run lock."""
    return {call["target"] for call in calls if call["at"] == "end" and signature(call) == LOCKED and call["mutated"]}


def was_done(calls: list[dict[str, Any]]) -> bool:
    """Return whether the first failure was in the last task of a run, which closes the locks. What the run was to do is
    done then, and a lock that is closed on one host is closed for the cluster. So the run ended well, with an exit code
    that is not 0 and a message about that host. A host that is lost where the run asks nothing of it but to remove what
    it no longer needs (REMOVALS) fails the task that needs it next."""
    ended = [call for call in calls if call["at"] == "end"]
    first = next((index for index, call in enumerate(ended) if call.get("injected")), None)
    if first is None:
        return False
    failed = ended[first]
    if failed["injected"] in boundary.LOSES and failed["task"].endswith(REMOVALS):
        later = (call for call in ended[first + 1 :] if call["target"] == failed["target"])
        failed = next((call for call in later if not call["task"].endswith(REMOVALS)), failed)
        if failed["host"] != failed["target"]:  # the rescue closes the locks of the others from one host
            return False
    return signature(failed) == CLOSED and failed["task"].endswith("Close the run lock")


def _left(world: World, recorded: Clean, calls: list[dict], faults: set[str], injected: list[dict]) -> list[str]:
    """Return where journal and locks do not say how the run ended."""
    found: list[str] = []
    if was_done(calls):
        return [] if recorded.final in (None, final(world)) else ["the run closes its locks before its work is done"]
    unclosed = {call["target"] for call in injected if signature(call) == CLOSED}
    ends_itself = faults <= {FAILED, CRASHED, UNREACHABLE, UNREACHABLE_AFTER}
    held = taken(calls)
    run = run_of(world)
    events = journal(world, run) if run else []
    if any(event["name"] == "ended" and event.get("result") == "ok" for event in events):
        found.append("the journal says that the run ended ok")
    if ends_itself and events and not any(event["name"] == "failed" for event in events):
        found.append("the journal does not say that the run failed")
    lost = {call["target"] for call in injected if call["injected"] in (UNREACHABLE, UNREACHABLE_AFTER)}
    journaled = {
        event["host"]
        for event in events
        if event["name"] == "failed" and event.get("reason") == run_outcome.explain_lost()
    }
    if journaled - lost:
        found.append(f"the journal says of {', '.join(sorted(journaled - lost))} that it was lost")
    for host, lock in sorted(locks(world).items()):
        if host not in held or lock.get("run") != run:
            continue
        if run_lock.has_ended_well(lock):
            found.append(f"the run lock of {host} says that the run ended well")
        elif ends_itself and not lock["closed"] and host not in lost | unclosed:
            found.append(f"the run lock of {host} is left open")
        elif lock["closed"] and not ends_itself:
            found.append(f"the run lock of {host} is closed, though the run was killed")
    return found


_COMMAND = re.compile(r"^ {8}ansible-playbook .*?(playbooks/[a-z_]+\.yml)(.*)$", re.MULTILINE)
_ADVISED = re.compile(
    r"^fatal: .*Run quorumshift\.kafka\.(?!status\b)([a-z_]+)(?: with((?: -e \w+=[^\s:]+)+)|:)", re.MULTILINE
)


def printed(text: str) -> Printed | None:
    """Return the command that `status` printed, None without one."""
    command = _COMMAND.search(text)
    return Printed(Path(command[1]).stem, _given(command[2])) if command else None


def advised(text: str) -> Printed | None:
    """Return the other playbook that a run which failed names with its variables, None where it names none."""
    command = _ADVISED.search(text)
    return Printed(command[1], _given(command[2] or "")) if command else None


def _given(options: str) -> dict[str, str]:
    words = shlex.split(options)
    given = [value for option, value in itertools.pairwise(words) if option == "-e"]
    return {variable.partition("=")[0]: variable.partition("=")[2] for variable in given}


def status_violations(
    world: World, code: int | None, name: str, taken: bool, done: bool = False
) -> tuple[list[str], Printed | None]:
    """Return what is wrong with what `status` shows after the run, and the command that it names next. `taken`:
    whether the run took the run lock; `done`: whether its work was done (was_done)."""
    text, found = output(world, name), []
    if code != 0:
        found.append(f"status ended with exit code {code}")
    if "ended well" in text and not done:
        found.append("status says that the run ended well")
    if taken and not any(words in text for words in ("ended at", "locked by", "ended well")):
        found.append("status does not say how the run ended")
    command = _COMMAND.search(text)
    if command and not (ROOT / command[1]).exists():
        found.append(f"status names {command[1]}, which does not exist")
    return found, printed(text)
