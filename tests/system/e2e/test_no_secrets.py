# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No file that a run leaves, on the control node or on a host, holds a secret of the testbed.

In the variants of layout.SCHEMES other tests have done the run: the molecule scenario `secure`, with its -vvv output in
`.build/testbed-secure/logs`, or test_secured_ways.py. In the default variant this module migrates the testbed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import pathlib
import re
import shlex
import shutil
import threading
from secrets import token_urlsafe
from typing import Iterator

import pandas
import pytest
import yaml

from tests.system.testbed import token_server
from tests.system.testbed.layout import ROOT, SCHEME, SECURED, STATE
from tests.system.testbed.running import LOG, Testbed
from tests.system.testbed.waiting import meanwhile

# Directories with copies of the operator's files and of ZooKeeper; only root can read them, as a test checks.
PRIVATE = ("configs", "backup")
SPARK_EVENTS = STATE / "spark-events"
# Keys of plugins, which no pattern of names would find
PLANTED = (
    "plugin.schema.registry.basic.auth.user.info",
    "plugin.telemetry.api.key",
    "plugin.token",
    "plugin.azure.account.key",
    "plugin.gcs.credentials",
    "plugin.setting",
    "# ssl.key.password",  # a setting that was commented out
)
PLANTED_FILE = STATE / "planted_secrets.json"
PROCESSES = STATE / "processes.txt"


class Secrets(dict):
    """Secrets by name; a failed test prints only the names."""

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self)})"


@pytest.fixture(scope="module", autouse=True)
def _migrated(testbed: Testbed) -> None:
    if not SECURED:
        testbed.reset()
        testbed.wait_in_sync()
        planted = {key: token_urlsafe(24) for key in PLANTED}
        PLANTED_FILE.write_text(json.dumps(planted))
        lines = "\n".join(f"{key}={secret}" for key, secret in planted.items())
        for host in testbed.brokers:
            testbed.run(host, f"printf '%s\\n' {shlex.quote(lines)} >> /etc/kafka/server.properties")
        shutil.rmtree(SPARK_EVENTS, ignore_errors=True)
        SPARK_EVENTS.mkdir()
        events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": SPARK_EVENTS.as_uri()}
        events["spark.eventLog.compress"] = "false"  # to be searched
        conf = {**defaults("quorumshift")["quorumshift_spark_conf"], **events}
        with recorded_processes():
            ran = testbed.play(
                "migrate", "-vvv", "--diff", extra={"quorumshift_verify": True, "quorumshift_spark_conf": conf}
            )
        assert ran.code == 0, ran.text[-4000:]


@pytest.fixture(scope="module")
def secrets(testbed: Testbed) -> Secrets:
    """The testbed's passwords and keys, and the SCRAM keys and delegation tokens in ZooKeeper."""
    secrets = Secrets(json.loads((STATE / "secrets.json").read_text()))
    if not SECURED:
        secrets.update(json.loads(PLANTED_FILE.read_text()))
    if SCHEME.has_tokens:
        secrets["access token"] = token_server.encoded(token_server.HEADER)
    secrets["ssh key"] = (STATE / "ssh_key").read_text().splitlines()[2]
    with testbed.zookeeper() as client:
        for user in client.get_children("/config/users"):
            text = client.get(f"/config/users/{user}")[0].decode()
            for number, key in enumerate(re.findall(r"(?:stored_key|server_key)=([\w+/=]+)", text)):
                secrets[f"SCRAM key {number} of {user}"] = key
        secret_key = secrets["delegation_token_secret_key"].encode()
        for token in client.get_children("/delegation_token/tokens"):
            # DelegationTokenManager.createHmac: a client's password, stored nowhere
            code = hmac.new(secret_key, token.encode(), hashlib.sha512).digest()
            secrets[f"delegation token {token}"] = base64.b64encode(code).decode()
    return secrets


def defaults(role: str) -> dict:
    """Return a role's defaults."""
    return yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())


@contextlib.contextmanager
def recorded_processes() -> Iterator[None]:
    """Save the command lines of this machine's processes meanwhile."""
    seen = set()

    def gather(over: threading.Event) -> None:
        while not over.wait(0.5):
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_text(errors="replace").replace("\0", " "))

    with meanwhile(gather):
        yield
    PROCESSES.write_text("\n".join(sorted(seen)))


def leaked(text: str, secrets: Secrets) -> list[str]:
    """Return the names of the secrets in a text, plain or in base64."""
    forms = {name: (secret, base64.b64encode(secret.encode()).decode().rstrip("=")) for name, secret in secrets.items()}
    return sorted(name for name, both in forms.items() if any(form in text for form in both))


def in_files(paths: list[pathlib.Path], secrets: Secrets) -> dict[str, list[str]]:
    """Return {file: names of its secrets} for the files with secrets."""
    names = {str(path): leaked(path.read_bytes().decode("latin-1"), secrets) for path in paths}
    return {path: leaks for path, leaks in names.items() if leaks}


def test_the_search_finds_each_secret(secrets, tmp_path):
    assert len(secrets) > 12, "passwords, SCRAM keys or delegation tokens are missing"
    for name, secret in secrets.items():
        assert len(secret) >= 16, f"{name} is so short that it may occur by chance"
        planted = tmp_path / "planted"
        planted.write_text(f'{{"password": "{secret}"}}')
        assert name in in_files([planted], secrets)[str(planted)]


def test_verbose_output_has_no_secret(secrets):
    logs = [path for path in [*sorted((STATE / "logs").glob("*.log")), LOG] if path.exists()]
    verbose = [path for path in logs if '"module_args"' in path.read_text() or "'module_args'" in path.read_text()]
    assert verbose, f"no -vvv output of a run in {STATE / 'logs'}"
    assert in_files(logs, secrets) == {}


def test_artifacts_have_no_secret(testbed, secrets):
    files = [path for path in pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).rglob("*") if path.is_file()]
    for kind in ("journal.jsonl", "preflight.json", "facts-*.json", "*.diff"):
        assert any(path.match(kind) for path in files), f"no {kind} in the artifacts: nothing was migrated"
    assert in_files(files, secrets) == {}


def test_only_their_owner_reads_the_artifacts(testbed):
    cluster = next(pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).glob("*/*/journal.jsonl")).parents[1]
    assert [str(path) for path in [cluster, *cluster.rglob("*")] if path.stat().st_mode & 0o077] == []


@pytest.mark.skipif(SECURED, reason="the runs have no such settings")
def test_a_diff_names_the_settings_of_plugins(testbed):
    """Their values are masked and the file on the host keeps them."""
    diffs = [path.read_text() for path in pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).rglob("*.diff")]
    assert any("plugin.setting=********" in text for text in diffs), diffs[:1]
    planted = json.loads(PLANTED_FILE.read_text())
    for host in testbed.brokers:
        text = testbed.run(host, "cat /etc/kafka/server.properties")
        assert all(f"{key}={secret}" in text for key, secret in planted.items()), host


@pytest.mark.skipif(SECURED, reason="the runs have finalized")
def test_backups_stay_until_the_migration_is_finalized(testbed):
    ran = testbed.play("migrate", extra={"quorumshift_remove_backups": True})
    assert ran.code != 0 and "removes the backups of ZooKeeper, and the phase is dual_write" in ran.text, ran.text
    for host in testbed.controllers[:2]:
        assert testbed.run(host, "ls /var/lib/quorumshift/*/backup/*.gz"), host


@pytest.mark.skipif(SECURED, reason="the runs keep no event log")
def test_spark_leaves_no_secret(testbed, secrets):
    """In its event log, in process lists, and in compressed tables."""
    events = [path for path in SPARK_EVENTS.rglob("*") if path.is_file()]
    assert events and any("SparkListenerJobEnd" in path.read_text() for path in events), "no event log"
    assert in_files(events, secrets) == {}
    assert "metadata_parity" in PROCESSES.read_text()
    assert in_files([PROCESSES], secrets) == {}
    tables = list(pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).rglob("*.parquet"))
    assert tables
    for path in tables:
        assert leaked("\n".join(map(str, pandas.read_parquet(path).to_numpy().ravel())), secrets) == [], path


def test_the_state_directory_has_no_secret(testbed, secrets):
    """Files that must hold secrets are readable by root alone."""
    prune = " -o ".join(f"-name {name}" for name in PRIVATE)
    root = testbed.variables.get("quorumshift_state_dir", "/var/lib/quorumshift")
    for host in testbed.addresses:
        text = testbed.run(host, f"find {root} \\( {prune} \\) -prune -o -type f -print -exec cat {{}} +")
        assert "restart.json" in text, f"{host} has no record of a restart"
        assert leaked(text, secrets) == [], host
        readable = testbed.run(host, f"find {root} -mindepth 1 -perm /077 -printf '%m %p\\n'")
        assert readable == "", f"{host}: others may read {readable}"


def test_logs_on_hosts_have_no_secret(testbed, secrets):
    """Ansible logs each module's arguments on the host; Kafka logs its configuration."""
    for host in testbed.addresses:
        journal = testbed.run(host, "journalctl --no-pager -o cat")
        assert "Invoked with" in journal, f"{host} logged no module of Ansible"
        assert leaked(journal, secrets) == [], host
        assert leaked(testbed.run(host, "cat /var/log/kafka/*.log*"), secrets) == [], host


def test_leftovers_on_hosts_have_no_secret(testbed, secrets):
    for host in testbed.addresses:
        # tr removes the binary counters of JVMs (hsperfdata)
        find = "find /root/.ansible* /home/*/.ansible* /tmp /run/user -type f -size -20M -exec cat {} +"
        text = testbed.run(host, f"{find} 2>/dev/null | tr -cd '[:print:]\\n'", check=False)
        assert leaked(text, secrets) == [], host
