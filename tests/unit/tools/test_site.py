# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The docs site: links lead to the same page as in the checkout, dead ones are found, llms.txt has each page."""

from __future__ import annotations

import pytest

from tools.checkout import ROOT
from tools.site import links, llms, pages

FOUND = pages.find()


def linked(text, source="docs/runbook.md"):
    return pages.link(source, text, FOUND)


@pytest.mark.parametrize(
    ("source", "link", "there"),
    [
        ("docs/runbook.md", "messages/README.md#run", "messages/index.md#run"),
        ("docs/messages/QS-RUN-001.md", "../runbook.md", "../runbook.md"),
        ("docs/runbook.md", "../roles/restart/README.md", "roles/restart.md"),
        ("roles/restart/README.md", "../../docs/operators-guide.md#pause", "../operators-guide.md#pause"),
        ("README.md", "docs/README.md", "index.md"),
        ("docs/README.md", "../README.md", "start.md"),
        ("docs/runbook.md", "#five-rules", "#five-rules"),
        ("docs/runbook.md", "https://kafka.apache.org/", "https://kafka.apache.org/"),
        ("docs/runbook.md", "adr/", "adr/index.md"),
        ("docs/runbook.md", "../plugins/action/run.py", f"{pages.REPOSITORY}plugins/action/run.py"),
    ],
)
def test_a_link_leads_to_the_same_page(source, link, there):
    assert linked(f"see [it]({link}).", source).text == f"see [it]({there})."


def test_a_file_of_the_docs_comes_along():
    found = linked("[rules](monitoring/quorumshift.rules.yml) ![x](diagrams/soak.svg)")
    assert found.files == {"docs/monitoring/quorumshift.rules.yml", "docs/diagrams/soak.svg"}


def test_code_is_left_alone():
    text = "`[a](../README.md)`\n\n```\n[a](../README.md)\n```\n"
    assert linked(text).text == text


def test_a_picture_stands_in_the_page():
    picture = '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x"\n "y">\n<!-- made -->\n<svg>\n\n<text>a</text></svg>\n'
    text = pages.inline_pictures('before\n\n![A "good" one](x.svg)\n', lambda _target: picture)
    assert '<div class="picture" role="img" aria-label="A &quot;good&quot; one"' in text
    assert "<svg>\n<text>a</text></svg>\n</div>" in text and "DOCTYPE" not in text
    assert pages.inline_pictures("see ![a](x.svg) there", lambda _target: picture) == "see ![a](x.svg) there"


def test_every_page_has_a_title():
    assert [path for path in FOUND if not pages.title((ROOT / path).read_text(encoding="utf-8"))] == []
    assert len(set(FOUND.values())) == len(FOUND)


def test_llms_txt_has_each_page_once():
    texts = {name: (ROOT / path).read_text(encoding="utf-8") for path, name in FOUND.items()}
    text = llms.text(texts)
    assert text.startswith("# Quorumshift\n\n> ") and text.count("\n# ") == 0
    for name in set(texts) - {"index.md"}:
        assert text.count(f"]({name})") == 1, name
    assert "](operators-guide.md): From an inventory to a finalized cluster." in text


def site(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.html").write_text(text)
    return list(links.check(tmp_path))


def test_links_that_lead_nowhere_are_found(tmp_path):
    wrong = site(
        tmp_path,
        a='<a href="b.html#there"></a><a href="b.html"></a><a href="https://github.com/x"></a><img src="data:x">',
        b='<p id="there"><a href="a.html#gone"></a><a href="c.html"></a><a href="../out.html"></a>'
        '<a href="https://example.org"></a><script src="https://cdn.example/x.js"></script><img src="no.png">',
    )
    assert wrong == [
        "b.html loads https://cdn.example/x.js: the site needs no other host",
        "b.html loads no.png, which does not exist",
        "b.html links to a.html#gone, which has no such place",
        "b.html links to c.html, which does not exist",
        "b.html links to ../out.html, which does not exist",
        "b.html links to https://example.org, a host that tools/site/links.py does not know",
    ]
