# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""installation: Kafka's version and scripts, as Apache Kafka and Confluent's packages lay them out."""

from __future__ import annotations

import os

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation


@pytest.mark.parametrize(
    ("jar", "version"),
    [
        ("libs/kafka_2.13-3.9.2.jar", "3.9.2"),
        ("share/java/kafka/kafka_2.13-7.9.0-ccs.jar", "7.9.0-ccs"),
        ("share/java/kafka/kafka_2.13-7.9.0-ce.jar", "7.9.0-ce"),
        ("libs/kafka_2.13-3.9.1.redhat-00001.jar", "3.9.1.redhat-00001"),
        ("libs/kafka_2.13-3.9.0-amzn-1.jar", "3.9.0-amzn-1"),
        ("libs/kafka_2.13-3.9.2-sources.jar", None),
        ("libs/kafka-clients-3.9.2.jar", None),
    ],
)
def test_installed_version_is_that_of_the_jar(tmp_path, jar, version):
    path = tmp_path / jar
    path.parent.mkdir(parents=True)
    path.touch()
    assert installation.installed_version(str(tmp_path)) == version


def test_running_version_is_that_of_the_open_jar(tmp_path):
    """Confluent's scripts put `/usr/share/java/kafka/*` on the command line."""
    jar = tmp_path / "kafka_2.13-7.9.0-ccs.jar"
    jar.touch()
    assert installation.running_version(os.getpid(), ["java", "-cp", f"{tmp_path}/*"]) is None
    with open(jar, "rb"):
        assert installation.running_version(os.getpid(), ["java", "-cp", f"{tmp_path}/*"]) == "7.9.0-ccs"
        jar.unlink()  # an upgrade of the package
        assert installation.running_version(os.getpid(), ["java", "-cp", f"{tmp_path}/*"]) == "7.9.0-ccs"


def test_running_version_of_the_command_line():
    class_path = "/opt/kafka/libs/kafka-clients-3.9.2.jar:/opt/kafka/libs/kafka_2.13-3.9.2.jar:/opt/kafka/libs/z.jar"
    assert installation.running_version(0, ["java", "-cp", class_path, "kafka.Kafka"]) == "3.9.2"


def test_script_is_found_with_and_without_its_suffix(tmp_path):
    wanted = str(tmp_path / "kafka-storage.sh")
    assert installation.tool_path(wanted) == wanted  # the message of its failure names it
    (tmp_path / "kafka-storage").touch()
    assert installation.tool_path(wanted) == str(tmp_path / "kafka-storage")
    (tmp_path / "kafka-storage.sh").touch()
    assert installation.tool_path(wanted) == wanted
