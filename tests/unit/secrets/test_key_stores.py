# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stores that keytool and openssl write, read with the standard library and compared with what openssl reads."""

from __future__ import annotations

import pathlib
import random
import ssl
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import block_ciphers, key_stores
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError, Tls, ZkSecurity

from tests.integration.java_stores import LEGACY, PASSWORD, Stores, run

KEY_STORES = {
    "openssl": lambda stores: stores.key_store("openssl.p12"),
    "openssl, AES-128": lambda stores: stores.key_store("aes.p12", "-certpbe", "AES-128-CBC", "-macalg", "sha512"),
    "openssl, certificates in clear": lambda stores: stores.key_store("clear.p12", "-certpbe", "NONE"),
    "openssl, no checksum": lambda stores: stores.key_store("nomac.p12", "-nomac"),
    "openssl 1": lambda stores: stores.key_store("legacy.p12", "-legacy"),
    "Java": lambda stores: stores.converted("java.p12", "PKCS12"),
    "Java 8": lambda stores: stores.converted("java8.p12", "PKCS12", LEGACY),
    "JKS": lambda stores: stores.converted("java.jks", "JKS"),
}
TRUST_STORES = {
    "Java": lambda stores: stores.trust_store("trust.p12", "PKCS12"),
    "Java 8": lambda stores: stores.trust_store("trust8.p12", "PKCS12", LEGACY),
    "JKS": lambda stores: stores.trust_store("trust.jks", "JKS"),
}


def der(pem: bytes | str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem if isinstance(pem, str) else pem.decode())


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("name", KEY_STORES)
def test_key_and_chain_of_a_key_store(stores, name):
    path = KEY_STORES[name](stores)
    data = pathlib.Path(path).read_bytes()
    found = key_stores.read(data, PASSWORD)
    wanted = [pathlib.Path(file).read_text() for file in (stores.own.certfile, stores.authority.cafile)]
    assert [der(link) for link in found.chain] == [der(text) for text in wanted]
    key = subprocess.run(
        ["openssl", "pkey", "-passin", f"pass:{PASSWORD}"], input=found.key, capture_output=True, check=True
    ).stdout
    assert key.decode() == run("openssl", "pkey", "-in", stores.own.keyfile)
    tls = Tls(certfile=path, keypassword=PASSWORD, cafile=stores.authority.cafile)
    assert len(tls.context().get_ca_certs()) == 1, "OpenSSL loads key and chain"


@pytest.mark.parametrize("name", TRUST_STORES)
def test_certificates_of_a_trust_store(stores, name):
    path = TRUST_STORES[name](stores)
    found = key_stores.read(pathlib.Path(path).read_bytes(), PASSWORD)
    assert [der(one) for one in found.trusted] == [der(pathlib.Path(stores.authority.cafile).read_text())]
    assert not found.key and not found.chain
    assert len(Tls(cafile=path, capassword=PASSWORD).context().get_ca_certs()) == 1


def test_a_jks_trust_store_needs_no_password(stores):
    assert len(Tls(cafile=stores.trust_store("open.jks", "JKS")).context().get_ca_certs()) == 1


@pytest.mark.parametrize("name", [*KEY_STORES])
@pytest.mark.parametrize("password", ["other", None])
def test_a_wrong_password_is_refused_and_not_shown(stores, name, password):
    path = KEY_STORES[name](stores)
    tls = Tls(certfile=path, keypassword=password, cafile=stores.authority.cafile)
    if name == "openssl, no checksum" or "clear" in name:
        with pytest.raises(SecurityError):  # the key says so
            tls.context()
        return
    with pytest.raises(SecurityError, match=r"ssl_certfile: .*(password|private key)") as caught:
        tls.context()
    assert str(password) == "None" or "other" not in str(caught.value)


def test_every_byte_that_is_damaged_is_a_named_error_or_no_matter(stores):
    """A damaged store never raises anything else, nor does it hang."""
    generator = random.Random(7)
    for name in ("openssl", "JKS", "openssl, certificates in clear"):
        data = bytearray(pathlib.Path(KEY_STORES[name](stores)).read_bytes())
        for at in generator.sample(range(len(data)), 150):
            changed = bytes([*data[:at], data[at] ^ (1 << generator.randrange(8)), *data[at + 1 :]])
            for cut in (changed, changed[:at]):
                try:
                    key_stores.read(cut, PASSWORD)
                except key_stores.StoreError:
                    continue
                assert cut is changed, "half a store was read"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda stores: stores.converted("old.jceks", "JCEKS"), "JCEKS is not supported"),
        (lambda stores: stores.key_store("3des.p12", "-legacy", "-descert"), "neither AES nor RC2"),
    ],
)
def test_what_is_not_supported_says_so(stores, make, reason):
    with pytest.raises(SecurityError, match=reason):
        Tls(certfile=make(stores), keypassword=PASSWORD).context()


def test_a_store_with_two_keys_is_refused(stores):
    target = stores.converted("two.jks", "JKS")
    stores.key_store("openssl.p12")
    again = (
        "-srckeystore",
        stores.path("openssl.p12"),
        "-destkeystore",
        target,
        "-srcalias",
        "me",
        "-destalias",
        "two",
    )
    run("keytool", "-importkeystore", *again, "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    with pytest.raises(SecurityError, match="has 2 private keys"):
        Tls(certfile=target, keypassword=PASSWORD).context()


def test_a_key_store_is_no_trust_store(stores):
    with pytest.raises(SecurityError, match=r"client\.ssl_cafile: .*no trusted certificate"):
        Tls(cafile=stores.converted("own.jks", "JKS"), capassword=PASSWORD).context()
    own = stores.converted("own.jks", "JKS")
    with pytest.raises(SecurityError, match=r"remove client\.ssl_keyfile"):
        Tls(certfile=own, keypassword=PASSWORD, keyfile=stores.own.keyfile).context()
    with pytest.raises(SecurityError, match=r"Name it as client\.ssl_certfile"):
        Tls(certfile=stores.own.certfile, keyfile=own, keypassword=PASSWORD).context()


def test_kazoo_gets_files_that_last(stores):
    """kazoo opens them again whenever it connects."""
    store, trust = KEY_STORES["JKS"](stores), TRUST_STORES["Java"](stores)
    options = {"use_tls": True, "certfile": store, "keypassword": PASSWORD, "cafile": trust, "capassword": PASSWORD}
    security = ZkSecurity.from_options(options)
    first, second = security.kazoo(), security.kazoo()
    assert first == second and PASSWORD not in repr(security)
    assert b"PRIVATE KEY" in pathlib.Path(first["certfile"]).read_bytes()
    assert pathlib.Path(first["ca"]).read_bytes().startswith(b"-----BEGIN CERTIFICATE")
    carried = security.with_content()
    with carried.files() as files:
        assert b"PRIVATE KEY" in pathlib.Path(files.kazoo()["certfile"]).read_bytes()


def test_block_ciphers_decrypt_what_a_library_encrypts():
    generator = random.Random(3)
    ciphers = [(f"aes-{8 * size}-cbc", size, 16, block_ciphers.aes_cbc) for size in (16, 24, 32)]
    for name, size, block, decrypt in [*ciphers, ("rc2-cbc", 16, 8, block_ciphers.rc2_cbc)]:
        for length in (0, 1, 15, 16, 17, 1000):
            key, vector, text = (
                bytes(generator.randrange(256) for dummy in range(count)) for count in (size, block, length)
            )
            given = ("-provider", "legacy", "-provider", "default", "-K", key.hex(), "-iv", vector.hex())
            encrypted = subprocess.run(
                ["openssl", "enc", f"-{name}", *given], input=text, capture_output=True, check=True, timeout=60
            ).stdout
            assert decrypt(key, vector, encrypted) == text, (name, length)
    with pytest.raises(block_ciphers.BadPadding):
        block_ciphers.aes_cbc(bytes(16), bytes(16), bytes(15))
