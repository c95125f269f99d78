# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a controller's host lacks before its controller starts for the first time, and why it may not be prepared. Pure,
over what host/controller_host.py read.

What is missing is created. What exists is kept if the controller can use it, and is refused otherwise: it has another
purpose, which only its owner knows.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking

MARK = "# Written by quorumshift.kafka.prepare_controllers."
UNIT_DIR = "/etc/systemd/system"
MISSING, DIRECTORY, FILE, OTHER = "missing", "directory", "file", "other"
_STORE = re.compile(r"\.(keystore|truststore)\.location$")
_JAAS = re.compile(r"-Djava\.security\.auth\.login\.config==?([^\s\"']+)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*\$?")  # of a user or group (useradd(8))
_UNIT = re.compile(r"[\w.@:-]+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


class Wanted(NamedTuple):
    """What the controller needs. `start`: the script that starts Kafka; `files`: that settings name; `group`: the
    primary group of the user."""

    user: str
    group: str
    start: str
    service: str
    config_file: str
    log_file: str
    log_dir: str
    environment: Mapping[str, str]
    files: List[str]

    @property
    def unit(self) -> str:
        """The name of the service's unit."""
        return systemd.unit_name(self.service)

    @property
    def directories(self) -> Dict[str, str]:
        """What the user has to be allowed in each directory, as of test(1): to read, or to write."""
        read = {os.path.dirname(self.config_file): "r"}
        return {**read, os.path.dirname(self.log_file): "w", self.log_dir: "w"}


class Plan(NamedTuple):
    """`refusals`: why nothing may be done, as sentences. Else what is to be created: the group, the user, directories;
    `unit`: the text of the unit's file, None to leave it; `earlier`: its text before; `enable`: whether the unit is to
    be enabled."""

    refusals: List[str]
    group: bool = False
    user: bool = False
    directories: Sequence[str] = ()
    unit: str | None = None
    earlier: str = ""
    enable: bool = False

    @property
    def changes(self) -> bool:
        return bool(self.group or self.user or self.directories or self.unit is not None or self.enable)

    def created(self, wanted: Wanted) -> List[str]:
        """Return what is created, for people."""
        return [
            *([f"group {wanted.group}"] if self.group else []),
            *([f"user {wanted.user}"] if self.user else []),
            *(f"directory {path}" for path in self.directories),
            *([f"unit {wanted.unit}"] if self.unit is not None else []),
            *([f"start of {wanted.unit} at boot"] if self.enable else []),
        ]


def named_files(settings: Mapping[str, Any], environment: Mapping[str, Any]) -> List[str]:
    """Return the files that have to be there: stores of the controllers' settings, and the JAAS file of the JVM."""
    stores = [str(value) for key, value in settings.items() if _STORE.search(key)]
    return sorted({*stores, *(path for value in environment.values() for path in _JAAS.findall(str(value)))})


def plan(wanted: Wanted, found: Mapping[str, Any]) -> Plan:
    """Return what to do on a host. `found`: of host/controller_host.py:read."""
    refusals = [*_unfit(wanted)] or [*_kafka(wanted, found), *_account(wanted, found), *_paths(wanted, found)]
    refusals = refusals or [*_unit(wanted, found)]
    if refusals:
        return Plan(refusals)
    unit, text = found["unit"], unit_text(wanted)
    is_own = not unit["exists"] or unit["text"] is not None
    return Plan(
        [],
        group=found["gid"] is None,
        user=found["user"] is None,
        directories=[path for path in wanted.directories if found["paths"][path]["kind"] == MISSING],
        unit=text if is_own and unit["text"] != text else None,
        earlier=unit["text"] or "",
        enable=not unit["enabled"],
    )


def _unfit(wanted: Wanted) -> Iterator[str]:
    """Yield values that a unit's file cannot hold as they are."""
    for what, value, form in (
        ("quorumshift_kafka_user", wanted.user, _NAME),
        ("controller_hosts_group", wanted.group, _NAME),
        ("quorumshift_controller_service", wanted.service, _UNIT),
        *(("controller_hosts_environment", name, _VARIABLE) for name in wanted.environment),
    ):
        if not form.fullmatch(value):
            yield f"{what}: {value!r} cannot be used in a unit of systemd. Write a plain name"
    paths = [wanted.start, wanted.config_file, *wanted.directories]
    for path in dict.fromkeys(paths):
        if path and (not path.startswith("/") or re.search(r"[\s\"'\\%$;]", path)):
            yield f"{path!r} cannot be used in a unit of systemd. Use an absolute path without blanks and quotes"
    for name, value in wanted.environment.items():
        if "\n" in value:
            yield f"controller_hosts_environment: {name} has more than one line. Write it in one"
        elif masking.mask(f"{name}={value}") != f"{name}={value}":
            yield (
                f"controller_hosts_environment: {name} holds a secret, which every user of the host could read in the "
                "unit. Put it into a file that only the service reads, such as one of EnvironmentFile= in a drop-in: "
                f"systemctl edit {shlex.quote(wanted.unit)}"
            )


def _kafka(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    if found["no_systemd"]:
        yield f"this host cannot be prepared by systemd: {found['no_systemd']}. Write the service yourself"
    if not found["has_start"]:
        yield (
            f"{wanted.start} does not exist. Install Kafka, in the brokers' release, or correct quorumshift_kafka_home"
        )


def _account(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    user = found["user"]
    if user and found["gid"] != user["gid"]:
        yield (
            f"the user {wanted.user} exists with the primary group {user['group']}, not {wanted.group}. Set "
            f"controller_hosts_group: {user['group']}, or quorumshift_kafka_user to another user"
        )


def _paths(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    for path, right in wanted.directories.items():
        there = found["paths"][path]
        word = "write to" if right == "w" else "read"
        if there["kind"] in (FILE, OTHER):
            yield f"{path} is no directory. Move it, or set another path"
        elif there["kind"] == DIRECTORY and not there["may"]:
            yield (
                f"{wanted.user} may not {word} the directory {path}, which belongs to {there['owner']}. If the "
                f"controller is to have it: chown {shlex.quote(f'{wanted.user}:{wanted.group}')} {shlex.quote(path)}. "
                "Otherwise set another path"
            )
    for path in wanted.files:
        there = found["paths"][path]
        if there["kind"] != FILE:
            yield f"{path}, which a setting names, is no file on this host. Put it there, or correct the setting"
        elif not there["may"] and found["user"]:
            quoted = shlex.quote(path)
            yield f"{wanted.user} may not read {path}. chgrp {wanted.group} {quoted} && chmod g+r {quoted}"


def _unit(wanted: Wanted, found: Mapping[str, Any]) -> Iterator[str]:
    unit = found["unit"]
    show = f"systemctl cat {shlex.quote(wanted.unit)}"
    if not unit["exists"]:
        return
    if unit["text"] is None:  # of a package, or of the operator
        if unit["starts_with"] != wanted.config_file or unit["user"] not in (wanted.user, _number(found)):
            yield (
                f"the unit {wanted.unit} exists, and starts {unit['starts_with'] or 'no properties file that it names'}"
                f" as {unit['user'] or 'root'}, not {wanted.config_file} as {wanted.user}. Correct it ({show}), or set "
                "another quorumshift_controller_service"
            )
    elif unit["text"] != unit_text(wanted) and unit["active"]:
        yield (
            f"{wanted.unit} runs, and its unit would change. Put the change into a drop-in (systemctl edit "
            f"{shlex.quote(wanted.unit)}), then run quorumshift.kafka.restart"
        )


def _number(found: Mapping[str, Any]) -> str:
    return str(found["user"]["uid"]) if found["user"] else ""


def unit_text(wanted: Wanted) -> str:
    """Return the text of the unit's file (systemd.service(5), systemd.exec(5))."""
    environment = {"LOG_DIR": os.path.dirname(wanted.log_file), **wanted.environment}
    assignments = [f'Environment="{name}={systemd.quote(value)}"' for name, value in sorted(environment.items())]
    return "\n".join(
        [
            f"{MARK} Put your own settings into a drop-in: systemctl edit {wanted.unit}",
            "[Unit]",
            "Description=Apache Kafka controller",
            "Documentation=https://kafka.apache.org/documentation/#kraft",
            "After=network-online.target",
            "Wants=network-online.target",
            "",
            "[Service]",
            f"User={wanted.user}",
            f"Group={wanted.group}",
            *assignments,
            f"ExecStart={wanted.start} {wanted.config_file}",
            "# 143: the JVM's own exit code after SIGTERM",
            "SuccessExitStatus=143",
            "TimeoutStopSec=180",
            "LimitNOFILE=100000",
            "# A controller that crashed is looked at before it starts again",
            "Restart=no",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )
