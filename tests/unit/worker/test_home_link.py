# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The link from which a service starts Kafka, on real files."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import home_link, restart_record

STATE = {"active": True, "main_pid": 0}


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """A link to Kafka 3.7.2, with 3.9.2 beside it."""
    monkeypatch.setattr(service, "read_state", lambda _name: STATE)
    for version in ("3.7.2", "3.9.2"):
        for path in (f"kafka-{version}/libs/kafka_2.13-{version}.jar", f"kafka-{version}/bin/kafka-server-start.sh"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
    (tmp_path / "kafka").symlink_to("kafka-3.7.2")
    return tmp_path


def test_the_link_is_read_and_switched(homes):
    link, new = str(homes / "kafka"), str(homes / "kafka-3.9.2")
    found = home_link.read(link, new, "kafka")
    shown = {"path": link, "is_link": True, "package": None, "shared": False, "holds": {}}
    assert found["home"] == {**shown, "target": "kafka-3.7.2", "real": str(homes / "kafka-3.7.2"), "version": "3.7.2"}
    assert found["running"] is None and found["hook"] is None
    assert found["to"] == {"path": new, "exists": True, "version": "3.9.2", "starts": True}
    (homes / "kafka.quorumshift").symlink_to("left")  # by a worker that was killed
    home_link.switch(link, new)
    switched = home_link.read(link, new, "kafka")["home"]
    assert switched == {**shown, "target": new, "real": new, "version": "3.9.2"}
    assert sorted(os.listdir(homes)) == ["kafka", "kafka-3.7.2", "kafka-3.9.2"]


def test_a_directory_is_not_switched(homes):
    directory = str(homes / "kafka-3.7.2")
    assert home_link.read(directory, str(homes / "none"), "kafka")["home"]["is_link"] is False
    with pytest.raises(restart_record.RestartError, match="is no link"):
        home_link.switch(directory, str(homes / "kafka-3.9.2"))
    assert os.path.isdir(directory) and not os.path.islink(directory)


def test_a_slash_at_the_end_of_a_link_makes_no_directory_of_it(homes):
    link, new = str(homes / "kafka"), str(homes / "kafka-3.9.2")
    assert home_link.read(f"{link}/", new, "kafka") == home_link.read(link, new, "kafka")
    home_link.switch(f"{link}/", new)
    assert home_link.read_target(f"{link}/") == new


@pytest.mark.parametrize(
    ("links", "to", "leads"),
    [
        ({}, "kafka-3.9.2", False),
        ({"new": "kafka-3.9.2"}, "new", False),
        ({"new": "kafka"}, "new", True),
        ({"new": "../{name}/kafka"}, "new", True),
        ({"new": "{home}"}, "new", True),
        ({"newest": "new", "new": "kafka"}, "newest", True),
        ({"there": "."}, "there/kafka", True),
        ({"round": "about", "about": "round"}, "round", False),
        ({}, "kafka.old", False),
    ],
)
def test_a_link_never_leads_to_itself(homes, links, to, leads):
    """With the link ahead at the new release, each of these has the release that is asked for."""
    link = homes / "kafka"
    home_link.switch(str(link), str(homes / "kafka-3.9.2"))
    for name, target in links.items():
        (homes / name).symlink_to(target.format(home=link, name=homes.name))
    release = {"home": str(link), "to": f"{homes}/{to}", "version": "3.9.2"}
    assert home_link.leads_through(release["to"], release["home"]) is leads
    if leads:
        with pytest.raises(restart_record.RestartError, match="would then lead to itself"):
            home_link.read_earlier(release, "kafka")


def test_a_service_that_runs_another_release_is_named(monkeypatch):
    monkeypatch.setattr(home_link, "read_running_version", lambda _name: "3.7.2")
    home_link.require("kafka", "/opt/kafka", "3.7.2")
    with pytest.raises(restart_record.RestartError, match=r"runs Kafka 3\.7\.2, though /opt/kafka leads to 3\.9\.2"):
        home_link.require("kafka", "/opt/kafka", "3.9.2")
