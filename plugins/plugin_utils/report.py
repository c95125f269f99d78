# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run, `<cluster>/<run>/index.html`, and of all runs, `<cluster>/index.html`.

Each page is self-contained: no network, no script. `render` and `render_cluster` are pure; `write` reads and writes.
"""

from __future__ import annotations

import datetime
import functools
import os
import urllib.parse
from typing import Iterable, Sequence

import jinja2
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import report_files, report_story, report_timeline
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.report_story import PAGE, Recorded
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.run_artifacts import UNFINISHED, RunArtifacts, private

_LABELS = {
    report_story.DONE: "done",
    report_story.STOPPED: "stopped",
    report_story.READ_ONLY: "read only",
    report_story.OPEN: "no end recorded",
}


def write(artifacts: RunArtifacts) -> str | None:
    """Write the pages of a run and of its cluster; return the path of the run's page, None for a run without journal.

    A run's first page also renews the page of the previous run, whose end is known now. Raises OSError.
    """
    runs, current = _runs(artifacts.cluster), os.path.basename(artifacts.directory)
    if current not in runs:
        return None
    page, number = os.path.join(artifacts.directory, PAGE), runs.index(current)
    _write(artifacts.cluster, runs, runs[number if os.path.exists(page) else max(0, number - 1) : number + 1])
    return page


def write_all(cluster: str) -> None:
    """Write the pages of all runs in a cluster's directory, and the cluster's page. Raises OSError."""
    runs = _runs(cluster)
    _write(cluster, runs, runs)


def compile_templates() -> None:
    """Compile the pages' templates, which costs more than a page does: once, in the process that forks the workers."""
    for name in _templates().list_templates():
        _templates().get_template(name)


def render(recorded: Recorded, zone: datetime.tzinfo | None = None) -> str:
    """Return a run's page. `zone` is the time zone of its times, by default the local one."""
    story, clock = report_story.story_of(recorded), _Clock(zone)
    totals = [_total(kind, story.restarts) for kind in dict.fromkeys(restart.kind for restart in story.restarts)]
    return (
        _templates()
        .get_template("run.html.j2")
        .render(
            cluster_id=recorded.cluster_id,
            story=story,
            label=_LABELS[story.outcome],
            clock=clock,
            rows=report_timeline.rows(story, clock.time) if story.events or story.phases or story.restarts else [],
            totals=totals,
            plans=report_files.plans(recorded),
            preflight=report_files.preflight(recorded),
            copy=report_files.copy(recorded),
            diffs=report_files.diffs(recorded),
            phase_result=report_files.phase_result(recorded, report_story.last_facts(recorded.paths)),
            canary_clients=report_files.canary_clients(recorded),
            files=[(path, urllib.parse.quote(path)) for path in recorded.paths if path != PAGE],
        )
    )


def render_cluster(cluster_id: str, runs: Sequence[Recorded], zone: datetime.tzinfo | None = None) -> str:
    """Return the cluster's page; `runs` are in order, the oldest first."""
    stories = [report_story.story_of(recorded) for recorded in runs]
    seen: dict[str, float] = {}
    for story in stories:
        for span in story.phases:
            seen.setdefault(span.name, span.start)
    detected = [story for story in stories if story.phases]
    now = detected[-1].phases[-1] if detected else None
    phases = [*phase.FORWARD, *(name for name in seen if name not in phase.FORWARD)]
    gates = [(story, gate) for story in stories for gate in story.gates]
    return (
        _templates()
        .get_template("cluster.html.j2")
        .render(
            cluster_id=cluster_id,
            stories=[
                (story, report_timeline.strip(story), urllib.parse.quote(story.run)) for story in reversed(stories)
            ],
            labels=_LABELS,
            clock=_Clock(zone),
            now=now,
            phases=phases,
            seen=seen,
            gates=list({gate.name: (story, gate) for story, gate in gates}.values()),
            restarts=sum(1 for story in stories for restart in story.restarts if not restart.failed),
            first=min((story.start for story in stories if story.start), default=None),
            last=max((story.end for story in stories if story.end), default=None),
        )
    )


class _Clock:
    """Formats times in one time zone."""

    def __init__(self, zone: datetime.tzinfo | None):
        self.zone = zone

    def _at(self, seconds: float) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).astimezone(self.zone)

    def time(self, seconds: float) -> str:
        return self._at(seconds).strftime("%H:%M:%S")

    def short(self, seconds: float) -> str:
        return self._at(seconds).strftime("%b %d %H:%M")

    def full(self, seconds: float) -> str:
        at = self._at(seconds)
        offset = at.strftime("%z")
        return at.strftime("%Y-%m-%d %H:%M:%S ") + ("UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:]}")


def _total(kind: str, restarts: Iterable[report_story.Restart]) -> dict:
    """Return the sums over one kind's restarts; `between_s`: the times from one restart's end to the next start."""
    of_kind = [restart for restart in restarts if restart.kind == kind]
    keys = ("admission_s", "stop_s", "start_s", "register_s", "restart_s", "own_s")
    total: dict = {"kind": kind, "count": len(of_kind), "failed": sum(1 for restart in of_kind if restart.failed)}
    for key in keys:
        values = [value for restart in of_kind if (value := getattr(restart, key)) is not None]
        total[key] = sum(values) if values else None
    gaps = [following.start - restart.end for restart, following in zip(of_kind, of_kind[1:])]
    total["between_s"] = sum(gaps) if gaps and min(gaps) >= 0 else None
    return total


@functools.lru_cache(maxsize=None)
def _templates() -> jinja2.Environment:
    """Return the environment in which every value of a template is scrubbed of secrets and escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.join(os.path.dirname(__file__), "report_templates")),
        autoescape=True,
        finalize=report_files.scrub,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["duration"] = report_story.duration
    environment.filters["seconds"] = lambda value: "–" if value is None else f"{value:.1f}"
    environment.filters["number"] = lambda value: f"{value:,}" if isinstance(value, int) else "–"
    return environment


# Reading and writing ------------------------------------------------------------------------------------------------


def _runs(cluster: str) -> list[str]:
    """Return the names of the runs with a journal, oldest first (a run's name begins with its time)."""
    if not os.path.isdir(cluster):
        return []
    return sorted(
        run for run in os.listdir(cluster) if os.path.isfile(os.path.join(cluster, run, report_story.JOURNAL))
    )


def _write(cluster: str, runs: Sequence[str], stale: Sequence[str]) -> None:
    cluster_id = os.path.basename(cluster)
    recorded = [_read(cluster_id, cluster, run, run != runs[-1], run in stale) for run in runs]
    for story in recorded:
        if story.run in stale:
            _save(os.path.join(cluster, story.run), render(story))
    if runs:
        _save(cluster, render_cluster(cluster_id, recorded))


def _read(cluster_id: str, cluster: str, run: str, followed: bool, for_page: bool) -> Recorded:
    """Return a run's artifacts: those of its story, and with `for_page` all that its page shows."""
    directory = os.path.join(cluster, run)
    paths = sorted(
        os.path.relpath(os.path.join(parent, name), directory)
        for parent, _directories, names in os.walk(directory)
        for name in names
        if not name.endswith(UNFINISHED)  # of a parallel task, which renames it
    )
    shown = {"preflight.json", "copy-compared.json"}
    if for_page:
        shown |= {path for path in paths if path.startswith(("plan-", "copy-", "diffs" + os.sep, "clients."))}
        shown.add(report_story.last_facts(paths) or "")
    files = {path.replace(os.sep, "/"): _text(os.path.join(directory, path)) for path in paths if path in shown}
    events, unreadable = report_story.parse(_text(os.path.join(directory, report_story.JOURNAL)))
    return Recorded(cluster_id, run, events, unreadable, files, paths, followed)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def _save(directory: str, page: str) -> None:
    """Replace a page by rename. Parallel tasks may write it at once, each to its own temporary file."""
    path = os.path.join(directory, PAGE)
    new = f"{path}.{os.getpid()}{UNFINISHED}"
    with open(new, "w", encoding="utf-8", opener=private) as stream:
        stream.write(page)
    os.replace(new, path)
