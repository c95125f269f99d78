# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options: an error names its option, a conversion includes every option, no secret is shown."""

from __future__ import annotations

import pathlib
import pickle
import shutil
import ssl

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    Security,
    SecurityError,
    ZkSecurity,
)

from tests.integration.certificates import Authority

SCRAM = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "admin", "sasl_password": "s3cret"}


@pytest.mark.parametrize("options", [None, {}, {"security_protocol": None, "sasl_username": None, "ssl_verify": True}])
def test_default_is_plaintext(options):
    security = Security.from_options(options)
    assert security == Security()
    assert security.librdkafka() == {"security.protocol": "PLAINTEXT"}
    assert security.ssl_context() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security_protocol": "TLS"}, "security_protocol: 'TLS' is not one of PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism: missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "DIGEST-MD5"}, "sasl_mechanism: 'DIGEST-MD5'"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "sasl_username is missing"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": ""},
            "sasl_password is missing",
        ),
        ({"security_protocol": "SSL", **SCRAM}, "sasl_mechanism has no effect with security_protocol SSL"),
        ({"ssl_cafile": "/ca.pem"}, "ssl_cafile has no effect with security_protocol PLAINTEXT"),
        ({"security_protocol": "SSL", "ssl_keyfile": "/key.pem"}, "ssl_certfile is missing: .*ssl_keyfile needs it"),
        ({"security_protocol": "SSL", "ssl_ca": "/ca.pem"}, "ssl_ca is not an option"),
    ],
)
def test_error_names_the_option(options, message):
    with pytest.raises(SecurityError, match=rf"^controller_client\.{message}"):
        Security.from_options(options, "controller_client")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cafile": "/ca.pem"}, "cafile has no effect without zookeeper_client.use_tls"),
        ({"auth": "kafka"}, "auth must have the form user:password"),
        ({"auth": ":secret"}, "auth must have the form user:password"),
        ({"use_tls": True, "keyfile": "/key.pem"}, "certfile is missing: zookeeper_client.keyfile needs it"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism: 'PLAIN' is not one of DIGEST-MD5, GSSAPI"),
        ({"sasl_mechanism": "DIGEST-MD5", "sasl_username": "a"}, "sasl_password is missing"),
        ({"sasl_username": "a"}, "sasl_mechanism is missing"),
        ({"ssl_cafile": "/ca.pem"}, "ssl_cafile is not an option"),
    ],
)
def test_zookeeper_error_names_the_option(options, message):
    with pytest.raises(SecurityError, match=rf"^zookeeper_client\.{message}"):
        ZkSecurity.from_options(options)


def test_librdkafka_and_kafka_python_get_every_option():
    tls = {"ssl_cafile": "/ca.pem", "ssl_certfile": "/both.pem", "ssl_keypassword": "key secret"}
    security = Security.from_options({"security_protocol": "sasl_ssl", **SCRAM, **tls})
    assert security.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": "s3cret",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/both.pem",
        "ssl.key.location": "/both.pem",
        "ssl.key.password": "key secret",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
    }
    without_files = Security.from_options({"security_protocol": "SASL_SSL", **SCRAM, "ssl_check_hostname": False})
    settings = without_files.kafka_python()
    assert isinstance(settings.pop("ssl_context"), ssl.SSLContext)
    assert settings == {
        "security_protocol": "SASL_SSL",
        "ssl_check_hostname": False,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "admin",
        "sasl_plain_password": "s3cret",
    }
    assert without_files.librdkafka()["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("options", "verify", "check_hostname"),
    [
        ({}, ssl.CERT_REQUIRED, True),
        ({"ssl_check_hostname": False}, ssl.CERT_REQUIRED, False),
        ({"ssl_verify": False}, ssl.CERT_NONE, False),
    ],
)
def test_tls_context_verifies_as_configured(options, verify, check_hostname):
    context = Security.from_options({"security_protocol": "SSL", **options}).ssl_context()
    assert (context.verify_mode, context.check_hostname) == (verify, check_hostname)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_unusable_file_is_named(tmp_path):
    def message(**options):
        with pytest.raises(SecurityError) as caught:
            Security.from_options({"security_protocol": "SSL", **options}).ssl_context()
        return str(caught.value)

    absent, store, empty = (str(tmp_path / name) for name in ("absent.pem", "client.p12", "empty.pem"))
    pathlib.Path(store).write_bytes(b"0\x82\x04")
    pathlib.Path(empty).write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    for option in ("ssl_cafile", "ssl_certfile"):
        assert message(**{option: absent}) == f"client.{option}: {absent}: No such file or directory"
        kinds = "neither a PEM file nor a JKS or PKCS12 store (QS-CONNECT-007)"
        assert message(**{option: store}) == f"client.{option}: {store}: {kinds}"
    assert message(ssl_certfile=empty, ssl_keyfile=absent).startswith(f"client.ssl_keyfile: {absent}: No such file")
    assert message(ssl_cafile=empty) == f"client.ssl_cafile: {empty}: contains no readable certificate (QS-CONNECT-007)"
    assert "do not match" in message(ssl_certfile=empty)
    with pytest.raises(SecurityError, match=r"^zookeeper_client\.cafile: "):
        ZkSecurity.from_options({"use_tls": True, "cafile": absent}).ssl_context()


def test_zookeeper_conversions():
    security = ZkSecurity.from_options(
        {
            "use_tls": True,
            "cafile": "/ca.pem",
            "certfile": "/cert.pem",
            "keyfile": "/key.pem",
            "keypassword": "k",
            "check_hostname": False,
            "auth": "kafka:a:b",
            "sasl_mechanism": "digest-md5",
            "sasl_username": "u",
            "sasl_password": "p",
        }
    )
    assert security.kazoo() == {
        "use_ssl": True,
        "ca": "/ca.pem",
        "certfile": "/cert.pem",
        "keyfile": "/key.pem",
        "keyfile_password": "k",
        "verify_certs": True,
        "check_hostname": False,
        "auth_data": [("digest", "kafka:a:b")],
        "sasl_options": {"mechanism": "DIGEST-MD5", "username": "u", "password": "p"},
    }
    assert ZkSecurity.from_options(None).kazoo() == {}
    with pytest.raises(SecurityError, match="does not support DIGEST-MD5"):
        security.require_own_client()


OAUTH = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://login.example/token",
    "sasl_oauthbearer_client_id": "tool",
    "sasl_oauthbearer_client_secret": "hush",
}
KERBEROS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({**OAUTH, "sasl_oauthbearer_token_endpoint_url": None}, "sasl_mechanism OAUTHBEARER needs "),
        ({**OAUTH, "sasl_oauthbearer_token_file": "/t"}, "sasl_mechanism OAUTHBEARER needs "),
        (
            {**OAUTH, "sasl_oauthbearer_token_endpoint_url": None, "sasl_oauthbearer_token_file": "/t"},
            "client_id has no effect with client.sasl_oauthbearer_token_file",
        ),
        ({**OAUTH, "sasl_oauthbearer_client_secret": None}, "client_secret is missing"),
        ({**OAUTH, "sasl_oauthbearer_token_endpoint_url": "http://login.example/"}, "not an https:// URL"),
        ({**OAUTH, "sasl_oauthbearer_token_endpoint_url": "https://me:hush@login.example/"}, "not an https:// URL"),
        ({**OAUTH, "sasl_username": "u"}, "client.sasl_username has no effect with sasl_mechanism OAUTHBEARER"),
        ({**KERBEROS, "sasl_kerberos_keytab": "/k"}, "client.sasl_kerberos_principal is missing"),
        ({**KERBEROS, "sasl_kerberos_principal": "p"}, "client.sasl_kerberos_keytab is missing"),
        (
            {**KERBEROS, "sasl_password": "hush"},
            "sasl_password has no effect with sasl_mechanism GSSAPI: it is for PLAIN",
        ),
        (
            {"security_protocol": "SASL_SSL", **SCRAM, "sasl_kerberos_keytab": "/k"},
            "sasl_kerberos_keytab has no effect with sasl_mechanism SCRAM-SHA-512: it is for GSSAPI",
        ),
    ],
)
def test_options_of_tokens_and_tickets_that_contradict_each_other(options, reason):
    with pytest.raises(SecurityError) as caught:
        Security.from_options(options)
    assert reason in str(caught.value) and "hush" not in str(caught.value)
    assert "(QS-CONNECT-007)" in str(caught.value)


def test_tokens_and_tickets_have_defaults_and_show_no_secret():
    oauth, kerberos = Security.from_options(OAUTH), Security.from_options(KERBEROS)
    assert oauth.oauth.client_secret == "hush" and "hush" not in f"{oauth!r} {oauth}"
    assert oauth.principal is None and kerberos.principal is None, "the server's rules decide"
    assert (kerberos.kerberos.service_name, kerberos.kerberos.keytab) == ("kafka", None)
    zookeeper = ZkSecurity.from_options({"sasl_mechanism": "GSSAPI"})
    assert zookeeper.kazoo()["sasl_options"]["service"] == "zookeeper"
    assert oauth.librdkafka()["sasl.mechanism"] == "OAUTHBEARER"


def test_secrets_are_not_shown():
    kafka = Security.from_options(
        {"security_protocol": "SASL_SSL", **SCRAM, "ssl_certfile": "/c", "ssl_keypassword": "hush"}
    )
    plain = ZkSecurity.from_options({"use_tls": True, "certfile": "/c", "keypassword": "hush", "auth": "u:s3cret"})
    sasl = ZkSecurity.from_options({"sasl_mechanism": "DIGEST-MD5", "sasl_username": "u", "sasl_password": "s3cret"})
    shown = "".join(f"{value!r} {value}" for value in (kafka, plain, sasl))
    assert "s3cret" not in shown and "hush" not in shown
    assert "admin" in shown


def test_values_are_comparable_and_immutable():
    options = {"security_protocol": "SASL_SSL", **SCRAM}
    assert Security.from_options(options) == Security.from_options(dict(options), "controller_client")
    assert Security.from_options(options) != Security.from_options({**options, "sasl_password": "other"})
    with pytest.raises(AttributeError):
        Security().password = "x"


@pytest.mark.parametrize(
    ("options", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL"}, "User:ANONYMOUS"),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_username": "me",
                "sasl_password": "x",
            },
            "User:me",
        ),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}, None),
    ],
)
def test_principal(options, principal):
    assert Security.from_options(options).principal == principal


def test_content_of_files_reaches_a_machine_without_them(tmp_path):
    authority = Authority(tmp_path / "here")
    mine = authority.issue("client")
    tls = {"cafile": authority.cafile, "certfile": mine.certfile, "keyfile": mine.keyfile}
    kafka = Security.from_options({"security_protocol": "SSL", **{f"ssl_{key}": path for key, path in tls.items()}})
    carried = [kafka.with_content(), ZkSecurity.from_options({"use_tls": True, **tls}).with_content()]
    shown, sent = repr(carried), pickle.dumps(carried)
    shutil.rmtree(tmp_path / "here")
    kafka_there, zookeeper_there = pickle.loads(sent)
    assert len(kafka_there.ssl_context().get_ca_certs()) == 1 and "BEGIN" not in shown
    with zookeeper_there.files() as files:
        paths = [pathlib.Path(files.kazoo()[name]) for name in ("ca", "certfile", "keyfile")]
        assert all(path.resolve().as_posix().startswith("/memfd:") for path in paths), "a killed process leaves a key"
        assert files.ssl_context() is not None
    assert not any(path.exists() for path in paths)


def test_a_wrong_password_of_a_key_that_is_not_here_names_the_drivers_file(tmp_path):
    mine = Authority(tmp_path).issue("client", keypassword="right")
    tls = {"use_tls": True, "certfile": mine.certfile, "keyfile": mine.keyfile, "keypassword": "wrong"}
    with pytest.raises(SecurityError, match=f"zookeeper_client.certfile: {mine.certfile}: .* do not match"):
        ZkSecurity.from_options(tls).with_content().ssl_context()
