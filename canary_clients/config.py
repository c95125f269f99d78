# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the clients: one YAML or JSON file; every key but bootstrap_servers has a default."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from canary_clients.errors import ClientsError

# our key -> librdkafka's (https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md)
CLIENT_KEYS = {
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_username": "sasl.username",
    "sasl_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
}
SECRET_KEYS = ("sasl_password", "ssl_password")


@dataclass(frozen=True)
class Shares:
    """Weights that divide the rate between the kinds of traffic."""

    long_lived: float = 70
    short_lived: float = 10
    transactional: float = 12
    compacted: float = 8


@dataclass(frozen=True)
class Admin:
    """The loop of admin changes."""

    enabled: bool = True
    interval_s: float = 10.0
    operation_timeout_s: float = 120.0
    keep_every: int = 3
    keep_at_most: int = 40
    acls: bool = True
    scram_users: bool = False


@dataclass(frozen=True)
class Config:
    bootstrap_servers: str
    client: dict[str, Any] = field(default_factory=dict)
    librdkafka: dict[str, Any] = field(default_factory=dict)
    topic_prefix: str = "canary"
    rate: float = 600.0
    partitions: int = 12
    transactional_partitions: int = 6
    compacted_partitions: int = 3
    replication_factor: int = 3
    min_insync_replicas: int = 2
    topic_configs: dict[str, Any] = field(default_factory=dict)
    retention_hours: float = 168.0
    message_bytes: int = 120
    linger_ms: int = 10
    delivery_timeout_s: float = 120.0
    long_lived_producers: int = 2
    keys_per_partition: int = 8
    short_lived_s: float = 3.0
    transaction_interval_s: float = 0.5
    abort_every: int = 5
    compacted_keys: int = 96
    member_restart_s: float = 60.0
    commit_interval_s: float = 1.0
    start_timeout_s: float = 60.0
    drain_timeout_s: float = 90.0
    audit: bool = True
    shares: Shares = field(default_factory=Shares)
    admin: Admin = field(default_factory=Admin)

    def client_settings(self) -> dict[str, Any]:
        """Return the connection settings of every client, in librdkafka's keys."""
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers}
        for key, value in self.client.items():
            if key == "ssl_check_hostname":
                value = "https" if value else "none"
            settings[CLIENT_KEYS[key]] = value
        settings.update(self.librdkafka)
        return settings

    def without_secrets(self) -> dict[str, Any]:
        """Return the settings for the run's directory: no passwords, no values of `librdkafka`."""
        data = asdict(self)
        data["client"] = {key: "***" if key in SECRET_KEYS else value for key, value in self.client.items()}
        data["librdkafka"] = dict.fromkeys(self.librdkafka, "***")
        return data


def load(path: Path) -> Config:
    """Read a config file. Raise ClientsError that names the file and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise ClientsError(f"{path}: cannot be read ({e.strerror})") from None
    if path.suffix == ".json":
        try:
            data = json.loads(text)
        except ValueError as e:
            raise ClientsError(f"{path}: not JSON: {e}") from None
    else:
        try:
            import yaml
        except ImportError:
            raise ClientsError(
                f"{path}: YAML needs PyYAML (pip install pyyaml); or write the config as .json"
            ) from None
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as e:
            raise ClientsError(f"{path}: not YAML: {e}") from None
    return parse(data, str(path))


def parse(data: Any, where: str = "config") -> Config:
    """Return a mapping as a Config. Raise ClientsError that names `where` and the key."""
    if not isinstance(data, dict):
        raise ClientsError(f"{where}: a mapping is needed, e.g. 'bootstrap_servers: broker1:9092'")
    data = dict(data)
    if isinstance(data.get("bootstrap_servers"), list):
        data["bootstrap_servers"] = ",".join(str(server) for server in data["bootstrap_servers"])
    if not data.get("bootstrap_servers"):
        raise ClientsError(
            f"{where}: bootstrap_servers is missing, e.g. 'bootstrap_servers: broker1:9092,broker2:9092'"
        )
    data["shares"] = _section(Shares, data.get("shares"), f"{where}: shares")
    data["admin"] = _section(Admin, data.get("admin"), f"{where}: admin")
    for key in ("client", "librdkafka", "topic_configs"):
        if data.get(key) is None:
            data[key] = {}
        if not isinstance(data[key], dict):
            raise ClientsError(f"{where}: {key} is a mapping")
    # a variable shared with other clients may hold null for unset keys
    data["client"] = {key: value for key, value in data["client"].items() if value is not None}
    unknown = sorted(set(data["client"]) - set(CLIENT_KEYS))
    if unknown:
        raise ClientsError(
            f"{where}: client.{unknown[0]} is not known (known: {', '.join(CLIENT_KEYS)}; "
            "librdkafka's own keys go under 'librdkafka')"
        )
    config = _section(Config, data, where)
    _check_ranges(config, where)
    return config


def _section(kind: type, data: Any, where: str) -> Any:
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ClientsError(f"{where}: a mapping is needed")
    known = {f.name: f for f in fields(kind)}
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ClientsError(f"{where}: {unknown[0]} is not known (known: {', '.join(known)})")
    values = {}
    for name, value in data.items():
        kind_name = str(known[name].type)
        if kind_name in ("float", "int") and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ClientsError(f"{where}: {name} must be a number, not {value!r}")
        if kind_name == "int" and value != int(value):
            raise ClientsError(f"{where}: {name} must be a whole number, not {value!r}")
        if kind_name == "bool" and not isinstance(value, bool):
            raise ClientsError(f"{where}: {name} must be true or false, not {value!r}")
        if kind_name == "str" and not isinstance(value, str):
            raise ClientsError(f"{where}: {name} must be text, not {value!r}")
        values[name] = int(value) if kind_name == "int" else value
    return kind(**values)


MESSAGE_HEAD_BYTES = 40


def _check_ranges(config: Config, where: str) -> None:
    at_least = {
        "rate": 1,
        "partitions": 1,
        "transactional_partitions": 1,
        "compacted_partitions": 1,
        "replication_factor": 1,
        "min_insync_replicas": 1,
        "message_bytes": MESSAGE_HEAD_BYTES,
        "delivery_timeout_s": 1,
        "long_lived_producers": 1,
        "keys_per_partition": 1,
        "short_lived_s": 0.5,
        "transaction_interval_s": 0.05,
        "abort_every": 2,
        "compacted_keys": config.compacted_partitions,
        "member_restart_s": 10,
        "commit_interval_s": 0.1,
        "start_timeout_s": 1,
        "drain_timeout_s": 1,
    }
    for name, least in at_least.items():
        if getattr(config, name) < least:
            raise ClientsError(f"{where}: {name} must be at least {least}, not {getattr(config, name)}")
    if config.min_insync_replicas > config.replication_factor:
        raise ClientsError(
            f"{where}: min_insync_replicas {config.min_insync_replicas} is more than replication_factor "
            f"{config.replication_factor}: no write would ever be acknowledged"
        )
    for name in ("long_lived", "short_lived", "transactional", "compacted"):
        if getattr(config.shares, name) <= 0:
            raise ClientsError(f"{where}: shares: {name} must be above 0")
