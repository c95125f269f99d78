# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host: its container and its configuration."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from string import Template

from tests.system.testbed import confluent, image, kerberos, least_rights, podman, secrets_store, security, token_server
from tests.system.testbed.layout import (
    CONFLUENT,
    CONTROLLERS,
    HAS_IPV6,
    HAS_SUDO,
    HOSTS,
    LAYOUT,
    LEAST_RIGHTS,
    LOGIN,
    SCHEME,
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


def _has_controller(host: Host) -> bool:
    return any(controller.container == host.container for controller in CONTROLLERS)


def _live(host: Host) -> Path:
    # outside the container: its overlay would copy each of thousands of files at the first write
    return STATE / "hosts" / host.name


def _empty_data(host: Host, live: Path) -> None:
    (live / "kafka").mkdir(parents=True)
    if host.has_zookeeper or host.destination_id:
        _own(live / "zookeeper", LAYOUT.zookeeper_uid)
    if host.has_zookeeper:
        (live / "zookeeper/myid").write_text(f"{ZOOKEEPERS.index(host) + 1}\n")
    of_broker = LAYOUT.log_dirs if host.is_broker else ()
    of_controller = (LAYOUT.metadata_dir,) if _has_controller(host) and not LAYOUT.has_own_metadata_dir else ()
    for directory in (*of_broker, *of_controller):
        _own(live / "kafka" / directory, LAYOUT.uid)


def _options(host: Host, network: Network, live: Path, seeded: bool) -> list[str]:
    # Java asks for tickets of a service at the first name that it finds for an address. The control node knows these
    # hosts by their addresses alone, so their services are named by these.
    own = [f"--add-host={network.address(h)}:{network.address(h)}" for h in HOSTS] if SCHEME.has_kerberos else []
    names = [f"--add-host={h.name}{suffix}:{network.address(h)}" for h in LAYOUT.hosts for suffix in (".testbed", "")]
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
        *own,
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
        if HAS_SUDO:
            _provision_login(root)
        if SECURED:
            _put(config / "environment", security.environment(LAYOUT.config_dir))
            _put(config / "jaas.conf", security.kafka_jaas(network.address(host), secrets), LAYOUT.uid, 0o640)
            if SCHEME.zookeeper_tls and host.is_broker:
                _put(root / security.ZOOKEEPER_CLIENT[1:], security.zookeeper_tool_settings(secrets), LAYOUT.uid, 0o640)
            if SCHEME.has_tokens:
                key = json.loads(security.TOKEN_KEY.read_text())
                _put(config / "jwks.json", token_server.key_set(key))
        if SCHEME.has_kerberos:
            _provision_kerberos(root, host, network)
        if host.has_authority and SCHEME.has_tokens:
            _provision_token_server(root, host, secrets)
        for name, log_file in (("log4j", LAYOUT.broker_log), ("controller-log4j", LAYOUT.controller_log)):
            _put(config / f"{name}.properties", _render("kafka-log4j.properties", log_file=log_file))
        if host.has_zookeeper:
            _provision_zookeeper(root, host, network, secrets, ZOOKEEPERS)
        if host.destination_id:
            _provision_zookeeper(root, host, network, secrets, ())
        if host.is_broker:
            _provision_broker(root, host, network, secrets)
        if _has_controller(host) and LAYOUT.installs_units:
            _put(_unit(root, LAYOUT.controller), _render("kafka-controller.service"))
    finally:
        podman.podman("unmount", host.container)


def _provision_token_server(root: Path, host: Host, secrets: dict[str, str]) -> None:
    """Install the token server, and start it at each boot."""
    config = root / "etc/token-server"
    _put(config / "server.py", Path(token_server.__file__).read_text())
    _put(config / "config.json", security.token_server(secrets), mode=0o600)
    for name, file in (("certificate", "keystore-certificate.pem"), ("key", "keystore-key.pem")):
        _put(config / f"{name}.pem", (STATE / "tls" / host.name / file).read_text(), mode=0o600)
    _provision_service(
        root, "token-server", "/usr/bin/python3 /etc/token-server/server.py /etc/token-server/config.json"
    )


def _provision_kerberos(root: Path, host: Host, network: Network) -> None:
    """Install Kerberos: the host's keytabs, and where it is the authority, the KDC."""
    realm = security.realm(network)
    _put(root / "etc/krb5.conf", realm.client_config())
    for principal, (keytab, owner) in security.keytabs(host, network).items():
        _put(root / keytab[1:], realm.path(principal).read_bytes(), owner, 0o400)
    # the package's unit has a sandbox, for which a container has no rights
    (root / "etc/systemd/system/krb5-kdc.service").symlink_to("/dev/null")
    if host.has_authority:
        database, directory = root / "var/lib/krb5kdc", "/var/lib/krb5kdc"
        for file in (*realm.home.glob("principal*"), realm.home / "stash"):
            _put(database / file.name, file.read_bytes(), mode=0o600)
        _put(root / "etc/krb5kdc/kdc.conf", realm.server_config(directory))
        _provision_service(root, "testbed-kdc", f"/usr/sbin/krb5kdc -n -r {kerberos.REALM}")


def _provision_service(root: Path, name: str, command: str) -> None:
    """Install a service that is started at each boot."""
    unit = _unit(root, name)
    _put(unit, f"[Unit]\nAfter=network-online.target\n[Service]\nRestart=on-failure\nExecStart={command}\n")
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit.name).symlink_to(f"/etc/systemd/system/{unit.name}")


def _provision_login(root: Path) -> None:
    """Add a user who may use sudo: all of it and with a logind that ends whatever a login leaves, or what is enough."""
    _add_user(root, LOGIN, _LOGIN_UID, f"/home/{LOGIN}", "/bin/bash")
    rights = least_rights.sudoers() if LEAST_RIGHTS else f"{LOGIN} ALL=(ALL) NOPASSWD: ALL\n"
    _put(root / f"etc/sudoers.d/{LOGIN}", rights, mode=0o440)
    if SUDO:
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


def _provision_zookeeper(
    root: Path, host: Host, network: Network, secrets: dict[str, str], servers: tuple[Host, ...]
) -> None:
    _put(_unit(root, LAYOUT.zookeeper), _render("zookeeper.service"))
    ensemble = [f"server.{myid}={network.address(peer)}:2888:3888" for myid, peer in enumerate(servers, start=1)]
    config = root / LAYOUT.zookeeper_dir[1:]
    text = _render("zoo.cfg", servers="\n".join(ensemble), security=security.zookeeper_settings(secrets))
    _put(config / LAYOUT.zookeeper_file, text, *((LAYOUT.zookeeper_uid, 0o640) if SCHEME.zookeeper_tls else ()))
    if SCHEME.zookeeper_tls:
        for name in ("server.p12", "server-trust.p12"):
            store = (root / LAYOUT.ssl_dir[1:] / name).read_bytes()
            _put(root / "etc/zookeeper" / name, store, LAYOUT.zookeeper_uid, 0o640)
    if SECURED:
        _put(root / "etc/zookeeper/environment", security.environment("/etc/zookeeper"))
        jaas = security.zookeeper_jaas(network.address(host), secrets)
        _put(root / "etc/zookeeper/jaas.conf", jaas, LAYOUT.zookeeper_uid, 0o640)
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
        **security.broker_settings(host, network, secrets),
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
