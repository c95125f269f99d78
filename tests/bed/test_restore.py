# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration that emptied ZooKeeper, undone by playbooks/restore_zookeeper.yml under clients that go on: nothing that
was acknowledged is lost, and ZooKeeper holds what it held."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import read_tree

from tests.bed import bedside, mishaps
from tools.demo import bed as demo_bed

# What a running cluster moves by itself, and what its controllers keep of their own
MOVES = {"controller", "controller_epoch", "migration", "notification", "partition_state", "producer_id_block"}


@pytest.fixture(scope="module")
def clients(fresh, tmp_path_factory):
    """The witness on the bed; a function that stops it and returns its verdict."""
    made = tmp_path_factory.mktemp("witness")
    (made / "config.json").write_text(json.dumps(demo_bed.Bed().witness_config()))
    witness(made, "run", "--config", made / "config.json", "--daemon")

    def verdict():
        witness(made, "stop", "--json", made / "result.json", check=False)
        return json.loads((made / "result.json").read_text())

    try:
        yield verdict
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            witness(made, "stop", "--json", made / "result.json", check=False)


def witness(made, command, *options, check=True):
    argv = [sys.executable, "-m", "witness", command, "--dir", made / "run", *options]
    subprocess.run(list(map(str, argv)), cwd=bedside.ROOT, check=check, timeout=600)


def held(bed):
    """{path: (value, ACL)} of what lasts, the topics that the witness makes and deletes aside."""
    with bed.zookeeper() as client:
        return {
            node.path: (value(node.data), node.acl)
            for node in read_tree(client)
            if not node.stat.ephemeralOwner and znodes.kind(node.path) not in MOVES and ".admin." not in node.path
        }


def value(data):
    try:
        return json.loads(data)
    except (TypeError, ValueError):
        return data


def unchanged(ran, bed):
    return all(ran.recap(host).get("changed", 0) == 0 for host in bed.addresses)


def test_what_a_migration_emptied_is_restored(fresh, clients):
    time.sleep(10)
    before = held(fresh)
    emptied = mishaps.migration_that_empties_zookeeper(fresh)
    assert "The controllers were stopped and masked." in emptied.text, emptied.text
    assert not any(path.startswith("/brokers/topics/") for path in held(fresh))

    asked = fresh.play("restore_zookeeper")
    assert asked.code == 0 and unchanged(asked, fresh), asked.text
    assert re.search(r"missing from ZooKeeper: .*\d+ topic", asked.text), asked.text
    word = re.search(r"-e quorumshift_restore=(\S+?:[0-9a-f]{6})", asked.text).group(1)
    wrong = fresh.play("restore_zookeeper", extra={"quorumshift_restore": word[:-1] + "x"})
    assert wrong.code != 0 and "this backup's is" in wrong.text and unchanged(wrong, fresh), wrong.text

    done = fresh.play("restore_zookeeper", extra={"quorumshift_restore": word})
    assert done.code == 0, done.text
    print(f"restored in {done.seconds:.0f} s")
    again = fresh.play("restore_zookeeper", extra={"quorumshift_restore": word})
    assert again.code == 0 and unchanged(again, fresh), again.text
    assert "there is nothing to restore" in again.text

    fresh.wait_in_sync()
    after = held(fresh)
    assert {path: told for path, told in before.items() if after.get(path) != told} == {}
    result = clients()
    counts = {key: result[key] for key in ("lost", "duplicated", "reordered", "aborted_visible")}
    print(f"{result['acked']} acknowledged, {counts}; longest stall {result['by_phase']}")
    assert counts == dict.fromkeys(counts, 0) and result["acked"] > 10_000
    assert result["run"]["audit"]["done"], result["run"]["audit"]


def test_brokers_run_plain_and_controllers_stay_down(fresh):
    for host in fresh.brokers:
        name = "/etc/kafka/server.properties"
        kept = f"/var/lib/quorumshift/*/configs/{name.rpartition('/')[2]}.before-zk_migration"
        fresh.run(host, f"cmp {name} {kept}")
    for host in fresh.controllers:
        fresh.run(host, "systemctl start kafka-controller")
        assert fresh.run(host, "systemctl is-active kafka-controller", check=False) == "inactive"
    status = fresh.play("status")
    assert ": reverting" in status.text and "to do  controllers wiped" in status.text, status.text
    assert "controllers down" in status.text.replace("done   ", "")


def test_a_forward_run_refuses(fresh):
    ran = fresh.play()
    assert ran.code != 0 and "The phase is reverting" in ran.text and unchanged(ran, fresh), ran.text
