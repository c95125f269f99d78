# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""support_bundle: make one archive for a ticket, of what earlier tasks read and of the run artifacts."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import time
from pathlib import Path
from typing import Any, Iterator, Mapping

import yaml
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.release import __version__ as ansible_version
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import same_cluster
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import variables
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text.printable import escape_invisible
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import support_texts
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking, redaction
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.seal import (
    SealError,
    is_secret,
    mask_value,
    unseal,
    unseal_bytes,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import addresses
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import run_artifacts, support_bundle, variable_specs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import (
    GROUPS,
    QuorumshiftAction,
    display,
    explain_unread,
    format_reason,
)
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.support_bundle import LeftOut, Source, to_json

ZOOKEEPER_GROUPS = ("zookeeper", "zookeeper_source", "zookeeper_destination")
PROPERTIES = ("quorumshift_broker_config", "quorumshift_controller_config")
UNKNOWN = "unknown"  # the directory of runs that did not read the cluster id
FILES = {
    support_texts.PROPERTIES: "node.properties",
    support_texts.LOG: "node.log",
    support_texts.JOURNAL: "unit-journal.log",
}
_ROOT = Path(__file__).resolve().parents[2]
_ADDRESSES = ("listeners", "advertised.listeners", "zookeeper.connect", "controller.quorum.voters")


class ActionModule(QuorumshiftAction):
    """Collects, redacts, packs and searches the bundle; the module's documentation says what is in it."""

    def note_failure(self, task, reason, host=""):
        """Journal nothing: this is no run, and changes no artifacts of one."""

    def act(self, args):
        moment = int(time.time())
        self.sources: list[Source] = []
        self.left_out: list[LeftOut] = []
        self.found: set[str] = {self.run_key()}
        self.names: set[str] = {os.uname().nodename, *self.vars["groups"].get("all", ())}
        nodes = {host: role for role, group in GROUPS.items() for host in self.vars["groups"].get(group, [])}
        directory, cluster = self._cluster()
        self._add_status(directory)
        versions = {host: self._add_node(host) for host in sorted(nodes)}
        self._add_versions(versions)
        self._add_inventory(nodes)
        if directory:
            sources, left_out = support_bundle.collect_runs(directory, int(self.taken("runs") or 0))
            self.sources += sources
            self.left_out += left_out
        known = redaction.Secrets(self.found)
        hidden = boolean(self.taken("hide_hosts") or False)
        redactor = support_bundle.Redactor(known, redaction.Hosts(self.names) if hidden else None)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        about = {"cluster": cluster or UNKNOWN, "at": at, "collection": collection_version()}
        patterns = self.taken("leave_out") or []
        built = support_bundle.build(self.sources, self.left_out, redactor, about, patterns)
        return self._save(built, redactor, moment, cluster)

    def _save(self, built: support_bundle.Built, redactor: support_bundle.Redactor, moment: int, cluster: str) -> dict:
        """Write the bundle, and print where it is and what is missing."""
        name = f"support-{time.strftime('%Y%m%dT%H%M%S', time.gmtime(moment))}-{secrets.token_hex(2)}"
        path = None
        packed = support_bundle.pack(built.files, f"quorumshift-{name}", moment)
        try:
            if self._task.check_mode:
                support_bundle.require_clean(packed, redactor)
            else:
                artifacts = run_artifacts.RunArtifacts(self._root(), cluster or UNKNOWN, "support")
                path = os.path.join(artifacts.create_cluster(), f"{name}.tar.gz")
                support_bundle.write(path, packed, redactor)
        except support_bundle.SupportError as error:
            return {"failed": True, "msg": str(error)}
        hide = redactor.secrets.replace
        missing = [
            {"what": hide(item.what).text, "why": masking.mask(hide(item.why).text)}
            for item in built.left_out
            if item.missing
        ]
        self._show(f"  support bundle: {path or 'not written in check mode'}")
        size = f"{len(built.files)} files, {(len(packed) + 1023) >> 10} KiB"
        self._show(f"  {size}, {built.replaced} places replaced. Look through it before you send it")
        if redactor.secrets.short:
            self._show(f"  ! secrets too short to be searched for: {redactor.secrets.short}. Its README.txt says more")
        for item in missing:
            self._show(f"  ! missing: {item['what']}: {item['why']}")
        return {"changed": False, "path": path, "missing": missing}

    @staticmethod
    def _show(line: str) -> None:
        display.display(escape_invisible(line))

    def _root(self) -> str:
        return os.path.dirname(self._artifacts().cluster)

    def _cluster(self) -> tuple[str, str]:
        """Return the directory with the cluster's artifacts and its id, "" where they are not known.

        Where nothing answers, artifacts of one cluster alone are of this one: those of another would carry secrets that
        this inventory does not have.
        """
        if self.session.get("cluster_id"):
            return self._artifacts().cluster, self.session["cluster_id"]
        root = self._root()
        names = sorted(os.listdir(root)) if os.path.isdir(root) else []
        clusters = [name for name in names if same_cluster.is_cluster_id(name) and name != UNKNOWN]
        found = [name for name in clusters if os.path.isdir(os.path.join(root, name))]
        if len(found) == 1:
            self.left_out.append(
                LeftOut("cluster id", f"it could not be read; the only artifacts here are of {found[0]}")
            )
            return os.path.join(root, found[0]), found[0]
        why = f"the cluster id could not be read, and there are artifacts of {len(found)} clusters here"
        self.left_out.append(LeftOut("runs", why))
        return "", ""

    # What earlier tasks read ------------------------------------------------------------------------------------

    def _registered(self, host: str, name: str) -> Mapping[str, Any]:
        value = self._variables_of(host).get(name) if host in self.vars["hostvars"] else None
        return value if isinstance(value, Mapping) else {}

    def _add_status(self, directory: str) -> None:
        """Add the status of now, by the result of its task, and the newest that was kept, which may be older."""
        result = self._registered("localhost", "support_status")
        lines = result.get("screen")
        if lines:
            self._add("status.txt", "the playbook status, now", "".join(f"{line}\n" for line in lines).encode())
        else:
            said = format_reason("localhost", result.get("msg") or "its task did not run")
            self.left_out.append(LeftOut("status", said))
        path = os.path.join(directory or self._artifacts().cluster, run_artifacts.STATUS)
        try:
            with open(path, "rb") as stream:
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.fstat(stream.fileno()).st_mtime))
                self._add("status.json", f"run artifacts, {run_artifacts.STATUS}, of {at}", stream.read())
        except OSError as error:
            self.left_out.append(LeftOut("status.json", f"{error.strerror}"))

    def _add_node(self, host: str) -> dict[str, Any]:
        """Add what was read of a node; return its versions."""
        facts = dict(self.facts_of(host).get("quorumshift_node") or {})
        folder = f"hosts/{support_bundle.file_name(host)}"
        if facts:
            facts["clock"] = self.facts_of(host).get("quorumshift_clock") or {}
            self._keep_secrets(facts)
            self._keep_names(facts)
            self._add(f"{folder}/facts.json", f"{host}, node_facts", to_json(_plain(facts)))
        else:
            said = explain_unread(host, self._registered(host, "quorumshift_gathered") or None)
            self.left_out.append(LeftOut(f"{folder}/facts.json", said))
        read = self._registered(host, "support_texts")
        texts = read.get("texts")
        if texts is None:
            why = read.get("unread") or read.get("msg")
            said = format_reason(host, why) if why and not read.get("skipped") else "the host could not be read"
            self.left_out.append(LeftOut(f"{folder}/node.*", said))
        if texts is None and not facts:
            # Other nodes' logs may have them
            self.left_out.append(
                LeftOut(f"the secrets of {host}", "they could not be read, so no file was searched for them")
            )
        for text in texts or ():
            path, source = f"{folder}/{FILES[text['kind']]}", f"{host}, {text['source']}"
            try:
                if not text.get("sealed"):
                    raise SealError(str(text.get("why")))
                self._add(path, source, unseal_bytes(self.run_key(), text["sealed"], support_texts.MOST_BYTES))
            except SealError as error:
                self.left_out.append(LeftOut(path, f"{text['source']}: {error}"))
        if texts is not None:
            opened = unseal_bytes(self.run_key(), read["secrets"], support_texts.MOST_BYTES)
            self.found.update(json.loads(opened))
            for variable in read.get("unresolved") or ():
                key, _colon, why = variable.partition(": ")
                self.left_out.append(
                    LeftOut(f"the secret of {key} on {host}", f"{why}, so no file was searched for it")
                )
        return {"kafka": facts.get("version"), **(read.get("versions") or {})}

    def _keep_secrets(self, value: Any) -> None:
        """Remember what facts have sealed: secrets of settings, which have a dot in their names, and keys."""
        if isinstance(value, Mapping):
            opened = {str(key): self._opened(item) for key, item in value.items() if isinstance(item, str)}
            # Not what is shown though its name is unknown, such as the cluster id of meta.properties
            shown = {key for key, item in opened.items() if item == value[key] and is_secret(key)}
            settings = {key: item for key, item in opened.items() if "." in key and key not in shown}
            self.found.update(masking.known_secrets(settings))
            self.found.update(secret for item in settings.values() for secret in masking.assigned_secrets(item))
            self.found.update(item for key, item in opened.items() if "." not in key and item != value[key])
            for item in value.values():
                self._keep_secrets(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._keep_secrets(item)

    def _opened(self, text: str) -> str:
        try:
            return unseal(self.run_key(), text)
        except SealError:
            return ""

    def _keep_names(self, facts: Mapping[str, Any]) -> None:
        """Remember the host names and addresses in a node's facts."""
        self.names.add(str(facts.get("hostname") or ""))
        values = (facts.get("file") or {}).get("properties") or {}
        for key in _ADDRESSES:
            self.names.update(_hosts_in(str(values.get(key) or "")))

    def _add(self, path: str, source: str, data: bytes) -> None:
        self.sources.append(Source(path, source, data))

    def _add_versions(self, hosts: Mapping[str, Any]) -> None:
        control = {
            "collection": collection_version(),
            "ansible_core": ansible_version,
            "python": platform.python_version(),
            "system": platform.platform(),
        }
        self._add("versions.json", "this run", to_json({"control_node": control, "hosts": hosts}))

    # The inventory ------------------------------------------------------------------------------------------------

    def _add_inventory(self, nodes: Mapping[str, str]) -> None:
        """Add the variables of this collection by host, and remember the secrets of all variables of these hosts."""
        groups = self.vars["groups"]
        others = [self.variable("quorumshift_probe_host"), self.variable("quorumshift_spark_host")]
        others += [host for group in ZOOKEEPER_GROUPS for host in groups.get(group, [])]
        hosts = [
            host for host in dict.fromkeys(["localhost", *nodes, *others]) if host and host in self.vars["hostvars"]
        ]
        shown = {}
        for host in sorted(hosts):
            own = self._variables_of(host)
            shown[host] = dict(sorted(self._own_variables(own)))
            self._keep_variables(host, own)
            with contextlib.suppress(Exception):  # whatever a template of the operator raises
                self.names.update((host, str(own.get("ansible_host") or "")))
            for name in (
                "quorumshift_bootstrap_servers",
                "quorumshift_zookeeper_connect",
                "quorumshift_controller_host",
            ):
                self.names.update(_hosts_in(shown[host].get(name) or ""))
        self._add("inventory.json", "the inventory, as Ansible has it", to_json(shown))
        for name in ("password", "become_pass"):  # typed with -k and -K
            self.found.add(str(getattr(getattr(self, "_play_context", None), name, None) or ""))

    def _own_variables(self, own: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        facts = own.get("ansible_facts") or {}
        for name in own:
            if variables.is_own(name) and name not in facts and name not in variable_specs.internal():
                try:
                    value = _plain(own[name])
                    self.found |= redaction.find_secrets({name: value})
                    if isinstance(value, dict):
                        self.found.update(masking.known_secrets({key: value[key] for key in value if "." in key}))
                    # A plugin's setting may be a secret whose name does not show it
                    of_file = name in PROPERTIES and isinstance(value, dict)
                    yield name, {key: mask_value(key, str(item)) for key, item in value.items()} if of_file else value
                except Exception as error:  # whatever a template of the operator raises
                    yield name, f"could not be read: {error}"

    def _keep_variables(self, host: str, own: Mapping[str, Any]) -> None:
        """Remember what is secret in any variable of a host: by its name, or since it is vaulted."""
        raw = self.vars["hostvars"].raw_get(host)
        skipped = {"ansible_facts", "hostvars", "groups", "vars", *(own.get("ansible_facts") or ())}
        for name in raw:
            if name in skipped or str(name).startswith("_") or name in variable_specs.internal():
                continue
            vaulted = [*_vaulted(raw[name])]
            self.found.update(vaulted)
            # By its name alone, a variable of this prefix is one of an encrypted file
            known = "password" if str(name).startswith("vault_") else str(name)
            if vaulted or redaction.find_secrets({known: raw[name]}):
                with contextlib.suppress(Exception):  # a template of the operator that has no value now
                    self.found |= redaction.find_secrets({known: _plain(own[name])})


def collection_version() -> str:
    """Return the version of this collection, "unknown" where neither of its files has it."""
    try:
        manifest = _ROOT / "MANIFEST.json"  # of an installed collection
        if manifest.is_file():
            return str(json.loads(manifest.read_text("utf-8"))["collection_info"]["version"])
        return str(yaml.safe_load((_ROOT / "galaxy.yml").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, yaml.YAMLError):
        return "unknown"


def _plain(value: Any) -> Any:
    """Return a value of Ansible as plain data, which JSON can have."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def _vaulted(value: Any) -> Iterator[str]:
    """Yield the values in a variable that the vault encrypts one by one."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _vaulted(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _vaulted(item)
    elif type(value).__name__ == "EncryptedString":
        try:
            yield str(value)
        except Exception:  # without its vault password nothing of it is in a file either
            return


def _hosts_in(value: Any) -> Iterator[str]:
    """Yield the hosts in a setting of addresses: a list, listeners, voters or a connect string."""
    for item in value if isinstance(value, list) else str(value).split(","):
        address = str(item).rpartition("://")[2].rpartition("@")[2].partition("/")[0]
        try:
            yield addresses.parse_host_port(address, 1).host
        except addresses.AddressError:
            continue
