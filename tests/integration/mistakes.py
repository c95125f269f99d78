# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in inventories, variables and commands, and what the playbooks answer.

`python -m tests.integration.mistakes` runs each mistake and writes docs/mistakes.md. No cluster is needed: the hosts of
the inventory are this one, at a port at which nothing listens, or over a local connection.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mistakes.md"
REACHED = re.compile(
    r"TASK \[[^\n]*Read the node\][^\n]*\n(?:(?!TASK |PLAY )[^\n]*\n)*?(?:ok: |fatal: \[\w+\]: UNREACHABLE)"
)
UNTOUCHED = "Nothing was changed"
ENDED = re.compile(r"\(QS-[A-Z]+-\d{3}(?: QS-[A-Z]+-\d{3})*\)(?:\"|\n)")
LONGEST = 600  # of one problem's text, in characters
INVENTORY: dict[str, Any] = {
    "all": {
        "vars": {
            "quorumshift_bootstrap_servers": "127.0.0.1:1",
            "quorumshift_zookeeper_connect": "127.0.0.1:2/kafka",
            "quorumshift_probe_timeout": 1,
            "ansible_host": "127.0.0.1",
            "ansible_port": 1,
        },
        "children": {
            "kafka_broker": {"hosts": {"b1": {}, "b2": {}, "b3": {}}, "vars": {}},
            "kafka_controller": {
                "hosts": {
                    "c1": {"quorumshift_node_id": 101},
                    "c2": {"quorumshift_node_id": 102},
                    "c3": {"quorumshift_node_id": 103},
                }
            },
            "zookeeper_destination": {"hosts": {"z1": {"zk_migrate_myid": 11}, "z2": {"zk_migrate_myid": 12}}},
        },
    }
}
LOCAL = {"ansible_connection": "local", "ansible_host": None}
MOVE = {
    "zk_migrate_source_connect": "s1:2181/kafka",
    "zk_migrate_destination_connect": "z1:2181,z2:2181/kafka",
    "zk_migrate_destination_servers": {11: "z1:2888:3888", 12: "z2:2888:3888"},
}


class Mistake(NamedTuple):
    """`typed`: the playbook and its options; `inventory`: what differs, {path with dots: value, None removes}; `shown`:
    the mistake as the page has it; `said`: a part of the answer; `code`: the exit code; `reaches`: whether hosts are
    reached before the answer."""

    typed: str
    said: str
    inventory: Mapping[str, Any] = MappingProxyType({})
    shown: str = ""
    code: int = 2
    reaches: bool = False


def _vars(**values: Any) -> dict[str, Any]:
    return {f"all.vars.{name}": value for name, value in values.items()}


def _move(**values: Any) -> dict[str, Any]:
    return {**_vars(**MOVE), **values}


CONTROLLERS = "all.children.kafka_controller.hosts"
MISTAKES = [
    Mistake(
        "migrate -e quorumshift_soack=12h",
        "quorumshift_soack: no variable of this collection has this name. Did you mean quorumshift_soak?",
    ),
    Mistake("migrate -e quorumshift_finalise_token=x", "Did you mean quorumshift_finalize_token?"),
    Mistake("migrate -e quorumshift_direction=back", "quorumshift_direction is internal: "),
    Mistake("migrate -e step_when=false", "step_when is internal: "),
    Mistake("migrate -e quorumshift_show=true", "quorumshift_show is internal: "),
    Mistake("status -e quorumshift_taken=quorumshift_show", "quorumshift_taken is internal: "),
    Mistake("verify -e step_hosts=localhost", "step_hosts is internal: "),
    Mistake(
        "migrate -e quorumshift_soak=12",
        "quorumshift_soak: '12' has no unit. For 12 hours use 12h; units are s, m, h and d.",
    ),
    Mistake("migrate -e quorumshift_soak=1w", "quorumshift_soak: '1w' is not a duration. Use a number with its unit"),
    Mistake("restart -e restart_concurency=4", "Did you mean restart_concurrency?"),
    Mistake(
        "restart -e restart_roles=contoller", "restart_roles: 'contoller': no such choice. Did you mean controller?"
    ),
    Mistake("restart -e restart_pace_s=1m", "restart_pace_s: '1m': not of type int."),
    Mistake("restart_plan -e restart_speed=4", "restart_speed: no variable of this collection has this name."),
    Mistake("rollback", "quorumshift_rollback_to is not set."),
    Mistake("rollback -e quorumshift_rollback_to=zookeeper", "quorumshift_rollback_to: 'zookeeper': no such choice."),
    Mistake("upgrade", "upgrade_to is not set."),
    Mistake("reassign -e reassign_apply=true", "reassign_src, reassign_undo, reassign_cancel. None is set."),
    Mistake("reassign -e reassign_drain=b3", "reassign_drain: 'b3': not of type list of int."),
    Mistake("reassign -e reassign_drain=3 -e reassign_cancel=true", "reassign_drain and reassign_cancel are set."),
    Mistake("migrate -i localhost,", "The inventory has no host in the group kafka_broker."),
    Mistake(
        "migrate",
        "The inventory has no host in the group kafka_controller.",
        {"all.children.kafka_controller": None},
        "no group `kafka_controller`",
    ),
    Mistake(
        "migrate",
        "quorumshift_bootstrap_servers is not set.",
        _vars(quorumshift_bootstrap_servers=None),
        "no `quorumshift_bootstrap_servers`",
    ),
    Mistake(
        "migrate",
        "quorumshift_bootstrap_servers is set for b1, b2, b3, but not for the control node, which needs it.",
        {
            **_vars(quorumshift_bootstrap_servers=None),
            "all.children.kafka_broker.vars.quorumshift_bootstrap_servers": "b1:9092",
        },
        "`quorumshift_bootstrap_servers` in the group `kafka_broker`",
    ),
    Mistake(
        "preflight",
        "quorumshift_bootstrap_servers: ",
        _vars(quorumshift_bootstrap_servers="b1:9094,b2:http"),
        "`quorumshift_bootstrap_servers: b1:9094,b2:http`",
    ),
    Mistake(
        "plan",
        "write the chroot once, after the last host.",
        _vars(quorumshift_zookeeper_connect="z1:2181/k,z2:2181/k"),
        "`quorumshift_zookeeper_connect: z1:2181/k,z2:2181/k`",
    ),
    Mistake(
        "plan",
        "quorumshift_zookeeper_connect: ",
        _vars(quorumshift_zookeeper_connect="z1:218100/k"),
        "`quorumshift_zookeeper_connect: z1:218100/k`",
    ),
    Mistake(
        "plan",
        "99999 is no port. Use a number from 1 to 65535.",
        {f"{CONTROLLERS}.c1.quorumshift_controller_port": 99999},
        "`quorumshift_controller_port: 99999`",
    ),
    Mistake(
        "migrate",
        "quorumshift_node_id (c2): not set.",
        {f"{CONTROLLERS}.c2.quorumshift_node_id": None},
        "`c2` without `quorumshift_node_id`",
    ),
    Mistake(
        "migrate",
        "quorumshift_node_id: c1, c2 have the same id, 101.",
        {f"{CONTROLLERS}.c2.quorumshift_node_id": "101"},
        "`c1` and `c2` with id 101",
    ),
    Mistake(
        "migrate",
        "quorumshift_node_id (c2): 'c2': not of type int.",
        {f"{CONTROLLERS}.c2.quorumshift_node_id": "c2"},
        "`quorumshift_node_id: c2`",
    ),
    Mistake(
        "migrate",
        "b1: in both groups, kafka_broker and kafka_controller.",
        {f"{CONTROLLERS}.b1": {"quorumshift_node_id": 104}, f"{CONTROLLERS}.c3": None},
        "`b1` in both groups",
    ),
    Mistake(
        "status",
        "quorumshift_client: ",
        _vars(quorumshift_client={"security_protocol": "SASL-SSL"}),
        "`security_protocol: SASL-SSL`",
    ),
    Mistake(
        "status",
        "quorumshift_client.sasl_mechanism: missing",
        _vars(quorumshift_client={"security_protocol": "SASL_SSL"}),
        "`security_protocol: SASL_SSL` alone",
    ),
    Mistake(
        "status",
        "sasl_pasword is no option. Did you mean sasl_password?",
        _vars(quorumshift_client={"sasl_pasword": "x"}),
        "`sasl_pasword` in `quorumshift_client`",
    ),
    Mistake(
        "status",
        "quorumshift_zookeeper_client.auth must have the form user:password.",
        _vars(quorumshift_zookeeper_client={"auth": "secret"}),
        "`auth` without a colon",
    ),
    Mistake(
        "migrate",
        "'vault_kafka' is undefined",
        _vars(quorumshift_client={"security_protocol": "SSL", "ssl_keypassword": "{{ vault_kafka }}"}),
        "no vault password file",
    ),
    Mistake(
        "migrate",
        "'OU=ops' has no type. Write each as User:NAME.",
        _vars(quorumshift_controller_super_users="User:CN=kafka,OU=ops"),
        "`quorumshift_controller_super_users: User:CN=kafka,OU=ops`",
    ),
    Mistake("migrate -e quorumshift_verify=maybe", "quorumshift_verify: 'maybe': not of type bool."),
    Mistake(
        "migrate",
        "quorumshift_controller_protocol: 'TLS': no such choice.",
        _vars(quorumshift_controller_protocol="TLS"),
        "`quorumshift_controller_protocol: TLS`",
    ),
    Mistake("zk_migrate", "zk_migrate_source_connect is not set.", {}, "none of its variables"),
    Mistake(
        "zk_migrate",
        "zk_migrate_myid (z2): not set.",
        _move(**{"all.children.zookeeper_destination.hosts.z2.zk_migrate_myid": None}),
        "`z2` without `zk_migrate_myid`",
    ),
    Mistake(
        "zk_rollback",
        "zk_migrate_myid (z2): 13 is no id of zk_migrate_destination_servers. It has 11, 12.",
        _move(**{"all.children.zookeeper_destination.hosts.z2.zk_migrate_myid": 13}),
        "another `zk_migrate_myid`",
    ),
    Mistake("migrate --limit b1", "--limit b1 excludes hosts.", code=4),
    Mistake("migrate --tags brokers", "--tags or --skip-tags brokers exclude tasks.", code=4),
    Mistake("restart -e restart_concurrency:4", "-e restart_concurrency: Ansible reads no value of it."),
    Mistake("migrate -e quorumshift-soak=48h", "Did you mean quorumshift_soak?"),
    Mistake("restart -e restrat_concurrency=4", "Did you mean restart_concurrency?"),
    Mistake("migrate -e quorumshift_state_dir=", "quorumshift_state_dir is empty. Set a value, or remove it"),
    Mistake("verify", "quorumshift_verify is empty.", _vars(quorumshift_verify=""), "`quorumshift_verify: ''`"),
    Mistake("migrate --start-at-task brokers", "--start-at-task excludes tasks.", code=4),
    Mistake("verify --start-at-task brokers", "--start-at-task excludes tasks.", code=4),
    Mistake(
        "migrate",
        "quorumshift_canary: False: YAML reads it as a boolean. Put it in quotes.",
        _vars(quorumshift_canary=False),
        "`quorumshift_canary: no`",
    ),
    Mistake(
        "migrate",
        "quorumshift_client: YAML reads sasl_password as a number. Put it in quotes.",
        _vars(quorumshift_client={"security_protocol": "SASL_SSL", "sasl_password": 3.10}),
        "`sasl_password: 3.10`",
    ),
    Mistake(
        "upgrade",
        "upgrade_to: 3.9: YAML reads it as a number. Put it in quotes.",
        _vars(upgrade_to=3.90),
        "`upgrade_to: 3.90`",
    ),
    Mistake("upgrade -e upgrade_to=latest", "upgrade_to: 'latest' is no version of Kafka."),
    Mistake(
        "preflight",
        "quorumshift_zookeeper_connect: ['z1:2181', 'z2:2181']: not of type str.",
        _vars(quorumshift_zookeeper_connect=["z1:2181", "z2:2181"]),
        "`quorumshift_zookeeper_connect: [z1:2181, z2:2181]`",
    ),
    Mistake(
        "migrate",
        "quorumshift_controller_config: 'super.users' has no text as its value.",
        _vars(quorumshift_controller_config={"super.users": ["User:a", "User:b"]}),
        "`super.users: [User:a, User:b]` in `quorumshift_controller_config`",
    ),
    Mistake(
        "migrate",
        "quorumshift_controller_host (c1): 'c1:9093' is not a host.",
        {f"{CONTROLLERS}.c1.quorumshift_controller_host": "c1:9093"},
        "`quorumshift_controller_host: c1:9093`",
    ),
    Mistake("status -e quorumshift_probe_timeout=0", "quorumshift_probe_timeout: 0.0 is out of range."),
    Mistake("restart -e restart_concurrency=0", "restart_concurrency: 0 is out of range. Use a number above 0."),
    Mistake("reassign -e reassign_add=4;5", "reassign_add: '4;5' is no broker id."),
    Mistake("migrate -e quorumshift_canary=b9", "quorumshift_canary: the inventory has no host b9."),
    Mistake(
        "restore_zookeeper -e quorumshift_state_dir=state",
        "quorumshift_state_dir: 'state' is no absolute path. Begin it with /.",
    ),
    Mistake(
        "migrate",
        "quorumshift_waive: QS-CHECK-404 is not a check.",
        _vars(quorumshift_waive={"QS-CHECK-404": "known"}),
        "`quorumshift_waive: {QS-CHECK-404: known}`",
    ),
    Mistake(
        "verify",
        "quorumshift_zookeeper_config_file (zk1): 'zk_dir' is undefined.",
        {"all.children.zookeeper": {"hosts": {"zk1": {"quorumshift_zookeeper_config_file": "{{ zk_dir }}/zoo.cfg"}}}},
        "an undefined variable in the group `zookeeper`",
    ),
    Mistake(
        "zk_migrate",
        "zk_migrate_destination_servers: '11: z1' is no address of a server.",
        _move(**_vars(zk_migrate_destination_servers={11: "z1", 12: "z2:2888:3888"})),
        "`zk_migrate_destination_servers: {11: z1, …}`",
    ),
    Mistake(
        "zk_rollback",
        "both have s1:2181. Give the servers of two ensembles.",
        _move(**_vars(zk_migrate_destination_connect="s1:2181/kafka")),
        "the source's servers as the destination",
    ),
    Mistake("status -e quorumshift_soack=12h", "Did you mean quorumshift_soak?", code=0, reaches=True),
    Mistake("migrate", "6 cannot be locked: ", {}, "no host answers SSH", reaches=True),
    Mistake("plan", "The phase is unknown: ", {}, "no host answers SSH", reaches=True),
    Mistake("preflight", "These checks block the migration: ", {}, "no host answers SSH", reaches=True),
    Mistake(
        "preflight -e quorumshift_spark_submit=/opt/none/bin/spark-submit",
        "blocks QS-CHECK-040 /opt/none/bin/spark-submit is not on the Spark host localhost",
        {},
        reaches=True,
    ),
    Mistake(
        "preflight -e quorumshift_spark_host=b1",
        "blocks QS-CHECK-040 the Spark host b1 is unreachable: ssh: connect to host 127.0.0.1 port 1: "
        "Connection refused",
        {},
        reaches=True,
    ),
    Mistake("status", "not reached: ssh: ", {}, "no host answers SSH", code=0, reaches=True),
    Mistake(
        "status",
        "there is no Python at /opt/python.",
        _vars(**LOCAL, ansible_python_interpreter="/opt/python"),
        "`ansible_python_interpreter: /opt/python`, which is not there",
        code=0,
        reaches=True,
    ),
    Mistake(
        "status",
        "b1 has no file /etc/kafka/server.properties. Set quorumshift_broker_config_file",
        _vars(**LOCAL),
        "another path of `server.properties`",
        code=0,
        reaches=True,
    ),
    Mistake("status -e quorumshift_artifacts_dir=/proc/none", "On the control node: /proc/none: ", {}, reaches=True),
    Mistake("status -e quorumshift_probe_host=b9", "quorumshift_probe_host: the inventory has no host b9."),
    Mistake("preflight -e quorumshift_exclude_hosts=b9", "quorumshift_exclude_hosts: the inventory has no host b9."),
]


class Answer(NamedTuple):
    """What a playbook answered: exit code, output, seconds, and the text that names the mistake."""

    code: int
    output: str
    seconds: float
    said: str


def command_of(mistake: Mistake, inventory: str) -> list[str]:
    """Return the arguments of `ansible-playbook`."""
    playbook, *options = mistake.typed.split()
    given = [] if "-i" in options else ["-i", inventory]
    return [*given, f"playbooks/{playbook}.yml", *options]


def inventory_of(mistake: Mistake, directory: str) -> dict:
    """Return the inventory with the mistake in it."""
    found = copy.deepcopy(INVENTORY)
    found["all"]["vars"]["quorumshift_artifacts_dir"] = f"{directory}/artifacts"
    found["all"]["vars"]["quorumshift_state_dir"] = f"{directory}/state"
    for path, value in mistake.inventory.items():
        *parents, name = path.split(".")
        node = found
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is None:
            node.pop(name, None)
        else:
            node[name] = value
    return found


def run(mistake: Mistake, root: Path = ROOT) -> Answer:
    """Run a playbook with a mistake, and return what it answers."""
    with tempfile.TemporaryDirectory() as directory:
        inventory = f"{directory}/inventory.json"
        Path(inventory).write_text(json.dumps(inventory_of(mistake, directory)), encoding="utf-8")
        began = time.monotonic()
        done = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), "ansible-playbook"), *command_of(mistake, inventory)],
            cwd=root,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8", "ANSIBLE_LOCAL_TEMP": f"{directory}/local"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        seconds = time.monotonic() - began
    output = done.stdout.replace(directory, "DIR")
    return Answer(done.returncode, output, seconds, said(output, mistake.said))


def said(output: str, wanted: str) -> str:
    """Return the problem that names the mistake: a line of the failed task's message, a warning, a line of the
    screen, or of the preflight's table."""
    messages = re.findall(r'^fatal: .*?"msg": ("(?:[^"\\]|\\.)*")', output, re.M)
    lines = [line for message in messages for line in json.loads(message).splitlines()]
    lines += [
        " ".join(warning.split())
        for warning in re.findall(r"^\[WARNING\]: (.*(?:\n\S.*)*?)\n(?=\n|\w+:)", output, re.M)
    ]
    lines += re.findall(r"^\[ERROR\]: Error processing keyword .*? failed: (.*)$", output, re.M)
    lines += [line[4:] for line in output.splitlines() if line.startswith("  ! ")]
    table = [" ".join(line.split()) for line in output.splitlines() if re.match(r" +(?:blocks|warns) ", line)]
    lines = [*table, *lines]
    return next((line for line in lines if wanted in line), lines[-1] if lines else "")


def faults(mistake: Mistake, answer: Answer) -> list[str]:
    """Return what is wrong with an answer."""
    found = []
    if answer.code != mistake.code:
        found.append(f"exit code {answer.code}, not {mistake.code}")
    if mistake.said not in answer.said:
        found.append(f"it says {answer.said!r}")
    if bool(REACHED.search(answer.output)) != mistake.reaches:
        found.append(f"hosts reached: {not mistake.reaches}")
    if mistake.code and UNTOUCHED not in answer.output and not mistake.reaches:
        found.append(f"it does not say {UNTOUCHED!r}")
    if mistake.code and not ENDED.search(answer.output):
        found.append("no message ends with an id")
    if "Traceback" in answer.output or "argument_spec_data" in answer.output:
        found.append("it shows a traceback or an argument spec")
    if len(answer.said) > LONGEST:
        found.append(f"{len(answer.said)} characters")
    return found


def row(mistake: Mistake, answer: Answer) -> str:
    """Return the line of docs/mistakes.md."""
    text = re.sub(r"\d{8}T\d{6}-\w{4}", "RUN", answer.said).replace("|", "\\|").replace("<", "&lt;")
    reached = "yes" if mistake.reaches else "no"
    return f"| `{mistake.typed}` | {mistake.shown} | {text} | {answer.code} | {reached} |"


def page(answers: list[Answer]) -> str:
    """Return docs/mistakes.md."""
    lines = [
        "# Mistakes and answers",
        "",
        "What the playbooks answer to mistakes in commands and inventories. The tests run each of them. Where hosts",
        "are not reached, the answer comes before the first SSH connection. The",
        "page of [QS-RUN-009](messages/QS-RUN-009.md) says what to do.",
        "",
        "<!-- written by python -m tests.integration.mistakes -->",
        "",
        "| typed | in the inventory | answer | exit code | hosts reached |",
        "|---|---|---|---|---|",
    ]
    lines += [row(mistake, answer) for mistake, answer in zip(MISTAKES, answers)]
    return "\n".join(lines) + "\n"


def main(root: Path = ROOT) -> int:
    """Run all mistakes and write the page; with a directory, the mistakes of that checkout, and no page."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else root
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda mistake: run(mistake, root), MISTAKES))
    for mistake, answer in zip(MISTAKES, answers):
        wrong = "; ".join(faults(mistake, answer))
        print(f"{answer.seconds:5.1f} s  exit {answer.code}  {mistake.typed} {mistake.shown}: {answer.said[:300]}")
        if wrong:
            print(f"         FAULT: {wrong}")
    if root == ROOT:
        PAGE.write_text(page(answers), encoding="utf-8")
    return int(any(faults(mistake, answer) for mistake, answer in zip(MISTAKES, answers)))


if __name__ == "__main__":
    sys.exit(main())
