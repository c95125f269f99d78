# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host gives to a support bundle: the ends of its logs over rolled files, its secrets, and reasons."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import service
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation, own_log, support_texts
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import (
    SealError,
    seal,
    seal_bytes,
    unseal_bytes,
)

KEY = "ab" * 32
STATE = {"manager": "systemd", "name": "kafka.service", "active": True, "main_pid": 0, "masked": False}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Return a function that collects from a host with this properties file and log; None for no such file."""
    monkeypatch.setattr(service, "read_state", lambda _name: STATE)
    monkeypatch.setattr(service, "read_journal", lambda _name, lines, _output: ["one", "two"][-lines:])
    monkeypatch.setattr(service, "read_environment", lambda _name: {"WORD": "FromEnvironment"})

    def collect(properties, log, lines=10):
        for name, text in (("server.properties", properties), ("server.log", log)):
            if text is not None:
                (tmp_path / name).write_bytes(text)
        paths = (str(tmp_path / "server.properties"), "kafka", str(tmp_path / "server.log"))
        found = support_texts.collect(*paths, lines, KEY)
        texts = {
            text["kind"]: unseal_bytes(KEY, text["sealed"], 1 << 20) if "sealed" in text else text["why"]
            for text in found["texts"]
        }
        return found, texts, json.loads(unseal_bytes(KEY, found["secrets"], 1 << 20))

    return collect


def test_texts_leave_the_host_sealed_and_as_they_are(host):
    file = b"broker.id=1\nssl.keystore.password=Keyst0re\n"
    found, texts, secrets = host(file, b"log\n")
    assert texts == {"properties": file, "log": b"log\n", "journal": b"one\ntwo\n"}
    assert secrets == ["Keyst0re"] and found["versions"]["java"] is None and found["versions"]["python"]
    assert "Keyst0re" not in json.dumps(found)


def test_what_cannot_be_read_has_a_reason(host, monkeypatch):
    monkeypatch.setattr(service, "read_journal", lambda *_given: [])
    found, texts, secrets = host(None, None)
    assert texts["properties"] == texts["log"] == "No such file or directory" and secrets == []
    assert [text.partition(": ")[2] for text in found["unresolved"]] == ["No such file or directory"]
    assert "journal has no line" in texts["journal"]


def test_the_secrets_of_a_file_that_is_no_properties_file_are_said_to_be_unknown(host):
    """Kafka runs with what it read before: its log may have them, and no file was searched for them."""
    found, _texts, secrets = host(b"ssl.key.password=hunter2\na=\\u12\n", b"x\n")
    assert secrets == [] and ["malformed" in text for text in found["unresolved"]] == [True]


def test_no_service_manager_is_no_failure(host, monkeypatch):
    def absent(_name):
        raise FileNotFoundError(2, "No such file or directory", "service")

    monkeypatch.setattr(service, "read_state", absent)
    found, texts, _secrets = host(b"broker.id=1\n", b"x\n")
    assert found["versions"]["java"] is None and texts["log"] == b"x\n"


def test_no_lines_are_no_failure(host):
    _found, texts, _secrets = host(b"", b"x\n", lines=0)
    assert texts["log"] == texts["journal"] == b""


def test_secrets_of_config_providers_are_known(host):
    package = b"org.apache.kafka.common.config.provider."
    file = b"config.providers=env,other\nconfig.providers.env.class=" + package + b"EnvVarConfigProvider\n"
    file += b"config.providers.other.class=x.Y\nssl.key.password=${env:WORD}\nssl.keystore.password=${other:a:b}\n"
    found, _texts, secrets = host(file, b"")
    assert "FromEnvironment" in secrets
    assert found["unresolved"] == ["ssl.keystore.password: only Kafka can run its provider x.Y"]


def test_secrets_of_jaas_and_urls_are_known(host):
    file = b'sasl.jaas.config=x.Y required password="J44s" k="v";\nproxy.url=http://u:Ur1Word@p/\n'
    assert {"J44s", "Ur1Word"} <= set(host(file, b"")[2])


def test_a_text_that_is_too_large_is_left_out(host, monkeypatch):
    monkeypatch.setattr(support_texts, "MOST_BYTES", 3)
    assert host(b"a=1\n", b"x\n")[1]["properties"] == "it has 4 bytes"


def test_the_end_of_a_log_begins_in_the_files_that_it_was_rolled_to(tmp_path):
    for name, text, moment in (
        ("server.log.2026-11-29-10", "1\n2\n", 1000),
        ("server.log.2026-11-29-11", "3\n4\n", 2000),
        ("server.log", "5\n", 3000),
        ("server.log.2026-11-29-09.gz", "0\n", 3000),
    ):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (moment, moment))
    path = str(tmp_path / "server.log")
    assert own_log.read_end(path, 4) == b"2\n3\n4\n5\n"
    assert own_log.read_end(path, 1) == b"5\n" and own_log.read_end(path, 0) == b""
    assert own_log.read_end(path, 99) == b"1\n2\n3\n4\n5\n"
    with pytest.raises(FileNotFoundError):
        own_log.read_end(path + ".absent", 1)


def test_a_line_that_the_limit_cuts_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(own_log, "_END_BYTES", 7)
    (tmp_path / "x.log").write_text("secret\nab\ncd\n")
    assert own_log.read_end(str(tmp_path / "x.log"), 9) == b"ab\ncd\n"


def test_java_says_its_version(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "readlink", lambda _path: str(tmp_path / "bin" / "java"))
    assert installation.java_version(1) is None
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.13"\n')
    assert installation.java_version(1) == "17.0.13"


def test_sealed_content():
    sealed = seal_bytes(KEY, b"\xff\x00" * 100)
    assert unseal_bytes(KEY, sealed, 200) == b"\xff\x00" * 100
    for value, most in (
        (sealed, 199),
        (sealed[:-8], 200),
        (seal(KEY, "no base64 of it!"), 200),
        (seal(KEY, "AAAA"), 200),
    ):
        with pytest.raises(SealError):
            unseal_bytes(KEY, value, most)
    with pytest.raises(SealError):
        unseal_bytes("cd" * 32, sealed, 200)
