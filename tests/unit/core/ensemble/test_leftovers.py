# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What belongs to other applications, and which files an archive may hold."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import leftovers


@pytest.mark.parametrize(
    ("path", "chroot", "top"),
    [
        ("", "/kafka", None),
        ("/", "/kafka", None),
        ("/kafka", "/kafka", None),
        ("/kafka/brokers/ids", "/kafka", None),
        ("/kafka2/brokers", "/kafka", "/kafka2"),
        ("/zookeeper/config", "/kafka", None),
        ("/zookeeper2", "/kafka", "/zookeeper2"),
        ("/solr/live_nodes/a", "/kafka", "/solr"),
        ("/prod", "/prod/kafka", None),
        ("/prod/other/app", "/prod/kafka", "/prod/other"),
        ("/solr/a", "/prod/kafka", "/solr"),
        ("/brokers/ids", "", None),
    ],
)
def test_leftovers(path, chroot, top):
    assert leftovers.find_leftover(path, chroot) == top


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("snapshot.1f", True),
        ("log.10000", True),
        ("../log.1", False),
        ("snapshot.1.gz", False),
        ("acceptedEpoch", False),
    ],
)
def test_files_of_an_archive(name, fits):
    assert bool(leftovers.FILES.fullmatch(name)) == fits
