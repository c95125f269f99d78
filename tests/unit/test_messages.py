# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each message has an id, each id has an entry and a page, and ids reach the end of what the operator reads."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.run import run_outcome
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask

from tools import messages
from tools.yaml_files import parse_yaml

ENTRIES = {entry.id: entry for area in messages.areas() for entry in area.entries}


@pytest.fixture(scope="module")
def texts():
    return messages.texts()


def test_each_message_has_an_id_each_id_an_entry_and_each_entry_a_text():
    assert messages.gaps() == [], "see CONTRIBUTING.md, Add a message"


def test_the_pages_are_those_of_the_registry():
    wanted = messages.pages()
    assert {path.name for path in messages.PAGES.glob("*.md")} == set(wanted)
    for name, text in wanted.items():
        assert (messages.PAGES / name).read_text(encoding="utf-8") == text, f"{name}: python -m tools.messages"


def test_an_area_has_its_ids_and_each_entry_says_what_it_means_and_what_to_do():
    assert len(ENTRIES) == sum(len(area.entries) for area in messages.areas())
    files = {path.stem for path in messages.REGISTRY.glob("*.yml")} - {"order"}
    assert files == {area.name.lower() for area in messages.areas()}
    for area in messages.areas():
        for entry in area.entries:
            assert re.fullmatch(rf"QS-{area.name}-\d{{3}}", entry.id)
            assert entry.title and entry.means.strip() and entry.do.strip(), entry.id


def test_each_preflight_check_has_an_id_of_its_own():
    ids = [check.id for check in preflight.CHECKS]
    assert len(set(ids)) == len(ids) and set(ids) <= set(ENTRIES)
    assert {ENTRIES[check.id].title for check in preflight.CHECKS} == {check.title for check in preflight.CHECKS}


def test_an_id_is_in_a_text_once_and_at_its_end(texts):
    """`texts` are read from literals, so this is true of each of them in the code."""
    for path in messages.sources():
        for _node, template in messages.templates_of(path):
            if message_ids.find_ids(template) and "\n" not in template:
                assert re.search(r"\(QS-[A-Z]+-\d{3}\)$", template), f"{path}: {template}"
                assert len(message_ids.find_ids(template)) == 1, f"{path}: {template}"
    assert len(texts) > 700


COLLECTED = """
class Wrong(Exception):
    pass

def first(number):
    raise Wrong(f"{number} is too much: take less")

def second(module):
    module.fail_json(msg="it does not go on " + module.name)
    module.fail_json(msg=f"{module.why}. Nothing was changed.")
    module.fail_json(msg="it has one (QS-RUN-001)")

def third():
    yield Finding(f"{1} was found", "do something about it")
    blocks = Block("an_id", "something is in the way", "take it away")

def fourth():
    return {"failed": True, "msg": "four did not work"}

def fifth():
    return "this is said when all is well"
"""


def test_a_message_without_an_id_is_found_in_each_kind_of_place():
    said = messages._said(ast.parse(COLLECTED), checks=False)
    templates = [text for _node, value in said for _part, text in messages._templates(ast.Expression(value))]
    assert {text for text in templates if messages.has_words(text) and not message_ids.find_ids(text)} == {
        "… is too much: take less",
        "it does not go on …",
        "… was found",
        "something is in the way",
        "four did not work",
    }


TASKS = """
- name: A play
  tasks:
    - block:
        - ansible.builtin.assert: {that: x, fail_msg: "one is {{ x }}"}
      rescue:
        - ansible.builtin.fail: {msg: two failed}
      always:
        - block: [{ansible.builtin.assert: {that: x, fail_msg: three}}]
    - ansible.builtin.debug: {msg: no failure}
"""


def test_messages_of_tasks_are_collected_from_plays_and_blocks():
    assert list(messages.task_messages(parse_yaml(TASKS))) == ["one is {{ x }}", "two failed", "three"]


def test_texts_are_of_playbooks_roles_modules_and_spark(texts):
    places = {text.origin.split("/")[0].split(".")[0] for text in texts}
    assert places == {"playbooks", "plugins", "roles", "spark", "ansible_collections"}


# Ids at the end ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("a broker is down (QS-PHASE-012)", "a broker is down (QS-PHASE-012)"),
        ("a (QS-A-001); b (QS-A-002). Nothing was changed.", "a; b. Nothing was changed. (QS-A-001 QS-A-002)"),
        ("gate: a (QS-A-001); a (QS-A-001) (QS-B-001)", "gate: a; a (QS-A-001 QS-B-001)"),
        ("a (QS-A-001 QS-B-001) b", "a b (QS-A-001 QS-B-001)"),
        ("first\nlog line (QS-A-001)\n", "first\nlog line (QS-A-001)"),
        ("[::1]:9092 is no QS-A-001 (QS-1)", "[::1]:9092 is no QS-A-001 (QS-1)"),
        ("", ""),
    ],
)
def test_all_ids_are_at_the_end_once(text, ended):
    assert message_ids.move_to_end(text) == ended == message_ids.move_to_end(message_ids.move_to_end(text))


def test_a_text_without_an_id_gets_the_one_given():
    assert message_ids.move_to_end("template error", message_ids.NO_ID) == "template error (QS-HOST-001)"
    assert message_ids.move_to_end("a (QS-A-001)", message_ids.NO_ID) == "a (QS-A-001)"
    assert message_ids.move_to_end("", message_ids.NO_ID) == ""


def test_a_command_that_is_pasted_with_its_id_does_not_run(tmp_path):
    command = message_ids.move_to_end(f"touch {tmp_path}/ran && touch {tmp_path}/ran", message_ids.NO_ID)
    ended = subprocess.run(["bash", "-c", command], capture_output=True, check=False, text=True)
    assert ended.returncode == 2 and "syntax error" in ended.stderr and not list(tmp_path.iterdir())


def test_a_sentence_goes_on_after_a_message():
    assert message_ids.drop_full_stop("It is. (QS-A-001)") == "It is (QS-A-001)"
    assert message_ids.drop_full_stop(" It is. ") == "It is"


def test_masking_keeps_ids_and_a_secret_hides_none():
    text = "the command failed: password=hunter2 and more (QS-A-001). Nothing was changed."
    assert mask(text).endswith(" (QS-A-001)") and "hunter2" not in mask(text)


def test_a_run_knows_its_refusals_by_their_id():
    events = [
        {"kind": "event", "name": "failed", "host": "b1", "task": "Restart", "reason": "disk full. (QS-HOST-001)"}
    ]
    refused = run_outcome.refusal(events, "a step", ["b1"])
    assert message_ids.find_ids(refused) == ["QS-HOST-001", run_outcome.REFUSED] and run_outcome.is_refusal(refused)
    assert run_outcome.is_refusal(message_ids.move_to_end(mask(refused), message_ids.NO_ID))
    # the failure itself, and one that quotes a refusal
    assert not run_outcome.is_refusal("disk full. (QS-HOST-001)")
    assert not run_outcome.is_refusal(f"{refused}: b2 (QS-RUN-004)") and not run_outcome.is_refusal(None)
