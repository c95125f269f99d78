# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kazoo needs for SASL is asked for before it connects: it would only time out without."""

from __future__ import annotations

import importlib.util

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper


@pytest.mark.parametrize(
    ("mechanism", "module", "package"),
    [("DIGEST-MD5", "puresasl", "pure-sasl"), ("GSSAPI", "puresasl", "pure-sasl"), ("GSSAPI", "kerberos", "kerberos")],
)
def test_a_package_that_is_missing_is_named(monkeypatch, mechanism, module, package):
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else there)
    named = pytest.raises(zookeeper.ZooKeeperError, match=f"the Python package {package} is missing on this host")
    with named, zookeeper.connect("127.0.0.1:1", timeout=5, sasl_options={"mechanism": mechanism}):
        pass
