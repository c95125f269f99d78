# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a result, for every verdict: its content, valid HTML, and escaping."""

from __future__ import annotations

import copy
import json
import pathlib
import re
import stat
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any, Dict, List, Tuple

import jsonschema
import pytest
from quorumshift_spark import package, report
from quorumshift_spark import result as results
from quorumshift_spark.report import story, wording

FIXTURES = pathlib.Path(__file__).parent / "results"
ROOT = pathlib.Path(__file__).resolve().parents[4]
VERDICTS = ("pass", "differ", "error", "incomplete")
_VOID = {"meta", "link", "br", "img", "input", "hr", "stop", "rect", "line"}


def load(verdict: str) -> Dict[str, Any]:
    return json.loads((FIXTURES / f"{verdict}.json").read_text(encoding="utf-8"))


class Page(HTMLParser):
    """The text of a page; asserts that its elements are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: List[str] = []
        self.tags: List[Tuple[str, Dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["title"]):
            self.text += data


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", Page(html).text)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_examples_are_valid_results(verdict: str) -> None:
    jsonschema.Draft202012Validator(results.schema()).validate(load(verdict))
    assert load(verdict)["verdict"] == verdict
    assert load(verdict)["digest"] == results.digest(load(verdict))


def test_round_shows_only_what_is_set_of_its_fence() -> None:
    result = load("pass")
    result["rounds"][0]["fence"] = {"zxid": None, "log_cut_again": True, "said": ""}
    result["rounds"][1]["fence"] = {"zxid": 7200, "log_cut_again": False, "said": "no answer"}
    fences = [row[-1] for row in story.build(result).rounds]
    assert fences == ["new log snapshot", "zxid 7200, no answer"]


def of_brokers(count: int) -> Dict[str, Any]:
    """The result of a log that was compared with many brokers: 7 and 9 have another value, 11 is without one."""
    result = load("differ")
    of_log = next(iter(result["views"].values()))
    counts = {"config": dict(zip(story.COUNTS, (90, 90, 0, 0, 0, 0, 0)))}
    result["views"] = {"metadata_log": of_log, **{f"broker:{number}": of_log for number in range(1, count + 1)}}
    result["comparisons"] = [
        {"left": "metadata_log", "right": f"broker:{number}", "counts": counts} for number in range(1, count + 1)
    ]
    for number, field in ((7, "differ"), (9, "differ"), (11, "left_only")):
        wrong = {**counts["config"], "match": 89, field: 1}
        result["comparisons"][number - 1]["counts"] = {"config": wrong}
    rule = {
        "kind": "config",
        "key": '["topic","orders","retention.ms"]',
        "field": "value",
        "rule": "equal",
        "do": "Look.",
    }
    result["differences"] = [
        {**rule, "status": "differ", "sides": {"metadata_log": '"5"', f"broker:{number}": value}}
        for number, value in ((7, '"6"'), (9, '"6"'), (11, None), (12, '"7"'))
    ]
    result["differences_total"] = 4
    return result


def test_many_brokers_are_one_line_and_one_column() -> None:
    result = of_brokers(300)
    shown = story.build(result)
    assert [pair.right for pair in shown.pairs] == [
        "brokers 1 to 6, 8, 10, 12 to 300",
        "broker:7",
        "broker:9",
        "broker:11",
    ]
    assert shown.pairs[0].total == [297 * 90, 297 * 90, 0, 0, 0, 0, 0]
    assert [view.name for view in shown.views] == ["metadata_log", "brokers 1 to 300"]
    (group,) = shown.groups
    assert group.columns == ["metadata_log", story.BROKERS] and (group.total, group.listed) == (4, 4)
    (row,) = group.shown
    assert [[side.who for side in cell] for cell in row.cells] == [[""], ["brokers 7, 9", "broker 11", "broker 12"]]
    assert "metadata log and brokers 1 to 300" in shown.sentence or "brokers 1 to 300" in text_of(report.render(result))


def test_three_brokers_are_named_one_by_one() -> None:
    result = load("differ")
    shown = story.build(result)
    assert [pair.right for pair in shown.pairs] == [pair["right"] for pair in result["comparisons"]]
    assert [view.name for view in shown.views] == list(result["views"])


def test_values_of_what_changed_since_the_baseline_are_shown() -> None:
    result = load("pass")
    result["changed"] = [
        {
            "kind": "config",
            "key": '["topic","orders","retention.ms"]',
            "left": "metadata_log",
            "right": "baseline:metadata_log",
            "why": "changed",
            "differences": [{"field": "value", "sides": {"metadata_log": "5", "baseline:metadata_log": None}}],
        }
    ]
    assert "value: 5 → absent" in text_of(report.render(result))


@pytest.mark.parametrize("verdict", VERDICTS)
def test_page_is_self_contained(verdict: str) -> None:
    html = report.render(load(verdict))
    page = Page(html)
    names = {name for name, _attributes in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form"}
    assert "default-src 'none'" in html
    assert "url(" not in html.replace("url(#", "")
    ids = [attributes["id"] for _tag, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _tag, attributes in page.tags:
        link = attributes.get("href")
        # the tables of differences are written beside the page
        beside = link in (results.DIFFERENCES, results.DIFFERENCES_CSV) and link in load(verdict)["files"]
        assert link is None or beside or (link.startswith("#") and link[1:] in ids)


@pytest.mark.parametrize(
    ("verdict", "head"),
    [
        ("pass", "pass · gate after_copy may open"),
        ("differ", "differ · gate after_copy stays closed"),
        ("error", "error · gate before_trigger stays closed"),
        ("incomplete", "incomplete · gate before_finalize stays closed"),
    ],
)
def test_first_line_shows_verdict_and_gate(verdict: str, head: str) -> None:
    text = text_of(report.render(load(verdict)))
    assert text.index(head) < 150
    assert text.index("What to do") < text.index("Views")
    for reason in load(verdict)["reasons"]:
        assert reason in text


def lead(result: Dict[str, Any]) -> str:
    """Return the sentence of a result, and its picture as text."""
    text = text_of(report.render(result))
    return text[: text.index("What to do")]


def test_page_opens_with_what_was_compared_and_what_came_of_it() -> None:
    result = load("differ")
    shown = lead(result)
    assert "7 of 6,710 comparisons of ZooKeeper, metadata log, brokers 1, 2 and baseline differ" in shown
    assert "6,702 agree and 1 is excused." in shown
    assert "ZooKeeper with metadata log ✕ 5 differ · 3,354 agree" in shown
    assert "metadata log with broker 1 ✕ 2 differ · 3,348 agree · 1 excused" in shown
    assert "3 of 6,710 comparisons" in lead(load("incomplete")) and "are undecided" in lead(load("incomplete"))
    passed = lead(load("pass"))
    assert "Nothing differs in" in passed and "nothing is undecided" in passed and "✕" not in passed
    assert "brokers 1, 2" in passed


def test_picture_adds_up_and_names_the_records() -> None:
    for verdict in ("pass", "differ", "incomplete"):
        result = load(verdict)
        picture = story.build(result).picture
        by_kind = result["counts"].values()
        assert picture.read == sum(counts["read"] for counts in by_kind)
        assert picture.undecided == sum(counts["skipped"] for counts in by_kind)
        assert picture.read == picture.agree + picture.excused + picture.undecided + picture.differ
    result = {**load("differ"), "excused": {"log record": 1}}
    assert "log record 1" in lead(result)
    same = load("differ")
    same["comparisons"][1]["same_source"] = ["partition"]
    assert story.build(same).picture.agree == story.build(load("differ")).picture.agree - 2566


def test_picture_of_many_brokers_is_one_bar() -> None:
    (bar,) = story.build(of_brokers(300)).picture.bars
    assert (bar.left, bar.right, bar.where) == ("metadata log", "300 brokers", "brokers 7, 9, 11")
    assert (bar.agree, bar.differ) == (300 * 90 - 3, 3)
    result = of_brokers(300)
    for comparison in result["comparisons"][:40:2]:
        comparison["counts"] = {"config": {**comparison["counts"]["config"], "match": 89, "differ": 1}}
    (bar,) = story.build(result).picture.bars
    assert bar.where == "20 of them"


def test_reports_of_300_brokers_stay_small() -> None:
    result = of_brokers(300)
    result["differences"] *= 25
    assert len(report.render(result)) < 60_000


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_contrast(scheme: int) -> None:
    """WCAG 2.1 AA: 4.5 for texts, 3 for what a picture needs to be understood."""
    html = report.render(load("differ"))
    colours = dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", html.split(":root {")[scheme + 1]))
    for name, background, least in (
        *((name, "paper", 4.5) for name in ("ink", "soft", "good", "bad", "warn")),
        *((name, "raised", 4.5) for name in ("ink", "soft")),
        *(("bad", "removed", 4.5), ("start", "paper", 3.0)),
    ):
        brighter, darker = sorted((luminance(colours[name]), luminance(colours[background])), reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) >= least, f"{name} on {background}"


@pytest.mark.parametrize("verdict", VERDICTS)
def test_page_can_be_heard(verdict: str) -> None:
    """Headings descend one level at a time, tables have header cells, and a bar repeats what its text says."""
    page = Page(report.render(load(verdict)))
    levels = [int(tag[1]) for tag, _attributes in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))
    for number, (tag, _attributes) in enumerate(page.tags):
        if tag == "table":
            assert any(name == "th" and "scope" in of for name, of in page.tags[number : number + 8])
    for _tag, attributes in page.tags:
        if attributes.get("class") == "track":
            assert attributes["aria-hidden"] == "true"
    assert dict(page.tags)["html"]["lang"] == "en"


def test_differences_show_both_sides_and_what_to_do() -> None:
    result = load("differ")
    text = text_of(report.render(result))
    for difference in result["differences"]:
        assert difference["rule"] in text
        assert difference["do"][1:] in text
    assert "[1,2,3]" in text and "[1,3,2]" in text
    assert "User:CN=settlement,OU=Core <Banking>,O=Example" in text
    assert "ZooKeeper exists metadata log absent" in text
    assert "partition · replicas 2" in text


def test_error_names_the_view_and_its_error() -> None:
    text = text_of(report.render(load("error")))
    assert "The comparison failed: broker 2 could not be read. There is no result." in text
    assert text.count("kafka2.example.net:9093: no connection within 30 s") == 2


def test_page_shows_counts_views_rounds_timings_digest_and_versions() -> None:
    result = load("pass")
    text = text_of(report.render(result))
    for wanted in (
        "5,136",
        "zxid 4294975213",
        "2026-11-22 00:14:33 UTC",
        "13.9",
        result["digest"],
        "4.0.5",
        "zxid 8589950000, new log snapshot",
    ):
        assert wanted in text, wanted
    assert "do not show what KRaft holds" in text
    assert "changed since the baseline (zxid" in text


_EVIL = "<script>alert(1)</script>\"'&{{ 7*7 }}\u202eabc\x07"


def _poisoned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _poisoned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item) for item in value]
    return value + _EVIL if isinstance(value, str) else value


@pytest.mark.parametrize("verdict", VERDICTS)
def test_values_of_a_result_are_escaped(verdict: str) -> None:
    html = report.render(_poisoned(load(verdict)))
    page = Page(html)
    assert "script" not in {name for name, _attributes in page.tags}
    assert not any("alert" in str(value) for _tag, attributes in page.tags for value in attributes.values())
    assert "<script>alert(1)</script>\"'&{{ 7*7 }}\\u202eabc\\u0007" in page.text
    assert "\u202e" not in html and "\x07" not in html
    poisoned_names = {name + _EVIL: value for name, value in load(verdict)["views"].items()}
    Page(report.render({**load(verdict), "views": poisoned_names}))


def test_unexpected_clear_text_of_a_secret_is_masked() -> None:
    result = load("differ")
    difference = next(found for found in result["differences"] if "ssl.keystore.password" in found["key"])
    difference["sides"] = {"zookeeper": '"s3cr3t-word"', "metadata_log": '"other-s3cr3t"'}
    html = report.render(result)
    assert "s3cr3t" not in html
    assert html.count("********") == 2


def test_many_differences_are_counted_and_the_first_shown() -> None:
    result = load("differ")
    difference = {**result["differences"][0], "status": "differ"}
    sides = difference.pop("sides")
    left, right = (
        {"left": "zookeeper", "left_value": sides["zookeeper"]},
        {"right": "metadata_log", "right_value": None},
    )
    row = {**difference, **left, **right}
    rows = ({**row, "key": json.dumps(["t", number])} for number in range(100_000))
    html = report.render({**result, "differences_total": 100_000}, rows)
    assert len(html) < 100_000
    assert "The first 50 of 100,000" in text_of(html)
    assert html.count("<details><summary>40 more") == 1  # ten are seen, the others after a click
    assert "Undecided" not in text_of(report.render(result, [{**row, "status": "undecided"}]))


def test_incomplete_result_is_rendered() -> None:
    html = report.render({"verdict": "error", "reasons": ["job.json is not JSON"]})
    assert "error · no gate" in text_of(html)
    assert report.render(results.empty("error", [])) != ""
    for verdict in VERDICTS:
        complete = load(verdict)
        for name in complete:
            part = copy.deepcopy(complete)
            del part[name]
            Page(report.render(part))


@pytest.mark.parametrize(
    ("texts", "marked"),
    [
        (["604800000", "259200000"], ["604800000", "259200000"]),
        (["[1,2,3]", "[1,3,2]"], ["2,3", "3,2"]),
        (["a.b=1,c", "a.b=1"], [",c", ""]),
        (["same", "same"], ["", ""]),
        (["", "x"], ["", "x"]),
        (["aa", "a a"], ["aa", "a a"]),
    ],
)
def test_differing_words_are_marked(texts: List[str], marked: List[str]) -> None:
    sides = wording.sides("topic", '["t"]', {str(at): json.dumps(text) for at, text in enumerate(texts)})
    for at, text in enumerate(texts):
        pieces = sides[str(at)][0].pieces
        assert "".join(piece for piece, _differs in pieces) == text
        assert "".join(piece for piece, differs in pieces if differs) == marked[at]


def test_steps_depend_on_the_gate() -> None:
    assert story.build(load("differ")).moment
    assert "quorumshift_verify=false" in story.build({**load("differ"), "gate": "before_revert"}).steps[-1].text


def test_report_renders_from_a_zip(tmp_path: pathlib.Path) -> None:
    package.build(str(tmp_path / "package.zip"))
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from quorumshift_spark import report; "
        "print(len(report.render(json.load(open(sys.argv[2])))))"
    )
    arguments = [sys.executable, "-I", "-c", code, str(tmp_path / "package.zip"), str(FIXTURES / "pass.json")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(report.render(load("pass")))


def test_report_is_written_next_to_the_result(tmp_path: pathlib.Path) -> None:
    result = load("differ")
    (tmp_path / results.NAME).write_text(json.dumps(result))
    assert "orders.created-3" in pathlib.Path(report.write(str(tmp_path))).read_text(encoding="utf-8")
    row = dict.fromkeys(results.DIFFERENCES_SCHEMA.names, "x")
    rows = [{**row, "status": "differ", "key": f'["only-in-the-file-{number}"]'} for number in range(3)]
    results.write_differences(str(tmp_path), rows)
    path = pathlib.Path(report.write(str(tmp_path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "only-in-the-file-2" in path.read_text(encoding="utf-8")


def test_result_of_a_fingerprint_is_rendered() -> None:
    result = load("fingerprint")
    jsonschema.Draft202012Validator(results.schema()).validate(result)
    text = text_of(report.render(result))
    assert "orders-0, offsets 0 to 99" in text
    assert "payments-1" in text
    assert "baseline and cluster now" in text


@pytest.mark.parametrize("name", ["recorded_pass", "recorded_differ"])
def test_results_of_real_servers_are_rendered(name: str) -> None:
    """Recorded for the pictures in the docs (tools/screenshots.py): their excuses are counted."""
    result = load(name)
    jsonschema.Draft202012Validator(results.schema()).validate(result)
    picture = story.build(result).picture
    assert picture.excused == sum(result["excused"].values()) > 0
    for excuse, number in result["excused"].items():
        assert f"{excuse} {number}" in lead(result)
    Page(report.render(result))
