#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_features
short_description: Update the finalized features of a Kafka cluster in KRaft mode
version_added: 0.1.0
description:
  - Raises, lowers or deletes the finalized level of features (KIP-584), then waits until every broker and controller
    serves the levels at an epoch after the change.
  - Before that, the controller validates the change without making it (C(ValidateOnly)); check mode ends there.
  - It refuses a level outside a node's range and names the node, an unknown feature, a downgrade without permission,
    any change during a migration to KRaft, and C(kraft.version) with static voters.
  - Its principal needs the operation Alter on the cluster.
options:
  features:
    description:
      - The level of each feature, a number. For C(metadata.version) it may also be V(3.9-IV0), or V(3.9) for the last
        level of that release. V(0) deletes the finalized feature.
    type: dict
    default: {}
  upgrade_all:
    description:
      - Raise each feature to the highest level that every node supports. O(features) overrides it for the features that
        it names. C(kraft.version) of static voters stays.
    type: bool
    default: false
  downgrade:
    description:
      - Whether a level may go down. V(safe) permits it where no metadata is lost, V(unsafe) also where some is
        lost. Kafka refuses V(unsafe) for C(metadata.version).
    type: str
    choices: ["no", safe, unsafe]
    default: "no"
  wait_timeout_s:
    description: How long to wait, in seconds, until every node serves the new levels.
    type: float
    default: 120
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.connection.controllers
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.host_record
  - quorumshift.kafka.host_record.locked
attributes:
  check_mode:
    support: full
    details:
      - The controller validates the change and does not make it.
  diff_mode:
    support: full
    details:
      - Shows the levels before and after.
seealso:
  - module: quorumshift.kafka.kafka_features_info
  - name: Reassignments and features
    description: The modules' guide, with what they refuse and why.
    link: https://github.com/quorumshift/kafka/blob/main/docs/reassignments-and-features.md
  - name: KIP-584
    description: Kafka's proposal of versioned features.
    link: https://cwiki.apache.org/confluence/display/KAFKA/KIP-584%3A+Versioning+scheme+for+features
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Raise every feature as far as all nodes support it
  quorumshift.kafka.kafka_features:
    bootstrap_servers: b1:9092,b2:9092
    upgrade_all: true

- name: Set metadata.version to the last level of Kafka 3.9, over TLS and SASL
  quorumshift.kafka.kafka_features:
    bootstrap_servers:
      - b1:9094
      - b2:9094
    client:
      security_protocol: SASL_SSL
      sasl_mechanism: SCRAM-SHA-512
      sasl_username: admin
      sasl_password: "{{ vault_kafka_password }}"
      ssl_cafile: /etc/pki/kafka-ca.pem
    cluster_id: phUKKf3TSny1o9Yap379dw
    features:
      metadata.version: "3.9"

- name: Show whether the controller would accept a lower level
  quorumshift.kafka.kafka_features:
    bootstrap_servers: b1:9092,b2:9092
    features:
      metadata.version: 3.8-IV0
    downgrade: safe
  check_mode: true
  diff: true
"""

RETURN = r"""
results:
  description:
    - Each changed feature with its levels C(before) and C(after), and their names C(before_name) and C(after_name).
    - If the controller rejects the change, C(error) has Kafka's name of the reason, null for a feature that it accepts.
  type: list
  elements: dict
  returned: success, and if the change is refused
  sample:
    - feature: metadata.version
      before: 20
      before_name: 3.8-IV0
      after: 21
      after_name: 3.9-IV0
finalized:
  description: The finalized levels after the change, as the node with the highest epoch serves them.
  type: dict
  returned: success
  sample: {metadata.version: 21}
epoch:
  description: The epoch of the finalized features.
  type: int
  returned: success
  sample: 337
waited_s:
  description: How long it took until every node served the levels, in seconds.
  type: float
  returned: success
  sample: 0.569
"""

import time

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.admin_module import AdminModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import parse_host_port


def main():
    """Update the features and exit."""
    module = AdminModule(
        {
            "features": {"type": "dict", "default": {}},
            "upgrade_all": {"type": "bool", "default": False},
            "downgrade": {"type": "str", "choices": ["no", "safe", "unsafe"], "default": "no"},
            "wait_timeout_s": {"type": "float", "default": 120},
            "controllers": {"type": "list", "elements": "str", "default": []},
        },
        changes=True,
    )
    module.run(lambda admin, connections: update_features(module, admin, connections), (core_features.FeatureError,))


def update_features(module, admin, connections):
    """Make the changes and return the module's result."""
    given = module.params
    more = [parse_host_port(text) for text in given["controllers"]]

    def collect():
        return features.collect(admin, connections.client, connections.controller_client, more, connections.timeout)

    found = collect()
    supported, static = features.supported_ranges(found), bool(found["static_voters"])
    levels = core_features.wanted_levels(given["features"], given["upgrade_all"], supported, found["finalized"], static)
    changes = core_features.updates(levels, found["finalized"])
    refused = core_features.explain_unready(found) if changes else None
    refused = refused or core_features.refusal(changes, supported, given["downgrade"], found["migrating"], static)
    if refused:
        module.fail_json(msg=f"{refused}. Nothing was changed", results=[])
    results = [{**update._asdict(), **core_features.name_levels(update)} for update in changes]
    answer = {"finalized": found["finalized"], "epoch": found["epoch"], "results": results, "waited_s": 0.0}
    if module._diff:
        answer["diff"] = core_features.diff(changes)

    def served(after, changed):
        """Wait until every node serves the levels at an epoch after this one."""
        began = time.monotonic()
        while True:
            admin.refresh()
            found = collect()
            behind = core_features.find_behind(found["nodes"], levels, after)
            waited = round(time.monotonic() - began, 3)
            if not behind:
                now = {"finalized": found["finalized"], "epoch": found["epoch"], "waited_s": waited}
                return {**answer, "changed": changed, **now}
            if waited > given["wait_timeout_s"]:
                module.fail_json(
                    msg=f"the levels are set, and after {waited:.0f} s these nodes do not serve them: "
                    f"{'; '.join(behind)}. Check those nodes, then run again (QS-ADMIN-009)",
                    changed=changed,
                    results=results,
                )
            time.sleep(0.2)

    if not changes:  # an earlier run may have ended while nodes were behind
        answering = {name: node for name, node in found["nodes"].items() if "error" not in node}
        late = not module.check_mode and core_features.find_behind(answering, levels)
        return served(core_features.NO_EPOCH, False) if late else answer
    newest = core_features.newest_epoch(found["nodes"])
    asked = {update.feature: (update.after, _kind(update, given["downgrade"])) for update in changes}
    for validate_only in (True,) if module.check_mode else (True, False):
        error, errors = admin.update_features(asked, validate_only)
        failed = {name: failure for name, failure in errors.items() if failure}
        if error or failed:
            for result in results:
                cause = errors.get(result["feature"]) or error
                result["error"] = cause.name if cause else None
            listed = "; ".join(f"{name}: {failure}" for name, failure in sorted(failed.items())) or str(error)
            done = "Nothing was changed" if validate_only else "Run quorumshift.kafka.kafka_features_info to see levels"
            module.fail_json(msg=f"the controller refused the change: {listed}. {done} (QS-ADMIN-009)", results=results)
    if module.check_mode:
        return {**answer, "changed": True}
    return served(newest, True)


def _kind(change, downgrade):
    """Return the upgrade type of a change."""
    if not change.lowers:
        return admin_requests.UPGRADE
    return admin_requests.UNSAFE_DOWNGRADE if downgrade == "unsafe" else admin_requests.SAFE_DOWNGRADE


if __name__ == "__main__":
    main()
