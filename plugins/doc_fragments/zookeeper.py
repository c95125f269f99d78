# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ZooKeeper options of the fragment `connection`, for modules that talk to ZooKeeper alone."""

from __future__ import annotations

import yaml
from ansible_collections.quorumshift.kafka.plugins.doc_fragments import connection

_OPTIONS = yaml.safe_load(connection.ModuleDocFragment.DOCUMENTATION)["options"]


class ModuleDocFragment:
    DOCUMENTATION = yaml.safe_dump(
        {
            "options": {
                "zookeeper_connect": {**_OPTIONS["zookeeper_connect"], "required": True},
                "zookeeper_client": _OPTIONS["zookeeper_client"],
            }
        }
    )
