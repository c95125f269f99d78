# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret of the testbed is in anything that a run left behind, on the control node or on a host.

On variant `secure` that run is the molecule scenario's, whose -vvv output is in `.build/testbed-secure/logs`; on the
default one the bed is migrated here.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import pathlib
import re
import shutil
import threading
from typing import Iterator

import pandas
import pytest
import yaml

from tools.demo.testbed import VARIANT
from tools.e2e.testbed import LOG, ROOT, STATE, Testbed, meanwhile

# The operator's own files, with the passwords that he put there, and what the tool keeps of them or of ZooKeeper:
# readable by root alone, and tested for that.
KEPT = ("configs", "backup")
SPARK_EVENTS = STATE / "spark-events"
PROCESSES = STATE / "processes.txt"


class Secrets(dict):
    """Secrets by a name that may be shown; a failed test prints no more than the names."""

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self)})"


@pytest.fixture(scope="module", autouse=True)
def _migrated(testbed: Testbed) -> None:
    if VARIANT != "secure":
        testbed.reset()
        testbed.wait_in_sync()
        shutil.rmtree(SPARK_EVENTS, ignore_errors=True)
        SPARK_EVENTS.mkdir()
        events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": SPARK_EVENTS.as_uri()}
        events["spark.eventLog.compress"] = "false"  # to be searched
        conf = {**defaults("quorumshift")["quorumshift_spark_conf"], **events}
        with processes_noted():
            ran = testbed.play(
                "migrate", "-vvv", "--diff", extra={"quorumshift_verify": True, "quorumshift_spark_conf": conf}
            )
        assert ran.code == 0, ran.text[-4000:]


@pytest.fixture(scope="module")
def secrets(testbed: Testbed) -> Secrets:
    """The bed's passwords, and what ZooKeeper holds in their place."""
    found = Secrets(json.loads((STATE / "secrets.json").read_text()))
    found["ssh key"] = (STATE / "ssh_key").read_text().splitlines()[2]
    with testbed.zookeeper() as client:
        for user in client.get_children("/config/users"):
            text = client.get(f"/config/users/{user}")[0].decode()
            for number, key in enumerate(re.findall(r"(?:stored_key|server_key)=([\w+/=]+)", text)):
                found[f"SCRAM key {number} of {user}"] = key
        secret_key = found["delegation_token_secret_key"].encode()
        for token in client.get_children("/delegation_token/tokens"):
            # DelegationTokenManager.createHmac: what a client logs in with; kept nowhere
            code = hmac.new(secret_key, token.encode(), hashlib.sha512).digest()
            found[f"delegation token {token}"] = base64.b64encode(code).decode()
    return found


def defaults(role: str) -> dict:
    """A role's defaults."""
    return yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())


@contextlib.contextmanager
def processes_noted() -> Iterator[None]:
    """What anybody can see of this machine's command lines meanwhile is kept."""
    seen = set()

    def gather(over: threading.Event) -> None:
        while not over.wait(0.5):
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_text(errors="replace").replace("\0", " "))

    with meanwhile(gather):
        yield
    PROCESSES.write_text("\n".join(sorted(seen)))


def reported(text: str, secrets: Secrets) -> list[str]:
    """The names of the secrets that stand in a text, in the clear or in base64."""
    forms = {name: (secret, base64.b64encode(secret.encode()).decode().rstrip("=")) for name, secret in secrets.items()}
    return sorted(name for name, both in forms.items() if any(form in text for form in both))


def in_files(paths: list[pathlib.Path], secrets: Secrets) -> dict[str, list[str]]:
    """{file: names of secrets} of the files that tell any."""
    found = {str(path): reported(path.read_bytes().decode("latin-1"), secrets) for path in paths}
    return {path: names for path, names in found.items() if names}


def test_the_search_finds_each_secret(secrets, tmp_path):
    assert len(secrets) > 12, "passwords, SCRAM keys and delegation tokens were not all found on the bed"
    for name, secret in secrets.items():
        assert len(secret) >= 16, f"{name} is too short to be told from chance"
        planted = tmp_path / "planted"
        planted.write_text(f'{{"password": "{secret}"}}')
        assert name in in_files([planted], secrets)[str(planted)]


def test_verbose_output(secrets):
    logs = [path for path in [*sorted((STATE / "logs").glob("*.log")), LOG] if path.exists()]
    verbose = [path for path in logs if '"module_args"' in path.read_text() or "'module_args'" in path.read_text()]
    assert verbose, f"no -vvv output of a run in {STATE / 'logs'}"
    assert in_files(logs, secrets) == {}


def test_evidence(testbed, secrets):
    files = [path for path in pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).rglob("*") if path.is_file()]
    for kind in ("journal.jsonl", "preflight.json", "facts-*.json", "*.diff"):
        assert any(path.match(kind) for path in files), f"no {kind} in the evidence: nothing was migrated"
    assert in_files(files, secrets) == {}


@pytest.mark.skipif(VARIANT == "secure", reason="the scenario's own run keeps no event log")
def test_what_spark_left(testbed, secrets):
    """Its event log, the process list while it worked, and what is compressed in the evidence."""
    events = [path for path in SPARK_EVENTS.rglob("*") if path.is_file()]
    assert events and any("SparkListenerJobEnd" in path.read_text() for path in events), "no event log"
    assert in_files(events, secrets) == {}
    assert "metadata_parity" in PROCESSES.read_text()
    assert in_files([PROCESSES], secrets) == {}
    tables = list(pathlib.Path(testbed.variables["quorumshift_artifacts_dir"]).rglob("*.parquet"))
    assert tables
    for path in tables:
        assert reported("\n".join(map(str, pandas.read_parquet(path).to_numpy().ravel())), secrets) == [], path


def test_state_on_hosts(testbed, secrets):
    """Records, journals and claims tell none; what has to hold some is root's alone."""
    prune = " -o ".join(f"-name {name}" for name in KEPT)
    root = testbed.variables.get("quorumshift_state_dir", "/var/lib/quorumshift")
    for host in testbed.addresses:
        text = testbed.run(host, f"find {root} \\( {prune} \\) -prune -o -type f -print -exec cat {{}} +")
        assert "restart.json" in text, f"{host} has no record of a turn"
        assert reported(text, secrets) == [], host
        loose = testbed.run(host, f"find {root} -mindepth 1 -perm /077 -printf '%m %p\\n'")
        assert loose == "", f"{host}: others may read {loose}"


def test_what_hosts_logged(testbed, secrets):
    """Ansible logs each module's arguments on the host; Kafka logs its configuration."""
    for host in testbed.addresses:
        journal = testbed.run(host, "journalctl --no-pager -o cat")
        assert "Invoked with" in journal, f"{host} logged no module of Ansible"
        assert reported(journal, secrets) == [], host
        assert reported(testbed.run(host, "cat /var/log/kafka/*.log*"), secrets) == [], host


def test_no_leftovers_on_hosts(testbed, secrets):
    for host in testbed.addresses:
        # other than text there are the JVMs' counters (hsperfdata)
        find = "find /root/.ansible /tmp /run/user -type f -size -20M -exec cat {} +"
        left = testbed.run(host, f"{find} 2>/dev/null | tr -cd '[:print:]\\n'", check=False)
        assert reported(left, secrets) == [], host
