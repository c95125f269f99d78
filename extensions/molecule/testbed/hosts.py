# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host: its container and its configuration."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from string import Template

import image
import podman
import secrets_store
import security
from layout import (
    BROKERS,
    HOSTS,
    KAFKA_UID,
    METADATA_LOG_DIR,
    SECURED,
    SSH_KEY,
    STATE,
    TESTBED,
    ZOOKEEPER_UID,
    Host,
    Network,
)

TEMPLATES = TESTBED / "templates"


def start(host: Host, network: Network, secrets: dict[str, str], seed: Path | None) -> None:
    """Create and boot the host: with `seed`'s data and enabled services, or empty and without services."""
    live = _live(host)
    shutil.rmtree(live, ignore_errors=True)
    if seed:
        live.parent.mkdir(parents=True, exist_ok=True)
        # cp keeps Kafka's preallocated index files sparse
        subprocess.run(["cp", "--archive", "--sparse=always", str(seed / host.name), str(live)], check=True)
    else:
        _empty_data(host, live)
    podman.podman("create", *_options(host, network, live, seeded=seed is not None), image.name(), "/sbin/init")
    _provision(host, network, secrets)
    if seed:
        _enable(host)
    podman.podman("start", host.container)


def keep_data(host: Host, seed: Path) -> None:
    """Copy a stopped host's data into a seed."""
    seed.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", "--sparse=always", str(_live(host)), str(seed / host.name)], check=True)


def _live(host: Host) -> Path:
    # outside the container: its overlay would copy each of thousands of files at the first write
    return STATE / "hosts" / host.name


def _empty_data(host: Host, live: Path) -> None:
    (live / "kafka").mkdir(parents=True)
    if host.is_broker:
        _own(live / "zookeeper", ZOOKEEPER_UID)
        (live / "zookeeper/myid").write_text(f"{BROKERS.index(host) + 1}\n")
        for directory in ("data1", "data2"):
            _own(live / "kafka" / directory, KAFKA_UID)
    else:
        _own(live / "kafka" / Path(METADATA_LOG_DIR).name, KAFKA_UID)


def _options(host: Host, network: Network, live: Path, seeded: bool) -> list[str]:
    names = [f"--add-host={h.name}{suffix}:{network.address(h)}" for h in HOSTS for suffix in (".testbed", "")]
    volumes = [f"--volume={directory}:/var/lib/{directory.name}" for directory in sorted(live.iterdir())]
    return [
        f"--name={host.container}",
        f"--hostname={host.name}",
        "--systemd=always",
        f"--network={podman.NETWORK}",
        f"--ip={network.address(host)}",
        *([f"--ip6={network.address6(host)}"] if SECURED else []),
        "--cap-add=NET_ADMIN",
        "--pids-limit=-1",
        "--stop-signal=SIGRTMIN+3",
        *([f"--label={podman.SEEDED}"] if seeded else []),
        *names,
        *volumes,
    ]


def _provision(host: Host, network: Network, secrets: dict[str, str]) -> None:
    """Write units, configuration and keystores to a created host."""
    root = Path(podman.podman("mount", host.container))
    try:
        _put(root / "root/.ssh/authorized_keys", SSH_KEY.with_suffix(".pub").read_text(), 0, 0o600)
        for name, store in secrets_store.keystores(host, network, secrets).items():
            _put(root / "etc/kafka/ssl" / name, store.read_bytes(), KAFKA_UID, 0o640)
        if SECURED:
            _put(root / "etc/kafka/environment", security.environment("/etc/kafka"))
            _put(root / "etc/kafka/jaas.conf", security.kafka_jaas(secrets), KAFKA_UID, 0o640)
        log_file = "server.log" if host.is_broker else "controller.log"
        _put(root / "etc/kafka/log4j.properties", _render("kafka-log4j.properties", log_file=log_file))
        if host.is_broker:
            _provision_broker(root, host, network, secrets)
        else:
            _put(root / "etc/systemd/system/kafka-controller.service", _render("kafka-controller.service"))
    finally:
        podman.podman("unmount", host.container)


def _provision_broker(root: Path, host: Host, network: Network, secrets: dict[str, str]) -> None:
    for unit in ("zookeeper.service", "kafka.service"):
        _put(root / "etc/systemd/system" / unit, _render(unit))
    ensemble = [f"server.{myid}={network.address(peer)}:2888:3888" for myid, peer in enumerate(BROKERS, start=1)]
    _put(
        root / "etc/zookeeper/zoo.cfg",
        _render("zoo.cfg", servers="\n".join(ensemble), security=security.zookeeper_settings()),
    )
    if SECURED:
        _put(root / "etc/zookeeper/environment", security.environment("/etc/zookeeper"))
        _put(root / "etc/zookeeper/jaas.conf", security.zookeeper_jaas(secrets), ZOOKEEPER_UID, 0o640)
    _put(root / "etc/zookeeper/log4j.properties", _render("zookeeper-log4j.properties"))
    properties = _render(
        "server.properties",
        broker_id=str(host.node_id),
        rack=host.rack,
        address=network.address(host),
        zookeeper_connect=network.zookeeper_connect,
        keystore_password=secrets["keystore"],
        password_encoder_secret=secrets["password_encoder_secret"],
        delegation_token_secret_key=secrets["delegation_token_secret_key"],
        **security.broker_settings(),
    )
    _put(root / "etc/kafka/server.properties", properties, KAFKA_UID, 0o640)


def _enable(host: Host) -> None:
    if not host.is_broker:
        return
    root = Path(podman.podman("mount", host.container))
    try:
        for unit in ("zookeeper.service", "kafka.service"):
            (root / "etc/systemd/system/multi-user.target.wants" / unit).symlink_to(f"/etc/systemd/system/{unit}")
    finally:
        podman.podman("unmount", host.container)


def _render(template: str, **values: str) -> str:
    return Template((TEMPLATES / template).read_text()).substitute(values)


def _put(path: Path, content: str | bytes, owner: int = 0, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    shutil.chown(path, owner, owner)


def _own(directory: Path, owner: int) -> None:
    directory.mkdir(parents=True)
    directory.chmod(0o750)
    shutil.chown(directory, owner, owner)


def execute(host: Host, *command: str, text: str | None = None, timeout: float = 120) -> str:
    """Run a command on a host with `text` as standard input; return its output. Raise TestbedError if it fails."""
    options = ["--interactive"] if text is not None else []
    return podman.podman("exec", *options, host.container, *command, text=text, timeout=timeout)
