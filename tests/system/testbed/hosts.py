# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host: its container and its configuration."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from string import Template

from tests.system.testbed import confluent, image, podman, secrets_store, security
from tests.system.testbed.layout import (
    CONFLUENT,
    HAS_IPV6,
    HOSTS,
    LAYOUT,
    LOGIN,
    SECURED,
    SSH_KEY,
    STATE,
    SUDO,
    TESTBED,
    VARIANT,
    ZOOKEEPERS,
    Host,
    Network,
    release_home,
    release_libs,
)

TEMPLATES = TESTBED / "templates"
_LOGIN_UID = 1500
_IMAGE_HOME = TESTBED / "image/root/opt/kafka"


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


SHARED = STATE / "shared"
"""A directory of the control node that each host has at the same path, as a mount of NFS."""


def _live(host: Host) -> Path:
    # outside the container: its overlay would copy each of thousands of files at the first write
    return STATE / "hosts" / host.name


def _empty_data(host: Host, live: Path) -> None:
    (live / "kafka").mkdir(parents=True)
    if host.has_zookeeper or host.destination_id:
        _own(live / "zookeeper", LAYOUT.zookeeper_uid)
    if host.has_zookeeper:
        (live / "zookeeper/myid").write_text(f"{ZOOKEEPERS.index(host) + 1}\n")
    of_controller = () if LAYOUT.has_own_metadata_dir else (LAYOUT.metadata_dir,)
    for directory in LAYOUT.log_dirs if host.is_broker else of_controller:
        _own(live / "kafka" / directory, LAYOUT.uid)


def _options(host: Host, network: Network, live: Path, seeded: bool) -> list[str]:
    names = [f"--add-host={h.name}{suffix}:{network.address(h)}" for h in HOSTS for suffix in (".testbed", "")]
    mounted = {"kafka": LAYOUT.data_dir, "zookeeper": "/var/lib/zookeeper"}
    volumes = [f"--volume={directory}:{mounted[directory.name]}" for directory in sorted(live.iterdir())]
    SHARED.mkdir(parents=True, exist_ok=True)
    volumes.append(f"--volume={SHARED}:{SHARED}")
    if CONFLUENT:
        volumes.append(f"--volume={confluent.jars()}:{confluent.JARS}:ro")
    volumes += [f"--volume={release_libs(release)}:{release_home(release)}/libs:ro" for release in LAYOUT.more_releases]
    return [
        f"--name={host.container}",
        f"--hostname={host.name}",
        "--systemd=always",
        f"--network={podman.NETWORK}",
        f"--ip={network.address(host)}",
        *([f"--ip6={network.address6(host)}"] if HAS_IPV6 else []),
        "--cap-add=NET_ADMIN",
        *(["--cap-add=SYS_ADMIN"] if SUDO else []),  # logind's units mount
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
        _provision_user(root)
        _provision_homes(root)
        if CONFLUENT:
            for path, text, mode in confluent.scripts(_IMAGE_HOME):
                _put(root / path[1:], text, mode=mode)
        config = root / LAYOUT.config_dir[1:]
        for name, store in secrets_store.keystores(host, network, secrets).items():
            _put(root / LAYOUT.ssl_dir[1:] / name, store.read_bytes(), LAYOUT.uid, 0o640)
        if SUDO:
            _provision_login(root)
        if SECURED:
            _put(config / "environment", security.environment(LAYOUT.config_dir))
            _put(config / "jaas.conf", security.kafka_jaas(secrets), LAYOUT.uid, 0o640)
        log_file = LAYOUT.broker_log if host.is_broker else LAYOUT.controller_log
        _put(config / "log4j.properties", _render("kafka-log4j.properties", log_file=log_file))
        if host.has_zookeeper:
            _provision_zookeeper(root, network, secrets, ZOOKEEPERS)
        if host.destination_id:
            _provision_zookeeper(root, network, secrets, ())
        if host.is_broker:
            _provision_broker(root, host, network, secrets)
        elif host.node_id and LAYOUT.installs_units:
            _put(_unit(root, LAYOUT.controller), _render("kafka-controller.service"))
    finally:
        podman.podman("unmount", host.container)


def _provision_login(root: Path) -> None:
    """Add a user who may use sudo, and have logind end whatever a login leaves running."""
    _add_user(root, LOGIN, _LOGIN_UID, f"/home/{LOGIN}", "/bin/bash")
    _put(root / f"etc/sudoers.d/{LOGIN}", f"{LOGIN} ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
    _put(root / "etc/systemd/logind.conf.d/testbed.conf", "[Login]\nKillUserProcesses=yes\n")
    (root / "etc/systemd/system/systemd-logind.service").unlink()  # masked by image/setup.sh
    _put(root / f"home/{LOGIN}/.ssh/authorized_keys", SSH_KEY.with_suffix(".pub").read_text(), _LOGIN_UID, 0o600)
    for path in (root / f"home/{LOGIN}/.ssh", root / f"home/{LOGIN}"):
        path.chmod(0o700)
        shutil.chown(path, _LOGIN_UID, _LOGIN_UID)


def _provision_user(root: Path) -> None:
    """Add the layout's user with its log directory, and Kafka's directory, unless the image has them."""
    user, uid = LAYOUT.user, LAYOUT.uid
    if any(line.startswith(f"{user}:") for line in (root / "etc/passwd").read_text().splitlines()):
        return
    _add_user(root, user, uid, LAYOUT.data_dir, "/usr/sbin/nologin", LAYOUT.group)
    log_dir = root / LAYOUT.log_dir[1:]
    if log_dir.exists():  # of the image's user
        shutil.chown(log_dir, uid, uid)
    else:
        _own(log_dir, uid)


def _provision_homes(root: Path) -> None:
    """Install the layout's further releases, with the image's scripts, and link Kafka's directory to the first."""
    for release in LAYOUT.more_releases:
        home = release_home(release)
        for file in (path for path in (_IMAGE_HOME / "bin").iterdir()):
            # the image's archive of classes is for its own class path; Kafka 4 has Log4j 2
            text = file.read_text().replace("/opt/kafka", home).replace("${KAFKA_CDS_OPTS--", "${KAFKA_CDS_OPTS:+-")
            text = text.replace("-Dlog4j.configuration=", "-Dlog4j1.compatibility=true -Dlog4j.configuration=")
            _put(root / home[1:] / "bin" / file.name, text, mode=0o755)
        for file in (_IMAGE_HOME / "config").iterdir():
            _put(root / home[1:] / "config" / file.name, file.read_text())
    if LAYOUT.kafka_home != "/opt/kafka" and not CONFLUENT:
        (root / LAYOUT.kafka_home[1:]).symlink_to(LAYOUT.first_home)


def _add_user(root: Path, name: str, uid: int, home: str, shell: str, group: str = "") -> None:
    for file, line in (
        ("passwd", f"{name}:x:{uid}:{uid}::{home}:{shell}"),
        ("group", f"{group or name}:x:{uid}:"),
        ("shadow", f"{name}:*:19000:0:99999:7:::"),  # no password, and not locked: sshd rejects locked users
    ):
        with (root / "etc" / file).open("a") as stream:
            stream.write(f"{line}\n")


def _provision_zookeeper(root: Path, network: Network, secrets: dict[str, str], servers: tuple[Host, ...]) -> None:
    _put(_unit(root, LAYOUT.zookeeper), _render("zookeeper.service"))
    ensemble = [f"server.{myid}={network.address(peer)}:2888:3888" for myid, peer in enumerate(servers, start=1)]
    config = root / LAYOUT.zookeeper_dir[1:]
    _put(
        config / LAYOUT.zookeeper_file,
        _render("zoo.cfg", servers="\n".join(ensemble), security=security.zookeeper_settings()),
    )
    if SECURED:
        _put(root / "etc/zookeeper/environment", security.environment("/etc/zookeeper"))
        _put(root / "etc/zookeeper/jaas.conf", security.zookeeper_jaas(secrets), LAYOUT.zookeeper_uid, 0o640)
    _put(config / LAYOUT.zookeeper_log4j, _render("zookeeper-log4j.properties"))


def _provision_broker(root: Path, host: Host, network: Network, secrets: dict[str, str]) -> None:
    _put(_unit(root, LAYOUT.broker), _render("kafka.service"))
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
    _put(root / LAYOUT.config_dir[1:] / LAYOUT.broker_file, properties, LAYOUT.uid, 0o640)


def _enable(host: Host) -> None:
    enabled = {LAYOUT.zookeeper: host.has_zookeeper, LAYOUT.broker: host.is_broker}
    root = Path(podman.podman("mount", host.container))
    try:
        for unit in (f"{name}.service" for name, runs in enabled.items() if runs):
            (root / "etc/systemd/system/multi-user.target.wants" / unit).symlink_to(f"/etc/systemd/system/{unit}")
    finally:
        podman.podman("unmount", host.container)


def _unit(root: Path, name: str) -> Path:
    return root / "etc/systemd/system" / f"{name}.service"


def _render(template: str, **values: str) -> str:
    """Return the text of a template, the variant's own if it has one, with `values` and the layout's fields."""
    own = TEMPLATES / VARIANT / template
    text = (own if own.exists() else TEMPLATES / template).read_text()
    return Template(text).substitute(vars(LAYOUT), **values)


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
