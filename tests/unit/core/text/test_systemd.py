# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of units, texts in their files, and files of environment, as systemd reads them."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd


@pytest.mark.parametrize("service", ["kafka", "kafka-3.9", "kafka@1", "kafka_2.13-3.9.1.service"])
def test_a_dot_is_no_suffix_of_a_unit(service):
    """`systemctl` gives each of these the suffix .service: a drop-in elsewhere would do nothing."""
    unit = service if service.endswith(".service") else f"{service}.service"
    assert systemd.unit_name(service) == unit
    assert systemd.drop_in(service, "x.conf") == f"/etc/systemd/system/{unit}.d/x.conf"


def test_an_argument_is_one_whatever_is_in_it():
    assert systemd.argument('/srv/its own/%x$y"\\') == r'"/srv/its own/%%x$$y\"\\"'
    assert systemd.quote('50% "a"') == r"50%% \"a\""


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=x y  ", "x y"),
        ("A=it's", "it's"),
        ("A=x#y", "x#y"),
        ("  A = x", "x"),
        ("A=", ""),
        ("A='x \\ y' ", "x \\ y"),
        ('A="x \\"y\\" \\$z \\n"', 'x "y" $z \\n'),
        ("A=x\\ y\\ ", "x y "),
        ("A=x\\\ny", "xy"),
        ('A="x\ny"', "x\ny"),
        ("A='x'\"y\"z", "xyz"),
        ("A=x\r\nB=y", "x"),
        ("A=x=y", "x=y"),
    ],
)
def test_a_value_of_a_file_of_environment(line, value):
    """Of a service that is down these files say what a config provider would give Kafka."""
    assert systemd.parse_environment_file(f"# A=no\n; A=no \\\nA=no\nnothing\n{line}\n")["A"] == value
    assert systemd.parse_environment_file(line)["A"] == value


def test_what_is_no_variable_is_none():
    assert systemd.parse_environment_file("export A=x\n1B=y\n\n=z\nC=1\n") == {"C": "1"}


def test_what_systemctl_shows():
    shown = r'A=b "KAFKA_OPTS=-Da=\"b c\" \$x" C="d' + "'"
    assert systemd.parse_shown_environment(shown) == {"A": "b", "KAFKA_OPTS": '-Da="b c" $x', "C": "\"d'"}
