# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The properties of every mode, derived from operators' files, shown to Kafka's own KafkaConfig."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils import seal
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats import properties

from tests.integration import servers
from tests.unit.core import operators_files

pytestmark = pytest.mark.real
JUDGE = pathlib.Path(__file__).with_name("AcceptedConfigs.java")
AS_KAFKA_SAYS = {
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


def asked(*arguments):
    """What AcceptedConfigs prints."""
    command = [*servers.java(), str(JUDGE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def verdicts():
    """{(name, protocol, mode): Kafka's words}, one JVM for all."""
    with servers.workdir("kraft_config") as home:
        paths = {}
        for (name, protocol), extra in CASES.items():
            node_id, values = operators_files.files()[name]
            reported = operators_files.modes(node_id, values, "CONTROLLER", protocol, extra)
            for mode, one in reported.items():
                path = home / f"{len(paths)}.properties"
                path.write_text(properties.edit("", one), encoding="latin-1")
                paths[str(path)] = (name, protocol, mode)
        return {paths[line.split("\t")[1]]: line.split("\t") for line in asked(*paths)}


@pytest.mark.parametrize("mode", AS_KAFKA_SAYS)
@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_kafka_accepts_each_mode(verdicts, case, mode):
    answer, _path, tokens = verdicts[(*case, mode)]
    assert (answer, tokens) == ("ok", AS_KAFKA_SAYS[mode])


def test_kafka_refuses_what_is_not_derived():
    """The judge is able to say no."""
    with servers.workdir("kraft_config_refused") as home:
        path = home / "mixed.properties"
        path.write_text("process.roles=broker\nnode.id=1\ncontroller.quorum.voters=2@c:9093\n")
        (line,) = asked(path)
    assert line.startswith("no\t") and "controller.listener.names" in line


def test_every_password_of_kafka_is_a_secret_here():
    """Certificates are of type PASSWORD too, for their length; they are public."""
    names = asked("--secrets")
    assert len(names) > 10
    assert [name for name in names if not seal.is_secret(name) and not re.search("certificate", name)] == []
