# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server's settings are those that ZooKeeper uses, from its file and its JVM's options."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_host


def test_settings_of_file_and_jvm():
    values = {"tickTime": "2000", "jute.maxbuffer": "1", "authProvider.sasl": "X", "dataDir": "/data", "skipACL": "no"}
    arguments = ["java", "-Djute.maxbuffer=4194304", "-Dzookeeper.skipACL=yes", "-Dother=1", "-Xmx1g"]
    assert zk_host.settings(values, arguments) == {
        "tickTime": "2000",
        "jute.maxbuffer": "4194304",
        "authProvider.sasl": "X",
        "skipACL": "yes",
    }
    # in the file ZooKeeper makes it zookeeper.jute.maxbuffer, which nothing reads
    assert "jute.maxbuffer" not in zk_host.settings(values, [])


def test_a_super_users_digest_can_be_compared_and_not_read():
    name = "DigestAuthenticationProvider.superDigest"
    digest_of_first, other = (zk_host.settings({name: f"super:{digest}"}, [])[name] for digest in ("abc", "abd"))
    assert digest_of_first != other and "abc" not in digest_of_first
    assert zk_host.settings({}, [f"-Dzookeeper.{name}=super:abc"]) == {name: digest_of_first}
