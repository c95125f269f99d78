# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job ends where Spark's JVM has gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from quorumshift_spark import running, session


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer")])
def test_a_jvm_that_has_gone_is_named(monkeypatch, error):
    def stop():
        raise error

    monkeypatch.setattr(session, "start", lambda _name: SimpleNamespace(stop=stop))
    said = pytest.raises(session.SessionError, match="Spark's JVM ended during the job")
    with said, running.spark("metadata_parity", {"timings": {}}):
        raise Py4JNetworkError("the answer to a query did not come")
