# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Spark jobs: their input, the line printed for a pass, and the files kept as baseline for the next gate."""

from __future__ import annotations

import abc
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Iterable, Mapping

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import advice
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.cluster.cluster import (
    Connections,
    client_address,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import masking
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_zookeeper_connect
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import baseline

LOG_FILE, OTHER_LOG_FILE = "metadata_log.{}.tar.gz", "metadata_log.of_{}.tar.gz"
ZOOKEEPER_FILE = "zookeeper.tar.gz"
LOCAL = "local[*]"
"""The default master: all of Spark in one process on the Spark host."""
ON_NETWORK = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
"""Settings of a job that leaves the Spark host: its tasks hold credentials, its rows the cluster's metadata."""

SMALL_JVM = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
"""A JVM that starts fast. A small job mostly plans queries; the optimizing compiler would make it slower."""
LARGE_JVM = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
LARGE_BYTES = 64 << 20
"""From this input on the optimizing compiler pays: the compressed logs of three voters, 1,000,000 partitions."""


def settings(master: str | None, input_bytes: int) -> dict[str, str]:
    """Return Spark's settings for a job with this much input. quorumshift_spark_conf overrides them."""
    if elsewhere(master):
        return {**ON_NETWORK, **SMALL_JVM}  # the driver only plans
    return LARGE_JVM if input_bytes >= LARGE_BYTES else SMALL_JVM


def submit_command(submit: list[str] | None) -> list[str]:
    """Return the command spark-submit, by default the one beside Ansible's own Python."""
    return submit or [os.path.join(os.path.dirname(sys.executable), "spark-submit")]


def submit_options(master: str | None, conf: Mapping[str, Any], options: list[str], input_bytes: int = 0) -> list[str]:
    """Return the options of spark-submit for a job with this much input. Raises AnsibleActionFail for a secret."""
    merged = {**settings(master, input_bytes), **conf}
    given = [part for key, value in merged.items() for part in ("--conf", f"{key}={value}")] + options
    for part in given:
        if masking.mask(part) != part:
            raise AnsibleActionFail(
                "quorumshift_spark_conf or quorumshift_spark_options holds a secret, which every user of the Spark "
                f"host could read in the command line: {part.partition('=')[0]}. Put it into "
                "conf/spark-defaults.conf there, or into a file of mode 0600 that quorumshift_spark_options names: "
                '["--properties-file", "FILE"]. Then run again (QS-VERIFY-002)'
            )
    return given


def elsewhere(master: str | None) -> bool:
    """Return whether executors run outside the driver's process."""
    return not (master or LOCAL).startswith("local")


def _not_taken(host: str, taken: Mapping[str, Any]) -> str:
    """Describe in one line why a host gave no snapshot of its log, and what to do."""
    said = message_ids.drop_full_stop(" ".join(str(taken.get("msg", "")).split()))
    if taken.get("unreachable_host"):
        return f"{host} is unreachable ({said}). Check it with: ssh {host}. Then run the playbook again"
    return f"{host}: {said or 'its snapshot did not end'}. Run the playbook again"


def foreign_builds(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the builds of these nodes that are not supported, by the version in the name of their jar."""
    versions = {str(node["version"]) for node in nodes if node.get("version")}
    return sorted(version for version in versions if releases.parse_release(version) is None)


def directory_ids(node: Mapping[str, Any]) -> list[str]:
    """Return the ids of a node's log directories (KIP-858), [] unless all of them were read and have one."""
    found = node.get("log_dirs") or ()
    metas = [(directory.get("meta") or {}) if not directory.get("error") else {} for directory in found]
    ids = [meta.get("directory.id") for meta in metas]
    return sorted(ids) if all(ids) else []


def security_of_file(node: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the authorizer's settings in a node's file, {} if it was not read. Kafka withholds their values."""
    properties = (node.get("file") or {}).get("properties")
    names = [name for name in kraft_config.OF_AUTHORIZER if name not in own]
    return {name: properties.get(name) for name in names} if properties else {}


def _files_of(where: str) -> Mapping[str, Any]:
    with open(os.path.join(where, "result.json"), encoding="utf-8") as stream:
        return json.load(stream).get("files") or {}


def _sha256(path: str) -> str:
    hashed = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            hashed.update(chunk)
    return hashed.hexdigest()


class Job(abc.ABC):
    """A job that `action` (spark_job) submits. `own`: the task's options."""

    BASELINE: tuple[str, ...] = ()
    """Output files with which the next job of the same kind compares."""

    def __init__(self, action: Any, own: Mapping[str, Any]) -> None:
        self.action, self.own = action, own

    def refuse(self) -> None:
        """Raise AnsibleActionFail if the job lacks a required input."""
        return None

    @abc.abstractmethod
    def upload(self, input_dir: str, args: Mapping[str, Any]) -> dict:
        """Copy the job's input to the Spark host; return the job's own part of job.json."""

    @abc.abstractmethod
    def summary(self, result: Mapping[str, Any]) -> str:
        """Return the line printed for a result that is a pass."""

    def encoder_secrets(self) -> list[str]:
        """Return the sealed secrets with which brokers encode passwords in ZooKeeper."""
        return []

    def shared(self) -> str | None:
        """Return the directory of this cluster that the Spark host and all executors share, None if none is set."""
        uri = self.action.variable("quorumshift_spark_uri")
        return f"{str(uri).rstrip('/')}/{self.action.session['cluster_id']}" if uri else None

    def keep(self, where: str) -> None:
        """Keep the output of a passed job as the baseline for the next job, also of another run.

        Raises AnsibleActionFail for a file that is not the one that the result names.
        """
        facts = _files_of(where) if self.BASELINE else {}
        for name in self.BASELINE:
            path = os.path.join(where, name)
            if _sha256(path) != (facts.get(name) or {}).get("sha256"):
                raise AnsibleActionFail(
                    f"{path} is not the file that the job wrote: its SHA-256 is not the one in result.json. It was "
                    "changed or copied incompletely. The baseline was not replaced. Run the playbook "
                    "again (QS-VERIFY-001)"
                )
        for name in self.BASELINE:
            os.makedirs(self._kept, mode=0o700, exist_ok=True)
            os.chmod(self._kept, 0o700)
            path = os.path.join(self._kept, name)
            shutil.copyfile(os.path.join(where, name), f"{path}.new")
            os.chmod(f"{path}.new", 0o600)
            os.replace(f"{path}.new", path)

    def baseline(self, input_dir: str) -> str | None:
        """Copy the baseline to the Spark host; return its directory there, None when there is no baseline yet."""
        found = [name for name in self.BASELINE if os.path.exists(os.path.join(self._kept, name))]
        if not found:
            return None
        missing = [name for name in self.BASELINE if name not in found]
        if missing:
            raise AnsibleActionFail(
                f"the baseline in {self._kept} lacks {missing[0]}: it was copied incompletely, or an earlier release "
                f"wrote it. Copy the whole directory again. Or start a new baseline: rm -r {self._kept} (QS-VERIFY-001)"
            )
        for name in self.BASELINE:
            self.action.upload(os.path.join(self._kept, name), f"{input_dir}/{name}")
        return input_dir

    @property
    def _kept(self) -> str:
        return baseline.directory(self.action.artifacts().cluster)


class MetadataParity(Job):
    """Compares ZooKeeper, the metadata log, each broker and the baseline."""

    BASELINE = (baseline.ENTITIES, baseline.ENTITIES + ".hmac")

    def keep(self, where: str) -> None:
        """Keep where the views were read as well: the next snapshots of both logs go back to there."""
        super().keep(where)
        with open(os.path.join(where, "result.json"), encoding="utf-8") as stream:
            views = json.load(stream)["views"]
        log, zookeeper = ((views.get(name) or {}).get("state") or {} for name in (gates.METADATA_LOG, gates.ZOOKEEPER))
        snapshots = self.own.get("snapshots") or {}
        if zookeeper and not log and not snapshots:
            self.action.say(
                "No ZooKeeper server gave its snapshot. What changes between this gate and the copy may be incomplete "
                "at gate after_copy. The preflight says why: ansible-playbook playbooks/preflight.yml"
            )
        baseline.keep_position(self.action.artifacts().cluster, log.get("offset"), zookeeper.get("zxid"), snapshots)

    def refuse(self) -> None:
        if gates.METADATA_LOG in gates.GATES[self.own["gate"]].needs and not self.own["log"]:
            raise AnsibleActionFail(
                "the metadata log was not read: no controller answers as the quorum's leader (QS-VERIFY-002)"
            )

    def upload(self, input_dir: str, args: Mapping[str, Any]) -> dict:
        gate, seen = gates.GATES[self.own["gate"]], self.own["seen"]
        views: dict[str, Any] = {}
        job = {
            "views": views,
            "store": self.shared() if elsewhere(self.own.get("master")) else None,
            "bounds": {"log_refresh_s": 60.0, "request_timeout_s": 30.0},
            "accept_unverified_copy": bool(self.action.variable("quorumshift_accept_unverified_copy")),
            "foreign": foreign_builds(self.action.nodes().values()),
            "accept_not_compared": self._tokens(),
        }
        if gates.ZOOKEEPER in gate.needs:
            views["zookeeper"] = self._zookeeper(args)
            if self.own["copy_source"]:
                views["copy_source"] = self._copy_source(self.own["copy_source"], input_dir, args)
        if self.own["log"]:
            views["metadata_log"] = self.log(input_dir, 0)
            views["metadata_logs"] = self.other_logs(input_dir)
            if gates.ZOOKEEPER in gate.needs:
                job["fence"] = {"migration_offset": seen["mirrored_offset"], "migration_zxid": seen["mirrored_zxid"]}
        # What the operator sets for controllers is theirs to change: the preflight names it (checks.settings.overrides)
        own = self.action.variable("quorumshift_controller_config") or {}
        connections = Connections.from_options(args)
        views["brokers"] = [
            {
                "id": node["node_id"],
                "address": client_address(node, node["host_address"], connections),
                "directories": [] if gate.rollback else directory_ids(node),
                "file": {} if gate.rollback else security_of_file(node, own),
            }
            for node in self.action.nodes().values()
            if node["role"] == "broker"
        ]
        compared = {*kraft_config.APPLIED_BY_CONTROLLERS, *kraft_config.SECURITY} - own.keys()
        views["settings"] = [] if gate.rollback else sorted(compared)
        if gates.METADATA_LOG in gate.needs:
            views["controllers"] = [
                {
                    "id": node["node_id"],
                    "address": node["address"],
                    "file": {} if gate.rollback else security_of_file(node, own),
                }
                for node in self.action.nodes().values()
                if node["role"] == "controller"
            ]
        there = self.baseline(input_dir)
        if there:
            views["baseline"] = {"path": f"{there}/{self.BASELINE[0]}"}
        return job

    def _tokens(self) -> list[str]:
        """Return what the operator accepts without its comparison."""
        return [str(token).strip() for token in self.action.variable("quorumshift_accept_not_compared") or ()]

    def _copy_source(self, taken: Mapping[str, Any], input_dir: str, args: Mapping[str, Any]) -> dict:
        """Copy the files of a ZooKeeper server to the Spark host; return copy_source of job.json."""
        if not taken.get("archive"):
            return {"error": " ".join(str(taken["error"]).split())}
        path = f"{input_dir}/{ZOOKEEPER_FILE}"
        self.action.upload(taken["archive"], path)
        return {
            **{name: taken[name] for name in ("host", "sha256")},
            # texts up to ansible-core 2.18
            **{name: int(taken[name]) for name in ("snapshot", "before")},
            "archive": path,
            "chroot": parse_zookeeper_connect(args["zookeeper_connect"]).chroot,
        }

    def _zookeeper(self, args: Mapping[str, Any]) -> dict:
        """Return how the job reads ZooKeeper: its servers at a bounded pace, or the files of one of them."""
        data_dir = self.action.variable("quorumshift_zookeeper_data_dir")
        if not data_dir:
            return {
                "max_rate": float(self.action.variable("quorumshift_zookeeper_read_rate") or 0) or None,
                "max_latency_ms": float(self.action.variable("quorumshift_zookeeper_read_latency_ms") or 0) or None,
            }
        zxid = self.own["seen"]["zookeeper_zxid"]
        if not zxid:
            raise AnsibleActionFail(
                f"ZooKeeper did not answer, so nothing shows whether its files in {data_dir} are current. Start it, or "
                "check quorumshift_zookeeper_connect, and run the playbook again. Nothing was compared. (QS-VERIFY-002)"
            )
        return {
            "data_dir": str(data_dir),
            "data_log_dir": str(self.action.variable("quorumshift_zookeeper_data_log_dir") or ""),
            "chroot": parse_zookeeper_connect(args["zookeeper_connect"]).chroot,
            "at_least": zxid,
        }

    def log(self, input_dir: str, number: int) -> dict:
        """Copy a snapshot of the metadata log to the Spark host; return its part of job.json."""
        path = f"{input_dir}/{LOG_FILE.format(number)}"
        self.action.upload(self.own["log"]["archive"], path)
        return {"archive": path, "sha256": self.own["log"]["sha256"], "end_offset": self.own["log"]["end_offset"]}

    def other_logs(self, input_dir: str) -> list[dict]:
        """Copy the snapshots of the other voters' logs to the Spark host; return metadata_logs of job.json."""
        seen, entries = self.own["seen"], []
        hosts = {seen["nodes"][host]["id"]: host for host in self.own["others"] or {}}
        quorum = seen["quorum"]
        for voter in sorted(member["id"] for member in quorum["voters"] if member["id"] != quorum["leader_id"]):
            entry, host = {"node": voter}, hosts.get(voter)
            taken = self.own["others"][host] if host else {"msg": "no host of the inventory has this node id"}
            if taken.get("archive"):
                path = f"{input_dir}/{OTHER_LOG_FILE.format(voter)}"
                self.action.upload(taken["archive"], path)
                entry.update(archive=path, sha256=taken["sha256"], end_offset=taken["end_offset"])
            else:
                entry["error"] = _not_taken(host, taken) if host else taken["msg"]
            entries.append(entry)
        return entries

    def encoder_secrets(self) -> list[str]:
        read = [node.get("file") or {} for node in self.action.nodes().values()]
        files = [{**(file.get("properties") or {}), **(file.get("resolved") or {})} for file in read]
        keys = ("password.encoder.secret", "password.encoder.old.secret")
        return sorted({values[key] for values in files for key in keys if values.get(key)})

    def summary(self, result: Mapping[str, Any]) -> str:
        agree = sum(count["match"] - count.get("explained", 0) for count in result["counts"].values())
        views = len(
            [name for name, view in result["views"].items() if not (name.startswith("baseline") or view["error"])]
        )
        since = result.get("since_baseline") or {}
        counted = [f"{since[name]} {name}" for name in ("changed", "removed") if since.get(name)]
        accepted = since.get("accepted")
        records = f"{accepted} of them accepted without a record" if accepted else "each with its record"
        more = f"; {' and '.join(counted)} since the baseline, {records}" if counted else ""
        unseen = [entry["name"] for entry in result.get("not_compared") or ()]
        if unseen:
            more += f"; accepted and not compared: {advice.format_names(unseen)}"
        return f"{agree} comparisons of {views} views agree{more}"


class DataFingerprint(Job):
    """Compares the records of topics and the offsets of groups with the baseline."""

    BASELINE = ("fingerprint.json",)

    def upload(self, input_dir: str, args: Mapping[str, Any]) -> dict:
        views: dict[str, Any] = {"cluster": {"bootstrap_servers": ",".join(args["bootstrap_servers"])}}
        there = self.baseline(input_dir)
        if there:
            views["baseline"] = {"path": there}
        settings = {
            "topics": self.action.variable("quorumshift_fingerprint_topics"),
            "exclude": self.action.variable("quorumshift_fingerprint_exclude"),
            "samples": self.action.variable("quorumshift_fingerprint_samples"),
            "purged_topics": self.action.variable("quorumshift_fingerprint_purged"),
        }
        timeout_s = float(args["timeout_s"])
        return {
            "views": views,
            "fingerprint": settings,
            "store": self._store(),
            # Before it is stopped, so that it can say how much it read
            "bounds": {"read_s": max(timeout_s - 60, timeout_s * 0.8), "request_timeout_s": 60.0},
        }

    def _store(self) -> str:
        """Return where executors write what they read: for the next job, and for one that continues this one."""
        if self.action.local:
            return self.shared() or os.path.join(self.action.artifacts().cluster, "records")
        return self.shared() or f"~/.local/share/quorumshift/{self.action.session['cluster_id']}"

    def summary(self, result: Mapping[str, Any]) -> str:
        records = result["views"]["cluster"]["state"]["records"]
        if "baseline" not in result["views"]:
            return f"{records} records are kept as the baseline"
        agree = sum(count["match"] for count in result["counts"].values())
        samples = len(result["views"]["cluster"]["state"].get("samples", ()))
        more = f"; of {samples} topics only a sample was compared" if samples else ""
        return f"{records} records; {agree} comparisons with the baseline agree{more}"


class EnsembleParity(Job):
    """Compares Kafka's subtree on the servers of two ZooKeeper ensembles."""

    def upload(self, input_dir: str, args: Mapping[str, Any]) -> dict:
        given, servers = self.own["ensembles"], []
        for taken in given["archives"]:
            host = taken["item"]
            there = f"{input_dir}/{host}.tar.gz"
            self.action.upload(taken["archive"], there)
            servers.append(
                {
                    "name": host,
                    "side": "source" if host in given["source"] else "destination",
                    "archive": there,
                    "sha256": taken["sha256"],
                    "processed": {str(taken["snapshot"]): int(taken["zxid"])},
                }
            )
        views: dict[str, Any] = {
            "servers": servers,
            "chroot": parse_zookeeper_connect(args["zookeeper_connect"]).chroot,
            "zxid": int(given["zxid"]),
            "without_source": boolean(given["without_source"]),
        }
        if given["cut"]:
            views["cut"] = int(given["cut"][0])
        return {"views": views}

    def summary(self, result: Mapping[str, Any]) -> str:
        agree = sum(count["match"] for count in result["counts"].values())
        text = f"{agree} comparisons of {len(result['views'])} servers agree"
        cut = any("cut" in view["state"] for view in result["views"].values())
        if not (cut and result["leftovers"]):
            return text
        paths = [leftover["path"] for leftover in result["leftovers"]]
        return (
            f"{text}. Other applications left {sum(leftover['znodes'] for leftover in result['leftovers'])} znodes on "
            f"the destination: {advice.format_names(paths)}. To remove them there: -e zk_migrate_remove_leftovers=true"
        )

    def keep(self, where: str) -> None:
        """Journal the pass: the module `gate`, which does so for the gates of a migration, knows none of these."""
        gate, report = os.path.basename(os.path.dirname(where)), os.path.join(where, "report.html")
        reports = {ENSEMBLE_PARITY: os.path.relpath(report, self.action.artifacts().directory)}
        self.action.artifacts().note("gate", gate, result="pass", reports=reports)


ENSEMBLE_PARITY = "ensemble_parity"
JOBS: dict[str, Any] = {
    gates.METADATA_PARITY: MetadataParity,
    gates.DATA_FINGERPRINT: DataFingerprint,
    ENSEMBLE_PARITY: EnsembleParity,
}
