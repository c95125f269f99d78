# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run leaves to job templates as set_stats does: AWX shows it as artifacts of the job. And the next command.

AWX hands artifacts to the next jobs of a workflow, as extra variables. So their names are ones that no playbook uses,
and their texts, which may quote the cluster, hold nothing that Jinja would evaluate there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import Any, Mapping

from ansible import context
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import process_identity

VERSION = 1
STATE, FAILURE = "quorumshift_job", "quorumshift_job_failure"
"""Names of the artifacts: the state at the last reading of the run, and how the run failed."""
_NEXT = ("text", "playbook", "target")

# Options of ansible-playbook that the printed command repeats, by the name that Ansible gives them
REPEATED = {"inventory": "-i", "vault_ids": "--vault-id", "vault_password_files": "--vault-password-file"}


def of_state(result: Mapping[str, Any], run: str | None) -> dict[str, Any]:
    """Return `ansible_stats` of a result of migration_state: phase, what is next with its command, blocks, token."""
    following = result["next"]
    state = {
        "version": VERSION,
        "run": run,
        "playbook": process_identity.playbook_name(),
        "cluster_id": result["cluster_id"],
        "phase": result["phase"],
        "next": {**{name: following.get(name) for name in _NEXT}, "command": command(following, result["token"])},
        "blocks": result["blocks"],
        "token": result["token"],
    }
    return stats(STATE, state)


def stats(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the key `ansible_stats` of a result holds, for one artifact of the job."""
    return {"data": {name: _inert(dict(value))}, "per_host": False, "aggregate": False}


def _inert(value: Any) -> Any:
    """Return a value without secrets, and without what begins a template."""
    if isinstance(value, Mapping):
        return {str(key): _inert(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_inert(entry) for entry in value]
    if isinstance(value, str):
        return re.sub(r"\{(?=[{%#])", "{ ", mask(str(value)))
    return value if isinstance(value, (int, float, bool)) or value is None else _inert(str(value))


def command(following: Mapping[str, Any], token: str | None) -> str | None:
    """Return what the operator types next, as they typed this: the same inventory, from the same directory. In a job of
    AWX, which template to launch."""
    if not following["playbook"]:
        return None
    variables = dict(following["given"])
    if following["token"]:
        variables["quorumshift_finalize_token"] = token or "TOKEN"
    if following["playbook"] == "rollback":
        variables["quorumshift_rollback_to"] = following["target"]
    given = [part for name, value in variables.items() for part in ("-e", _assigned(name, value))]
    if os.environ.get("JOB_ID") or os.environ.get("AWX_JOB_ID"):
        named = ", ".join(given[1::2])
        extra = f" with the extra variable{'s' if len(variables) > 1 else ''} {named}" if given else ""
        return f"launch the job template of the playbook {following['playbook']}{extra}"
    typed = (context.CLIARGS.get("args") or ("",))[0]
    playbook = re.sub(r"[a-z_]+(\.ya?ml)?$", lambda match: following["playbook"] + (match.group(1) or ""), typed)
    repeated = [
        part
        for option, flag in REPEATED.items()
        for value in context.CLIARGS.get(option) or ()
        for part in (flag, shortest(value))
    ]
    files = [
        part for value in context.CLIARGS.get("extra_vars") or () if value.startswith("@") for part in ("-e", value)
    ]
    return shlex.join(["ansible-playbook", *repeated, playbook, *files, *given])


def _assigned(name: str, value: str) -> str:
    """Return a variable as -e takes it. Ansible splits NAME=VALUE at blanks and takes quotes off, but not as a shell
    does (ansible.parsing.splitter): with quotes, backslashes or braces in the value, it is JSON."""
    if re.search(r"""['"\\{}%]""", value):
        return json.dumps({name: value})
    return f"{name}={value}" if value and not re.search(r"\s", value) else f"{name}='{value}'"


def shortest(path: str) -> str:
    """Return a path as it is shortest from here."""
    return min(path, os.path.relpath(path), key=len) if os.path.exists(path) else path
