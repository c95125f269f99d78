# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback webhook, with a real server: what it posts, and that no answer of it changes a run."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from tests import playbook

KEY = "key-of-the-hook-4711"
SESSION = {"cluster_id": "phUKKf3TSny1o9Yap379dw", "run": "r1", "run_lock": {"hosts": ["b1"]}}
KNOWN = {"ansible.builtin.set_fact": {"quorumshift_session": SESSION}}
GATE = {"quorumshift.kafka.gate": {"gate": "after_copy"}}  # of which nothing is reachable here


@pytest.fixture
def server():
    """A server that keeps what it gets, and answers as `answer` says."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.got.append((self.path, dict(self.headers), content))
            self.send_response(self.server.answer)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_given):
            pass

    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.got, found.answer = [], 200
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def play(server, tmp_path, monkeypatch):
    """Return a function that plays tasks with the callback, and returns what it printed and how it ended."""
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "quorumshift.kafka.webhook")
    monkeypatch.setenv("QUORUMSHIFT_WEBHOOK_URL", f"http://127.0.0.1:{server.server_port}/{KEY}")
    monkeypatch.setenv("QUORUMSHIFT_WEBHOOK_AUTHORIZATION", f"Bearer {KEY}")

    def played(*tasks):
        file = tmp_path / "migrate.yml"
        file.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [*tasks]}]))
        return playbook.play(tmp_path, file)

    return played


def test_a_closed_gate_and_a_failed_run_are_posted(server, play):
    done = play(KNOWN, GATE)
    assert done.returncode == 2
    events = [content["event"] for _path, _headers, content in server.got]
    assert events == ["gate_closed", "failed"], done.stdout
    path, headers, content = server.got[1]
    assert path == f"/{KEY}" and headers["Authorization"] == f"Bearer {KEY}"
    assert content["text"].startswith("Kafka cluster phUKKf3TSny1o9Yap379dw: migrate failed: localhost: ")
    assert {content[key] for key in ("cluster_id", "run", "playbook")} == {SESSION["cluster_id"], "r1", "migrate"}
    assert KEY not in done.stdout


def test_a_run_that_ends_is_posted_and_a_playbook_without_the_lock_is_not(server, play):
    ended = {"ansible.builtin.debug": {"msg": "done"}}
    failure = {"ansible.builtin.fail": {"msg": "as expected"}, "ignore_errors": True}
    assert play(KNOWN, failure, ended).returncode == 0
    assert [content["event"] for _path, _headers, content in server.got] == ["ended"]
    server.got.clear()
    assert play({"ansible.builtin.set_fact": {"quorumshift_session": {**SESSION, "run_lock": {}}}}).returncode == 0
    assert server.got == []


@pytest.mark.parametrize("answer", [302, 404, 500])
def test_an_answer_that_is_no_yes_is_a_warning_without_the_key(server, play, answer):
    server.answer = answer
    done = play(KNOWN)
    assert done.returncode == 0 and len(server.got) == 1
    assert f"The webhook at 127.0.0.1 did not take the event ended: {answer}" in " ".join(done.stdout.split())
    assert KEY not in done.stdout


def test_a_server_that_is_not_there_or_no_url_changes_nothing(server, play, monkeypatch):
    monkeypatch.setenv("QUORUMSHIFT_WEBHOOK_URL", f"http://127.0.0.1:1/{KEY}")
    done = play(KNOWN)
    assert done.returncode == 0 and "did not take the event ended" in done.stdout
    assert KEY not in done.stdout
    monkeypatch.delenv("QUORUMSHIFT_WEBHOOK_URL")
    done = play(KNOWN)
    assert done.returncode == 0 and "has no URL" in done.stdout and server.got == []
