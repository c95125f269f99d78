# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read Java's key stores and trust stores, JKS and PKCS12, with the standard library: bytes to PEM.

A broker's host has no library that reads them, and OpenSSL's client in Python takes PEM alone. The private key of a
PKCS12 store stays encrypted: OpenSSL decrypts it. Certificates are decrypted here.

Sources: sun.security.provider.JavaKeyStore and KeyProtector; RFC 7292 (PKCS12), RFC 8018 (PBES2).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from functools import lru_cache
from typing import List, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import block_ciphers


class StoreError(ValueError):
    """A store cannot be read: damaged, another password, or a way of protection that is not supported."""


class Store(NamedTuple):
    """The content of a store, in PEM: a private key with its chain, own certificate first, and trusted certificates.

    `key` is b"" where the store has none. It may be encrypted with the store's password.
    """

    key: bytes
    chain: Tuple[bytes, ...]
    trusted: Tuple[bytes, ...]


_JKS, _JCEKS = 0xFEEDFEED, 0xCECECECE


def kind(data: bytes) -> str:
    """Return the kind of a store, `JKS`, `JCEKS` or `PKCS12`, by its first bytes; '' if it is none of them.

    A file's name says nothing: since Java 9 keytool writes PKCS12 into a file with any name.
    """
    magic = struct.unpack_from(">I", data)[0] if len(data) >= 4 else 0
    if magic in (_JKS, _JCEKS):
        return "JKS" if magic == _JKS else "JCEKS"
    try:
        version = _Value.first(_require(_Value.first(data)[0], _SEQUENCE))[0]
    except (IndexError, _Malformed):
        return ""
    return "PKCS12" if version.tag == _INTEGER and version.content == b"\x03" else ""


@lru_cache(maxsize=16)
def read(data: bytes, password: str | None) -> Store:
    """Return the content of a store. Raises StoreError.

    `password`: the store's, and that of its private key. Certificates of a JKS store need none.
    """
    of_kind = kind(data)
    try:
        if of_kind == "JKS":
            return _read_jks(data, password)
        if of_kind == "PKCS12":
            return _read_pkcs12(data, password)
    except (IndexError, struct.error, UnicodeError, _Malformed) as error:
        raise StoreError(f"the {of_kind} store is damaged (QS-CONNECT-007)") from error
    raise StoreError(f"{of_kind or 'this'} is not supported: it is neither JKS nor PKCS12 (QS-CONNECT-007)")


class _Malformed(ValueError):
    """Bytes are not what the format has there."""


def _pem(label: str, data: bytes) -> bytes:
    return f"-----BEGIN {label}-----\n".encode() + base64.encodebytes(data) + f"-----END {label}-----\n".encode()


def _pem_certificates(certificates: List[bytes]) -> Tuple[bytes, ...]:
    return tuple(_pem("CERTIFICATE", certificate) for certificate in dict.fromkeys(certificates))


# JKS ----------------------------------------------------------------------------------------------------------------

_SUN_KEY_PROTECTOR = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1
_DIGEST = 20  # SHA-1


class _Reader:
    """Java's DataInputStream over bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise _Malformed("the end is missing (QS-CONNECT-007)")
        self._at += size
        return found

    def number(self, code: str) -> int:
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def text(self) -> bytes:
        return self.take(self.number(">H"))

    def block(self) -> bytes:
        return self.take(self.number(">I"))


def _read_jks(data: bytes, password: str | None) -> Store:
    body = data[:-_DIGEST]
    if password is not None:
        made = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()
        if not hmac.compare_digest(made, data[-_DIGEST:]):
            raise StoreError("the password of the JKS store is wrong, or the store is damaged (QS-CONNECT-007)")
    reader = _Reader(body)
    reader.number(">I")
    version, count = reader.number(">I"), reader.number(">I")

    def certificate() -> bytes:
        if version == 2:
            reader.text()
        return reader.block()

    keys: List[Tuple[bytes, List[bytes]]] = []
    trusted: List[bytes] = []
    for _entry in range(count):
        tag = reader.number(">I")
        reader.text()
        reader.number(">q")
        if tag == 1:
            protected = reader.block()
            keys.append((protected, [certificate() for _link in range(reader.number(">I"))]))
        elif tag == 2:
            trusted.append(certificate())
        else:
            raise _Malformed("an entry is neither a key nor a certificate (QS-CONNECT-007)")
    if not keys:
        return Store(b"", (), _pem_certificates(trusted))
    _require_one_key(len(keys))
    protected, chain = keys[0]
    key = b"" if password is None else _pem("PRIVATE KEY", _unprotect(protected, password))
    return Store(key, _pem_certificates(chain), _pem_certificates(trusted))


def _require_one_key(count: int) -> None:
    if count > 1:
        raise StoreError(
            f"the store has {count} private keys, and which one is meant is not known. Write the one that is meant "
            "into a store of its own: keytool -importkeystore -srcalias ALIAS (QS-CONNECT-007)"
        )


def _unprotect(protected: bytes, password: str) -> bytes:
    """Return a private key (PKCS8) from what JKS keeps: a key stream of SHA-1 over it, and a digest (KeyProtector)."""
    algorithm, content = _children(_Value.whole(protected))
    if _children(algorithm)[0].content != _SUN_KEY_PROTECTOR:
        raise StoreError(
            "the private key of the JKS store is protected in a way that is not supported (QS-CONNECT-007)"
        )
    salt, hidden, check = (
        content.content[:_DIGEST],
        content.content[_DIGEST:-_DIGEST],
        content.content[-_DIGEST:],
    )
    secret, stream, block = password.encode("utf-16-be"), b"", salt
    while len(stream) < len(hidden):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(left ^ right for left, right in zip(hidden, stream))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise StoreError("the password of the private key is wrong: it is not that of the JKS store (QS-CONNECT-007)")
    return key


# PKCS12 -------------------------------------------------------------------------------------------------------------

_SEQUENCE, _SET, _INTEGER, _OCTETS, _OID, _CONTEXT_0, _IMPLICIT_0 = 0x30, 0x31, 0x02, 0x04, 0x06, 0xA0, 0x80


class _Value(NamedTuple):
    """One value of DER: its tag, its content, and the bytes of the whole."""

    tag: int
    content: bytes
    whole_bytes: bytes

    @classmethod
    def first(cls, data: bytes) -> Tuple[_Value, bytes]:
        """Return the value at the begin of `data`, and the rest."""
        tag, size, start = data[0], data[1], 2
        if size >= 0x80:
            start += size & 0x7F
            if size == 0x80 or start > 6:
                raise _Malformed("a length is not DER (QS-CONNECT-007)")
            size = int.from_bytes(data[2:start], "big")
        end = start + size
        if len(data) < end:
            raise _Malformed("the end is missing (QS-CONNECT-007)")
        return cls(tag, data[start:end], data[:end]), data[end:]

    @classmethod
    def whole(cls, data: bytes) -> _Value:
        """Return the value at the begin of `data`, after which nothing may follow but padding."""
        return cls.first(data)[0]


def _children(value: _Value, tag: int = _SEQUENCE) -> List[_Value]:
    _require(value, tag)
    found, rest = [], value.content
    while rest:
        child, rest = _Value.first(rest)
        found.append(child)
    return found


def _require(value: _Value, tag: int) -> bytes:
    if value.tag != tag:
        raise _Malformed("another value is there than the format has (QS-CONNECT-007)")
    return value.content


def _inner(value: _Value) -> _Value:
    """Return the value in an explicit [0]."""
    return _Value.whole(_require(value, _CONTEXT_0))


def _integer(value: _Value) -> int:
    return int.from_bytes(_require(value, _INTEGER), "big")


def _oid(text: str) -> bytes:
    first, second, *numbers = map(int, text.split("."))
    encoded = [40 * first + second]
    for number in numbers:
        digits = [number & 0x7F]
        while number > 0x7F:
            number >>= 7
            digits.insert(0, 0x80 | (number & 0x7F))
        encoded += digits
    return bytes(encoded)


_DATA, _ENCRYPTED_DATA = _oid("1.2.840.113549.1.7.1"), _oid("1.2.840.113549.1.7.6")
_BAGS = "1.2.840.113549.1.12.10.1"
_KEY_BAG, _SHROUDED_KEY_BAG, _CERTIFICATE_BAG = (_oid(f"{_BAGS}.{number}") for number in (1, 2, 3))
_LOCAL_KEY_ID = _oid("1.2.840.113549.1.9.21")
_X509 = _oid("1.2.840.113549.1.9.22.1")
_PBES2, _PBKDF2 = _oid("1.2.840.113549.1.5.13"), _oid("1.2.840.113549.1.5.12")
_PBE_RC2_40, _PBE_RC2_128 = (_oid(f"1.2.840.113549.1.12.1.{number}") for number in (6, 5))
_AES_BYTES = {_oid(f"2.16.840.1.101.3.4.1.{number}"): size for number, size in ((2, 16), (22, 24), (42, 32))}
_HASHES = {
    _oid("1.3.14.3.2.26"): "sha1",
    **{_oid(f"2.16.840.1.101.3.4.2.{n}"): name for n, name in ((1, "sha256"), (2, "sha384"), (3, "sha512"))},
    _oid("2.16.840.1.101.3.4.2.4"): "sha224",
}
_PRFS = {
    _oid("1.2.840.113549.2.7"): "sha1",
    **{
        _oid(f"1.2.840.113549.2.{n}"): name
        for n, name in ((8, "sha224"), (9, "sha256"), (10, "sha384"), (11, "sha512"))
    },
}
_WRONG = "the password of the PKCS12 store is wrong, or the store is damaged (QS-CONNECT-007)"
_NO_PASSWORD = "the PKCS12 store needs its password, and none is given (QS-CONNECT-007)"
_UNSUPPORTED = (
    "the certificates in the PKCS12 store are encrypted with neither AES nor RC2. Write it anew: keytool "
    "-importkeystore -srckeystore STORE -destkeystore NEW -deststoretype PKCS12 (QS-CONNECT-007)"
)
_MOST_ITERATIONS = 5_000_000  # hashing cannot be interrupted


def _read_pkcs12(data: bytes, password: str | None) -> Store:
    store = _children(_Value.whole(data))
    content = _require(_inner(_content(store[1], _DATA)), _OCTETS)
    if len(store) > 2:
        _require_intact(store[2], content, password)
    keys: List[Tuple[bytes, bytes]] = []
    certificates: List[Tuple[bytes, bytes]] = []
    for part in _children(_Value.whole(content)):
        for bag in _children(_Value.whole(_safe_contents(part, password))):
            identifier, value, *attributes = _children(bag)
            owner = _local_key_id(attributes)
            if identifier.content == _SHROUDED_KEY_BAG:
                keys.append((owner, _pem("ENCRYPTED PRIVATE KEY", _inner(value).whole_bytes)))
            elif identifier.content == _KEY_BAG:
                keys.append((owner, _pem("PRIVATE KEY", _inner(value).whole_bytes)))
            elif identifier.content == _CERTIFICATE_BAG:
                type_of, certificate = _children(_inner(value))
                if type_of.content == _X509:
                    certificates.append((owner, _require(_inner(certificate), _OCTETS)))
    if not keys:
        return Store(b"", (), _pem_certificates([certificate for _owner, certificate in certificates]))
    _require_one_key(len(keys))
    owner, key = keys[0]
    own = [certificate for of, certificate in certificates if of and of == owner]
    others = [certificate for of, certificate in certificates if not (of and of == owner)]
    return Store(key, _pem_certificates(own + others), _pem_certificates(others))


def _content(info: _Value, wanted: bytes) -> _Value:
    """Return the [0] of a ContentInfo of the type that is wanted."""
    type_of, content = _children(info)
    if type_of.content != wanted:
        raise StoreError("the PKCS12 store is protected by a public key, which is not supported (QS-CONNECT-007)")
    return content


def _safe_contents(part: _Value, password: str | None) -> bytes:
    type_of = _children(part)[0]
    if type_of.content == _DATA:
        return _require(_inner(_content(part, _DATA)), _OCTETS)
    _version, encrypted = _children(_inner(_content(part, _ENCRYPTED_DATA)))
    _type, algorithm, content = _children(encrypted)
    if password is None:
        raise StoreError(_NO_PASSWORD)
    try:
        return _decrypt(algorithm, _require(content, _IMPLICIT_0), password)
    except block_ciphers.BadPadding as error:
        raise StoreError(_WRONG) from error


def _local_key_id(attributes: List[_Value]) -> bytes:
    for attribute in _children(attributes[0], _SET) if attributes else ():
        name, values = _children(attribute)
        if name.content == _LOCAL_KEY_ID:
            return _require(_children(values, _SET)[0], _OCTETS)
    return b""


def _require_intact(mac_data: _Value, content: bytes, password: str | None) -> None:
    info, salt, *iterations = _children(mac_data)
    algorithm, digest = _children(info)
    name = _HASHES.get(_children(algorithm)[0].content)
    if name is None:
        raise StoreError("the PKCS12 store has a checksum of a kind that is not supported (QS-CONNECT-007)")
    count = _iterations(iterations[0]) if iterations else 1
    key = _derive(name, 3, password or "", _require(salt, _OCTETS), count, hashlib.new(name).digest_size)
    if not hmac.compare_digest(hmac.new(key, content, name).digest(), _require(digest, _OCTETS)):
        raise StoreError(_WRONG if password else _NO_PASSWORD)


def _iterations(value: _Value) -> int:
    count = _integer(value)
    if not 1 <= count <= _MOST_ITERATIONS:
        raise StoreError(
            f"the PKCS12 store asks for {count} iterations of its hash, and at most {_MOST_ITERATIONS} are run "
            "(QS-CONNECT-007)"
        )
    return count


def _decrypt(algorithm: _Value, data: bytes, password: str) -> bytes:
    identifier, parameters = _children(algorithm)
    if identifier.content == _PBES2:
        return _decrypt_pbes2(parameters, data, password)
    size = {_PBE_RC2_40: 5, _PBE_RC2_128: 16}.get(identifier.content)
    if size is None:
        raise StoreError(_UNSUPPORTED)
    salt, count = _children(parameters)
    given = _require(salt, _OCTETS), _iterations(count)
    key, vector = (_derive("sha1", purpose, password, *given, length) for purpose, length in ((1, size), (2, 8)))
    return block_ciphers.rc2_cbc(key, vector, data)


def _decrypt_pbes2(parameters: _Value, data: bytes, password: str) -> bytes:
    derivation, encryption = _children(parameters)
    function, of_function = _children(derivation)
    cipher, vector = _children(encryption)
    salt, count, *more = _children(of_function)
    prf = "sha1"
    for value in more:
        if value.tag == _SEQUENCE:
            prf = _PRFS.get(_children(value)[0].content, "")
    size = _AES_BYTES.get(cipher.content)
    if function.content != _PBKDF2 or size is None or not prf:
        raise StoreError(_UNSUPPORTED)
    given = _require(salt, _OCTETS), _iterations(count)
    key = hashlib.pbkdf2_hmac(prf, password.encode(), *given, size)
    return block_ciphers.aes_cbc(key, _require(vector, _OCTETS), data)


def _derive(name: str, purpose: int, password: str, salt: bytes, iterations: int, size: int) -> bytes:
    """Return key material of a password (RFC 7292, appendix B.2). `purpose`: 1 of a key, 2 of a vector, 3 of a MAC."""
    block = hashlib.new(name).block_size
    secret = password.encode("utf-16-be") + b"\0\0"

    def filled(text: bytes) -> bytes:
        length = block * -(-len(text) // block)
        return (text * (length // len(text) + 1))[:length] if text else b""

    mixed, found = filled(salt) + filled(secret), b""
    while len(found) < size:
        digest = hashlib.new(name, bytes([purpose]) * block + mixed).digest()
        for _round in range(iterations - 1):
            digest = hashlib.new(name, digest).digest()
        found += digest
        added = int.from_bytes(filled(digest)[:block], "big") + 1
        mixed = b"".join(
            ((int.from_bytes(mixed[at : at + block], "big") + added) % (1 << 8 * block)).to_bytes(block, "big")
            for at in range(0, len(mixed), block)
        )
    return found[:size]
