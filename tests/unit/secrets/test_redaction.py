# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets by value in every encoding, names of hosts, and the check that reads the text the other way round."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import urllib.parse

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import redaction
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import MASK
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

PLAIN = "Tr0ubad0r7"
HARD = """p%4 "q'/\\+=&<é\U0001f600;:#z"""
SECRETS = [PLAIN, HARD, "s3cr3t", "a" * 300, "++//++//", "tab\tand\nline-0123456789abc"]


def as_property(value):
    return properties.edit(b"", {"k": value}).decode().rstrip("\n").partition("=")[2]


def in_base64(before, after=""):
    return lambda value: base64.b64encode(f"{before}{value}{after}".encode()).decode()


FORMS = {
    "plain": str,
    "json": lambda value: json.dumps(value)[1:-1],
    "json with its own characters": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "json in json": lambda value: json.dumps(json.dumps(value))[1:-1],
    "json in json in json": lambda value: json.dumps(json.dumps(json.dumps(value)))[1:-1],
    "python": lambda value: repr(value)[1:-1],
    "properties": as_property,
    "url": lambda value: urllib.parse.quote(value, safe=""),
    "url path": urllib.parse.quote,
    "url in small letters": lambda value: re.sub(
        "%..", lambda code: code[0].lower(), urllib.parse.quote(value, safe="")
    ),
    "url twice": lambda value: urllib.parse.quote(urllib.parse.quote(value, safe="")),
    "form": urllib.parse.quote_plus,
    "html": html.escape,
    "html of jinja": lambda value: html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "shell": lambda value: shlex.quote(value).strip("'"),
    "base64": in_base64(""),
    "base64 of a pair": in_base64("u:"),
    "base64 of a name": in_base64("u"),
    "base64 in the middle": in_base64("name", " and what follows"),
    "base64 in the middle 1": in_base64("names", "and what follows"),
    "base64 in the middle 2": in_base64("a name", "- what follows"),
    "base64 for urls": lambda value: base64.urlsafe_b64encode(f"u:{value}".encode()).decode().rstrip("="),
    "base64 in a url": lambda value: urllib.parse.quote(base64.b64encode(value.encode()).decode(), safe=""),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_replaced_in_each_form(secret, form):
    secrets = redaction.Secrets([secret, "another-one"])
    shown = FORMS[form](secret)
    text = f"begin {shown} end\n<{shown}>"
    assert secrets.find_survivor(text)
    after = secrets.replace(text)
    assert after.replaced == 2 and not secrets.find_survivor(after.text)
    assert after.text.count(MASK) == 2 and after.text.startswith("begin ") and " end\n<" in after.text


def test_text_without_a_secret_stays():
    secrets = redaction.Secrets(SECRETS)
    text = "[2026-11-25 00:00:01,000] INFO cluster gg3bNCi0SAmUyk10OH6mTQ, s3cr3 t, p%4 q\n" * 50
    assert secrets.replace(text) == (text, 0) and not secrets.find_survivor(text)


def test_the_longer_of_two_secrets_goes_first():
    assert redaction.Secrets(["abcdef", "abcdefgh"]).replace("abcdefgh abcdef").text == f"{MASK} {MASK}"


def test_short_secrets_are_counted_and_not_searched():
    secrets = redaction.Secrets(["kafka", "", "***", "longer-one"])
    assert secrets.short == 1 and secrets.replace("kafka").text == "kafka"


def test_a_secret_that_a_replacement_makes_survives_and_is_found():
    secrets = redaction.Secrets(["SECRET1", "******x"])
    assert secrets.find_survivor(secrets.replace("SECRET1x").text)


def test_a_secret_is_found_without_the_blanks_of_its_file():
    assert redaction.Secrets(["Tr0ubad0r "]).replace("<Tr0ubad0r>").text == f"<{MASK}>"


def test_lines_of_a_key_are_secrets_of_their_own():
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nQCSqGSIb3DQEHAqCAMIACAQExDz\n-----END PRIVATE KEY-----"
    text = "line: QCSqGSIb3DQEHAqCAMIACAQExDz"
    assert redaction.Secrets([key]).replace(text).text == f"line: {MASK}"
    assert redaction.Secrets([key.replace("\n", "\\n")]).replace(text).text == f"line: {MASK}"


def test_a_jaas_string_is_a_secret_without_its_escapes_too():
    (value,) = redaction.find_secrets({"sasl.jaas.config": 'x.PlainLoginModule required password="Tr0ub\\"dor";'})
    assert redaction.Secrets([value]).replace('is Tr0ub"dor').text == f"is {MASK}"


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ({"sasl_password": "Tr0ub", "sasl_username": "ops"}, {"Tr0ub"}),
        ({"a": [{"vault_kafka_password": "x1"}]}, {"x1"}),
        ({"ssl_keypassword": {"one": "x1", "two": ["x2", 123456]}}, {"x1", "x2", "123456"}),
        ({"url": "https://ops:Tr0ub@proxy/x"}, {"Tr0ub"}),
        ({"hook": "notify --api-key Zq1Zq1 --token=Yw2Yw2"}, {"Yw2Yw2"}),
        (
            {"listener.name.x.sasl.jaas.config": 'a.PlainLoginModule required username="u" password="Pw1Pw1";'},
            {"Pw1Pw1"},
        ),
        ({"ssl.keystore.password": "changeit", "log.dirs": "/data"}, {"changeit"}),
        ({"has_password": True, "password": None, "quorumshift_finalize_token": "id:abc123"}, set()),
    ],
)
def test_secrets_of_variables(value, secrets):
    assert redaction.find_secrets(value) == secrets


def test_what_is_under_the_name_of_a_secret_is_masked():
    value = {"sasl_password": "x1", "credentials": {"a": ["x2", 3]}, "name": "b1", "password": None, "no": True}
    masked, count = redaction.mask_named(value)
    assert masked == {**value, "sasl_password": MASK, "credentials": {"a": [MASK, MASK]}} and count == 3
    masked, count = redaction.mask_named(["password=x1", {"a": "sealed:AAAA"}])
    assert masked == [f"password={MASK}", {"a": MASK}] and count == 2


# Hosts ----------------------------------------------------------------------------------------------------------------

NAMES = ["b1", "b2.prod.example.com", "10.1.2.3", "fd00::5", "localhost", "[::1]", "7"]


def test_hosts_have_the_same_pseudonym_everywhere():
    hosts = redaction.Hosts(NAMES)
    text = "b1:9092 B1 b1-x sub1 b2.prod.example.com. zk9.prod.example.com 10.1.2.3:9 10.1.2.30 [fd00::5]:9 FD00:0::5"
    first, second = hosts.replace(text), hosts.replace(text)
    assert first == second and first.replaced == 9 and not hosts.find_survivor(first.text)
    assert first.text == (
        "host-1:9092 host-1 host-1-x sub1 host-2. host-3 address-1:9 address-2 [address-3]:9 address-3"
    )


def test_what_is_no_host_stays():
    hosts = redaction.Hosts(NAMES)
    text = "2026-11-25 00:00:01,000 127.0.0.1 [::1]:9 0.0.0.0 :: 3.9.1 7 localhost:9092 12:30:15 Foo::bar 1.2.3.4.5"
    assert hosts.replace(text) == (text, 0) and not hosts.find_survivor(text)


@pytest.mark.parametrize("text", ["b1", "x B2.prod.example.com", "zk.prod.example.com", "10.9.9.9", "fe80::1"])
def test_a_host_that_is_left_is_found(text):
    assert redaction.Hosts(NAMES).find_survivor(text)


def test_a_cloud_machine_has_its_address_in_its_name():
    assert redaction.Hosts([]).replace("ip-10-0-3-7.internal ip-10-0-3-7").text == "host-1.internal host-1"
