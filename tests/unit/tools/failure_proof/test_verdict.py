# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The failure proof finds what it is to find: each rule is broken once."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ansible")

from tools.failure_proof import boundary, verdict
from tools.failure_proof.boundary import FAILED, KILLED, UNREACHABLE, Key
from tools.failure_proof.world import CLUSTER, World

RUN = "20261101T000000-aaaa"
KEY = Key(5, "b1", "b1", 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("world"))
    world.create()
    return world


@pytest.fixture
def world(made):
    """A world in which a run failed as it should: it says so, and did nothing more."""
    for path in made.root.glob("*.jsonl"):
        path.unlink()
    journal = made.root / "artifacts" / CLUSTER / RUN / "journal.jsonl"
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_text(json.dumps({"name": "failed", "task": "Stop", "host": "b1"}) + "\n")
    (made.root / "output-run.txt").write_text(f"fatal: [b1]: FAILED! => b1: {boundary.CAUSE}\n")
    for host in ("b1", "b2"):
        lock(made, host, closed=True, how="Stop")
        call(made, host=host, target=host, play=2, uuid="lock", module="run", does="locked", mutated=True)
    call(made, injected=FAILED, result=FAILED)
    return made


def lock(world, host, **more):
    path = world.node_dir(host) / "run_lock.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"number": 1, "run": RUN, "direction": "restart", **more}))


def call(world, **more):
    common = {
        "at": "end",
        "key": str(KEY),
        "play": 5,
        "host": "b1",
        "target": "b1",
        "task": "role : Stop",
        "uuid": "stop",
    }
    line = {
        **common,
        "module": "service_stop",
        "does": "masked",
        "check": False,
        "mutated": False,
        "result": "ok",
        **more,
    }
    with open(boundary.calls_file(world, "run"), "a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


def found(world, kind=FAILED, code=2, changing=()):
    recorded = verdict.Clean([], frozenset(changing), None, frozenset())
    return verdict.violations(world, recorded, {KEY: kind}, code, "run")


def test_a_run_that_ends_in_order_shows_no_violation(world):
    assert found(world) == []


def test_exit_code_0(world):
    assert found(world, code=0) == ["exit code 0"]


def test_a_change_after_the_failure(world):
    call(world, host="c3", target="c3", play=6, uuid="next", mutated=True)
    assert found(world) == ["service_stop masked ran on c3 after the failure (role : Stop)"]


def test_a_changing_module_that_had_nothing_to_do(world):
    call(world, host="c3", target="c3", play=6, uuid="next")
    assert found(world) == []
    assert found(world, changing=[("service_stop", "masked")])


def test_the_same_task_on_the_other_hosts_is_begun_already(world):
    call(world, host="b2", target="b2", mutated=True)
    assert found(world) == []


@pytest.mark.parametrize("clean_up", verdict.CLEAN_UPS, ids=lambda clean_up: clean_up.module)
def test_a_clean_up_may_run(world, clean_up):
    named = {"module": clean_up.module, "does": clean_up.does, "task": f"role : {clean_up.task or 'any'}"}
    call(world, uuid="clean", play=6, mutated=True, **named)
    assert found(world) == []


def test_a_lock_that_is_left_open(world):
    lock(world, "b2", closed=False)
    assert found(world) == ["the run lock of b2 is left open"]


def test_a_lock_that_says_that_the_run_ended_well(world):
    lock(world, "b2", closed=True, how="ok")
    assert found(world) == ["the run lock of b2 says that the run ended well"]


def test_the_lock_of_a_lost_host_stays_open(world):
    boundary.calls_file(world, "run").unlink()
    call(world, host="b2", target="b2", play=2, uuid="lock", module="run", does="locked", mutated=True)
    call(world, injected=UNREACHABLE, result=UNREACHABLE)
    lock(world, "b1", closed=False)
    assert found(world, UNREACHABLE) == []


def test_a_lock_that_is_closed_after_a_kill(world):
    assert found(world, KILLED, -9) == [
        f"the run lock of {host} is closed, though the run was killed" for host in ("b1", "b2")
    ]


def test_a_journal_without_the_failure(world):
    (world.root / "artifacts" / CLUSTER / RUN / "journal.jsonl").write_text('{"name": "ended", "result": "ok"}\n')
    assert found(world) == ["the journal says that the run ended ok", "the journal does not say that the run failed"]


def test_a_message_without_the_host(world):
    (world.root / "output-run.txt").write_text(f"fatal: [localhost]: FAILED! => {boundary.CAUSE}\n")
    assert found(world) == ["the message does not name the host b1"]


def test_a_failure_that_was_not_reached(world):
    boundary.calls_file(world, "run").unlink()
    assert found(world) == ["the failure was not reached"]


def test_a_status_that_names_no_playbook_of_the_collection(world):
    (world.root / "output-status.txt").write_text(
        "  last run: x, ended at Stop\n        ansible-playbook -i x playbooks/gone.yml\n"
    )
    shown, following = verdict.status_violations(world, 0, "status", True)
    assert shown == ["status names playbooks/gone.yml, which does not exist"] and following == ("gone", {})


def test_the_cluster_follows_its_nodes(tmp_path):
    world = World(tmp_path / "world")
    world.root.mkdir()
    world.create("dual_write")
    assert world.state()["log"]["state"] == "MIGRATION" and world.zookeeper()["controller"]["ephemeral"] is False
    world.stop("c1")
    assert world.quorum()["leader_id"] == 102
    world.stop("c2")
    assert not world.quorum()["reached"]


def test_a_lock_that_could_not_be_closed_once_the_work_was_done(world):
    (world.root / "artifacts" / CLUSTER / RUN / "journal.jsonl").write_text('{"name": "ended", "result": "ok"}\n')
    boundary.calls_file(world, "run").unlink()
    for host in ("b1", "b2"):
        call(world, host=host, target=host, play=2, uuid="lock", module="run", does="locked", mutated=True)
    closing = {"module": "run", "does": "closed", "task": "role : Close the run lock", "play": 9}
    call(world, **closing, injected=FAILED, result=FAILED)
    lock(world, "b1", closed=False)
    lock(world, "b2", closed=True, how="ok")
    assert found(world) == []
    recorded = verdict.UNKNOWN._replace(final="elsewhere")
    shown = verdict.violations(world, recorded, {KEY: FAILED}, 2, "run")
    assert shown == ["the run closes its locks before its work is done"]


@pytest.mark.parametrize("closes, done", [("b1", True), ("b2", False)])
def test_a_host_that_is_lost_while_a_left_over_is_removed(world, closes, done):
    """It fails the closing of its lock, the next call that needs it. In the rescue another host closes the lock."""
    (world.root / "artifacts" / CLUSTER / RUN / "journal.jsonl").write_text('{"name": "ended", "result": "ok"}\n')
    boundary.calls_file(world, "run").unlink()
    removal = {"module": "file", "does": "absent", "play": 8, "host": "localhost"}
    call(world, **removal, task=f"role : {verdict.REMOVALS[0]}", injected=UNREACHABLE, result=UNREACHABLE)
    closing = {"module": "run", "does": "closed", "task": "role : Close the run lock", "play": 9}
    call(world, **closing, host=closes, result="unreachable")
    lock(world, "b1", closed=False)
    lock(world, "b2", closed=True, how="ok")
    assert (found(world, kind=UNREACHABLE) == []) is done


@pytest.mark.parametrize("code", [0, 2])
@pytest.mark.parametrize("host", ["b1", "s1", "d1"])
@pytest.mark.parametrize("directory", verdict.ARCHIVES)
def test_an_archive_that_is_left_on_a_host_is_named(world, directory, host, code):
    path = world.state_dir(host) / CLUSTER / directory
    path.mkdir(parents=True)
    try:
        left = f"{path} is left, and the run does not say so"
        assert left in found(world, code=code)
        output = world.root / "output-run.txt"
        output.write_text(f"{output.read_text()}ssh b1 sudo rm -r {path}\n")
        assert left not in found(world, code=code)
    finally:
        path.rmdir()


@pytest.mark.parametrize(
    "command, expected",
    [
        ("ansible-playbook -i x playbooks/migrate.yml", ("migrate", {})),
        (
            "ansible-playbook -i x playbooks/rollback.yml -e quorumshift_rollback_to=zk",
            ("rollback", {"quorumshift_rollback_to": "zk"}),
        ),
    ],
)
def test_the_printed_command(command, expected):
    assert verdict.printed(f"  next: something\n        {command}\n") == expected


def test_another_playbook_that_a_failed_run_names():
    said = "d1 did. Run quorumshift.kafka.zk_rollback with -e zk_migrate_dead_hosts=d3: it"
    text = f'fatal: [a]: FAILED! => {{"msg": "{said}"}}'
    assert verdict.advised(text) == ("zk_rollback", {"zk_migrate_dead_hosts": "d3"})
    assert verdict.advised(text.replace("fatal", "ok")) is None
    assert verdict.advised(text.replace(" with -e zk_migrate_dead_hosts=d3", "")) == ("zk_rollback", {})
    assert verdict.advised('fatal: [a]: FAILED! => {"msg": "Run quorumshift.kafka.status: it shows the phase"}') is None


def test_a_host_whose_loss_is_tolerated_ends_the_run_where_it_is_needed(world):
    boundary.calls_file(world, "run").unlink()
    call(world, injected=UNREACHABLE, result=UNREACHABLE, module="stat", task="Find the source server's configuration")
    call(world, host="b2", target="b2", play=6, uuid="next", mutated=True)
    needed = {"host": "localhost", "play": 7, "uuid": "needed", "result": "unreachable"}
    began = "service_stop masked ran on b2 after the failure (role : Stop)"
    assert began in found(world, UNREACHABLE)
    call(world, **needed)
    assert began not in found(world, UNREACHABLE)
    call(world, host="b2", target="b2", play=8, uuid="later", mutated=True)
    assert began in found(world, UNREACHABLE)


def test_a_tolerated_failure_leads_where_the_run_leads_without_it(world):
    boundary.calls_file(world, "run").unlink()
    call(world, module="stat", does=None, task=f"role : {verdict.TOLERATED[0].task}", injected=FAILED, result=FAILED)
    assert found(world, code=0) == []  # of a sample, whose run without a failure was not recorded
    recorded = verdict.UNKNOWN._replace(final="elsewhere")
    assert verdict.violations(world, recorded, {KEY: FAILED}, 0, "run") != []
    assert verdict.violations(world, recorded._replace(final=verdict.final(world)), {KEY: FAILED}, 0, "run") == []


def test_a_host_that_was_not_lost(world):
    journal = world.root / "artifacts" / CLUSTER / RUN / "journal.jsonl"
    lost = json.dumps({"name": "failed", "host": "b2", "reason": verdict.run_outcome.explain_lost()})
    journal.write_text(journal.read_text() + lost + "\n")
    assert found(world) == ["the journal says of b2 that it was lost"]


def test_a_message_that_blames_another_host(world):
    text = f'fatal: [b1]: FAILED! => b1: {boundary.CAUSE}\nThe run ended at "Stop" on b3: no space.\n'
    (world.root / "output-run.txt").write_text(text)
    assert found(world) == ["the message blames b3 instead of b1"]


def test_other_snapshots_go_on_after_one_voter_gave_none(world):
    boundary.calls_file(world, "run").unlink()
    taken = {"module": "metadata_snapshot", "does": None, "target": "c1", "uuid": "taken", "mutated": True}
    call(world, task=f"role : {verdict.OF_ONE_VOTER[0]}", injected=FAILED, result=FAILED)
    call(world, **taken, task="role : Take a snapshot")
    assert found(world) == []
    boundary.calls_file(world, "run").unlink()
    call(world, injected=FAILED, result=FAILED)
    call(world, **taken, task="role : Take a snapshot")
    assert found(world) == ["metadata_snapshot ran on c1 after the failure (role : Take a snapshot)"]


def test_a_command_that_differs_in_its_token_alone_leads_to_the_same():
    recorded = verdict.Printed("migrate", {"quorumshift_finalize_token": "a:1", "quorumshift_soak": "0s"})
    token = recorded._replace(variables={**recorded.variables, "quorumshift_finalize_token": "b:2"})
    assert recorded.equals_except_token(recorded) and token.equals_except_token(recorded)
    for other in (
        None,
        recorded._replace(playbook="rollback"),
        recorded._replace(variables={"quorumshift_soak": "0s"}),
        recorded._replace(variables={**recorded.variables, "quorumshift_soak": "1s"}),
    ):
        assert not token.equals_except_token(other)
