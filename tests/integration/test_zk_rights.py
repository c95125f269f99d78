# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight concludes of ACLs is what a real ZooKeeper then allows: digest, certificate, no login."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight.zookeeper import is_allowed
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper import znodes
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.zookeeper import zk_rights, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import ZkSecurity
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl

from tests.integration import servers
from tests.integration.certificates import Authority

pytestmark = pytest.mark.real
WRITE, DELETE = 2, 8
EVERYONE_READS = make_acl("world", "anyone", read=True)
THE_CREATOR = [make_acl("auth", "", all=True), EVERYONE_READS]  # ZkData.defaultAcls with zookeeper.set.acl
STATES = {name: znodes.partition_state_path(name, 0) for name in ("of_digest", "of_certificate", "of_all", "absent")}


@pytest.fixture(scope="module")
def ensemble():
    """Connections by identity, to a ZooKeeper with znodes of a digest user, of a certificate, and of all."""
    with servers.workdir("zk_rights") as home:
        authority = Authority(home / "tls")
        tls = authority.zookeeper_keys(authority.issue("server", "IP:127.0.0.1"), servers.free_port())
        with servers.zookeeper(home, settings=tls) as running:
            mine, other = authority.issue("kafka"), authority.issue("other")

            def by(certificate):
                files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile}
                security = ZkSecurity.from_options({"use_tls": True, "cafile": authority.cafile, **files})
                return str(running.tls_address), security

            identities = {
                "certificate": by(mine),
                "other certificate": by(other),
                "digest": (running.connect, ZkSecurity.from_options({"auth": "kafka:secret"})),
                "other digest": (running.connect, ZkSecurity.from_options({"auth": "kafka:wrong"})),
                "no login": (running.connect, ZkSecurity()),
            }
            with connected(identities["digest"]) as client:
                client.create(STATES["of_all"], b"x", makepath=True)
                client.create(STATES["of_digest"], b"x", acl=THE_CREATOR, makepath=True)
                client.create(znodes.CONTROLLER_EPOCH, b"1", acl=THE_CREATOR)
                client.set_acls("/", [make_acl("world", "anyone", read=True, create=True)])
            with connected(identities["certificate"]) as client:
                client.create(STATES["of_certificate"], b"x", acl=THE_CREATOR, makepath=True)
                client.create("/doomed", b"")
            yield identities


def connected(identity, chroot=""):
    connect, security = identity
    return zookeeper.connect(connect + chroot, **security.kazoo())


def really(client, path):
    """Return whether the client may write a znode, or delete a child of the root."""
    try:
        if path == "/":
            client.delete("/doomed")
        else:
            client.set(path, client.get(path)[0])
    except NoAuthError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("certificate", {"of_certificate", "of_all"}),
        ("other certificate", {"of_all"}),
        ("digest", {"of_digest", "of_all", "epoch"}),
        ("other digest", {"of_all"}),
        ("no login", {"of_all"}),
    ],
)
def test_conclusions_are_what_the_server_allows(ensemble, name, writes):
    with connected(ensemble[name]) as client:
        rights = zk_rights.collect(client, ensemble[name][1], STATES, 10)
        assert rights["complete"]
        assert STATES["absent"] not in rights["acls"]
        concluded = {
            path: is_allowed(acl, DELETE if path == "/" else WRITE, rights["identities"], rights["complete"])
            for path, acl in rights["acls"].items()
        }
        assert concluded == {path: really(client, path) for path in concluded}
    names = {**{path: short for short, path in STATES.items()}, znodes.CONTROLLER_EPOCH: "epoch", "/": "root"}
    assert {names[path] for path, allowed in concluded.items() if allowed} == writes


def test_secrets_that_every_client_can_read_are_named(ensemble):
    with connected(ensemble["digest"]) as client:
        client.create("/config/users/open", b"x", acl=THE_CREATOR, makepath=True)
        client.create("/config/users/closed", b"x", acl=THE_CREATOR[:1])
        client.create(f"{znodes.DELEGATION_TOKENS}/open", b"x", makepath=True)
        rights = zk_rights.collect(client, ensemble["digest"][1], [], 10)
        assert rights["readable_secrets"] == ["/config/users/open", f"{znodes.DELEGATION_TOKENS}/open"]
        client.set_acls("/config/users", THE_CREATOR[:1])
    with connected(ensemble["no login"]) as client:  # it may not read them, and the check goes on
        assert zk_rights.collect(client, ensemble["no login"][1], [], 10)["readable_secrets"] is None


def test_the_server_names_the_certificate(ensemble):
    with connected(ensemble["certificate"]) as client:
        identities = zk_rights.collect(client, ensemble["certificate"][1], [], 10)["identities"]
    assert ["x509", "CN=kafka"] in identities


def test_the_chroot_is_asked_for_its_own_acl(ensemble):
    with connected(ensemble["digest"], "/brokers") as client:
        acls = zk_rights.collect(client, ensemble["digest"][1], [], 10)["acls"]
        assert {path: acl[0]["perms"] for path, acl in acls.items()} == {"/": 31}
