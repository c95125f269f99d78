# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an interrupted run left is removed, and remembered where a host does not confirm that."""

from __future__ import annotations

import sys

from tests.playbook import play

CLUSTER = "phUKKf3TSny1o9Yap379dw"
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        quorumshift_session: {cluster_id: CLUSTER}
        cacheable: true
    - ansible.builtin.include_role: {name: quorumshift.kafka.quorumshift, tasks_from: scratch}
      vars: {quorumshift_scratch: purged}
""".replace("CLUSTER", CLUSTER)


def purge(tmp_path, lost):
    """Run the entry with a controller c1 on this machine, and with c2 that does not answer if `lost`."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 1, "quorumshift_state_dir": "/srv/its own"}
    lines = [f"localhost {given(local)}", "[kafka_controller]", f"c1 {given({**local, **state_of(tmp_path)})}"]
    lines += [f"c2 {given(nowhere)}"] * lost
    (tmp_path / "hosts").write_text("\n".join(lines) + "\n")
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "tmp").mkdir(exist_ok=True)
    done = play(
        *(tmp_path, tmp_path / "play.yml", "-e", f"_quorumshift_temporary={tmp_path}/tmp"),
        *("-e", "quorumshift_probe_host=localhost", "-e", "quorumshift_bootstrap_servers=b1:9092"),
    )
    assert done.returncode == 0, done.stdout
    return " ".join(done.stdout.split())


def given(variables):
    return " ".join(f"{name}='{value}'" for name, value in variables.items())


def state_of(tmp_path):
    return {"quorumshift_state_dir": str(tmp_path / "state")}


def leave(tmp_path):
    """Leave what a run that is killed leaves: an archive on c1, and the scratch directory on the control node."""
    archive = tmp_path / "state" / CLUSTER / "metadata_snapshot"
    archive.mkdir(parents=True)
    scratch = tmp_path / "tmp" / f"quorumshift-{CLUSTER}-abc"
    scratch.mkdir(parents=True)
    (scratch / "archive").write_text("secret")
    return archive, scratch


def test_all_is_removed_once_every_host_confirms_it(tmp_path):
    archive, scratch = leave(tmp_path)
    printed = purge(tmp_path, lost=False)
    assert "may have left" not in printed
    assert not archive.exists() and not scratch.exists()


def test_the_next_run_tries_again_where_a_host_did_not_answer(tmp_path):
    archive, scratch = leave(tmp_path)
    for _run in range(2):
        printed = purge(tmp_path, lost=True)
        for name in ("metadata_snapshot", "zk_tree_snapshot"):
            assert f"rm -r '/srv/its own/{CLUSTER}/{name}'" in printed
        assert "c1: an interrupted run" not in printed and "Connection refused" in printed
        assert not archive.exists() and [*scratch.iterdir()] == []
    assert "may have left" not in purge(tmp_path, lost=False)
    assert not scratch.exists()
