# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Config and marks: an error names its file and key or line."""

from __future__ import annotations

import json

import pytest

from canary_clients import config, marks
from canary_clients.errors import ClientsError


def test_only_bootstrap_servers_are_required():
    settings = config.parse({"bootstrap_servers": ["a:1", "b:2"]})
    assert settings.client_settings() == {"bootstrap.servers": "a:1,b:2"}
    assert (settings.partitions, settings.replication_factor) == (12, 3)
    assert settings.rate >= 500


def test_client_keys_map_to_librdkafka_keys_and_secrets_are_not_kept():
    client = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "u",
        "sasl_password": "hidden",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
        "ssl_keyfile": None,
    }
    settings = config.parse({"bootstrap_servers": "a:1", "client": client, "librdkafka": {"debug": "secret"}})
    assert settings.client_settings() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "hidden",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "debug": "secret",
    }
    kept = json.dumps(settings.without_secrets())
    assert "hidden" not in kept
    assert "secret" not in kept


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "bootstrap_servers is missing"),
        ([], "a mapping is needed"),
        ({"rat": 5}, "rat is not known"),
        ({"rate": "fast"}, "rate must be a number"),
        ({"rate": 0}, "rate must be at least 1"),
        ({"partitions": 2.5}, "whole number"),
        ({"audit": "yes"}, "true or false"),
        ({"client": {"sasl_plain_password": "x"}}, "client.sasl_plain_password is not known"),
        ({"replication_factor": 1}, "no write would ever be acknowledged"),
        ({"shares": {"compacted": 0}}, "compacted must be above 0"),
        ({"admin": {"interval": 3}}, "interval is not known"),
        ({"message_bytes": 10}, "message_bytes must be at least"),
    ],
)
def test_wrong_config_is_named(data, message):
    if isinstance(data, dict) and message != "bootstrap_servers is missing":
        data = {"bootstrap_servers": "a:1", **data}
    with pytest.raises(ClientsError, match=message):
        config.parse(data)


def test_missing_config_file_is_named(tmp_path):
    with pytest.raises(ClientsError, match=r"none\.yml"):
        config.load(tmp_path / "none.yml")


def test_yaml_and_json_give_the_same_config(tmp_path):
    (tmp_path / "a.yml").write_text("bootstrap_servers: a:1\nadmin: {interval_s: 3}\n")
    (tmp_path / "a.json").write_text('{"bootstrap_servers": "a:1", "admin": {"interval_s": 3}}')
    assert config.load(tmp_path / "a.yml") == config.load(tmp_path / "a.json")


def test_marks_are_read_as_written_in_order_of_time(tmp_path):
    path = tmp_path / "marks.jsonl"
    marks.append(path, "phase", "hybrid")
    marks.append(path, "restart", "roll", "kafka1", 5)
    restart, phase = marks.read(path)
    assert (phase.kind, phase.name, phase.end) == ("phase", "hybrid", None)
    assert (restart.host, round(restart.end - restart.t)) == ("kafka1", 5)


@pytest.mark.parametrize(
    "line", ["{", "{}", '{"t": "x", "kind": "phase", "name": "a"}', '{"t": 1, "kind": "w", "name": "a"}']
)
def test_bad_mark_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "marks.jsonl"
    path.write_text('{"t": 1, "kind": "event", "name": "fine"}\n' + line + "\n")
    with pytest.raises(ClientsError, match=r"marks\.jsonl:2"):
        marks.read(path)


def test_phase_lasts_to_its_end_or_to_the_next_phase():
    phases = marks.Phases(
        [
            marks.Mark(90, "phase", "before the run"),
            marks.Mark(102, "phase", "roll", end=104),
            marks.Mark(106, "phase", "soak"),
            marks.Mark(300, "phase", "after the run"),
        ],
        100,
        10_000,
    )
    names = [phases.name(ms) for ms in (0, 1900, 2100, 3900, 5000, 6100, 10_000, 999_999)]
    assert names == ["before the run"] * 2 + ["roll"] * 2 + [marks.UNMARKED] + ["soak"] * 2 + [names[-1]]
    assert "after the run" not in phases.names
