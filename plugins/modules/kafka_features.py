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
  - One request has all changes, also where one feature rises and another goes down. Where the controller makes a part
    of it, or the answer is lost, the module reads the nodes again, and what they serve decides.
  - Where no broker answers, it asks the active one of the O(controllers). They must report the cluster id, as they do
    from C(metadata.version) V(3.7-IV0) on.
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
  upgrade_to:
    description:
      - Raise each feature to its level in a new cluster of this release of Kafka, as V(4.1). No level goes down.
        C(kraft.version) of static voters stays. O(features) overrides it for the features that it names.
    type: str
  downgrade_to:
    description:
      - Lower each feature so that nodes of this release of Kafka can start, as V(4.0). A level goes to the highest that
        the release supports, and a feature that it does not know is deleted. No level rises. It permits V(safe)
        downgrades. O(features) overrides it for the features that it names.
      - It fails where Kafka does not lower a level that far, and names the levels in between that changed the metadata.
    type: str
  downgrade:
    description:
      - Whether a level may go down. V(safe) permits it where no metadata is lost, V(unsafe) also where some is
        lost. Kafka refuses V(unsafe) for C(metadata.version).
    type: str
    choices: ["no", safe, unsafe]
    default: "no"
  token:
    description:
      - Accepts what nothing takes back, as the rise of C(metadata.version) past a level that changed the metadata. It
        holds for this cluster and these levels alone; RV(token) has it, in check mode too.
      - Omit it to change levels without a token. With an empty value such a change is refused.
    type: str
  wait_timeout_s:
    description:
      - How long to wait, in seconds, until every node serves the new levels. As long are they read after the answer to
        a change was lost.
    type: float
    default: 120
  show:
    description: Show what would change. Handled by the action plugin, in a run of this collection alone.
    type: bool
    default: false
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.connection
  - quorumshift.kafka.connection.cluster
  - quorumshift.kafka.connection.controllers
  - quorumshift.kafka.connection.expected
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
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

- name: Lower every feature so that nodes of Kafka 4.0 can start
  quorumshift.kafka.kafka_features:
    bootstrap_servers: b1:9092,b2:9092
    controllers: [c1:9093, c2:9093, c3:9093]
    downgrade_to: "4.0"

- name: Raise one feature and lower another in one request
  quorumshift.kafka.kafka_features:
    bootstrap_servers: b1:9092,b2:9092
    features:
      transaction.version: 2
      group.version: 0
    downgrade: safe

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
    - If the controller rejects the change or a part of it, C(error) has Kafka's name of the reason, null for a feature
      that it accepts. It is C(unanswered) if the answer was lost and nodes do not serve the level.
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
  sample: 60
one_way:
  description: What of the change nothing takes back, or may not be taken back, as sentences.
  type: list
  elements: str
  returned: success
  sample: ["metadata.version rises from 3.9-IV0 to 4.1-IV1, past levels that changed the metadata: 4.0-IV1 (23)"]
token:
  description: The token that accepts RV(one_way), empty where there is nothing to accept.
  type: str
  returned: success
  sample: Qs7KfZk2TIK1n0nQ5Qm3Tw:fb1592
notes:
  description: What clients meet where a feature goes down, as sentences.
  type: list
  elements: str
  returned: success
  sample: []
lost:
  description: Why the controller's answer was lost, where the nodes serve the new levels all the same; else empty.
  type: str
  returned: success
  sample: ""
waited_s:
  description: How long it took until every node served the levels, in seconds.
  type: float
  returned: success
  sample: 0.281
"""

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_update, features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import feature_changes
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features as core_features
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import EXPECTED
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.features_module import FeaturesModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError


def main():
    """Update the features and exit."""
    module = FeaturesModule(
        {
            "features": {"type": "dict", "default": {}},
            "upgrade_all": {"type": "bool", "default": False},
            "upgrade_to": {"type": "str"},
            "downgrade_to": {"type": "str"},
            "downgrade": {"type": "str", "choices": ["no", "safe", "unsafe"], "default": "no"},
            "token": {"type": "str", "no_log": False},
            **EXPECTED,
            "wait_timeout_s": {"type": "float", "default": 120},
            "show": {"type": "bool", "default": False},
        },
        changes=True,
        mutually_exclusive=[("upgrade_all", "upgrade_to", "downgrade_to")],
    )

    module.run(lambda admin, connections: update_features(module, admin, connections))


def update_features(module, admin, connections):
    """Make the changes and return the module's result."""
    given = module.params

    def collect():
        return module.collect(admin, connections)

    found = collect()
    downgrade = "safe" if given["downgrade_to"] and given["downgrade"] == "no" else given["downgrade"]
    levels = find_levels(given, found)
    changes = feature_changes.in_order(core_features.updates(levels, found["finalized"]))
    bootstrap = ",".join(map(str, connections.bootstrap))
    needs = features.explain_denied("Alter", admin, connections.client, connections.controller_client, bootstrap)
    refused = find_refusal(given, found, changes, downgrade)
    if refused:
        why = f"{refused}. Nothing was changed"
        module.fail_json(msg=f"{why}. {needs}" if found["quorum_denied"] else why, results=[])
    one_way = feature_changes.find_one_way(changes, downgrade == "unsafe")
    needed = feature_changes.token(admin.cluster_id, one_way) if one_way else ""
    if one_way and given["token"] not in (None, needed) and not module.check_mode:
        why = feature_changes.explain_token(one_way, needed, given["token"])
        module.fail_json(msg=f"{why}. Nothing was changed", results=[])
    results = [{**update._asdict(), **core_features.name_levels(update)} for update in changes]
    answer = {
        "finalized": found["finalized"],
        "epoch": found["epoch"],
        "results": results,
        "one_way": [change.why for change in one_way],
        "token": needed,
        "notes": feature_changes.client_notes(changes),
        "lost": "",
        "waited_s": 0.0,
    }
    if module._diff:
        answer["diff"] = core_features.diff(changes)
    updater = feature_update.Updater(admin, collect, given["wait_timeout_s"])
    try:
        if not changes:  # an earlier run may have ended while nodes were behind
            answering = {name: node for name, node in found["nodes"].items() if "error" not in node}
            if module.check_mode or not core_features.find_behind(answering, levels):
                return answer
            updated = updater.await_levels(levels, core_features.NO_EPOCH, False)
        else:
            updater.validate(changes, downgrade)
            if module.check_mode:
                return {**answer, "changed": True}
            updated = updater.update(changes, downgrade, core_features.newest_epoch(found["nodes"]))
    except feature_update.NotUpdated as error:
        for result in results if error.errors else ():
            result["error"] = error.errors.get(result["feature"])
        module.fail_json(
            msg=f"{error}. {needs}" if error.denied else str(error), changed=error.changed, results=results
        )
    except WireError as error:  # of a request that was not sent
        module.fail_json(msg=f"{error}. Nothing was changed", results=results)
    if updated.lost:
        module.warn(f"The answer to the change was lost, and the nodes serve the new levels: {updated.lost}")
    now = {"finalized": updated.found["finalized"], "epoch": updated.found["epoch"], "waited_s": updated.waited_s}
    return {**answer, "changed": bool(changes), "lost": updated.lost, **now}


def find_levels(given, found):
    """Return {feature: level} of what the task asks for. Raises FeatureError."""
    supported, static = features.supported_ranges(found), bool(found["static_voters"])
    levels = {}
    if given["upgrade_to"]:
        levels = feature_changes.levels_up_to(given["upgrade_to"], found["finalized"], static)
    elif given["downgrade_to"]:
        levels = feature_changes.levels_down_to(given["downgrade_to"], found["finalized"])
    named = core_features.wanted_levels(given["features"], given["upgrade_all"], supported, found["finalized"], static)
    return {**levels, **named}


def find_refusal(given, found, changes, downgrade):
    """Return why the changes may not be made, None when they may."""
    if not changes:
        return None
    supported, static = features.supported_ranges(found), bool(found["static_voters"])
    refused = core_features.explain_unready(found)
    if not refused and any(not update.lowers for update in changes):
        refused = core_features.find_missing(found["nodes"], given["expected"] or {})
    return refused or core_features.refusal(changes, supported, downgrade, found["migrating"], static)


if __name__ == "__main__":
    main()
