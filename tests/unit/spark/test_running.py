# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job ends where Spark's JVM has gone, and what its messages never show."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from quorumshift_spark import result as results
from quorumshift_spark import running, session


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer")])
def test_a_jvm_that_has_gone_is_named(monkeypatch, error):
    def stop():
        raise error

    monkeypatch.setattr(session, "start", lambda _name: SimpleNamespace(stop=stop))
    said = pytest.raises(session.SessionError, match="Spark's JVM ended during the job")
    with said, running.spark("metadata_parity", {"job": "metadata_parity", "timings": {}}):
        raise Py4JNetworkError("the answer to a query did not come")


def test_a_secret_that_others_quote_is_masked_and_a_short_one_is_not_shown_by_its_mask():
    view = {
        **results.unread(),
        "error": "the broker said s3cr3t-word",
        "problems": [{"where": "s3cr3t-word", "reason": ""}],
    }
    result = {
        "reasons": ["fix: the broker said s3cr3t-word"],
        "views": {"broker:1": view, "zookeeper": results.unread()},
    }
    running._scrub(result, ["s3cr3t-word", "x"])
    assert result["reasons"] == ["fix: the broker said ********"]
    assert (view["error"], view["problems"]) == ("the broker said ********", [{"where": "********", "reason": ""}])
    assert result["views"]["zookeeper"] == results.unread()
