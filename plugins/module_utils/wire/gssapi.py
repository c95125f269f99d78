# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client side of SASL GSSAPI (RFC 4752) with the system's Kerberos library, libgssapi_krb5, through ctypes.

No Python package has to be built. Tickets come from the default credential cache, or from a keytab into a cache in the
memory of this process. The library waits for a KDC as long as krb5.conf says: each call is given up at its deadline.
"""

from __future__ import annotations

import ctypes
import struct
import uuid
from functools import lru_cache
from typing import Any, Callable, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import KerberosLogin, SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import bounded

_LIBRARY = "libgssapi_krb5.so.2"
_MUTUAL, _REPLAY, _SEQUENCE, _INTEGRITY = 2, 4, 8, 32
_CONTINUE_NEEDED = 1
_INITIATE = 1
_NO_LAYER = 1
_KRB5 = bytes.fromhex("2a864886f712010202")
_HOSTBASED_SERVICE = bytes.fromhex("2a864886f71201020104")
_PRINCIPAL_NAME = bytes.fromhex("2a864886f71201020201")


class GssError(Exception):
    """The login failed in the Kerberos library; the text is what the library says."""


class _Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class _Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_char_p)]


class _KeyValue(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _KeyValues(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_KeyValue))]


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise SecurityError(
            f"sasl_mechanism GSSAPI needs {_LIBRARY} where the tool runs: {error}. Install it: apt-get install "
            "libgssapi-krb5-2, or dnf install krb5-libs (QS-CONNECT-009)"
        ) from error
    for name in (
        "gss_import_name",
        "gss_acquire_cred_from",
        "gss_init_sec_context",
        "gss_wrap",
        "gss_unwrap",
        "gss_display_status",
        "gss_release_buffer",
        "gss_release_name",
        "gss_release_cred",
        "gss_delete_sec_context",
    ):
        getattr(library, name).restype = ctypes.c_uint32
    return library


def require() -> None:
    """Raise SecurityError if this machine has no Kerberos library."""
    _library()


def _text(library: Any, code: int, kind: int) -> List[str]:
    found: List[str] = []
    context, minor = ctypes.c_uint32(0), ctypes.c_uint32()
    mechanism = _Oid(len(_KRB5), _KRB5)
    while True:
        buffer = _Buffer()
        if library.gss_display_status(
            ctypes.byref(minor),
            ctypes.c_uint32(code),
            ctypes.c_int(kind),
            ctypes.byref(mechanism),
            ctypes.byref(context),
            ctypes.byref(buffer),
        ):
            return found
        found.append(_take(library, buffer).decode(errors="replace"))
        if not context.value:
            return found


def _check(library: Any, major: int, minor: ctypes.c_uint32) -> None:
    if major >> 16:
        texts = _text(library, minor.value, 2) or _text(library, major, 1)
        raise GssError("; ".join(dict.fromkeys(texts)) or f"error {major:#x}")


def _given(data: bytes) -> _Buffer:
    return _Buffer(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))


def _take(library: Any, buffer: _Buffer) -> bytes:
    """Return the bytes of a buffer that the library filled, and release it."""
    data = ctypes.string_at(buffer.value, buffer.length) if buffer.length else b""
    library.gss_release_buffer(ctypes.byref(ctypes.c_uint32()), ctypes.byref(buffer))
    return data


class Exchange:
    """One login to `service`@`host`: step(b"") returns the first token; each answer of the server is the next step's
    argument, until `complete`. Raises GssError, SecurityError; bounded.TimedOut where the KDC does not answer in time.

    Close it. The server acts for the ticket's principal.
    """

    def __init__(self, login: KerberosLogin, host: str, remaining: Callable[[], float]) -> None:
        self._library = _library()
        self._login, self._host, self._remaining = login, host, remaining
        self._context, self._name, self._credential = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._established = False
        self._is_busy = False
        self.complete = False

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what the library holds for this login."""
        if self._is_busy:
            return  # a thread that was given up still uses it
        minor, library = ctypes.byref(ctypes.c_uint32()), self._library
        if self._context:
            library.gss_delete_sec_context(minor, ctypes.byref(self._context), None)
        if self._name:
            library.gss_release_name(minor, ctypes.byref(self._name))
        if self._credential:
            library.gss_release_cred(minor, ctypes.byref(self._credential))

    def step(self, challenge: bytes) -> bytes:
        """Return the answer to the server's message, b"" at first and last where there is nothing to say."""
        if self._established:
            return self._choose_layer(challenge)
        if not self._name:
            self._bounded(self._prepare)
        return self._bounded(lambda: self._init(challenge))

    def _bounded(self, call: Callable[[], Any]) -> Any:
        self._is_busy = True
        try:
            result = bounded.run(call, self._remaining())
        except (GssError, SecurityError):
            self._is_busy = False
            raise
        self._is_busy = False
        return result

    def _prepare(self) -> None:
        self._name = self._import(f"{self._login.service_name}@{self._host}", _HOSTBASED_SERVICE)
        if not self._login.keytab:
            return
        try:
            with open(self._login.keytab, "rb"):
                pass
        except OSError as error:
            where = f"{self._login.option}.sasl_kerberos_keytab: {self._login.keytab}"
            raise SecurityError(f"{where}: {error.strerror} (QS-CONNECT-007)") from error
        pairs = (_KeyValue * 2)(
            _KeyValue(b"client_keytab", f"FILE:{self._login.keytab}".encode()),
            _KeyValue(b"ccache", f"MEMORY:quorumshift-{uuid.uuid4().hex}".encode()),
        )
        store = _KeyValues(2, pairs)
        principal = self._import(str(self._login.principal), _PRINCIPAL_NAME)
        minor = ctypes.c_uint32()
        major = self._library.gss_acquire_cred_from(
            ctypes.byref(minor),
            principal,
            ctypes.c_uint32(0xFFFFFFFF),
            None,
            ctypes.c_int(_INITIATE),
            ctypes.byref(store),
            ctypes.byref(self._credential),
            None,
            None,
        )
        self._library.gss_release_name(ctypes.byref(ctypes.c_uint32()), ctypes.byref(principal))
        _check(self._library, major, minor)

    def _import(self, text: str, kind: bytes) -> ctypes.c_void_p:
        minor, name, data, oid = ctypes.c_uint32(), ctypes.c_void_p(), text.encode(), _Oid(len(kind), kind)
        major = self._library.gss_import_name(
            ctypes.byref(minor), ctypes.byref(_given(data)), ctypes.byref(oid), ctypes.byref(name)
        )
        _check(self._library, major, minor)
        return name

    def _init(self, challenge: bytes) -> bytes:
        minor, answer, mechanism = ctypes.c_uint32(), _Buffer(), _Oid(len(_KRB5), _KRB5)
        major = self._library.gss_init_sec_context(
            ctypes.byref(minor),
            self._credential,
            ctypes.byref(self._context),
            self._name,
            ctypes.byref(mechanism),
            ctypes.c_uint32(_MUTUAL | _REPLAY | _SEQUENCE | _INTEGRITY),
            ctypes.c_uint32(0),
            None,
            ctypes.byref(_given(challenge)) if challenge else None,
            None,
            ctypes.byref(answer),
            None,
            None,
        )
        token = _take(self._library, answer)
        _check(self._library, major, minor)
        self._established = not major & _CONTINUE_NEEDED
        return token

    def _choose_layer(self, challenge: bytes) -> bytes:
        """Return the last message: no layer of protection, as Kafka and ZooKeeper use TLS for that."""
        minor, plain = ctypes.c_uint32(), _Buffer()
        major = self._library.gss_unwrap(
            ctypes.byref(minor), self._context, ctypes.byref(_given(challenge)), ctypes.byref(plain), None, None
        )
        offered = _take(self._library, plain)
        _check(self._library, major, minor)
        if len(offered) != 4 or not offered[0] & _NO_LAYER:
            raise GssError("the server requires a security layer of SASL, which Kafka does not have (QS-CONNECT-004)")
        answer, wrapped = struct.pack(">I", _NO_LAYER << 24), _Buffer()
        major = self._library.gss_wrap(
            ctypes.byref(minor),
            self._context,
            ctypes.c_int(0),
            ctypes.c_uint32(0),
            ctypes.byref(_given(answer)),
            None,
            ctypes.byref(wrapped),
        )
        token = _take(self._library, wrapped)
        _check(self._library, major, minor)
        self.complete = True
        return token
