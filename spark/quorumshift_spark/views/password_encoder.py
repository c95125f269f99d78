# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decrypts passwords that brokers keep in ZooKeeper (org.apache.kafka.security.EncryptingPasswordEncoder, Kafka 3.9).

The value holds everything but the secret: key factory (PBKDF2 with an HMAC), cipher, key length, salt, iterations, IV.
No message of this module holds a value or a secret.
"""

from __future__ import annotations

import base64
import re
from typing import Callable, Dict, Sequence

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7

_HASHES: Dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "PBKDF2WithHmacSHA1": hashes.SHA1,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA512": hashes.SHA512,
}
_DEFAULT_KEY_FACTORY = "PBKDF2WithHmacSHA512"
_FIELDS = ("cipherAlgorithm", "keyLength", "salt", "iterations", "encryptedPassword", "passwordLength")


class UndecodablePassword(ValueError):
    """The value is not in the encoder's format, or no secret decodes it. The message never holds the value."""


def decode(text: str, secrets: Sequence[str]) -> str:
    """Return the clear text of an encoded password. Raises UndecodablePassword.

    :arg secrets: password.encoder.secret, then password.encoder.old.secret; they are tried in this order.
    """
    fields = {}
    for part in text.split(","):
        name, colon, value = part.strip().partition(":")
        if colon:
            fields[name] = value
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise UndecodablePassword(f"it is not in the format of Kafka's password encoder ({missing[0]} is missing)")
    if not secrets:
        raise UndecodablePassword("it is encrypted. Give password.encoder.secret of the brokers")
    for secret in secrets:
        clear = _decode(fields, secret)
        if clear is not None:
            return clear
    raise UndecodablePassword("neither password.encoder.secret nor password.encoder.old.secret decodes it")


def _decode(fields, secret):
    """Return the clear text, or None for a wrong secret."""
    try:
        hash_class = _HASHES[fields.get("keyFactoryAlgorithm", _DEFAULT_KEY_FACTORY)]
        key_bytes = int(fields["keyLength"]) // 8
        rounds, length = int(fields["iterations"]), int(fields["passwordLength"])
        salt, iv, secret_text = (
            base64.b64decode(fields[name], validate=True)
            for name in ("salt", "initializationVector", "encryptedPassword")
        )
        key = PBKDF2HMAC(hash_class(), key_bytes, salt, rounds).derive(secret.encode("utf-8"))
        decrypt = _cipher(fields, key, iv)
    except KeyError as error:
        raise UndecodablePassword(f"{error.args[0]} is missing or unknown") from None
    except ValueError as error:
        raise UndecodablePassword(f"a field of the encoder's format is malformed ({type(error).__name__})") from None
    try:
        clear = decrypt(secret_text).decode("utf-8")
    except Exception:
        # a wrong key breaks padding, tag or UTF-8
        return None
    # Java's String.length() counts UTF-16 units. CBC's padding alone accepts one wrong key in 256
    return clear if len(clear.encode("utf-16-le")) // 2 == length else None


def _cipher(fields, key, iv):
    names = re.fullmatch(r"(\w+)/(\w+)/(\w+)", fields["cipherAlgorithm"])
    algorithm, mode, padding = names.groups() if names else (fields["cipherAlgorithm"], "", "")
    if (algorithm, mode) == ("AES", "GCM"):
        return lambda text: AESGCM(key).decrypt(iv, text, None)
    if algorithm not in ("AES", "DESede"):
        raise UndecodablePassword(f"cipher {fields['cipherAlgorithm']} is not supported (supported: AES, DESede)")
    if mode not in ("CBC", "CTR", "CFB", "OFB"):
        raise UndecodablePassword(
            f"cipher {fields['cipherAlgorithm']} is not supported (supported modes: CBC, GCM, CTR, CFB, OFB)"
        )
    block_cipher = algorithms.AES if algorithm == "AES" else _triple_des()
    decryptor = Cipher(block_cipher(key), getattr(modes, mode)(iv)).decryptor()

    def decrypt(text):
        padded = decryptor.update(text) + decryptor.finalize()
        if padding == "NoPadding":
            return padded
        unpadder = PKCS7(block_cipher.block_size).unpadder()
        return unpadder.update(padded) + unpadder.finalize()

    return decrypt


def _triple_des():
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES  # deprecated: only if needed

    return TripleDES
