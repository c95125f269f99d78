# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GSSAPI for kazoo, whose own needs the Python package kerberos: a mechanism of pure-sasl on the system's library."""

from __future__ import annotations

import time
from typing import Any, List

from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import KerberosLogin, SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire import bounded, gssapi

_STEP_S = 10.0  # kazoo connects in a thread of its own, with a timeout of its own


def register() -> List[str]:
    """Let kazoo log in with GSSAPI; return a list that gets why a login fails, which kazoo does not say.

    Raises SecurityError if this machine has no Kerberos library.
    """
    from puresasl import SASLProtocolException, mechanisms

    gssapi.require()
    failures: List[str] = []

    class Kerberos(mechanisms.Mechanism):
        """One login of kazoo, which passes its options `sasl_options`: `kerberos` is a KerberosLogin."""

        name = "GSSAPI"

        def __init__(self, sasl: Any, kerberos: KerberosLogin | None = None, **_properties: Any) -> None:
            super().__init__(sasl)
            deadline = time.monotonic() + _STEP_S
            login = kerberos or KerberosLogin(sasl.service)
            self._exchange = gssapi.Exchange(login, sasl.host, lambda: max(0.0, deadline - time.monotonic()))

        def process(self, challenge: bytes | None = None) -> bytes:
            """Return the answer to the server's message."""
            try:
                answer = self._exchange.step(challenge or b"")
            except (gssapi.GssError, SecurityError, bounded.TimedOut) as error:
                reason = str(error) or f"no ticket within {_STEP_S:g} s"
                failures.append(f"GSSAPI login at {self.sasl.service}/{self.sasl.host} failed: {reason}")
                raise SASLProtocolException(failures[-1]) from error
            self.complete = self._exchange.complete
            return answer

        def dispose(self) -> None:
            """Release what the library holds."""
            self._exchange.close()

    mechanisms.mechanisms[Kerberos.name] = Kerberos
    return failures
