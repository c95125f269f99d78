# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quorum of controllers as the playbook `quorum` shows it. Pure."""

from __future__ import annotations

import shlex
from typing import Any, List, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import quorum as core_quorum
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status.feature_screen import render_table
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.advice import format_names


def render(found: Mapping[str, Any]) -> List[str]:
    """Return the quorum as lines: its leader, a row for each voter and observer, how files name it, what stands out.
    `found`: the result of kafka_quorum."""
    level = found["kraft_version"]
    kind = "dynamic" if found["dynamic"] else "static"
    head = (
        f"Quorum of cluster {found['cluster_id'] or '?'}: {kind}, kraft.version {level['finalized']} "
        f"(supported by every node: {level['lowest']} to {level['highest']}), leader {found['leader_id']}, epoch "
        f"{found['leader_epoch']}, high watermark {found['high_watermark']}"
    )
    rows = [["replica", "id", "host", "directory", "endpoint", "lag", "caught up", "last fetch", "file"]]
    for what in ("voters", "observers"):
        for each in found[what]:
            leads = " (leader)" if what == "voters" and each["id"] == found["leader_id"] else ""
            rows.append(
                [
                    f"{what[:-1]}{leads}",
                    str(each["id"]),
                    each["host"] or "-",
                    each["directory_id"] or "-",
                    each["endpoint"] or "-",
                    "?" if each["lag"] is None else str(each["lag"]),
                    _ago(each["caught_up_s"]),
                    _ago(each["fetched_s"]),
                    found["configuration"].get(each["host"], "-"),
                ]
            )
    lines = [head, *render_table(rows)]
    for how in (core_quorum.STATIC, core_quorum.DYNAMIC, core_quorum.UNKNOWN):
        hosts = sorted(host for host, seen in found["configuration"].items() if seen == how)
        if hosts:
            lines.append(f"  files: {how} on {format_names(hosts)}")
    lines += [f"  ! {ghost['what']} {ghost['id']} {ghost['why']}. To go on, {ghost['do']}" for ghost in found["ghosts"]]
    if found["registrations_unknown"]:
        lines.append("  ! no metadata log could be read, so it is unknown who is registered and gone")
    lines += [f"  ! {text}" for text in found["silent"]]
    if found["repair"]:
        lines.append(
            f"  ! kraft.version is {level['finalized']}, so the quorum is dynamic, and the files of "
            f"{format_names(found['repair'])} have {core_quorum.VOTERS} (KAFKA-21426). Repair it: "
            f"{core_quorum.PLAYBOOK} -e quorum_to=dynamic -e quorum_apply=true"
        )
    return lines


def render_change(found: Mapping[str, Any], given: Mapping[str, str], applies: bool) -> List[str]:
    """Return what would change as lines, and what makes it unless this run does. `given`: the variables that asked for
    it."""
    change = found["change"]
    if not change:
        return ["nothing would change"]
    lines = [f"{text}" for text in change]
    asked = " ".join(f"-e {shlex.quote(f'{name}={value}')}" for name, value in sorted(given.items()) if value)
    accept = f" -e {shlex.quote('quorum_confirm=' + found['token'])}" if found["token"] else ""
    if found["token"]:
        lines.append("this needs the token, since nothing takes it back by itself")
    return lines if applies else [*lines, f"To make it: {core_quorum.PLAYBOOK} {asked} -e quorum_apply=true{accept}"]


def _ago(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds:.1f} s ago"
