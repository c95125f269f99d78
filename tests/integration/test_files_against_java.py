# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are read as Java, Kafka and ZooKeeper read them, and edited so that these read the new values and all others.

QUORUMSHIFT_GENERATED_FILES is the number of files, QUORUMSHIFT_SEED their seed: a failure prints both, the shrunk file
and the command that repeats it.
"""

from __future__ import annotations

import difflib
import os
import random
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties

from tests.integration import generated_files, java_files, servers

pytestmark = pytest.mark.real
FILES = int(os.environ.get("QUORUMSHIFT_GENERATED_FILES", "2000"))
SEED = int(os.environ.get("QUORUMSHIFT_SEED") or random.SystemRandom().randrange(1 << 32))
NONE = {"rejected": "rejected"}


@pytest.fixture(scope="module")
def home():
    with servers.workdir("files_against_java") as path:
        yield path


@pytest.fixture(scope="module")
def java(home):
    with java_files.reader(home) as reader:
        yield reader


def ours(data):
    try:
        return properties.parse(data)
    except properties.PropertiesError:
        return NONE


def theirs(java, data):
    try:
        return java.read("properties", data)
    except java_files.Rejected:
        return NONE


def read_differently(java, data):
    return ours(data) != theirs(java, data)


def edited_wrongly(java, data, changes):
    """Return what is wrong after an edit, '' if nothing is."""
    before = theirs(java, data)
    if before is NONE:
        return ""
    after = properties.edit(data, changes)
    wanted = {key: value for key, value in {**before, **changes}.items() if value is not None}
    read = theirs(java, after)
    if read != wanted:
        return f"Java reads {read}, not {wanted}"
    # new keys at the end of the file end its last line where it has no end, and an entry that goes on
    ends = [end * count for count in (1, 2) for end in (b"\n", b"\r\n", b"\r")]
    wrong = [touched(java, data + end, after, changes) for end in (b"", *ends)]
    return "" if "" in wrong else wrong[0]


def touched(java, data, after, changes):
    """Return which lines the edit should not have changed: those that are more than entries of changed keys."""
    old, new = lines(data), lines(after)
    for verb, begin, end, new_begin, new_end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if verb == "equal":
            continue
        for kind, text in (("removed", entry(old, begin, end)), ("added", entry(new, new_begin, new_end))):
            if kind == "removed" and re.search(rb"(?m)^[ \t\f]*[#!]", b"".join(old[begin:end])):
                return f"a comment in {text!r} was changed"
            strays = theirs(java, text).keys() - changes.keys() - {"", "rejected"}
            if strays and not any(key.endswith(tuple(strays)) for key in changes):
                return f"{text!r} was {kind}, which has {sorted(strays)}"
    return ""


def lines(data):
    return re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", data)


def entry(all_lines, begin, end):
    """Return lines with those before them that they continue."""
    while begin and re.search(rb"(?<!\\)(?:\\\\)*\\(?:\r\n|\r|\n)$", all_lines[begin - 1]):
        begin -= 1
    return b"".join(all_lines[begin:end])


def report(number, data, why):
    pytest.fail(
        f"file {number} of seed {SEED}, shrunk: {data!r}, hex {data.hex()}: {why}. Repeat: QUORUMSHIFT_SEED={SEED} "
        f"QUORUMSHIFT_GENERATED_FILES={FILES} pytest {__file__}"
    )


def test_files_are_read_as_java_reads_them(java):
    rejected = 0
    for number in range(FILES):
        data = generated_files.properties_file(SEED, number)
        if read_differently(java, data):
            small = generated_files.shrunk(data, lambda one: read_differently(java, one))
            report(number, small, f"read as {ours(small)}, Java reads {theirs(java, small)}")
        rejected += ours(data) is NONE
    assert 0 < rejected < FILES / 4  # the files reach both answers


def test_after_an_edit_java_reads_the_new_values_and_all_other_bytes_are_the_same(java):
    for number in range(FILES):
        data = generated_files.properties_file(SEED, number)
        changes = generated_files.changes(SEED, number, properties_of(data))
        if edited_wrongly(java, data, changes):
            small = generated_files.shrunk(data, lambda one, with_=changes: bool(edited_wrongly(java, one, with_)))
            report(number, small, f"{changes}: {edited_wrongly(java, small, changes)}")


def properties_of(data):
    found = ours(data)
    return [] if found is NONE else sorted(found)
