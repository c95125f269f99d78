# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in a directory that another user owns: what that user plants is neither shown nor changed."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.files import safe_files
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import node, own_log
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker import restart_files
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import RunArtifacts

KAFKA = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def planted(tmp_path):
    """(path, secret): a link of Kafka's user, in its own directory, to a file that only root may read."""
    (tmp_path / "root").mkdir(mode=0o700)
    secret = tmp_path / "root" / "secret"
    secret.write_text("password=hidden\n")
    secret.chmod(0o600)
    (tmp_path / "kafka").mkdir()
    os.chown(tmp_path / "kafka", KAFKA, KAFKA)
    path = tmp_path / "kafka" / "planted"
    path.symlink_to(secret)
    os.lchown(path, KAFKA, KAFKA)
    return path, secret


@as_root
def test_a_planted_link_is_not_read(planted):
    path, _secret = planted
    with pytest.raises(PermissionError, match=rf"a link of uid {KAFKA} to another user's file .* chown -h root {path}"):
        safe_files.read(str(path))
    with pytest.raises(PermissionError):
        restart_files.read_bytes(str(path))
    with pytest.raises(PermissionError):
        node.read_properties(str(path))
    assert "hidden" not in own_log.excerpt(str(path), 0, "kafka", {})
    found = node.collect("broker", str(path), "none", "ab" * 32, str(path.parent / "state"), "/none")
    assert "hidden" not in str(found["file"]) and "a link of uid" in found["file"]["error"]


@as_root
def test_a_planted_link_behind_a_link_of_root_is_not_read(planted, tmp_path):
    (tmp_path / "trusted").symlink_to(planted[0])
    with pytest.raises(PermissionError):
        safe_files.read(str(tmp_path / "trusted"))


@as_root
@pytest.mark.parametrize("link_owner", [0, KAFKA])
def test_links_of_root_and_to_files_of_their_owner_are_followed(tmp_path, link_owner):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "own").write_text("a=b\n")
    os.chown(tmp_path / "data" / "own", KAFKA, KAFKA)
    (tmp_path / "logs").symlink_to("data")  # a linked directory
    (tmp_path / "link").symlink_to("logs/own")
    os.lchown(tmp_path / "link", link_owner, link_owner)
    assert safe_files.read(str(tmp_path / "link")) == b"a=b\n"
    assert safe_files.read(str(tmp_path / "logs" / "own")) == b"a=b\n"


def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match="is no regular file"):
            safe_files.read(str(tmp_path / name))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        safe_files.read(str(tmp_path / "loop"))
    with pytest.raises(FileNotFoundError):
        safe_files.read(str(tmp_path / "missing"))


@as_root
def test_the_file_is_replaced_and_nothing_that_was_planted_is_changed(planted, tmp_path):
    """A temporary of a known name, and the file itself, are links of Kafka's user to files of root."""
    _path, secret = planted
    file = tmp_path / "kafka" / "server.properties"
    file.write_text("old=1\n")
    os.chown(file, KAFKA, KAFKA)
    file.chmod(0o640)
    for name in (".quorumshift", ".new", ".part"):
        (tmp_path / "kafka" / f"server.properties{name}").symlink_to(secret)
    before = sorted(os.listdir(tmp_path / "kafka"))
    restart_files.replace(str(file), b"new=2\n", "daemon")
    status = file.stat()
    assert (file.read_text(), status.st_uid, status.st_mode & 0o7777) == ("new=2\n", KAFKA, 0o640)
    assert sorted(os.listdir(tmp_path / "kafka")) == before
    safe_files.replace(str(tmp_path / "kafka" / "planted"), b"{}", 0o600)
    host_state.write_json(str(tmp_path / "kafka" / "planted"), {"a": 1})
    assert not (tmp_path / "kafka" / "planted").is_symlink()
    assert secret.read_text() == "password=hidden\n" and secret.stat().st_uid == 0
    assert secret.stat().st_mode & 0o7777 == 0o600


def test_a_failed_replacement_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        safe_files.replace(str(tmp_path / "file"), b"new", 0o600)
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_text() == "old"


def test_a_pinned_directory_stays_the_same_one(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("")
    with safe_files.pin(str(tmp_path / "data")) as opened:
        (tmp_path / "data").rename(tmp_path / "moved")
        (tmp_path / "data").symlink_to("other")
        assert os.listdir(opened) == ["log"]
        os.unlink(os.path.join(opened, "log"))
    assert os.listdir(tmp_path / "other") == ["precious"]


def test_the_lock_and_the_journal_follow_no_link(tmp_path):
    (tmp_path / "victim").write_text("")
    for name in (host_state.LOCK, host_state.JOURNAL):
        (tmp_path / name).symlink_to("victim")
    with pytest.raises(OSError, match="symbolic"), host_state.lock(str(tmp_path)):
        pass
    with pytest.raises(OSError, match="symbolic"):
        host_state.note(str(tmp_path), "event", "run")
    assert (tmp_path / "victim").read_text() == ""


@pytest.mark.parametrize("name", ["../other", "a/b", "", "..", "a" * 65])
def test_no_path_is_made_of_what_is_no_cluster_id(tmp_path, name):
    with pytest.raises(ValueError, match="is no cluster id of Kafka"):
        host_state.make_directory(str(tmp_path), name)
    assert os.listdir(tmp_path) == []
    if len(name) < 65:
        with pytest.raises(ValueError, match="cannot be the name of a directory"):
            RunArtifacts(str(tmp_path), name, "run")


def test_an_artifact_stays_in_its_runs_directory(tmp_path):
    artifacts = RunArtifacts(str(tmp_path), "cluster", "run")
    for name in ("diffs/../../../x", "/x"):
        with pytest.raises(OSError, match="outside of the run's directory"):
            artifacts.save(name, "")
    assert artifacts.save("diffs/b1.example-kraft.diff", "") and not (tmp_path / "x").exists()


def test_meta_properties_of_kafkas_user_lead_to_no_other_directory(tmp_path):
    """Kafka's user writes the cluster id of which the path of the host's records is made."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=0\ncluster.id=../elsewhere\nbroker.id=1\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / host_state.RESTART).write_text('{"id": "planted"}')
    (tmp_path / "server.properties").write_text(f"broker.id=1\nzookeeper.connect=z\nlog.dirs={tmp_path}/data\n")
    (tmp_path / "state").mkdir()
    file, state = str(tmp_path / "server.properties"), str(tmp_path / "state")
    assert node.collect("broker", file, "none", "ab" * 32, state, "/none")["node_restart"] is None
