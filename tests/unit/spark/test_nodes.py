# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes have of their own: settings against the baseline, directories in the log against those of the host."""

from __future__ import annotations

import jsonschema
from quorumshift_spark import nodes, result, rules
from quorumshift_spark import normal_form as form

MIN_ISR, UNCLEAN = '["min.insync.replicas"]', '["unclean.leader.election.enable"]'
HAD = {MIN_ISR: '"2"', UNCLEAN: '"false"'}


def compared(before=None, now=None, registered=None, on_hosts=None):
    return nodes.compared(before or {}, now or {}, registered or {}, on_hosts or {})


def test_a_setting_that_a_node_had_otherwise_at_the_baseline_differs():
    """Also where all nodes changed alike, so that comparing them with each other shows nothing."""
    before = {"broker:1": HAD, "broker:2": HAD, "controller:101": HAD}
    lost = {**HAD, MIN_ISR: '"1"'}
    found = compared(before, dict.fromkeys(before, lost))
    assert [
        (difference.kind, difference.key, difference.field, difference.relation) for difference in found.differences
    ] == [("setting", MIN_ISR, "value", rules.SINCE)] * 3
    assert found.differences[0].sides == {"baseline:broker:1": '"2"', "broker:1": '"1"'}
    assert "quorumshift_controller_config" in found.differences[0].do
    counts = found.comparisons[1]["counts"]["setting"]
    assert (counts["read"], counts["match"], counts["differ"]) == (6, 3, 3)


def test_settings_are_compared_where_they_are_known_on_both_sides():
    before = {"broker:1": HAD, "broker:9": HAD}
    now = {"broker:1": {UNCLEAN: '"false"', '["num.partitions"]': '"1"'}, "broker:2": {MIN_ISR: '"9"'}}
    found = compared(before, now)
    assert not found.differences and found.comparisons[0]["counts"]["setting"]["read"] == 1
    assert compared(None, now) == nodes.Compared([], [])


def test_one_node_without_a_setting_does_not_hide_that_the_others_differ():
    now = {"broker:1": {}, "broker:2": {MIN_ISR: '"1"'}, "broker:3": {MIN_ISR: '"2"'}, "controller:9": {MIN_ISR: '"2"'}}
    (difference,) = compared(None, now).differences
    assert difference.sides == {"controller:9": '"2"', "broker:2": '"1"'} and difference.relation == rules.SERVED


def _of_security(authorizer=None, users=None, allow=None):
    views = {"brokers": [{"id": 1, "file": {"super.users": users, "allow.everyone.if.no.acl.found": allow}}]}
    entity = form.setting("authorizer.class.name", authorizer)
    return nodes.with_files({"broker:1": {entity.key: entity.fields["value"]}}, views)


def test_kafkas_own_authorizers_are_equal_and_no_authorizer_is_not():
    acl, standard = "kafka.security.authorizer.AclAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    before = _of_security(acl, "User:a; User:b", None)
    assert not compared(before, _of_security(standard, "User:b;User:a", "false")).differences
    for now in ((None, "User:a;User:b"), ("com.example.Own", "User:a;User:b"), (standard, "User:a"), (standard, None)):
        (difference,) = compared(before, _of_security(*now)).differences
        assert difference.relation == rules.SINCE
    (difference,) = compared(before, _of_security(standard, "User:a;User:b", "true")).differences
    assert difference.key == '["allow.everyone.if.no.acl.found"]'


def test_controllers_have_super_users_of_their_own():
    views = {
        role: [{"id": n, "file": {"super.users": users}} for n, users in of]
        for role, of in (
            ("brokers", ((1, "User:a"), (2, "User:a"))),
            ("controllers", ((101, "User:a;User:c"), (102, "User:a;User:c"))),
        )
    }
    assert not compared(None, nodes.with_files({}, views)).differences
    views["brokers"][0]["file"]["super.users"] = "User:a;User:c"
    assert len(compared(None, nodes.with_files({}, views)).differences) == 1


def test_directories_that_a_broker_registered_are_those_of_its_host():
    found = compared(None, None, {1: '["a","b"]', 2: '["c"]', 3: '["d"]'}, {1: '["a","b"]', 2: '["x"]'})
    (difference,) = found.differences
    assert (difference.kind, difference.key, difference.field) == ("broker", "[2]", "log_dirs")
    assert difference.sides == {"metadata_log": '["c"]', "host of 2": '["x"]'}
    assert found.comparisons[0]["counts"]["broker"]["read"] == 2


def test_the_comparisons_fit_the_schema():
    schema = result.schema()
    found = compared({"broker:1": HAD}, {"broker:1": HAD}, {1: "[]"}, {1: '["a"]'})
    assert found.comparisons and found.differences
    for comparison in found.comparisons:
        jsonschema.validate(comparison, {**schema["properties"]["comparisons"]["items"], "$defs": schema["$defs"]})
    for difference in found.differences:
        jsonschema.validate(result.listed(difference), {**schema["$defs"]["difference"], "$defs": schema["$defs"]})
