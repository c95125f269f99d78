# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A support bundle: each form of a secret in each kind of file, the manifest, the archive, and the check of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import redaction
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import support_bundle
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.support_bundle import (
    LeftOut,
    Redactor,
    Source,
    SupportError,
)

from tests.unit.secrets.test_redaction import FORMS, HARD, PLAIN

ABOUT = {"cluster": "cluster-1", "at": "2026-11-29T12:00:00Z", "collection": "0.1.0"}
KINDS = {
    "json": lambda text: json.dumps({"said": text, "list": [text]}),
    "json with a name": lambda text: json.dumps({text: 1}),
    "torn.json": lambda text: json.dumps({"said": text})[:-1],
    "jsonl": lambda text: json.dumps({"said": text}) + "\n" + '{"torn": "' + text,
    "properties": lambda text: f"broker.id=1\n# {text}\nlog.dirs=/data",
    "diff": lambda text: f"--- a\n+++ b\n@@ -1 +1 @@\n-broker.id=1 {text}\n+{text}",
    "log": lambda text: f"[2026-11-29 00:00:00,000] INFO {text} (x.Y)\n",
    "txt": lambda text: text,
    "md": lambda text: f"# {text}",
    "yml": lambda text: f"a: {text}",
}


def redactor(*values, hosts=None):
    return Redactor(redaction.Secrets(values), hosts)


def built(*sources, values=("Secret-1",), left_out=(), patterns=(), hosts=None):
    return support_bundle.build(sources, left_out, redactor(*values, hosts=hosts), ABOUT, patterns)


def manifest(bundle):
    return json.loads(bundle.files[support_bundle.MANIFEST])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [PLAIN, HARD], ids=["plain", "hard"])
def test_each_form_in_each_kind_of_file(secret, form, kind):
    text = KINDS[kind](FORMS[form](secret))
    path = f"x.{kind.split()[0]}"
    bundle = built(Source(path, "b1", text.encode()), values=[secret])
    assert bundle.files[path] != text.encode() and bundle.replaced > 0
    assert not redactor(secret).find_survivor(bundle.files[path].decode())
    support_bundle.require_clean(support_bundle.pack(bundle.files, "root", 0), redactor(secret))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.properties", "ssl.keystore.password=Unknown1\nmy.plugin.word : Unknown1"),
        ("x.properties", 'sasl.jaas.config=a.B required password="Unknown1";\n#ssl.key.password=Unknown1'),
        ("x.properties", "my.plugin.word=Unkn\\\n  own1\nmy.plugin.word=\\u0055nknown1"),
        ("x.diff", "--- a\n+++ b\n@@ -1 +1 @@\n-ssl.key.password=Unknown1\n+my.plugin.word=Unknown1\\\n+Unknown1"),
        ("x.json", '{"sasl_password": "Unknown1", "said": "password=Unknown1", "passwords": ["Unknown1"]}'),
        ("x.jsonl", '{"said": "https://u:Unknown1@proxy/"}\n{"token": "Unknown1"'),
        ("x.log", "INFO x password=Unknown1\n\tsasl.password = Unknown1\nAuthorization: Bearer Unknown1\n"),
        (
            "x.log",
            "a LoginModule required username=u password=Unknown1;\njava -Djavax.net.ssl.keyStorePassword=Unknown1",
        ),
        ("x.log", "-----BEGIN PRIVATE KEY-----\nUnknown1\n-----END PRIVATE KEY-----"),
        ("x.log", "AAAA\nUnknown1\n-----END PRIVATE KEY-----\nnext"),
        ("x.txt", "sealed:Unknown1"),
    ],
)
def test_what_its_syntax_shows_to_be_a_secret(path, text):
    bundle = built(Source(path, "b1", text.encode()))
    shown = bundle.files[path].decode()
    assert "Unknown1" not in shown and "own1" not in shown and MASK in shown and bundle.replaced > 0


def test_what_is_no_secret_stays():
    log = "[2026-11-29 00:00:00,000] INFO User:ops reads orders (QS-RUN-003) (x.Y)\nsecond (QS-RUN-004)\n"
    bundle = built(
        Source("a.log", "b1", log.encode()),
        Source("b.json", "b1", b'{"a": 1, "\xc3\xa9": [true, null]}'),
        Source("c.properties", "b1", b"# a comment\nbroker.id = 1\n\nlog.dirs=/d\n"),
    )
    assert bundle.files["a.log"].decode() == log and bundle.replaced == 0
    assert json.loads(bundle.files["b.json"]) == {"a": 1, "\xe9": [True, None]}
    assert bundle.files["c.properties"] == b"# a comment\nbroker.id = 1\n\nlog.dirs=/d\n"


def test_a_secret_in_the_name_of_a_file_and_in_what_is_listed():
    bundle = built(
        Source("hosts/Secret-1/a.log", "Secret-1, /x", b""),
        Source("hosts/Secret-2/a.log", "b1", b""),
        values=["Secret-1", "Secret-2"],
        left_out=[LeftOut("Secret-1", "no Secret-1")],
    )
    assert {"hosts/REDACTED/a.log", "hosts/REDACTED/a-2.log"} < set(bundle.files)
    assert not any(b"Secret-1" in data for data in bundle.files.values())
    assert manifest(bundle)["left_out"] == [{"what": MASK, "why": f"no {MASK}", "missing": True}]


def test_the_manifest_lists_each_file_with_its_sums():
    bundle = built(
        Source("b.log", "b1, /x", b"Secret-1 Secret-1"), Source("a.txt", "b2", b"x"), values=["Secret-1", "ab"]
    )
    rows = manifest(bundle)["files"]
    assert [(row["path"], row["source"], row["replaced"]) for row in rows] == [
        ("a.txt", "b2", 0),
        ("b.log", "b1, /x", 2),
    ]
    for row in rows:
        data = bundle.files[row["path"]]
        assert (row["bytes"], row["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest(bundle)["secrets"] == {"searched": 1, "too_short": 1}
    assert b"1 more is shorter than 6 characters" in bundle.files[support_bundle.README]


def test_a_file_that_is_no_properties_file_is_left_out():
    bundle = built(Source("x.properties", "b1", b"a=\\u00zz"))
    assert "x.properties" not in bundle.files and bundle.left_out[0].missing
    assert "no properties file" in manifest(bundle)["left_out"][0]["why"]


def test_patterns_leave_files_out():
    bundle = built(Source("hosts/b1/a.log", "b1", b""), Source("a.txt", "x", b""), patterns=["hosts/*/*.log"])
    assert "a.txt" in bundle.files and "hosts/b1/a.log" not in bundle.files
    assert bundle.left_out == [LeftOut("hosts/b1/a.log", "support_leave_out names it", False)]


def test_sha256sum_accepts_what_is_in_the_archive(tmp_path):
    bundle = built(Source("hosts/b1/a.log", "b1", b"x"), Source("z z.txt", "b1", b"x"))
    with tarfile.open(fileobj=io.BytesIO(support_bundle.pack(bundle.files, "root", 7))) as archive:
        archive.extractall(tmp_path, filter="data")
    done = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / "root", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.count(": OK") == 4


def test_the_archive_has_an_order_and_no_owner():
    files = {"b": b"1", "a/c": b"2"}
    packed = support_bundle.pack(files, "root", 7)
    assert packed == support_bundle.pack(dict(reversed(files.items())), "root", 7)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == ["root/a/c", "root/b"]
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime, member.mode) for member in members} == {
        (0, 0, "", "", 7, 0o600)
    }
    assert b"/" not in gzip.decompress(packed)[:1]


# The check of the archive ---------------------------------------------------------------------------------------------


def packed_with(files, **changed):
    return support_bundle.pack({**files, **changed}, "root", 0)


def test_a_secret_that_is_left_ends_it_and_is_not_named(tmp_path):
    keeps = redactor("Secret-1")
    bundle = built(Source("a.log", "b1", b"x"))
    with pytest.raises(
        SupportError, match=r"is still in a.log after .*support_leave_out=a.log \(QS-HOST-003\)"
    ) as raised:
        support_bundle.write(str(tmp_path / "x.tar.gz"), packed_with(bundle.files, **{"a.log": b"Secret-1"}), keeps)
    assert "Secret-1" not in str(raised.value) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_secret_that_is_left_is_found(form):
    bundle = built(Source("a.log", "b1", b"x"), values=[HARD])
    with pytest.raises(SupportError, match=r"still in a.log"):
        dirty = packed_with(bundle.files, **{"a.log": FORMS[form](HARD).encode()})
        support_bundle.require_clean(dirty, redactor(HARD))


def test_a_secret_in_a_name_and_a_host_that_is_left_are_found():
    bundle = built(Source("a.log", "b1", b"x"))
    with pytest.raises(SupportError, match=r"still in REDACTED.log after"):
        support_bundle.require_clean(packed_with(bundle.files, **{"Secret-1.log": b""}), redactor("Secret-1"))
    hidden = redactor("Secret-1", hosts=redaction.Hosts(["b1"]))
    with pytest.raises(SupportError, match=r"still in MANIFEST.json after"):
        support_bundle.require_clean(packed_with(bundle.files), hidden)


def test_a_file_without_its_checksum_is_found():
    bundle = built(Source("a.log", "b1", b"x"))
    with pytest.raises(SupportError, match="own checksums"):
        support_bundle.require_clean(packed_with(bundle.files, **{"a.log": b"y"}), redactor("Secret-1"))


def test_the_file_is_its_owners_alone(tmp_path):
    path = str(tmp_path / "x.tar.gz")
    bundle = built(Source("a.log", "b1", b"x"))
    mask = os.umask(0)
    try:
        support_bundle.write(path, packed_with(bundle.files), redactor("Secret-1"))
    finally:
        os.umask(mask)
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.listdir(tmp_path) == ["x.tar.gz"]


def test_hidden_hosts_are_the_same_in_all_files_and_names():
    hosts = redaction.Hosts(["b1", "b2"])
    bundle = built(Source("hosts/b1/a.log", "b1, /x", b"b1 b2 10.1.1.1"), Source("c.json", "x", b'["b1"]'), hosts=hosts)
    assert bundle.files["hosts/host-1/a.log"] == b"host-1 host-2 address-1"
    assert json.loads(bundle.files["c.json"]) == ["host-1"] and manifest(bundle)["hosts_hidden"]
    support_bundle.require_clean(packed_with(bundle.files), redactor("Secret-1", hosts=hosts))


# Run artifacts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path):
    for run in ("20260101T000000-aaaa", "20260102T000000-bbbb", "20260103T000000-cccc"):
        (tmp_path / run / "verify").mkdir(parents=True)
        (tmp_path / run / "journal.jsonl").write_text(run)
        (tmp_path / run / "verify" / "a.parquet").write_text("")
        (tmp_path / run / "index.html").write_text("")
    (tmp_path / "support-20260103T000000-dddd.tar.gz").write_text("")
    (tmp_path / "status.json").write_text("")
    return tmp_path


def test_the_newest_runs_are_collected(cluster):
    sources, left_out = support_bundle.collect_runs(str(cluster), 2)
    assert [source.path for source in sources] == [
        "runs/20260103T000000-cccc/journal.jsonl",
        "runs/20260102T000000-bbbb/journal.jsonl",
    ]
    assert LeftOut("1 older runs", "support_runs is 2", False) in left_out
    assert LeftOut("1 in runs/20260103T000000-cccc/verify", "data (.parquet)", False) in left_out
    assert not any(item.missing for item in left_out)
    assert support_bundle.collect_runs(str(cluster), 0)[0] == []


def test_links_pipes_and_large_files_are_left_out(cluster, monkeypatch):
    run = cluster / "20260103T000000-cccc"
    (run / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(run / "pipe.json")
    (run / "large.json").write_text("x" * 100)
    monkeypatch.setattr(support_bundle, "MOST_BYTES", 99)
    sources, left_out = support_bundle.collect_runs(str(cluster), 1)
    assert [source.path for source in sources] == ["runs/20260103T000000-cccc/journal.jsonl"]
    assert {item.why for item in left_out} >= {"no regular file", "more than 0 MiB"}


def test_no_artifacts_are_no_failure(tmp_path):
    sources, (item,) = support_bundle.collect_runs(str(tmp_path / "absent"), 3)
    assert sources == [] and not item.missing
