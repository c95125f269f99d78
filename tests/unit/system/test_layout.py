# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's layouts: the default one has the collection's default names, the other one has none of them."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DEFAULTS = yaml.safe_load((ROOT / "roles" / "quorumshift" / "defaults" / "main.yml").read_text(encoding="utf-8"))


@pytest.fixture
def layout(monkeypatch):
    """A function that loads the module layout of a variant."""

    def load(variant):
        monkeypatch.setenv("TESTBED_VARIANT", variant)
        spec = importlib.util.spec_from_file_location("layout", ROOT / "tests/system/testbed/layout.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "layout", module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize("variant", ["default", "secure"])
def test_the_default_layout_has_the_collections_defaults(layout, variant):
    loaded = layout(variant)
    assert loaded.LAYOUT.names == {name: DEFAULTS[name] for name in loaded.LAYOUT.names} and loaded.renamed() == {}
    assert loaded.LAYOUT.metadata_log_dir == DEFAULTS["quorumshift_controller_log_dir"]


def test_the_other_layout_has_none_of_the_collections_defaults(layout):
    loaded = layout("other")
    assert loaded.renamed() == loaded.LAYOUT.names
    state_dirs = {host.state_dir or DEFAULTS["quorumshift_state_dir"] for host in loaded.HOSTS}
    assert len(state_dirs) == 3 and len(loaded.CONTROLLERS) == 5 and len(loaded.ZOOKEEPERS) == 3


def test_controllers_beside_brokers_are_on_their_hosts_with_an_id_of_their_own(layout):
    loaded = layout("beside")
    assert [host.container for host in loaded.CONTROLLERS] == [host.container for host in loaded.BROKERS]
    assert len({host.node_id for host in loaded.LAYOUT.hosts}) == 6 and loaded.HOSTS == loaded.BROKERS
    assert loaded.host_named("c2").octet == loaded.host_named("b2").octet


def test_the_layout_of_confluents_packages_is_the_one_of_the_inventory_for_cp_ansible(layout):
    """The file that operators copy, docs/cp-ansible-inventory.yml, names what the testbed has."""
    loaded = layout("confluent")
    file = yaml.safe_load((ROOT / "docs" / "cp-ansible-inventory.yml").read_text(encoding="utf-8"))
    given = {**file["all"]["vars"], **file["all"]["children"]["quorumshift_controllers"]["vars"]}
    plain = {name: value for name, value in given.items() if name in loaded.LAYOUT.names and "{{" not in str(value)}
    assert len(plain) >= 5 and plain.items() <= loaded.LAYOUT.names.items()
    assert loaded.LAYOUT.metadata_log_dir == given["quorumshift_controller_log_dir"]
    assert [host.node_id for host in loaded.CONTROLLERS] == [9991, 9992, 9993]
    assert [host.node_id for host in loaded.BROKERS] == [1, 2, 3]


def test_variants_share_no_state(layout):
    loaded = [layout(variant) for variant in ("default", "secure", "sasl", "oauth", "other", "racks", "confluent")]
    assert len({layout.TESTBED_ID for layout in loaded}) == len({layout.STATE for layout in loaded}) == 7


def test_the_racks_have_six_brokers_each_and_the_seeds_first_three_brokers_are_in_different_ones(layout):
    """The seed's fixed assignments are over the first three brokers; in one rack they would keep its brokers apart."""
    brokers = layout("racks").BROKERS
    assert Counter(host.rack for host in brokers) == {"rack-a": 6, "rack-b": 6, "rack-c": 6}
    assert len({host.rack for host in brokers[:3]}) == 3 and all(host.has_zookeeper for host in brokers[:3])
