# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of real runs, of killed runs, of other versions' artifacts and of wrong clocks."""

from __future__ import annotations

import base64
import datetime
import html.parser
import json
import pathlib

import pytest
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import (
    base,
    report,
    report_files,
    report_story,
    report_timeline,
    run_artifacts,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import Recorded

UTC = datetime.timezone.utc
VOID = {"meta", "br", "img"}
T = 1795270128.0


def phase(at, name):
    return {"t": T + at, "kind": "phase", "name": name}


def gate(at, name, **more):
    return {
        "t": T + at,
        "kind": "gate",
        "name": name,
        "seconds": 2.7,
        **{"result": "pass", "digest": "359c5f23", **more},
    }


def admitted(at, *hosts):
    return {"t": T + at, "kind": "event", "name": "admitted", "hosts": list(hosts), "waited_s": 2.447}


def restart(at, host, name="kraft", outcome="done", **more):
    times = {
        "stopped_at": T + at + 2,
        "stop_s": 2.0,
        "answered_at": T + at + 6,
        "start_s": 4.0,
        "registered_at": T + at + 7,
        "register_s": 5.0,
    }
    event = {"t": T + at, "kind": "restart", "name": name, "host": host, "end": T + at + 7, "outcome": outcome}
    return {**event, "times": times if outcome == "done" else {}, "restart_s": 8.5, **more}


WHOLE = [
    phase(0, "hybrid"),
    phase(9, "hybrid"),
    gate(9, "before_kraft"),
    admitted(20, "b1"),
    restart(21, "b1"),
    admitted(40, "b2"),
    restart(41, "b2"),
    phase(60, "dual_write"),
    gate(60, "after_kraft"),
    phase(61, "dual_write"),
]
FACTS = ("facts-00-hybrid.json", "facts-01-dual_write.json", "journal.jsonl")


def recorded(events, paths=FACTS, **more):
    return Recorded("cluster-1", "20261121T140848-048b", events, paths=paths, **more)


class Page(html.parser.HTMLParser):
    """Asserts that every element is closed; keeps texts, tags and loaded resources."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.texts, self.tags = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "srcset", "xlink:href")]
        assert not [name for name, _value in attrs if name.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        assert tag in ("line", "stop", "rect")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def page(run):
    return Page(report.render(run, UTC))


def test_page_shows_a_complete_run():
    story = report_story.story_of(recorded(WHOLE))
    assert (story.outcome, story.phase, story.seconds) == ("done", "dual_write", 61)
    assert story.sentence == "From hybrid to dual_write in 1 min 1 s: 2 restarts of 2 hosts, 2 gates passed."
    assert [(span.name, span.start - T, span.seen - T, span.end - T) for span in story.phases] == [
        ("hybrid", 0, 9, 60),
        ("dual_write", 60, 61, 61),
    ]
    first = story.restarts[0]
    assert [(name, start - T, end - T) for name, start, end in first.stages] == [
        ("stop", 21, 23),
        ("start", 23, 27),
        ("register", 27, 28),
    ]
    assert (first.own_s, first.admission_s) == (1.5, 2.447)
    assert story.warnings == []
    shown = page(recorded(WHOLE)).text
    assert "2026-11-21 14:08:48 UTC" in shown
    assert "13.0 between" in shown
    assert "✓ pass" in shown and "359c5f23" in shown


def test_restarts_of_one_kind_are_summed():
    total = report._total("kraft", report_story.story_of(recorded(WHOLE)).restarts)
    assert (total["count"], total["failed"], total["stop_s"], total["restart_s"], total["own_s"]) == (2, 0, 4, 17, 3)
    assert total["between_s"] == 13


def test_closed_gate_stops_the_run_with_its_reason():
    run = recorded(
        [phase(0, "dual_write"), gate(9, "before_finalize", result="differ", digest=None, reason="waited & saw")]
    )
    story = report_story.story_of(run)
    assert (story.outcome, story.reasons) == ("stopped", ["waited & saw"])
    assert story.sentence == "Stopped after 9 s: gate before_finalize stayed closed. In dual_write, nothing restarted."
    assert page(run).text.count("waited & saw") == 2


def test_gate_that_opened_later_did_not_stop_the_run():
    events = [gate(1, "after_copy", result="differ"), gate(2, "after_copy"), *WHOLE[7:]]
    assert report_story.story_of(recorded(events)).outcome == "done"


def test_failed_restart_stops_the_run():
    run = recorded(
        [
            phase(0, "zk"),
            gate(1, "before_controllers"),
            restart(5, "c1", "controller", "died", reason="lost\nits.log says:\nwhy"),
        ]
    )
    story = report_story.story_of(run)
    assert story.outcome == "stopped" and "the restart of c1 (controller) failed" in story.sentence
    assert story.reasons == ["on c1: lost"]
    assert [stage[0] for stage in story.restarts[0].stages] == ["failed"]
    assert story.restarts[0].own_s is None
    text = page(run).text
    assert "✕ died" in text and text.count("why") == 1  # with the restart


def test_blocking_finding_stops_the_run_with_what_to_do():
    found = {"id": "versions", "severity": "blocks", "title": "Release", "seen": "b1 runs 3.6", "do": "upgrade it"}
    files = {"preflight.json": json.dumps({"findings": [found], "checks": ["groups", "versions"]})}
    run = recorded([phase(0, "zk")], files=files)
    story = report_story.story_of(run)
    assert (story.outcome, story.reasons) == ("stopped", ["b1 runs 3.6. To do: upgrade it."])
    warning = json.dumps({"findings": [{**found, "severity": "warns"}], "checks": []})
    assert report_story.story_of(recorded([phase(0, "zk")], files={"preflight.json": warning})).outcome == "read-only"
    assert "To do: upgrade it" in page(run).text


def test_initial_copy_that_differs_stops_the_run():
    files = {
        "copy-expected.json": json.dumps({"counted": {"records": {"TOPIC_RECORD": 60, "CONFIG_RECORD": 2}}}),
        "copy-awaited.json": json.dumps({"counted": {"records": {"TOPIC_RECORD": 61, "CONFIG_RECORD": 2}}}),
        "copy-compared.json": json.dumps(
            {"damage": [], "differences": ["CONFIG"], "records": {"TOPIC_RECORD": 60, "NO_OP_RECORD": 5}}
        ),
    }
    run = recorded(WHOLE, files=files)
    assert report_story.story_of(run).outcome == "stopped"
    rows = {row["type"]: row for row in report_files.copy(run)["rows"]}
    assert {kind: row["differs"] for kind, row in rows.items()} == {
        "TOPIC_RECORD": False,
        "CONFIG_RECORD": True,
        "NO_OP_RECORD": False,
    }
    assert rows["CONFIG_RECORD"]["copied"] == 0
    assert page(run).text.count("✕ differs") == 1


@pytest.mark.parametrize("length", range(1, len(WHOLE)))
def test_run_killed_at_any_event_has_no_recorded_end(length):
    """A run ends with a second detection of the phase; a read-only run has no events but phases."""
    run = recorded(WHOLE[:length], FACTS[:1], followed=True)
    story = report_story.story_of(run)
    if length < 3:
        assert story.outcome == "read-only"
    else:
        assert story.outcome == "open" and story.sentence.startswith("The run has no recorded end")
        assert story.reasons[0].startswith("The last recorded event is ")
    working = run._replace(paths=[*run.paths, "copy-expected.json"])
    assert report_story.story_of(working).outcome == "open"
    page(run)
    if length >= 3:
        assert "No end is recorded yet" in page(run._replace(followed=False)).text


def test_ended_event_decides_the_outcome():
    begun = {"t": T - 1, "kind": "event", "name": "begun", "user": "anna", "from": "ops1", "playbook": "migrate"}
    ended = {"t": T + 50, "kind": "event", "name": "ended", "result": "ok"}
    story = report_story.story_of(recorded([begun, *WHOLE[:7], ended], ()))
    assert (story.outcome, story.by, story.events) == ("done", "anna@ops1", [])
    failed = {**ended, "name": "failed", "host": "b3", "task": "Restart", "reason": "b3 became unreachable"}
    story = report_story.story_of(recorded([begun, *WHOLE[:7], failed, ended], ()))
    assert story.outcome == "stopped"
    assert story.reasons == ['The run ended at "Restart" on b3: b3 became unreachable']


def test_a_step_without_an_end_is_no_end_of_the_run():
    step = {"t": T, "kind": "event", "name": "step begun", "step": "Plan", "hosts": ["localhost"]}
    run = recorded([step, *WHOLE[:7]], ())
    assert report_story.story_of(run).outcome == "open"


@pytest.mark.parametrize(("name", "said"), [("reassigned", "moved"), ("reassignments_cancelled", "no longer moved")])
def test_a_run_that_moved_partitions_did_not_change_nothing(name, said):
    moved = {"t": T + 5, "kind": "event", "name": name, "partitions": 3, "throttle": 50_000}
    ended = {"t": T + 50, "kind": "event", "name": "ended", "result": "ok"}
    story = report_story.story_of(recorded([phase(0, "finalized"), moved, ended], ()))
    assert story.outcome == "done" and f"3 partitions {said}" in story.sentence
    page(recorded([phase(0, "finalized"), moved, ended], ()))


def test_unreadable_lines_of_the_journal_are_counted():
    lines = [
        *map(json.dumps, WHOLE),
        '{"t": 17952',
        "12",
        '{"t": "x", "kind": "phase"}',
        '{"t": 1e300, "kind": "phase"}',
    ]
    events, unreadable = report_story.parse("\n".join(lines) + "\n")
    assert (events, unreadable) == (WHOLE, 4)
    run = recorded(events, unreadable=unreadable)
    assert report_story.story_of(run).warnings == ["4 lines of the journal could not be read"]
    page(run)
    assert report_story.story_of(recorded([], ())).sentence == "The journal has no events."
    page(recorded([], ()))


@pytest.mark.parametrize("event", WHOLE)
@pytest.mark.parametrize("value", [None, "x", -1, [], {}, True, float("nan")])
def test_malformed_events_do_not_fail_the_report(event, value):
    for key in event:
        if key not in ("t", "kind"):
            assert page(recorded([*WHOLE[:2], {**event, key: value}])).texts
    events, _unreadable = report_story.parse(json.dumps({**event, "t": value}))
    assert page(recorded(events)).texts


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"findings": 3, "batches": {}, "records": [], "counted": 1}'])
def test_malformed_files_do_not_fail_the_report(text):
    names = ("preflight.json", "plan-kraft.json", "copy-expected.json", "copy-awaited.json", "copy-compared.json")
    files = dict.fromkeys([*names, "clients.json", "facts-01-dual_write.json", "diffs/b1-kraft.diff"], text)
    run = recorded(WHOLE, files=files)
    assert report_story.story_of(run).sentence in " ".join(page(run).texts)


def test_control_node_clock_that_goes_back_is_a_warning():
    events = [*WHOLE[:3], *({**event, "t": event["t"] - 3600} for event in WHOLE[7:])]
    story = report_story.story_of(recorded(events))
    assert story.warnings == ["the control node's clock went back 59 min 9 s before phase dual_write"]
    assert story.seconds == 10
    page(recorded(events))


@pytest.mark.parametrize(("off", "way"), [(5000, "ahead of"), (-5000, "behind")])
def test_restart_of_a_host_with_a_wrong_clock_keeps_its_place(off, way):
    event = restart(21 + off, "b1")
    event["times"] = {
        key: value + off if key.endswith("_at") else value for key, value in restart(21, "b1")["times"].items()
    }
    story = report_story.story_of(recorded([*WHOLE[:4], event, *WHOLE[5:]]))
    assert len(story.warnings) == 1 and f"the clock of b1 is {way}" in story.warnings[0]
    assert story.seconds == 61
    assert [name for name, _start, _end in story.restarts[0].stages] == ["stop", "start", "register"]
    assert all(T + 20 <= start <= end <= T + 61 for _name, start, end in story.restarts[0].stages)


def test_gate_links_to_the_reports_of_its_jobs():
    there = "verify/after_kraft/metadata_parity/report.html"
    jobs = {"metadata_parity": "d1", "data_fingerprint": "d2"}
    reports = {"metadata_parity": there, "data_fingerprint": "../../elsewhere/report.html"}
    gates = [gate(1, "before_kraft", verified="off"), gate(9, "after_kraft", verified=jobs, reports=reports)]
    run = recorded([phase(0, "hybrid"), *gates], [*FACTS, there])
    off, on = report_story.story_of(run).gates
    assert off.reports is None
    assert on.reports == {"metadata_parity": there, "data_fingerprint": ""}
    shown = report.render(run, UTC)
    assert f'href="{there}">metadata_parity</a>' in shown and "elsewhere" not in shown
    closed = gate(9, "after_kraft", result="differ", reports=reports)
    assert report_story.story_of(recorded([closed], [there])).gates[0].reports["metadata_parity"] == there


def test_text_of_hosts_and_messages_is_escaped():
    evil = '"><script>alert(1)</script>{{ 7 * 7 }}'
    events = [
        phase(0, evil),
        gate(
            1, evil, result="differ", reason=evil, phase=evil, digest=evil, verified={evil: evil}, reports={evil: evil}
        ),
        admitted(2, evil),
        restart(3, evil, evil, evil, reason=evil),
        {"t": T + 4, "kind": "event", "name": evil, evil: evil},
    ]
    files = {
        "plan-kraft.json": json.dumps({"batches": [[evil]], "reasons": {evil: evil}, "unavoidable": {evil: evil}}),
        "preflight.json": json.dumps(
            {"findings": [{"id": evil, "severity": "blocks", "seen": evil}], "checks": [evil]}
        ),
        "copy-compared.json": json.dumps({"damage": [evil], "records": {evil: 1}}),
        "clients.json": json.dumps({"verdict": evil, "reasons": [evil], "by_phase": {evil: {}}}),
        "clients.svg": f"<svg>{evil}</svg>",
        "diffs/b1.diff": evil,
    }
    run = recorded(events, [*files, evil], files=files, unreadable=1)._replace(cluster_id=evil)
    for shown in (page(run), Page(report.render_cluster(evil, [run], UTC))):
        assert "script" not in shown.tags
        assert evil in shown.text
        assert "</script>49" not in shown.text


def test_pictures_are_svg_elements_not_escaped_text():
    compared = {"records": {"NO_OP_RECORD": 1}, "damage": [], "differences": [], "moved": []}
    run = recorded(WHOLE, files={"copy-compared.json": json.dumps(compared)})
    for shown in (page(run), Page(report.render_cluster("cluster", [run], UTC))):
        assert {"svg", "rect"} <= set(shown.tags)
        assert "<" not in shown.text and "&" not in shown.text
    assert "the quorum\N{RIGHT SINGLE QUOTATION MARK}s own" in page(run).text


def test_page_loads_no_resource():
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>"
    run = recorded(WHOLE, files={"clients.svg": svg, "clients.json": '{"verdict": "pass", "lost": 0}'})
    shown = page(run)
    assert [picture.partition(",")[0] for picture in shown.loaded] == ["data:image/svg+xml;base64"]
    assert base64.b64decode(shown.loaded[0].partition(",")[2]).decode() == svg
    assert "url(http" not in report.render(run) and "@import" not in report.render(run)


@pytest.mark.parametrize(
    "text",
    [
        "saw ssl.key.password=hunter2 there",
        "Password = hunter2",
        "log.dirs=/data ssl.key.password=hunter2 and more hunter2",
        'facts {"ssl.keystore.password": "hunter2", "a": 1}',
        "facts {'sasl.jaas.config': 'x \\' hunter2'}",
        'sasl.jaas.config=org.x.ScramLoginModule required password="hunter2";',
        "listener.name.a.ssl.key.password=hunter2",
    ],
)
def test_secrets_are_masked(text):
    run = recorded([*WHOLE, gate(70, "after_kraft", result="differ", reason=text)])
    assert "hunter2" not in report.render(run)
    assert "hunter2" not in report.render_cluster("c", [run])


def test_sealed_values_are_masked():
    reason = "b1 has sealed:3wNcywT0cKoM5T14/po8/Mx3jEl==, see log.dirs=/data"
    run = recorded([gate(0, "after_copy", result="differ", reason=reason)])
    assert "sealed:" not in report.render(run)
    assert "b1 has ********, see log.dirs=/data" in report.render(run)


def test_secrets_in_a_diff_are_masked():
    text = (
        "--- b1 before\n+++ b1 after\n@@ -1 +1 @@\n broker.id=1\n-ssl.key.password=hunter2\n"
        "+ssl.key.password : hunter3\n"
        "+sasl.jaas.config=x \\\n+   hunter4 \\\n+   hunter5\n+#node.id=2\n"
        "+#plugin.token=hunter6\n+plugin.x=hunter7\n+password.encoder.iterations=4096\n+c=sealed:AAAA\n"
    )
    lines = report_files.diff(text)
    shown = "\n".join(line.text for line in lines)
    assert "hunter" not in shown and "broker.id=1" in shown and "+#node.id=2" in shown and "4096" in shown
    run = recorded(WHOLE, files={"diffs/b1-kraft.diff": text})
    assert "hunter" not in report.render(run) and "sealed:" not in report.render(run)
    assert [line.style for line in lines[:6]] == ["hunk", "hunk", "hunk", "same", "remove", "add"]


def test_many_hosts_share_rows():
    events = [phase(0, "hybrid"), *(restart(10 * number, f"kafka{number:03}") for number in range(300))]
    rows = report_timeline.rows(report_story.story_of(recorded(events)), str)
    assert [row.name for row in rows] == ["", "phase", "restarts"]
    few = report_timeline.rows(report_story.story_of(recorded(events[:4])), str)
    assert [row.name for row in few] == ["", "phase", "kafka000", "kafka001", "kafka002"]


def test_summary_events_are_in_the_table_only():
    took = {"t": T + 61, "kind": "event", "name": "took", "node_restart": "kraft", "planned_s": 20.0, "took_s": 12.0}
    story = report_story.story_of(recorded([*WHOLE, took]))
    assert "events" not in [row.name for row in report_timeline.rows(story, str)]
    assert [event.name for event in story.events] == ["took"]


def test_plans_and_diffs_are_in_the_order_of_the_migration():
    modes = ("kraft", "controller_final", "zk_migration")
    files = {f"plan-{mode}.json": json.dumps({"kind": mode, "batches": [["b1"]]}) for mode in modes}
    assert [plan["kind"] for plan in report_files.plans(recorded([], files=files))] == [
        "zk_migration",
        "kraft",
        "controller_final",
    ]
    names = ("b1-kraft", "c1-controller_final", "b1-zk_migration", "c1-controller")
    files = {f"diffs/{name}.diff": "+a=1" for name in names}
    assert [diff["name"] for diff in report_files.diffs(recorded([], files=files))] == [
        "c1-controller",
        "b1-zk_migration",
        "b1-kraft",
        "c1-controller_final",
    ]


def test_phase_is_detected_from_the_newest_facts():
    assert report_story.last_facts(["facts-9-zk.json", "facts-10-hybrid.json", "x"]) == "facts-10-hybrid.json"
    node = {"role": "broker", "reached": True, "running": None, "running_error": "refused", "next": "zk", "node_id": 1}
    facts = {"nodes": {"b1": node}, "zookeeper": {"reached": False, "error": "no answer"}, "quorum": {}, "topics": {}}
    shown = page(recorded(WHOLE, files={FACTS[1]: json.dumps(facts)})).text
    assert "ZooKeeper could not be read: no answer" in shown
    assert "broker b1 does not answer: refused" in shown
    assert "To do: start it" in shown


def test_durations():
    assert [report_story.duration(seconds) for seconds in (0, 48.4, 211, 3600, 86700, 266400)] == [
        "0 s",
        "48 s",
        "3 min 31 s",
        "1 h",
        "1 d",
        "3 d 2 h",
    ]


def test_first_page_of_a_run_renews_the_page_of_the_previous_run(tmp_path):
    first, second = (
        run_artifacts.RunArtifacts(str(tmp_path), "cluster-1", f"2026112{day}T000000-aaaa") for day in (1, 2)
    )
    for event in WHOLE[:5]:
        first.note(**event)
    first.save("diffs/b1-kraft.diff", "+a=1\n")
    path = pathlib.Path(report.write(first))
    assert "No end is recorded yet" in path.read_text()
    for event in WHOLE:
        second.note(**event)
    assert report.write(second) != str(path)
    assert "The run has no recorded end" in path.read_text()
    cluster = (tmp_path / "cluster-1" / "index.html").read_text()
    assert cluster.index("20261122T000000-aaaa/index.html") < cluster.index("20261121T000000-aaaa/index.html")
    assert 'href="diffs/b1-kraft.diff"' in path.read_text()
    assert not list(tmp_path.rglob("*.new"))
    report.write_all(str(tmp_path / "cluster-1"))


def test_report_that_cannot_be_written_does_not_stop_the_run(tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(base.display, "warning", warned.append)
    monkeypatch.setattr(report, "render", lambda recorded: 1 / 0)
    action = object.__new__(base.QuorumshiftAction)
    action._written = run_artifacts.RunArtifacts(str(tmp_path), "cluster-1", "20261121T000000-aaaa")
    action._written.note("phase", "zk")
    action._report()
    assert len(warned) == 1 and "ZeroDivisionError" in warned[0] and "20261121T000000-aaaa" in warned[0]


def test_an_artifact_that_a_parallel_task_is_writing_is_no_part_of_the_report(tmp_path, monkeypatch):
    artifacts = run_artifacts.RunArtifacts(str(tmp_path), "C", "r1")
    artifacts.note("event", "begun")
    artifacts.save("diffs/b1-kraft.diff", "-a\n+b\n")
    unfinished = tmp_path / "C" / "r1" / "diffs" / "b2-kraft.diff.new"
    unfinished.write_text("half")
    monkeypatch.setattr(
        report, "_text", lambda path, read=report._text: unfinished.unlink(missing_ok=True) or read(path)
    )
    page = pathlib.Path(report.write(artifacts)).read_text()
    assert "b1-kraft.diff" in page and "b2-kraft" not in page


def test_cluster_without_runs_has_an_empty_page(tmp_path):
    nothing = run_artifacts.RunArtifacts(str(tmp_path), "cluster-1", "20261121T000000-aaaa")
    assert report.write(nothing) is None
    assert not list(tmp_path.iterdir())
    Page(report.render_cluster("cluster-1", [], UTC))
