# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a controller will be let in by the brokers: Kafka's own client, with the controller's stores and logins.

Runs on the controller's host, as the user that will run the controller. `kafka-broker-api-versions.sh` asks one broker
for all of them and each of them for its versions (kafka.admin.BrokerApiVersionsCommand), which takes no right: what can
go wrong is TLS and the login.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping

from .. import as_user
from ..formats import properties
from ..seal import MASK, is_secret

_TOOL = "bin/kafka-broker-api-versions.sh"
_ANSWER = re.compile(r"^\S+ \(id: (-?\d+) .*?\) -> (\(|ERROR: .*)", re.MULTILINE)
_REFUSED = re.compile(r"Connection to node \S+ \((\S+)\) failed authentication due to: (.*)")
# The thread that asks has died of a login that was refused; the tool waits for it for ever.
_LAST_WORDS = "network-thread exited"
_EXCEPTION = re.compile(r"^(?:Exception in thread \S+ |Caused by: )?((?:[\w$]+\.)+[\w$]+(?:Exception|Error)): (.*)")
# A JVM that lives for two seconds; the service's own options are not its.
_ENVIRONMENT = {"KAFKA_HEAP_OPTS": "-Xmx128m", "KAFKA_OPTS": "", "JMX_PORT": "", "LOG_DIR": "/tmp"}


def attempt(kafka_home: str, user: str, settings: Mapping[str, str], brokers: Iterable[str], timeout: float) -> dict:
    """Return {answered: broker ids, errors: texts} of a client with `settings` that asks all brokers, found by the
    `host:port` in `brokers`. Bounded by `timeout` seconds; it raises nothing."""
    command = [
        f"{kafka_home}/{_TOOL}",
        "--bootstrap-server",
        ",".join(brokers),
        "--command-config",
        "/dev/stdin",  # no file with secrets is left, whatever ends this process
    ]
    reported: dict = {"answered": [], "errors": []}
    try:
        done = as_user.run(user, command, timeout, properties.edit("", dict(settings)), _ENVIRONMENT, _LAST_WORDS)
    except KeyError:
        return {**reported, "errors": [f"there is no user {user} on this host"]}
    except OSError as error:
        return {**reported, "errors": [f"{command[0]} of quorumshift_kafka_home: {error.strerror or error}"]}
    secrets = [value for key, value in settings.items() if is_secret(key) and value]
    reported = read(done.output, done.errors)
    if not reported["answered"] and not reported["errors"]:
        said = " ".join(done.errors.split())[-300:]
        reported["errors"] = [
            said or ("it printed nothing" if done.code is not None else f"no answer in {timeout:g} s")
        ]
    return {**reported, "errors": [_without(secrets, one) for one in reported["errors"]]}


def read(answer: str, log: str) -> dict:
    """Return {answered, errors} of what the tool printed: `answer` to standard output, `log` to standard error."""
    answered, errors = [], []
    for broker, outcome in _ANSWER.findall(answer):
        if outcome == "(":
            answered.append(int(broker))
        else:
            errors.append(f"broker {broker}: {outcome[len('ERROR: ') :]}")
    refused = dict(_REFUSED.findall(log))
    errors += [f"{address}: {reason}" for address, reason in sorted(refused.items())]
    thrown = [found.groups() for found in map(_EXCEPTION.match, log.splitlines()) if found]
    if thrown:
        (name, text), (_deepest, cause) = thrown[0], thrown[-1]
        first = f"{name.rpartition('.')[2]}: {text}"
        errors.append(first if cause == text else f"{first} ({cause})")
    return {"answered": sorted(answered), "errors": errors}


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
