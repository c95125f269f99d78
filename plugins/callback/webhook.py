# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""webhook: post to a URL when a run stops, fails or ends, and when a soak begins, is disturbed or is over."""

from __future__ import annotations

DOCUMENTATION = """
name: webhook
type: notification
author: Quorumshift contributors (@quorumshift)
short_description: posts what happens to a run to a URL
version_added: 0.1.0
description:
  - Posts a JSON object when a gate stays closed, when a run fails or ends, when it stops for the soak, and for samples
    of the playbook C(watch_soak) that say something new. C(docs/monitoring) lists the events.
  - Its key C(text) is one sentence, so that the incoming webhooks of chat systems show it.
  - A URL that does not answer changes nothing for the run; it is a warning. The URL may hold a secret, and is never
    shown.
options:
  url:
    description: Where to post, as C(https://chat.example/hooks/KEY).
    type: str
    env: [{name: QUORUMSHIFT_WEBHOOK_URL}]
    ini: [{section: callback_quorumshift_webhook, key: url}]
  authorization:
    description: The header C(Authorization), as C(Bearer KEY).
    type: str
    env: [{name: QUORUMSHIFT_WEBHOOK_AUTHORIZATION}]
  timeout:
    description: How many seconds a post may take.
    type: float
    default: 5
    env: [{name: QUORUMSHIFT_WEBHOOK_TIMEOUT}]
    ini: [{section: callback_quorumshift_webhook, key: timeout}]
requirements:
  - C(quorumshift.kafka.webhook) in C(callbacks_enabled)
"""

import json
import time
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.urls import open_url
from ansible.plugins.callback import CallbackBase
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import phase
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.task_results import host_of, returned_by, task_of

VERSION = 1  # of the object that is posted
_OWN = "quorumshift.kafka."


class CallbackModule(CallbackBase):
    """Posts events of a run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "quorumshift.kafka.webhook"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._playbook, self._phase, self._failure = "", "", ""
        self._session: dict[str, Any] = {}
        self._shows_next = False  # whether the status was shown: the run stopped where a person goes on
        self._is_sample_bad = False  # which is news once, however often a timer runs
        self._warned = False

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Keep the playbook's name."""
        self._playbook = str(playbook._file_name).rpartition("/")[2].partition(".")[0]
        if not self.get_option("url"):
            self._display.warning("The callback quorumshift.kafka.webhook has no URL: set QUORUMSHIFT_WEBHOOK_URL.")
            self.disabled = True

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep run and phase, and post what a sample says anew."""
        returned = returned_by(result)
        self._session = (returned.get("ansible_facts") or {}).get("quorumshift_session") or self._session
        action = task_of(result).action
        if not action.startswith(_OWN):
            return
        self._phase = returned.get("phase") or self._phase
        self._shows_next = self._shows_next or action == f"{_OWN}status"
        if action == f"{_OWN}soak_sample":
            self._phase = returned["sample"]["phase"]
            self._is_sample_bad = bool(returned["sample"]["problems"])
            for new in returned["news"]:
                self._post(new["event"], new["text"])

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Keep the first reason, and post that a gate stays closed."""
        if ignore_errors:
            return
        text = str(returned_by(result).get("msg") or f"the task {task_of(result).name} failed")
        self._failure = self._failure or f"{host_of(result).get_name()}: {text}"
        if task_of(result).action == f"{_OWN}gate":
            self._post("gate_closed", f"a gate stays closed: {text}")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Keep the first reason."""
        if not task_of(result).ignore_unreachable:
            self._failure = self._failure or f"{host_of(result).get_name()} is unreachable"

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Post how the run ended. A playbook that takes no run lock ends without an event, unless it fails."""
        hosts = [stats.summarize(host) for host in stats.processed]
        if any(counts["failures"] or counts["unreachable"] for counts in hosts):
            if self._is_sample_bad:
                return
            self._post("failed", f"{self._playbook} failed: {self._failure or 'the log has the reason'}")
        elif self._session.get("run_lock"):
            if self._phase == phase.DUAL_WRITE and self._shows_next:
                self._post("soak_begun", f"{self._playbook} stopped for the soak, in dual-write")
            else:
                self._post("ended", f"{self._playbook} ended without a failure")

    def _post(self, event: str, text: str) -> None:
        """Post an event. Whatever the server does, the run goes on."""
        cluster = self._session.get("cluster_id") or ""
        content = {
            "version": VERSION,
            "event": event,
            "text": mask(f"Kafka cluster {cluster}: {text}" if cluster else text),
            "cluster_id": cluster,
            "run": self._session.get("run") or "",
            "phase": self._phase,
            "playbook": self._playbook,
            "at": round(time.time(), 3),
        }
        url, authorization = self.get_option("url"), self.get_option("authorization")
        headers = {"Content-Type": "application/json"}
        if authorization:
            headers["Authorization"] = authorization
        try:
            open_url(
                url,
                data=json.dumps(content).encode(),
                headers=headers,
                method="POST",
                timeout=self.get_option("timeout"),
                follow_redirects="none",
            ).close()
        except Exception as error:  # of any kind: the address, TLS, the answer
            if not self._warned:
                why = getattr(error, "reason", None) or type(error).__name__
                code = f" {error.code}" if hasattr(error, "code") else ""
                where = urlsplit(url).hostname or "the URL"
                self._display.warning(f"The webhook at {where} did not take the event {event}:{code} {mask(str(why))}")
            self._warned = True
