# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample as metrics: their format, and what docs/monitoring says of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import metrics

from tests.unit.core import recorded

MONITORING = Path(__file__).resolve().parents[4] / "docs" / "monitoring"
VALUE = re.compile(r'quorumshift_\w+\{(\w+="(?:[^"\\\n]|\\["\\n])*"(?:,(?=\w)|(?=\})))+\} -?[0-9.e+]+')


def rendered(name, left_s=None, change=lambda facts: None):
    facts = recorded.facts(name)
    change(facts)
    detected = phase.detect(facts)
    sample = soak.Sample(facts["time"], detected.phase, ["one", "two"])
    return metrics.render(facts, detected, sample, left_s)


def values(text):
    return {line.split()[0]: float(line.split()[-1]) for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize("name", ["zk", "hybrid", "dual_write", "finalized"])
def test_every_line_is_of_the_text_format(name):
    text = rendered(name, 5.0)
    assert text.endswith("\n")
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) quorumshift_\w+ .+", line) or VALUE.fullmatch(line), line
    assert len({line.split()[0] for line in text.splitlines() if line[0] != "#"}) == len(values(text))


def test_what_is_not_known_has_no_value():
    def cut(facts):
        facts["quorum"] = {"reached": False, "error": "timed out", "voters": [], "observers": []}

    text = rendered("dual_write", change=cut)
    assert "mirrored_lag" not in text and "node_lag" not in text and "soak_left" not in text
    assert "quorumshift_mirrored_lag_offsets" in rendered("dual_write", -1.0)
    assert "mirrored_lag" not in rendered("finalized")


def test_a_name_with_a_quote_is_escaped():
    def rename(facts):
        facts["nodes"]['b"1\\\n'] = facts["nodes"].pop("b1")

    text = rendered("dual_write", change=rename)
    assert 'host="b\\"1\\\\\\n"' in text and all(VALUE.fullmatch(x) for x in text.splitlines() if x[0] != "#")


def test_the_page_lists_the_metrics_and_the_alerts_use_no_other():
    found = set(re.findall(r"^# TYPE (\w+)", rendered("dual_write", 1.0), re.MULTILINE))
    page = (MONITORING / "README.md").read_text(encoding="utf-8")
    assert found == set(re.findall(r"^\| `(quorumshift_\w+)` \|", page, re.MULTILINE))
    rules = (MONITORING / "quorumshift.rules.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"quorumshift_\w+", rules)) <= found
    alerts = set(re.findall(r"alert: (\w+)", rules))
    tested = (MONITORING / "quorumshift.test.yml").read_text(encoding="utf-8")
    assert alerts and alerts == set(re.findall(r"alertname: (\w+)", tested))


def test_the_dashboard_shows_each_metric_and_no_other():
    found = set(re.findall(r"^# TYPE (\w+)", rendered("dual_write", 1.0), re.MULTILINE))
    dashboard = json.loads((MONITORING / "quorumshift.dashboard.json").read_text(encoding="utf-8"))
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert {name for text in shown for name in re.findall(r"quorumshift_\w+", text)} == found
    labels = {label for text in shown for label in re.findall(r"(\w+)=", text)}
    legends = {
        label
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    }
    assert labels | legends <= set(re.findall(r"(\w+)=\"", rendered("dual_write", 1.0)))


def test_the_panels_of_the_dashboard_have_a_place_of_their_own():
    dashboard = json.loads((MONITORING / "quorumshift.dashboard.json").read_text(encoding="utf-8"))
    taken: dict[tuple[int, int], str] = {}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24 and panel["description" if panel["type"] != "alertlist" else "title"]
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert taken.setdefault(cell, panel["title"]) == panel["title"], (cell, panel["title"])
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__range"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard))) <= known
