# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""job_stats: what a run leaves to job templates."""

from __future__ import annotations

import itertools
import json
import shlex

import jinja2
import pytest
from ansible.parsing.splitter import parse_kv
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import job_stats

NEXT = {"text": "finalize", "playbook": "migrate", "token": True, "target": None, "given": {}}
RESULT = {"next": NEXT, "cluster_id": "C", "phase": "dual_write", "blocks": [], "token": "C:abc123"}


def test_the_state_has_phase_next_command_blocks_and_token(monkeypatch):
    monkeypatch.setenv("AWX_JOB_ID", "7")
    given = job_stats.of_state(RESULT, "r1")
    assert not given["per_host"] and not given["aggregate"]
    job = given["data"]["quorumshift_job"]
    assert (job["run"], job["phase"], job["token"], job["blocks"]) == ("r1", "dual_write", "C:abc123", [])
    assert job["next"]["command"] == (
        "launch the job template of the playbook migrate with the extra variable quorumshift_finalize_token=C:abc123"
    )


def test_no_artifact_has_the_name_of_a_variable_that_a_playbook_reads():
    """AWX hands artifacts to the next jobs of a workflow as extra variables: a token would finalize there."""
    assert set(job_stats.of_state(RESULT, None)["data"]) == {"quorumshift_job"}


@pytest.mark.parametrize("text", ["{{ 1 + 1 }}", "{{{ 1 + 1 }}}", "{% if 1 %}x{% endif %}", "{# x #}a", "{{{{%{#"])
def test_no_text_of_the_cluster_is_a_template_in_the_next_job(text):
    blocks = [{"text": text, "do": [text], "names": {text: text}}]
    made = job_stats.of_state({**RESULT, "blocks": blocks}, None)["data"]["quorumshift_job"]["blocks"][0]
    for inert in (made["text"], made["do"][0], *made["names"].values()):
        assert jinja2.Template(inert).render() == inert
        assert inert.replace("{ ", "{") == text.replace("{ ", "{")


def test_passwords_are_masked():
    blocks = [{"text": "sasl_password=hunter22222 failed"}]
    made = job_stats.of_state({**RESULT, "blocks": blocks}, None)
    assert "hunter22222" not in str(made)


def test_a_printed_command_gives_ansible_each_value_as_it_was():
    """All values of up to three of these characters, as the shell and then Ansible read them. They see no newline."""
    characters = "a %*'\"\\=$#{};,~"
    for size in (0, 1, 2, 3):
        for value in map("".join, itertools.product(characters, repeat=size)):
            command = shlex.join(["-e", job_stats._assigned("name", value)])
            (_option, given) = shlex.split(command)
            read = json.loads(given) if given.startswith("{") else parse_kv(given)
            assert read == {"name": value}, (value, command)
    assert job_stats._assigned("topics", "*") == "topics=*"
