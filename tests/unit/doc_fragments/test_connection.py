# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documented connection options, argument specs and security.py agree."""

from __future__ import annotations

import pytest
from ansible_collections.quorumshift.kafka.plugins.doc_fragments import connection, zookeeper
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import (
    CLIENT_OPTIONS,
    CONNECTION,
    ZOOKEEPER_CLIENT_OPTIONS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import (
    Security,
    SecurityError,
    ZkSecurity,
)

from tools.yaml_files import parse_yaml


def _declared(spec):
    return {
        name: {
            **{key: option[key] for key in ("type", "elements", "required", "default", "choices") if key in option},
            **({"suboptions": _declared(option["options"])} if "options" in option else {}),
        }
        for name, option in spec.items()
    }


def _documented(options):
    return {
        name: {
            **{key: option[key] for key in option if key not in ("description", "suboptions")},
            **({"suboptions": _documented(option["suboptions"])} if "suboptions" in option else {}),
        }
        for name, option in options.items()
    }


def test_documentation_is_the_argument_spec():
    options = {}
    fragments = zookeeper.ModuleDocFragment
    for text in (connection.ModuleDocFragment.DOCUMENTATION, fragments.DOCUMENTATION, fragments.CONNECT):
        options.update(parse_yaml(text)["options"])
    assert _documented(options) == _declared(CONNECTION)


@pytest.mark.parametrize(
    ("read", "spec"), [(Security.from_options, CLIENT_OPTIONS), (ZkSecurity.from_options, ZOOKEEPER_CLIENT_OPTIONS)]
)
def test_every_option_is_read(read, spec):
    for name, option in spec.items():
        value = option.get("choices", [{"bool": True}.get(option["type"], "x:y")])[0]
        try:
            read({name: value})
        except SecurityError as error:
            assert "is not an option" not in str(error)
    with pytest.raises(SecurityError, match=r"is not an option\. Options: "):
        read({"unknown": 1})
    defaults = {name: option.get("default") for name, option in spec.items()}
    assert read(defaults) == read(None), "the declared defaults equal security.py's"


@pytest.mark.parametrize("spec", [CLIENT_OPTIONS, ZOOKEEPER_CLIENT_OPTIONS])
def test_secret_options_are_no_log(spec):
    secret = {name for name, option in spec.items() if option.get("no_log")}
    assert secret == {name for name in spec if name.endswith(("password", "_secret")) or name == "auth"}
