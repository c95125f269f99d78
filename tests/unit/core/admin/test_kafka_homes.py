# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of installation against every way to upgrade it: what is refused, and that no command moves a directory
that has more than Kafka. Links, processes and packages themselves: tests/unit/test_upgrade_restarts.py."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import kafka_homes

OLD, NEW = "7.8.0-ccs", "7.9.2-ccs"
HOOKS = {"none": None, "broken": {"path": "/h", "runs": False}, "set": {"path": "/h", "runs": True}}
HOLDS = {"/etc/kafka/server.properties": "the properties file"}


def found(path="/usr", link=False, package=None, shared=False, holds=None, in_place=False, hook=None):
    home = {"path": path, "is_link": link, "target": "x" if link else None, "real": path, "version": OLD}
    home.update(package=package, shared=shared, holds=holds or {})
    to = {"path": path if in_place else "/opt/new", "exists": True, "version": NEW, "starts": True}
    return {"home": home, "to": to, "running": None, "hook": hook, "active": True, "java": 17}


CASES = list(itertools.product(*[[False, True]] * 5, HOOKS))


@pytest.mark.parametrize(("link", "package", "shared", "holds", "in_place", "hook"), CASES)
def test_only_a_directory_of_kafka_alone_is_ever_moved(link, package, shared, holds, in_place, hook):
    given = found("/usr", link, "confluent-kafka" if package else None, shared, HOLDS if holds else {}, in_place)
    reasons = kafka_homes.refusals("b1", OLD, {**given, "hook": HOOKS[hook]}, NEW, must=True)
    moves = not (link or package or shared or holds or in_place)
    assert any("mv " in reason for reason in reasons) == moves
    allowed = (link and not in_place and not holds) or (in_place and not link and hook == "set")
    assert (reasons == []) == allowed, reasons
    if package and not link and not (in_place and hook != "none"):
        assert "is of the package confluent-kafka" in reasons[0] and "Set quorumshift_restart_hook" in reasons[0]


def test_a_host_without_a_node_needs_nothing_where_there_is_no_link():
    assert kafka_homes.refusals("c1", None, found(package="confluent-kafka"), NEW, must=False) == []


def test_a_path_in_a_command_is_quoted():
    (reason,) = kafka_homes.refusals("b1", OLD, found("/opt/my kafka"), NEW, must=True)
    assert f"mv -T '/opt/my kafka' '/opt/my kafka-{OLD}' && ln -sT '/opt/my kafka-{OLD}' '/opt/my kafka'" in reason
