# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are read as Java, Kafka and ZooKeeper read them, and edited so that these read the new values and all others.

QUORUMSHIFT_GENERATED_FILES is the number of files, QUORUMSHIFT_SEED their seed: a failure prints both, the shrunk file
and the command that repeats it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import re

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import reassignment
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import zk_observer
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import config_providers
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings import (
    config_values,
    harmless_configs,
    properties,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import (
    is_wildcard,
    parse_host_port,
    parse_zookeeper_connect,
)

from tests.integration import generated_files, java_files, servers

pytestmark = pytest.mark.real
FILES = int(os.environ.get("QUORUMSHIFT_GENERATED_FILES", "2000"))
SEED = int(os.environ.get("QUORUMSHIFT_SEED") or random.SystemRandom().randrange(1 << 32))
NONE = {"rejected": "rejected"}


@pytest.fixture(scope="module")
def home():
    with servers.workdir("files_against_java") as path:
        yield path


@pytest.fixture(scope="module")
def java(home):
    with java_files.reader(home) as reader:
        yield reader


def ours(data):
    try:
        return properties.parse(data)
    except properties.PropertiesError:
        return NONE


def theirs(java, data):
    try:
        return java.read("properties", data)
    except java_files.Rejected:
        return NONE


def read_differently(java, data):
    return ours(data) != theirs(java, data)


def edited_wrongly(java, data, changes):
    """Return what is wrong after an edit, '' if nothing is."""
    before = theirs(java, data)
    if before is NONE:
        return ""
    after = properties.edit(data, changes)
    wanted = {key: value for key, value in {**before, **changes}.items() if value is not None}
    read = theirs(java, after)
    if read != wanted:
        return f"Java reads {read}, not {wanted}"
    # new keys are appended, and what is before them is as without them
    known = {key: value for key, value in changes.items() if key in before or value is None}
    kept = properties.edit(data, known)
    if not after.startswith(kept):
        return f"with new keys it begins {after[: len(kept)]!r}, without them {kept!r}"
    old, new = others(java, data, known), others(java, kept, known)
    return "" if old == new else f"all but the changed keys was {old!r}, and is {new!r}"


def others(java, data, changes):
    """Return the comments and the entries of other keys, each with the first byte of its line's end. Where a line
    between \\r and \\n was removed, these are one end."""
    kept = [entry for entry in entries(data) if entry.strip(b" \t\f\r\n")]
    kept = [entry for entry in kept if not theirs(java, entry).keys() & changes.keys()]
    return [entry.rstrip(b"\r\n") + entry[len(entry.rstrip(b"\r\n")) :][:1] for entry in kept]


def entries(data):
    """Split a file into its entries, comments and blank lines."""
    found, goes_on = [], False
    for line in re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", data):
        # as long as nothing but a backslash came before, Java's LineReader is "still on a new logical line"
        new = not goes_on or re.fullmatch(rb"(?:[ \t\f]*\\(?:\r\n|\r|\n))+", found[-1])
        comment = new and re.match(rb"[ \t\f]*[#!]", line)
        if goes_on and not comment:
            found[-1] += line
        else:
            found.append(line)
        goes_on = not comment and re.search(rb"(?<!\\)(?:\\\\)*\\(?:\r\n|\r|\n)$", line)
    return found


def report(number, data, why):
    pytest.fail(
        f"file {number} of seed {SEED}, shrunk: {data!r}, hex {data.hex()}: {why}. Repeat: QUORUMSHIFT_SEED={SEED} "
        f"QUORUMSHIFT_GENERATED_FILES={FILES} pytest {__file__}"
    )


def test_files_are_read_as_java_reads_them(java):
    rejected = 0
    for number in range(FILES):
        data = generated_files.properties_file(SEED, number)
        if read_differently(java, data):
            small = generated_files.shrunk(data, lambda part: read_differently(java, part))
            report(number, small, f"read as {ours(small)}, Java reads {theirs(java, small)}")
        rejected += ours(data) is NONE
    assert 0 < rejected < FILES / 4  # the files reach both answers


def test_after_an_edit_java_reads_the_new_values_and_all_other_bytes_are_the_same(java):
    edited = 0
    for number in range(FILES):
        data = generated_files.properties_file(SEED, number)
        edited += theirs(java, data) is not NONE
        changes = generated_files.changes(SEED, number, properties_of(data))
        if edited_wrongly(java, data, changes):
            small = generated_files.shrunk(data, lambda part, with_=changes: bool(edited_wrongly(java, part, with_)))
            report(number, small, f"{changes}: {edited_wrongly(java, small, changes)}")
    assert edited > FILES * 3 / 4


def properties_of(data):
    found = ours(data)
    return [] if found is NONE else sorted(found)


# Values ---------------------------------------------------------------------------------------------------------------


def the_same(java, verb, data, ours_of, number):
    """Return whether Kafka or ZooKeeper accepts a file; fail where what is made of it differs."""
    try:
        read = java.read(verb, data)
    except java_files.Rejected:
        return False
    differing = {key: (value, read[key]) for key, value in ours_of(read).items() if value != read[key]}
    if differing:
        pytest.fail(f"file {number} of seed {SEED}: {data!r}: {{key: (ours, theirs)}} {differing}")
    return True


def test_kafka_makes_the_same_of_a_brokers_file(java):
    accepted = 0
    for number in range(FILES):
        values = generated_files.broker_properties(SEED, number)
        accepted += the_same(java, "kafka", properties.edit(b"", values), lambda read, own=values: broker(own), number)
    assert accepted > FILES / 10


def broker(values):
    """Return what this tool makes of a broker's file, in the form of FilesAsRead."""
    protocols = kraft_config.protocol_map(values)

    def shown(listeners):
        return "".join(
            f"{listener.name} {listener.host} {listener.port} {protocols.get(listener.name)}\n"
            for listener in listeners
        )

    name = config_values.get(values, "inter.broker.listener.name").upper()
    roles = {"zk": "", "zk_migration": ""}[kraft_config.mode_at_next_start(values)]
    return {
        "process.roles": roles,
        "migration": str(config_values.is_true(values, kraft_config.MIGRATION_FLAG)).lower(),
        "broker.id": str(int(kraft_config.own_id(values) or -1)),
        "generation": str(config_values.is_true(values, "broker.id.generation.enable")).lower(),
        "reserved": str(kraft_config.reserved_ids(values)),
        "log.dirs": "\n".join(config_values.log_dirs(values)),
        "metadata.log.dir": config_values.metadata_log_dir(values),
        "listeners": shown(kraft_config.listeners(values)),
        "advertised": shown(kraft_config.advertised_listeners(values)),
        "inter.broker.listener.name": name or kraft_config.inter_broker_protocol(values),
        "inter.broker.protocol": kraft_config.inter_broker_protocol(values),
        "authorizer": config_values.get(values, kraft_config.AUTHORIZER),
        "zookeeper.ssl": str(config_values.is_true(values, "zookeeper.ssl.client.enable")).lower(),
    }


def test_values_are_equal_to_this_tool_where_they_are_equal_to_kafka(java):
    chosen = random.Random(f"{SEED}/values")
    of_kafka = java.read("defaults", b"")
    samples = {
        "BOOLEAN": ("true", "TRUE", "True", "false", "FALSE"),
        "LIST": ("a,b", "a, b", "b,a", "a", "", "a,,b"),
        **dict.fromkeys(("SHORT", "INT", "LONG"), ("1", "01", "+1", "2", "-1")),
        "DOUBLE": ("0.5", ".5", "0.50", "5e-1", "1"),
        "STRING": ("a", "A", "a b", "a, b", "a,b", "é"),
    }
    single = ("zookeeper.connect", "inter.broker.listener.name")
    names = [key for key, kind in harmless_configs.TYPES.items() if key in of_kafka and kind in samples]
    names = [key for key in names if key not in config_values._CSV and key not in single]
    assert len(names) > 150
    for name in names:
        first, other = (
            generated_files.blanks(chosen, chosen.choice(samples[harmless_configs.TYPES[name]])) for _number in "12"
        )
        read = [java.read("values", properties.edit(b"", {name: text}))[name] for text in (first, other)]
        same = config_values.comparable_value(name, first) == config_values.comparable_value(name, other)
        assert same == (read[0] == read[1]), (name, first, other, read, SEED)


def test_defaults_and_names_of_options_are_kafkas(java):
    of_kafka = java.read("defaults", b"")
    for key, value in config_values.DEFAULTS.items():
        expected = of_kafka.get(key, "")
        assert sorted(value.split(",")) == sorted(expected.split(",")), key
    options = {key[3:]: value for key, value in of_kafka.items() if key.startswith("-D ")}
    assert options == kraft_config.ZOOKEEPER_TLS


def test_connect_strings_are_read_as_zookeepers_client_reads_them(java):
    accepted = 0
    for number in range(FILES):
        text = generated_files.broker_properties(SEED, number)["zookeeper.connect"]
        connect = parse_zookeeper_connect(config_values.trim(text))
        read = java.read("connect", config_values.trim(text).encode())
        servers = "".join(f"{server.host} {server.port}\n" for server in connect.servers)
        assert (servers, connect.chroot) == (read["servers"], read["chroot"]), text
        accepted += 1
    assert accepted == FILES


def test_zookeeper_makes_the_same_of_its_file(java, home):
    (home / "data" / "logs").mkdir(parents=True)
    (home / "data" / "myid").write_text("1\n")
    accepted = 0
    for number in range(FILES):
        values = generated_files.zoo_cfg(SEED, number, str(home / "data"))
        accepted += the_same(
            java, "zookeeper", properties.edit(b"", values), lambda read, own=values: server(own), number
        )
    assert accepted > FILES / 4


def server(given):
    """Return what this tool makes of a zoo.cfg, in the form of FilesAsRead."""
    values = config_values.parse_zoo_cfg(given)
    logs = {"dataDir": values["dataDir"], "dataLogDir": values.get("dataLogDir") or values["dataDir"]}
    host = values.get("clientPortAddress", "")
    shown = "any" if is_wildcard(host) else plain(host.strip("[]"))
    members = {}
    for number, member in zk_observer.parse_ensemble(values).members.items():
        address = parse_host_port(zk_observer.quorum_address(member))
        members[f"server.{number}"] = (
            f"{plain(address.host)} {address.port} {'OBSERVER' if member.observes else 'PARTICIPANT'}"
        )
    return {
        **logs,
        "clientPort": f"{shown} {values['clientPort']}",
        "syncEnabled": str(zk_observer._is_on(values, "syncEnabled", "true")).lower(),
        "localSessionsEnabled": str(zk_observer._is_on(values, "localSessionsEnabled")).lower(),
        "minSessionTimeout": str(zk_observer._session_ms(values, "minSessionTimeout", 2)),
        "maxSessionTimeout": str(zk_observer._session_ms(values, "maxSessionTimeout", 20)),
        **members,
    }


def plain(host):
    """Return an address as Java writes it."""
    address = ipaddress.ip_address(host)
    return host if address.version == 4 else ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


# Variables of config providers ----------------------------------------------------------------------------------------


def test_variables_are_resolved_as_kafka_resolves_them(java, home):
    package = "org.apache.kafka.common.config.provider."
    secrets = home / "secrets"
    secrets.mkdir()
    (secrets / "file.properties").write_bytes("# ключ\npw=gr\u00fc\u00df\nodd=a\\u00e9\\\n  b\n".encode())
    (secrets / "one").write_bytes("w\u00f6rd\n".encode())
    values = {
        "config.providers": "file,dir,env,none",
        "config.providers.file.class": f"{package}FileConfigProvider",
        "config.providers.dir.class": f"{package}DirectoryConfigProvider",
        "config.providers.dir.param.allowed.paths": str(secrets),
        "config.providers.env.class": f"{package}EnvVarConfigProvider",
        "a": f"x${{file:{secrets}/file.properties:pw}}y${{dir:{secrets}:one}}",
        "b": f"${{file:{secrets}/file.properties:odd}}${{env:HOME}}",
        "c": f"${{file:{secrets}/file.properties:missing}} ${{env:QUORUMSHIFT_NONE}} ${{none:x}} $${{ ${{plain}}",
        "d": f"${{dir:{home}:zoo.cfg}} ${{dir:{secrets}/../secrets:one}}",
        "e": "${other:a:b}",
    }
    plain, variables = config_providers.resolve(values, os.environ)
    assert plain == java.read("variables", properties.edit(b"", values))
    left = [f"${{file:{secrets}/file.properties:missing}}", "${env:QUORUMSHIFT_NONE}", f"${{dir:{home}:zoo.cfg}}"]
    assert [variable.variable for variable in variables if variable.why] == left


def test_a_file_of_secrets_that_kafka_cannot_read_is_no_value(java, home):
    values = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "a": f"${{file:{home}/nowhere:x}}",
    }
    with pytest.raises(java_files.Rejected, match="Could not read properties from file"):
        java.read("variables", properties.edit(b"", values))
    (variable,) = config_providers.resolve(values, {})[1]
    assert variable.key == "a" and "No such file" in variable.why


# Reassignments --------------------------------------------------------------------------------------------------------


def test_what_is_read_as_a_reassignment_kafkas_command_reads_so(java):
    """This tool accepts less: no negative ids, no directories, no topic without a name. An entry without replicas names
    a partition to cancel."""
    accepted = refused = stricter = 0
    for number in range(FILES):
        text = generated_files.reassignment(SEED, number)
        try:
            read = java.read("reassignment", text.encode())
        except java_files.Rejected:
            read = None
        try:
            own = reassignment.parse(json.loads(text))
        except reassignment.ReassignmentError:
            own = None
        if own and all(own.values()):
            assert read is not None, f"seed {SEED}, {number}: accepted, and Kafka rejects it: {text}"
            assert {reassignment.format_partition(key): str(list(value)) for key, value in own.items()} == read, (
                SEED,
                number,
                text,
            )
            accepted += 1
        elif read is None:
            refused += 1
        else:
            why = ("-1", "/data", '"topic": ""')
            assert any(phrase in text for phrase in why), f"seed {SEED}, {number}: Kafka reads it as {read}: {text}"
            stricter += 1
    assert accepted > FILES / 4 and refused > FILES / 10, (accepted, refused, stricter)


# Principals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["User:CN=\\u5f20\\u4e09,OU=\\u0411", "User:CN=张三,OU=Б", "User:CN=Müller;User:b"])
def test_super_users_of_any_script_are_read_and_written_as_java_reads_them(java, line):
    data = f"super.users={line}\n".encode()
    value = theirs(java, data)["super.users"]
    assert properties.parse(data)["super.users"] == value
    more = f"{value};User:CN=Żółć"
    after = properties.edit(data, {"super.users": more})
    assert after.isascii() and theirs(java, after)["super.users"] == more
    # a controller's file has the principals of the brokers' files
    carried = ";".join(kraft_config.super_users({"super.users": value}))
    assert theirs(java, properties.edit(b"", {"super.users": carried}))["super.users"] == value
