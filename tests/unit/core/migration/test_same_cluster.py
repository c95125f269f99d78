# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of another cluster are found, in recorded facts and on a host's own disks."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase, same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import config_values
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import host_identity

from tests.unit.core import recorded

OTHER = "AnotherClusterId_-22cQ"


@pytest.mark.parametrize("name", recorded.NAMES)
def test_recorded_clusters_are_one_cluster(name):
    facts = recorded.facts(name)
    assert same_cluster.refusal(facts, phase.cluster_id(facts)) is None


def mixed(source):
    facts = recorded.facts("hybrid")
    if source == "zookeeper":
        facts["zookeeper"]["cluster_id"]["value"] = OTHER
    elif source == "bootstrap":
        facts["topics"]["cluster_id"] = OTHER
    else:
        facts["nodes"][source]["log_dirs"][-1]["meta"]["cluster.id"] = OTHER
    return facts


@pytest.mark.parametrize("source", ["zookeeper", "bootstrap", "b2", "c1"])
def test_a_source_of_another_cluster_is_named_and_closes_every_gate(source):
    own = phase.cluster_id(recorded.facts("hybrid"))
    facts = mixed(source)
    refused = same_cluster.refusal(facts, own)
    where = {"zookeeper": "/cluster/id in ZooKeeper at", "bootstrap": "quorumshift_bootstrap_servers"}
    assert f"{OTHER} in {where.get(source, source + ': ')}" in refused and f"this run is of {own}" in refused
    assert refused.endswith(same_cluster.CORRECT)
    detected = phase.detect(facts)
    assert next(block.id for block in detected.blocks) == "clusters_differ"
    for name in gates.GATES:
        assert any("the cluster ids differ" in reason for reason in gates.explain_closed(name, detected, []))


def test_the_source_that_a_move_left_is_named_as_that():
    facts = recorded.facts("hybrid")
    facts["zookeeper"]["cluster_id"]["value"] = same_cluster.moved_id("z1:2181,[2001:db8::1]:2181/kafka")
    (trouble,) = same_cluster.troubles(facts, phase.cluster_id(facts))
    assert "is the mark of a move to the ensemble z1:2181,[2001:db8::1]:2181 (" in trouble
    assert same_cluster.refusal(facts) == f"{trouble}. {same_cluster.FOLLOW}"
    assert not same_cluster.is_cluster_id(facts["zookeeper"]["cluster_id"]["value"])


def test_a_source_that_is_needed_must_answer():
    facts = recorded.facts("hybrid")
    own = phase.cluster_id(facts)
    facts["zookeeper"] = {"reached": False, "error": "no session"}
    assert same_cluster.troubles(facts, own) == []
    assert same_cluster.troubles(facts, own, [same_cluster.ZOOKEEPER, same_cluster.HOSTS]) == [
        "no cluster id could be read from ZooKeeper, and this step needs it (QS-PHASE-004)"
    ]
    for node in facts["nodes"].values():
        node["log_dirs"] = []
    facts["topics"].pop("cluster_id", None)
    assert len(same_cluster.troubles(facts, own, [same_cluster.ZOOKEEPER, same_cluster.HOSTS])) == 2


@pytest.mark.parametrize("text", ["", "../../etc", "a/b", "a b", "x" * 65, None, "a\n"])
def test_what_is_no_cluster_id(text):
    assert not same_cluster.is_cluster_id(text)
    assert same_cluster.is_cluster_id(OTHER)


def test_a_malformed_cluster_id_is_named():
    facts = recorded.facts("zk")
    for node in facts["nodes"].values():
        node["log_dirs"] = []
    facts["zookeeper"]["cluster_id"]["value"] = "../x"
    assert "has '../x', which is no cluster id of Kafka" in same_cluster.refusal(facts, "../x")


# A host's own disks ---------------------------------------------------------------------------------------------------

BROKER = "broker.id=2\nzookeeper.connect=z:2181\nlog.dirs={0}/one,{0}/two\n"
CONTROLLER = "process.roles=controller\nnode.id=3001\nlog.dirs={0}/one\nmetadata.log.dir={0}/two\n"


def host(tmp_path, text, **meta):
    (tmp_path / "server.properties").write_text(text.format(tmp_path))
    for name, stored in meta.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(stored)
    return str(tmp_path / "server.properties")


OWN, FOREIGN = "cluster.id=own\nbroker.id=2\n", f"cluster.id={OTHER}\nbroker.id=2\n"


@pytest.mark.parametrize(
    ("text", "meta", "said"),
    [
        (BROKER, {"one": OWN, "two": OWN}, None),
        (BROKER, {"one": OWN}, None),  # a new or failed disk
        (BROKER, {"one": OWN, "two": FOREIGN}, f"/two/meta.properties has cluster id {OTHER}, and this run is of"),
        (BROKER, {"one": OWN, "two": "cluster.id=own\nnode.id=5\n"}, "/two/meta.properties has node id 5, and this"),
        (BROKER, {}, "no cluster id could be read in the log directories of this host"),
        (BROKER, {"one": "broker.id=2\n"}, "no cluster id could be read"),
        (CONTROLLER, {}, None),
        (CONTROLLER, {"two": FOREIGN}, f"/two/meta.properties has cluster id {OTHER}"),
        ("", {"new": FOREIGN}, f"/new/meta.properties has cluster id {OTHER}"),
        ("", {}, None),
    ],
)
def test_a_host_of_another_cluster_or_node_is_refused(tmp_path, text, meta, said):
    path = host(tmp_path, text, **meta)
    if said is None:
        host_identity.require(path, "own", 2, str(tmp_path / "new"))
        return
    with pytest.raises(host_identity.ForeignHost) as refused:
        host_identity.require(path, "own", 2, str(tmp_path / "new"))
    assert said in str(refused.value)


def test_a_file_that_names_no_log_directory_has_kafkas_default(tmp_path, monkeypatch):
    monkeypatch.setitem(config_values.DEFAULTS, "log.dir", str(tmp_path / "one"))
    text = "broker.id=2\nzookeeper.connect=z:2181\n"
    with pytest.raises(host_identity.ForeignHost, match=r"/one/meta\.properties has cluster id"):
        host_identity.require(host(tmp_path, text, one=FOREIGN), "own", 2)
    host_identity.require(host(tmp_path, "# no settings yet\n"), "own", 2)


def test_directories_of_the_new_file_are_compared(tmp_path):
    path = host(tmp_path, "", new=FOREIGN)
    with pytest.raises(host_identity.ForeignHost):
        host_identity.require(path, "own", 2, new=[str(tmp_path / "new")])


def test_an_unreadable_meta_properties_of_a_controller_is_no_match(tmp_path):
    path = host(tmp_path, CONTROLLER)
    (tmp_path / "one" / "meta.properties").mkdir(parents=True)
    with pytest.raises(host_identity.ForeignHost, match="no cluster id could be read"):
        host_identity.require(path, "own", 3001)


def test_zookeeper_is_written_by_the_writer_alone():
    """Each write then compares the cluster's id in its own session."""
    plugins = pathlib.Path(__file__).resolve().parents[4] / "plugins"
    writes = re.compile(r"\.(set|create|delete|set_acls|transaction|ensure_path)(_async)?\(")
    found = {
        path.name
        for path in plugins.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if writes.search(line) and re.search(r"client|_async", line)
    }
    # importing.py writes the first cluster id into an ensemble that has nothing else: a rehearsal's
    assert found == {"zk_writing.py", "importing.py"}


def test_a_properties_file_that_cannot_be_read_is_named_with_its_line(tmp_path):
    path = host(tmp_path, "broker.id=2\nnote=\\u12\n", one=OWN)
    with pytest.raises(host_identity.UnreadableFile) as refused:
        host_identity.require(path, "own", 2)
    assert str(refused.value) == f"{path}: line 2: malformed \\uxxxx escape"
