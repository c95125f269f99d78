# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsal's host: what is built is removed, and what another made stays."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.rehearsal import host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import rehearsal_host, service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import rehearsal_host as probe

from tests import modules
from tests.unit.core.rehearsal.test_host import WANTED


@pytest.fixture
def bed(tmp_path, monkeypatch):
    """A host whose units are below tmp_path, and on which systemd does what it is asked."""
    units = tmp_path / "units"
    units.mkdir()
    monkeypatch.setattr(core, "UNIT_DIR", str(units))
    monkeypatch.setattr(rehearsal_host, "_systemctl", lambda *_arguments, **_options: None)
    monkeypatch.setattr(service, "is_running", lambda _unit: False)
    return WANTED._replace(directory=str(tmp_path / "lib" / "rehearsal"), user=getpass.getuser())


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_what_is_built_is_removed_and_nothing_else(bed, tmp_path):
    (tmp_path / "units" / "kafka.service").write_text("[Service]\nExecStart=/opt/kafka/bin/kafka-server-start.sh x\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "other").write_text("stays")
    before = files(tmp_path)
    created = rehearsal_host.build(bed)
    assert created[0] == bed.directory and len(created) == 4
    assert probe.read_directory(bed.directory)["mark"]["cluster_id"] == bed.cluster_id
    assert os.stat(f"{bed.directory}/broker.properties").st_mode & 0o007 == 0
    # as Kafka, a rollback and the tool leave it
    os.makedirs(f"{bed.directory}/data/orders-0")
    os.makedirs(f"{bed.directory}/state/broker/x")
    drop_in = tmp_path / "units" / f"{core.unit(core.CONTROLLER)}.d"
    drop_in.mkdir()
    (drop_in / service.MASK_DROP_IN).write_text("[Unit]\n")
    removed = rehearsal_host.remove(bed.directory, 1)
    assert len(removed) == 4 and files(tmp_path) == before
    assert rehearsal_host.remove(bed.directory, 1) == []


def test_a_link_in_the_directory_is_not_followed(bed, tmp_path):
    rehearsal_host.build(bed)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("stays")
    os.symlink(tmp_path / "precious", f"{bed.directory}/link")
    os.symlink(tmp_path / "precious", f"{bed.directory}/data/link")
    rehearsal_host.remove(bed.directory, 1)
    assert (tmp_path / "precious" / "file").read_text() == "stays"


def test_units_of_a_rehearsal_in_another_directory_stay(bed, tmp_path):
    rehearsal_host.build(bed)
    other = f"{bed.directory}-2"
    os.makedirs(other)
    (tmp_path / "lib" / "rehearsal-2" / core.MARK_FILE).write_text(core.mark(bed))
    assert rehearsal_host.remove(other, 1) == [other]
    assert len(list((tmp_path / "units").iterdir())) == 3 and os.path.exists(bed.directory)


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_a_directory_without_the_mark_is_not_removed(tmp_path, content):
    precious = tmp_path / "lib" / "kafka"
    precious.mkdir(parents=True)
    (precious / "data").write_text("stays")
    if content is not None:
        (precious / core.MARK_FILE).write_text(content)
    result = modules.run("rehearsal_host", state="absent", directory=str(precious), bootstrap_servers="b1:9092")
    assert (
        result["failed"]
        and "no rehearsal made it, and it stays" in result["msg"]
        and "QS-REHEARSE-001" in result["msg"]
    )
    assert (precious / "data").read_text() == "stays"


def test_the_rehearsal_of_another_cluster_is_not_removed(bed):
    """Two clusters may name the same hosts: the one that only reads them must not end the other's rehearsal."""
    rehearsal_host.build(bed)
    before = files(Path(bed.directory))
    given = {"state": "absent", "directory": bed.directory}
    result = modules.run("rehearsal_host", bootstrap_servers="x1:9092", **given)
    assert result["failed"] and "at b1:9092,b2:9092, and quorumshift_bootstrap_servers is x1:9092" in result["msg"]
    assert "-e quorumshift_bootstrap_servers=b1:9092,b2:9092" in result["msg"]
    assert result["msg"].endswith("Nothing was changed on this host. (QS-REHEARSE-001)")
    assert files(Path(bed.directory)) == before
    assert modules.run("rehearsal_host", bootstrap_servers="b1:9092,b2:9092", **given)["removed"] == [bed.directory]


def test_a_link_to_a_rehearsal_is_none(bed, tmp_path):
    rehearsal_host.build(bed)
    os.symlink(bed.directory, tmp_path / "link")
    assert probe.read_directory(str(tmp_path / "link")) == {"directory": "other", "mark": None}


def test_the_unit_names_a_script_that_exists(bed, tmp_path):
    for ending in ("", ".sh"):  # Confluent's packages, then Apache's
        (tmp_path / "bin").mkdir(exist_ok=True)
        for name in ("kafka-server-start", "zookeeper-server-start"):
            (tmp_path / "bin" / f"{name}{ending}").touch(0o755)
        found = bed._replace(kafka_home=str(tmp_path), ending=probe.find_ending(str(tmp_path)))
        assert probe.read(found, [])["starts"] == {"zookeeper": True, "broker": True}
        scripts = [text.split("ExecStart=")[1].split()[0] for text in core.units(found).values()]
        assert all(map(os.path.exists, scripts)) and all(path.endswith(f"-start{ending}") for path in scripts)


def test_data_of_other_nodes_are_found(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=0\n")
    (tmp_path / "zk" / "version-2").mkdir(parents=True)
    (tmp_path / "state" / "cluster" / "broker-1").mkdir(parents=True)
    (tmp_path / "server.properties").write_text(f"broker.id=1\nlog.dirs={tmp_path}/none,{tmp_path}/data\n")
    (tmp_path / "zoo.cfg").write_text(f"dataDir={tmp_path}/zk\nclientPort=2181\n")
    (tmp_path / "empty.properties").write_text(f"broker.id=1\nlog.dirs={tmp_path}/none\n")
    for name, held in (
        ("server.properties", "data"),
        ("zoo.cfg", "zk"),
        ("data", "data"),
        ("state", "state/cluster/broker-1"),
    ):
        assert probe._find_data(str(tmp_path / name)) == [str(tmp_path / held)], name
    for name in ("empty.properties", "none", "cluster"):
        assert probe._find_data(str(tmp_path / name)) == []


def test_the_address_of_this_host_is_its_own():
    assert probe._is_own("127.0.0.1") and not probe._is_own("192.0.2.77") and not probe._is_own("no.such.host.invalid")


def test_limits_of_this_host_are_read():
    assert probe._most_files() > 1000 and probe._number("/proc/sys/vm/max_map_count") > 1000
