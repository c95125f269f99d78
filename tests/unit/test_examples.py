# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of docs/example-*.md are those of the testbed's variants, on which `make test-security` runs them."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {"secure": "secured", "sasl": "sasl", "oauth": "oauth", "gssapi": "kerberos"}
# where the cluster is, and what the network of the testbed alone needs
PLACES = {"quorumshift_bootstrap_servers", "quorumshift_zookeeper_connect", "quorumshift_controller_host"}
OF_TESTBED = """
import collections, json, sys
from tests.system.testbed import layout, security
network = layout.Network()
network.prefix = "10.64.0"
secrets = collections.defaultdict(lambda: "SECRET")
broker = security.broker_variables(layout.BROKERS[0], secrets)
print(json.dumps({
    "quorumshift_client": security.client(network, secrets), **security.inventory_variables(network, secrets), **broker
}))
"""


def of_page(page: str) -> dict[str, object]:
    """Return the variables of all blocks of YAML on a page."""
    found: dict[str, object] = {}
    text = (ROOT / "docs" / f"example-{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        found.update(yaml.safe_load(block))
    return {name: value for name, value in found.items() if name not in PLACES}


def of_variant(variant: str) -> dict[str, object]:
    """Return the variables of a variant's inventory, with SECRET in place of each secret."""
    environment = {**os.environ, "TESTBED_VARIANT": variant, "PYTHONPATH": f"{ROOT}:{ROOT / '.build'}"}
    command = [sys.executable, "-c", OF_TESTBED]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shape(value: object) -> object:
    """Return a value without what differs from cluster to cluster: secrets, paths, hosts, and values in JAAS."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(str, value))
    if not isinstance(value, str):
        return value
    if " required " in value:
        return re.sub(r'="[^"]*"', '=""', " ".join(value.split())).replace(" ;", ";")
    kinds = {"secret": r"SECRET|\{\{ vault_\w+ \}\}", "path": r"/.*", "url": r"https://.*", "principal": r"[^:]+@.*"}
    return next((kind for kind, pattern in kinds.items() if re.fullmatch(pattern, value)), value)


@pytest.mark.parametrize("variant", PAGES)
def test_the_page_has_the_variables_that_were_run(variant):
    assert shape(of_page(PAGES[variant])) == shape(of_variant(variant))
