# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is created on a controller's host, and what is refused. On real hosts: tests/system/e2e/test_cp_ansible.py."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import controller_host as core

KEYSTORE = "/var/ssl/private/kafka_controller.keystore.jks"
WANTED = core.Wanted(
    user="cp-kafka",
    group="confluent",
    start="/usr/bin/kafka-server-start",
    service="confluent-kcontroller",
    config_file="/etc/controller/server.properties",
    log_file="/var/log/controller/server.log",
    log_dir="/var/lib/controller/data",
    environment={"KAFKA_HEAP_OPTS": "-Xms1g -Xmx1g"},
    files=[KEYSTORE],
)
MISSING = {"kind": core.MISSING, "owner": "", "may": False}
NO_UNIT = {"exists": False, "active": False, "enabled": False, "starts_with": None, "user": "", "text": None}
USER = {"uid": 990, "gid": 985, "group": "confluent"}


def directory(may, owner="root"):
    return {"kind": core.DIRECTORY, "owner": owner, "may": may}


def found(paths=(), **changed):
    """What is on a host that has Kafka, the keystore and nothing else."""
    own = {
        **dict.fromkeys(WANTED.directories, MISSING),
        KEYSTORE: {"kind": core.FILE, "owner": "root", "may": True},
        **dict(paths),
    }
    base = {"no_systemd": "", "has_start": True, "gid": None, "user": None, "paths": own, "unit": NO_UNIT}
    return {**copy.deepcopy(base), **changed}


def ready(**unit):
    """What is there after the preparation."""
    directories = {path: directory(True, "cp-kafka") for path in WANTED.directories}
    own = {**NO_UNIT, "exists": True, "enabled": True, "starts_with": WANTED.config_file, "user": "cp-kafka"}
    return found(directories, gid=985, user=USER, unit={**own, "text": core.unit_text(WANTED), **unit})


def test_everything_is_created_on_an_empty_host():
    planned = core.plan(WANTED, found())
    assert planned.refusals == [] and planned.changes
    assert (planned.group, planned.user, planned.enable) == (True, True, True)
    assert planned.directories == ["/etc/controller", "/var/log/controller", "/var/lib/controller/data"]
    assert planned.created(WANTED) == [
        *("group confluent", "user cp-kafka"),
        *("directory /etc/controller", "directory /var/log/controller", "directory /var/lib/controller/data"),
        *("unit confluent-kcontroller.service", "start of confluent-kcontroller.service at boot"),
    ]


@pytest.mark.parametrize("active", [False, True])
def test_nothing_is_changed_on_a_prepared_host(active):
    planned = core.plan(WANTED, ready(active=active))
    assert planned.refusals == [] and not planned.changes and planned.created(WANTED) == []


def test_the_unit():
    lines = core.unit_text(WANTED).splitlines()
    assert lines[0].startswith(core.MARK)
    assert {
        *("User=cp-kafka", "Group=confluent", 'Environment="LOG_DIR=/var/log/controller"'),
        *('Environment="KAFKA_HEAP_OPTS=-Xms1g -Xmx1g"', "Restart=no"),
        "ExecStart=/usr/bin/kafka-server-start /etc/controller/server.properties",
    } <= set(lines)


def test_a_value_of_the_environment_is_quoted_for_systemd():
    text = core.unit_text(WANTED._replace(environment={"KAFKA_OPTS": '-Da="b c" -Dp=50% \\n'}))
    assert 'Environment="KAFKA_OPTS=-Da=\\"b c\\" -Dp=50%% \\\\n"' in text.splitlines()


def test_the_own_unit_is_renewed_while_the_service_is_down_and_refused_while_it_runs():
    wanted = WANTED._replace(environment={"KAFKA_HEAP_OPTS": "-Xmx4g"})
    planned = core.plan(wanted, ready())
    assert planned.unit == core.unit_text(wanted) and planned.earlier == core.unit_text(WANTED)
    (refused,) = core.plan(wanted, ready(active=True)).refusals
    assert "confluent-kcontroller.service runs" in refused and "drop-in" in refused


def test_a_unit_of_a_package_or_of_the_operator_stays_if_it_suits():
    planned = core.plan(WANTED, ready(text=None, enabled=False))
    assert planned.refusals == [] and planned.unit is None and planned.enable
    assert core.plan(WANTED, ready(text=None, user="990")).refusals == []


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"starts_with": "/etc/kafka/server.properties"}, "starts /etc/kafka/server.properties as cp-kafka"),
        ({"starts_with": None}, "starts no properties file that it names as cp-kafka"),
        ({"user": ""}, "as root, not /etc/controller/server.properties as cp-kafka"),
        ({"user": "kafka"}, "as kafka, not"),
    ],
)
def test_another_unit_of_the_name_is_refused(unit, says):
    (refused,) = core.plan(WANTED, ready(text=None, **unit)).refusals
    assert says in refused and "systemctl cat confluent-kcontroller.service" in refused


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"has_start": False}, "/usr/bin/kafka-server-start does not exist. Install Kafka"),
        ({"no_systemd": "it does not run"}, "cannot be prepared by systemd: it does not run"),
        ({"gid": 985, "user": {**USER, "gid": 4, "group": "adm"}}, "primary group adm, not confluent"),
        ({"gid": None, "user": USER}, "primary group confluent, not confluent"),
        (
            {"paths": found({"/var/lib/controller/data": directory(False, "elastic")})["paths"]},
            "cp-kafka may not write to the directory /var/lib/controller/data, which belongs to elastic",
        ),
        (
            {"paths": found({"/etc/controller": directory(False)})["paths"]},
            "may not read the directory /etc/controller",
        ),
        (
            {"paths": found({"/etc/controller": {"kind": core.FILE, "owner": "root", "may": True}})["paths"]},
            "/etc/controller is no directory",
        ),
        ({"paths": found({KEYSTORE: MISSING})["paths"]}, f"{KEYSTORE}, which a setting names, is no file"),
        (
            {
                "gid": 985,
                "user": USER,
                "paths": found({KEYSTORE: {"kind": core.FILE, "owner": "root", "may": False}})["paths"],
            },
            f"cp-kafka may not read {KEYSTORE}. chgrp confluent {KEYSTORE}",
        ),
    ],
)
def test_what_exists_and_is_of_no_use_is_refused_and_nothing_is_created(changed, says):
    planned = core.plan(WANTED, found(**changed))
    assert [text for text in planned.refusals if says in text], planned.refusals
    assert not planned.changes


def test_all_refusals_are_named_at_once():
    assert len(core.plan(WANTED, found({KEYSTORE: MISSING}, has_start=False)).refusals) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "cp kafka"},
        {"user": "root\nExecStartPre=/bin/sh"},
        {"group": "-x"},
        {"service": "a/../b"},
        {"log_dir": "data"},
        {"config_file": "/etc/my controller/x"},
        {"log_file": "/var/log/%i/server.log"},
        {"environment": {"A B": "x"}},
        {"environment": {"A": "x\nExecStartPre=/bin/sh"}},
        {"environment": {"KAFKA_OPTS": "-Dx=y -Djavax.net.ssl.keyStorePassword=hunter2"}},
    ],
)
def test_what_would_change_the_meaning_of_the_unit_is_refused(wrong):
    wanted = WANTED._replace(**wrong)
    other = found(dict.fromkeys(wanted.directories, MISSING))
    planned = core.plan(wanted, other)
    assert planned.refusals and not planned.changes


def test_a_secret_for_the_unit_is_named_by_its_variable_alone():
    wanted = WANTED._replace(environment={"KEYSTORE_PASS": "hunter2", "JAVA_HOME": "/opt/java"})
    (said,) = core.plan(wanted, found(dict.fromkeys(wanted.directories, MISSING))).refusals
    assert "KEYSTORE_PASS holds a secret" in said and "hunter2" not in said


def test_the_files_that_settings_name():
    settings = {
        "ssl.keystore.location": KEYSTORE,
        "listener.name.controller.ssl.truststore.location": "/t",
        "ssl.keystore.password": "x",
    }
    jaas = {
        "KAFKA_OPTS": "-Xlog -Djava.security.auth.login.config=/etc/controller/kafka_server_jaas.conf -Da=b",
        "N": 1,
    }
    assert core.named_files(settings, jaas) == ["/etc/controller/kafka_server_jaas.conf", "/t", KEYSTORE]
    assert core.named_files({}, {}) == []
