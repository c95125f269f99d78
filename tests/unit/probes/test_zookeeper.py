# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A missing package that kazoo needs for SASL is reported before it connects; kazoo would only time out."""

from __future__ import annotations

import importlib.util

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes import zookeeper


@pytest.mark.parametrize(
    ("mechanism", "module", "package"),
    [("DIGEST-MD5", "puresasl", "pure-sasl"), ("GSSAPI", "puresasl", "pure-sasl"), ("GSSAPI", "kerberos", "kerberos")],
)
def test_missing_package_is_named(monkeypatch, mechanism, module, package):
    installed = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else installed)
    raised = pytest.raises(zookeeper.ZooKeeperError, match=f"the Python package {package} is missing on this host")
    with raised, zookeeper.connect("127.0.0.1:1", timeout=5, sasl_options={"mechanism": mechanism}):
        pass
