# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check whether the brokers accept a controller's login, with Kafka's own client and the controller's settings.

Runs on the controller's host, as the user that will run the controller. `kafka-broker-api-versions.sh` asks one broker
for the list of brokers and each broker for its versions (kafka.admin.BrokerApiVersionsCommand). That needs no
permission, so only TLS and the login can fail.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Iterable, Mapping

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import as_user
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import properties

_TOOL = "bin/kafka-broker-api-versions.sh"
_ANSWER = re.compile(r"^\S+ \(id: (-?\d+) .*?\) -> (\(|ERROR: .*)", re.MULTILINE)
_REJECTED = re.compile(r"Connection to node \S+ \((\S+)\) failed authentication due to: (.*)")
# After a failed login the tool's network thread ends, and the tool waits for it forever.
_THREAD_ENDED = "network-thread exited"
_EXCEPTION = re.compile(r"^(?:Exception in thread \S+ |Caused by: )?((?:[\w$]+\.)+[\w$]+(?:Exception|Error)): (.*)")
# For a JVM that runs for two seconds, without the service's own options.
_ENVIRONMENT = {"KAFKA_HEAP_OPTS": "-Xmx128m", "KAFKA_OPTS": "", "JMX_PORT": "", "LOG_DIR": "/tmp"}


def attempt(
    kafka_home: str,
    user: str,
    settings: Mapping[str, str],
    brokers: Iterable[str],
    timeout: float,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> dict:
    """Connect with `settings` to all brokers, found through the `host:port` in `brokers`, within `timeout` seconds.
    Return {answered: broker ids, errors: texts}; raise nothing. `environment`: that variables in the settings name."""
    command = [
        installation.tool_path(f"{kafka_home}/{_TOOL}"),
        "--bootstrap-server",
        ",".join(brokers),
        "--command-config",
        "/dev/stdin",  # so that no file with secrets is left behind
    ]
    env = {**environment, **_ENVIRONMENT}
    try:
        done = as_user.run(user, command, timeout, properties.edit(b"", dict(settings)), env, _THREAD_ENDED)
    except KeyError:
        return {"answered": [], "errors": [f"there is no user {user} on this host"]}
    except OSError as error:
        message = f"{command[0]} (see quorumshift_kafka_home): {error.strerror or error}"
        return {"answered": [], "errors": [message]}
    secrets = masking.known_secrets(settings)
    result = parse(done.output, done.errors)
    if not result["answered"] and not result["errors"]:
        printed = " ".join(masking.mask(done.errors, secrets).split())[-300:]
        result["errors"] = [
            printed or ("the tool printed nothing" if done.code is not None else f"no answer in {timeout:g} s")
        ]
    return {**result, "errors": [masking.mask(error, secrets) for error in result["errors"]]}


def parse(answer: str, log: str) -> dict:
    """Return {answered, errors} from the tool's output: `answer` on standard output, `log` on standard error."""
    answered, errors = [], []
    for broker, outcome in _ANSWER.findall(answer):
        if outcome == "(":
            answered.append(int(broker))
        else:
            errors.append(f"broker {broker}: {outcome[len('ERROR: ') :]}")
    rejected = dict(_REJECTED.findall(log))
    errors += [f"{address}: {reason}" for address, reason in sorted(rejected.items())]
    thrown = [match.groups() for match in map(_EXCEPTION.match, log.splitlines()) if match]
    if thrown:
        (name, text), (_deepest, cause) = thrown[0], thrown[-1]
        first = f"{name.rpartition('.')[2]}: {text}"
        errors.append(first if cause == text else f"{first} ({cause})")
    return {"answered": sorted(answered), "errors": errors}
