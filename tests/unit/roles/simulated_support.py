# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play support_bundle on a simulated cluster after a rolling restart, with secrets planted in all that it reads:
python -m tests.unit.roles.simulated_support DIRECTORY. Prints JSON: {case: {code, output, bundle}}.

b2 cannot be reached over ssh, c1 has no log, and the probe host fails in the case `no_status`.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.parse
from pathlib import Path

from tools.failure_proof import engine

# Each is planted in another place, and in the log of b1 in each form
PLANTED = {
    "client": "Cl1ent/Pass+word",
    "vault": 'V4ult "quoted" \\ word',
    "become": "B3come&word",
    "keystore": "K3ystoreWord",
    "jaas": "J44sWord==",
    "plugin": "Plug1n:Word",
    "provider": "Pr0viderWord",
    "url": "Ur1Word",
    "controller": "C0ntrollerWord",
}
NO_VALUE = "N4medOnly"  # known to no variable: its syntax shows it
FORMS = {
    "plain": str,
    "json": lambda value: json.dumps({"message": f"it is {value}"}),
    "json twice": lambda value: json.dumps(json.dumps({"message": f"it is {value}"})),
    "url": lambda value: f"http://x/?p={urllib.parse.quote(value, safe='')}",
    "form": lambda value: f"http://x/?p={urllib.parse.quote_plus(value)}",
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 of a pair": lambda value: base64.b64encode(f"user:{value}".encode()).decode(),
    "base64 in the middle": lambda value: base64.b64encode(f'{{"a": "{value}", "b": 1}}'.encode()).decode(),
}
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
TOPIC, PRINCIPAL = "orders", "User:ops"
CASES = {
    "all": {},
    "hidden": {"support_hide_hosts": True, "support_runs": 1},
    "no_status": {"quorumshift_probe_host": "b2"},
    "survives": {"vault_other_password": "******x", "vault_third_password": "SECRET1"},
    "left_out": {
        "vault_other_password": "******x",
        "vault_third_password": "SECRET1",
        "support_leave_out": "hosts/*/node.log",
    },
}


def texts(values: dict[str, str]) -> str:
    """Return a text with each value in each form."""
    lines = [f"INFO {name} {form}: <{write(value)}>" for name, value in values.items() for form, write in FORMS.items()]
    return "".join(f"[2026-11-29 00:00:00,000] {line} (x.Y)\n" for line in lines)


def plant(world) -> None:
    """Write secrets into all files that a bundle is made of."""
    config = world.config_file("b1")
    config.write_text(
        config.read_text()
        + f"ssl.keystore.password={PLANTED['keystore']}\n"
        + 'sasl.jaas.config=x.PlainLoginModule required username="u" password="'
        + PLANTED["jaas"]
        + '";\n'
        + f"my.plugin.url=http://u:{PLANTED['url']}@proxy:1/\nmy.plugin.word={PLANTED['plugin']}\n"
        + f"# old.plugin.password={NO_VALUE}\n"
        + "config.providers=file\nconfig.providers.file.class="
        + "org.apache.kafka.common.config.provider.FileConfigProvider\n"
        + f"ssl.key.password=${{file:{world.root}/provided.properties:word}}\n"
    )
    (world.root / "provided.properties").write_text(f"word={PLANTED['provider']}\n")
    world.config_file("c1").parent.mkdir(exist_ok=True)
    world.config_file("c1").write_text(
        f"process.roles=controller\nnode.id=101\nssl.truststore.password={PLANTED['controller']}\n"
    )
    log = texts(PLANTED) + f"WARN {PRINCIPAL} {TOPIC} password={NO_VALUE}\n{KEY}\nat 10.2.3.4 SECRET1x\n"
    for host in ("b1", "b3", "b4", "c2", "c3"):
        (world.host(host) / "kafka.log").write_text(log)
    (run,) = (world.root / "artifacts").glob("*/*T*-*")
    with open(run / "journal.jsonl", "a", encoding="utf-8") as stream:
        for value in PLANTED.values():
            for write in FORMS.values():
                stream.write(json.dumps({"t": 1.0, "kind": "event", "name": "x", "said": write(value)}) + "\n")
        stream.write('{"torn')
    (run / "verify" / "gate" / "metadata_parity").mkdir(parents=True)
    found = run / "verify" / "gate" / "metadata_parity"
    (found / "result.json").write_text(json.dumps({"verdict": "pass", "said": texts(PLANTED), "sasl_password": "x"}))
    (found / "entities.parquet").write_text(texts(PLANTED))
    (found / "notes.md").write_text(texts(PLANTED))
    (found / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(found / "pipe.json")
    diff = f"--- a\n+++ b\n@@ -1 +1 @@\n-ssl.key.password={NO_VALUE}\n+my.plugin.word={PLANTED['plugin']}\n "
    diff += texts(PLANTED)
    (run / "diffs").mkdir(exist_ok=True)
    (run / "diffs" / "b1-x.diff").write_text(diff)
    older = run.parent / "20200101T000000-abcd"
    older.mkdir()
    (older / "journal.jsonl").write_text("")


def inventory(world) -> dict:
    """Return the world's inventory with secrets, and a host that cannot be reached."""
    given = world.inventory()
    given["all"]["vars"].update(
        {
            "quorumshift_client": {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"},
            "vault_kafka_password": PLANTED["vault"],
            "ansible_become_password": PLANTED["become"],
        }
    )
    given["all"]["vars"]["quorumshift_client"].update(sasl_username="ops", sasl_password=PLANTED["client"])
    b2 = given["kafka_broker"]["hosts"]["b2"]
    b2.update(ansible_connection="ssh", ansible_port=1, ansible_ssh_common_args="-o BatchMode=yes -o ConnectTimeout=2")
    return given


def main(directory: str) -> int:
    """Play the cases."""
    home = Path(directory).resolve()
    engine.prepare(home)
    from tools.failure_proof.world import World

    world = World(home / "world")
    world.root.mkdir()
    world.create()
    os.chdir(engine.ROOT)
    more = {"restart_concurrency": 2, "restart_roles": ["broker"], "quorumshift_verify": False}
    found = {"restart": played(world, "restart", "restart", more)}
    plant(world)
    (world.root / "inventory.json").write_text(json.dumps(inventory(world)))
    for name, variables in CASES.items():
        before = set((world.root / "artifacts").glob("*/*"))
        found[name] = played(world, name, "support_bundle", variables)
        made = sorted(map(str, set((world.root / "artifacts").glob("*/*")) - before))
        found[name]["made"] = [path for path in made if not path.endswith("status.json")]
    print(json.dumps(found))
    return 0


def played(world, name: str, playbook: str, variables: dict) -> dict:
    """Play a playbook in a fork; return its exit code and its output."""
    output = world.root / f"output-{name}.txt"
    code, _seconds = engine.forked(
        lambda: engine.play(world, name, playbook, variables), output, 120, engine.shown(world, name)
    )
    return {"code": code, "output": output.read_text(errors="replace")}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
