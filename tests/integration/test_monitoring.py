# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules and every expression of the Grafana dashboard, evaluated by a real Prometheus over the real metrics
of recorded clusters in four phases."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import soak
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.status import metrics

from tests.integration import servers
from tests.unit.core import recorded
from tools.checkout import ROOT, alone

pytestmark = pytest.mark.real
MONITORING = ROOT / "docs" / "monitoring"
PHASES = ("zk", "hybrid", "dual_write", "finalized")
DEBIAN = ROOT / ".build" / "prometheus"
SOAKING = {"dual_write": 3600.0}


def program(name: str) -> str:
    """Return the path of a program of Debian's package prometheus, which is unpacked and not installed."""
    installed = shutil.which(name)
    if installed:
        return installed
    own = DEBIAN / "usr" / "bin" / name
    with alone("prometheus"):
        if not own.exists():
            DEBIAN.mkdir(parents=True, exist_ok=True)
            subprocess.run(["apt-get", "-qq", "download", "prometheus"], cwd=DEBIAN, check=True)
            (package,) = DEBIAN.glob("prometheus_*.deb")
            subprocess.run(["dpkg-deb", "-x", package, DEBIAN], check=True)
            package.unlink()
    return str(own)


def sample(name: str) -> str:
    """Return what watch_soak writes of a recorded cluster, as of now, with the phase's name as its cluster id."""
    facts = recorded.facts(name)
    detected = phase.detect(facts)
    taken = soak.Sample(time.time(), detected.phase, ["one"] if name == "hybrid" else [])
    text = metrics.render(facts, detected, taken, SOAKING.get(name))
    return re.sub(r'cluster_id="[^"]*"', f'cluster_id="{name}"', text)


@contextlib.contextmanager
def served(texts: dict[str, str]):
    """Serve texts by HTTP; yield the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(texts[self.path.strip("/")].encode())

        def log_message(self, *_given):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


class Prometheus:
    """A server's HTTP interface."""

    def __init__(self, port: int) -> None:
        self.at = f"http://127.0.0.1:{port}"

    def get(self, path: str, **given: str) -> dict:
        query = urllib.parse.urlencode(given)
        with urllib.request.urlopen(f"{self.at}/api/v1/{path}?{query}", timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list:
        return self.get("query", query=expression)["result"]

    def counts(self) -> int:
        """Return how many clusters were scraped; 0 while the server does not answer yet."""
        with contextlib.suppress(OSError):
            return len(self.query("quorumshift_sample_timestamp_seconds"))
        return 0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Return a Prometheus that has scraped a sample of each phase."""
    home: Path = tmp_path_factory.mktemp("prometheus")
    texts = {name: sample(name) for name in PHASES}
    with served(texts) as port:
        jobs = [
            {"job_name": name, "metrics_path": f"/{name}", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for name in PHASES
        ]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "quorumshift.rules.yml")],
            "scrape_configs": jobs,
        }
        (home / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        own = servers.free_port()
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={home}/prometheus.yml",
                    f"--storage.tsdb.path={home}/data",
                    f"--web.listen-address=127.0.0.1:{own}",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            found = Prometheus(own)
            servers.wait_for(
                lambda: found.counts() == len(PHASES) or process.poll() is not None, 120, "the samples in Prometheus"
            )
            assert process.poll() is None, (home / "log").read_text()
            yield found
        finally:
            process.kill()
            process.wait()


def expressions() -> list[tuple[str, str]]:
    dashboard = json.loads((MONITORING / "quorumshift.dashboard.json").read_text(encoding="utf-8"))
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_each_panel_shows_something_of_the_cluster_in_dual_write(prometheus, title, expression):
    def asked(cluster):
        return prometheus.query(expression.replace("$cluster", cluster).replace("$__range", "1h"))

    servers.wait_for(lambda: asked("dual_write"), 90, f"{title}: {expression}")  # a subquery needs its first minute
    for cluster in PHASES:
        for series in asked(cluster):
            assert series["metric"].get("cluster_id", cluster) == cluster
    assert asked("no such cluster") == []


def test_a_variable_of_the_dashboard_lists_the_clusters(prometheus):
    dashboard = json.loads((MONITORING / "quorumshift.dashboard.json").read_text(encoding="utf-8"))
    (variable,) = [each for each in dashboard["templating"]["list"] if each["name"] == "cluster"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
    assert sorted(prometheus.get(f"label/{label}/values", **{"match[]": metric})) == sorted(PHASES)


def test_prometheus_takes_the_rules_and_evaluates_them(prometheus):
    def rules():
        return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    servers.wait_for(lambda: all(rule["health"] != "unknown" for rule in rules()), 60, "the rules to be evaluated")
    assert [(rule["name"], rule["health"]) for rule in rules() if rule["health"] != "ok"] == []
    pending = {(rule["name"], alert["labels"]["cluster_id"]) for rule in rules() for alert in rule["alerts"]}
    assert ("QuorumshiftSampleBad", "hybrid") in pending
    assert ("QuorumshiftSampleBad", "dual_write") not in pending and "QuorumshiftNoSample" not in dict(pending)


def test_promtool_passes_the_tests_of_the_rules():
    done = subprocess.run(
        [program("promtool"), "test", "rules", "quorumshift.test.yml"],
        cwd=MONITORING,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_promtool_finds_no_mistake_in_the_metrics():
    for name in PHASES:
        done = subprocess.run(
            [program("promtool"), "check", "metrics"], input=sample(name), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
