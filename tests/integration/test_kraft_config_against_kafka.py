# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KafkaConfig accepts the properties of every mode that are derived from operators' files."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import harmless_configs, properties

from tests.integration import servers
from tests.unit.core import operators_files

pytestmark = pytest.mark.real
PROGRAM = pathlib.Path(__file__).with_name("AcceptedConfigs.java")
KAFKA_MODES = {
    "zk": "zookeeper",
    "zk_migration": "zookeeper+migration",
    "kraft": "broker",
    "controller_migration": "controller+migration",
    "controller_final": "controller",
}
SECURED = {
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
    'required username="kafka" password="secret" user_kafka="secret";',
}
CASES = {
    **{(name, "PLAINTEXT"): {} for name in operators_files.files()},
    ("explicit map", "SSL"): {},
    ("explicit map", "SASL_PLAINTEXT"): SECURED,
    ("lower-case listeners, Kerberos, a control plane", "SASL_SSL"): SECURED,
}


def run(*arguments):
    """Return the lines that AcceptedConfigs prints."""
    command = [*servers.java(), str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def verdicts():
    """{(name, protocol, mode): fields of the line that AcceptedConfigs prints}, from one JVM."""
    with servers.workdir("kraft_config") as home:
        paths = {}
        for (name, protocol), extra in CASES.items():
            node_id, values = operators_files.files()[name]
            modes = operators_files.modes(node_id, values, "CONTROLLER", protocol, extra)
            for mode, settings in modes.items():
                path = home / f"{len(paths)}.properties"
                path.write_bytes(properties.edit(b"", settings))
                paths[str(path)] = (name, protocol, mode)
        return {paths[line.split("\t")[1]]: line.split("\t") for line in run(*paths)}


@pytest.mark.parametrize("mode", KAFKA_MODES)
@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_kafka_accepts_each_mode(verdicts, case, mode):
    verdict, _path, kafka_mode = verdicts[(*case, mode)]
    assert (verdict, kafka_mode) == ("ok", KAFKA_MODES[mode])


def test_kafka_rejects_incomplete_properties():
    """AcceptedConfigs can print `no`."""
    with servers.workdir("kraft_config_refused") as home:
        path = home / "mixed.properties"
        path.write_text("process.roles=broker\nnode.id=1\ncontroller.quorum.voters=2@c:9093\n")
        (line,) = run(path)
    assert line.startswith("no\t") and "controller.listener.names" in line


def test_what_is_shown_is_what_kafka_defines_and_does_not_call_a_password():
    types = [line.split("\t") for line in run("--types")]
    passwords = {name for name, kind in types if kind == "PASSWORD"}
    assert len(passwords) > 10 and len(types) > 400
    assert {name: kind for name, kind in types if kind != "PASSWORD"} == harmless_configs.TYPES
    for name in passwords:
        assert seal.is_secret(name) and seal.is_secret(f"listener.name.x.{name}")
    assert not passwords & harmless_configs.READ_BY_NAME
