# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM with the example of RFC 7677, and with a server that does not know the credential."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.sasl_wire import SaslError, Scram, plain_token

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def test_the_example_of_rfc_7677():
    scram = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert scram.final(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    scram.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_user_names_are_escaped_and_nonces_differ():
    first, second = (Scram("SCRAM-SHA-512", "a,b=c", "x").first() for dummy in range(2))
    assert first.startswith(b"n,,n=a=2Cb=3Dc,r=") and first != second


@pytest.mark.parametrize(
    ("server_first", "message"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not continue"),
        (SERVER_FIRST.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), "does not continue"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4294967295"), "4294967295 SCRAM iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=0"), "0 SCRAM iterations"),
        (SERVER_FIRST.replace(b",i=4096", b""), "malformed"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "malformed"),
    ],
)
def test_invalid_first_message_is_rejected(server_first, message):
    with pytest.raises(SaslError, match=message):
        Scram("SCRAM-SHA-256", "user", "pencil", NONCE).final(server_first)


@pytest.mark.parametrize(
    ("server_final", "message"),
    [
        (b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "signature is wrong"),
        (b"v=", "signature is wrong"),
        (b"e=unknown-user", "the server reports unknown-user"),
        (b"", "malformed"),
    ],
)
def test_server_without_the_credential_is_rejected(server_final, message):
    scram = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    scram.final(SERVER_FIRST)
    with pytest.raises(SaslError, match=message):
        scram.verify(server_final)


def test_plain_token():
    assert plain_token("üser", "pass") == "\0üser\0pass".encode()
