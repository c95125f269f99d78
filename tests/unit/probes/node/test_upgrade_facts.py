# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a host for an audit: options of a JVM, log4j files, formats on disk, the request log, JmxTool."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.host import tcp_connections
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import jmx, request_log, upgrade_facts

PRINTED = """time=1795962114403
kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,request=Fetch,version=0,clientSoftwareName=sarama,clientSoftwareVersion=1.20:Count=3
kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,request=Fetch,version=0,clientSoftwareName=sarama,clientSoftwareVersion=1.20:RateUnit=SECONDS
kafka.server:type=socket-server-metrics,clientSoftwareName=apache-kafka-java,clientSoftwareVersion=3.9.2,listener=PLAINTEXT,networkProcessor=0:connections=2
kafka.server:type=socket-server-metrics,clientSoftwareName=apache-kafka-java,clientSoftwareVersion=3.9.2,listener=PLAINTEXT,networkProcessor=1:connections=1.0
kafka.server:type=socket-server-metrics,clientSoftwareName=unknown,clientSoftwareVersion=unknown,listener=PLAINTEXT,networkProcessor=1:connections=0
java.lang:type=Runtime:Uptime=7230000
"""
LINE = (
    '[2026-11-29 14:21:54,096] INFO Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":1,'
    '"requestApiVersion":%d,"correlationId":7,"clientId":"%s","requestApiKeyName":"%s"},"request":{},'
    '"connection":"127.0.0.1:51797-%s:40866-5","principal":"User:app","clientInformation":{"softwareName":"sarama",'
    '"softwareVersion":"1.20"}} (kafka.request.logger)\n'
)


@pytest.fixture
def node_process(tmp_path):
    """A process whose command line is that of a broker with this properties file; return (process, file)."""
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:1\n")
    options = ["-Dlog4j.configuration=file:/nowhere/log4j.properties", "-Da=1", "-Da=2"]
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": "-Dfrom.environment=yes -Da=0"}
    process = subprocess.Popen([*wait, *options, "kafka.Kafka", str(file)], stdin=subprocess.PIPE, env=environment)
    yield process, file
    process.kill()
    process.wait()
    process.stdin.close()


def test_a_node_is_found_by_its_properties_file_where_no_service_runs_it(node_process):
    process, file = node_process
    pid, arguments = upgrade_facts.find_process("no-such-service", str(file))
    assert pid == process.pid
    assert upgrade_facts.find_process("no-such-service", str(file) + ".other") == (0, [])
    options = upgrade_facts.jvm_options(pid, arguments)
    assert options["a"] == "2" and options["from.environment"] == "yes"


def test_the_facts_of_a_node_that_runs_without_a_jmx_port(node_process):
    _process, file = node_process
    found = upgrade_facts.collect("broker", str(file), "no-such-service", str(file) + ".log", "/nowhere")
    assert found["process"]["options"] == {"log4j.configuration": "file:/nowhere/log4j.properties"}
    assert found["log4j"]["version"] == 1 and found["log4j"]["why"] == "No such file or directory"
    assert found["metrics"]["why"] == "its JVM has no JMX port (JMX_PORT)"
    assert found["addresses"] == {} and found["requests"]["files"] == []
    down = upgrade_facts.collect("broker", str(file) + ".other", "no-such-service", "", "/nowhere")
    assert down["process"] is None and down["log4j"] is None and down["formats"] is None
    assert down["formatted_by_newer"] is None
    assert set(upgrade_facts.collect("controller", str(file), "no-such-service", "", "/nowhere")) == {
        *("role", "process", "log4j", "mirror_makers", "formatted_by_newer"),
    }


def test_appenders_of_a_log4j_1_file(tmp_path):
    path = tmp_path / "log4j.properties"
    path.write_text(
        "log4j.rootLogger=INFO, stdout\nlog4j.appender.stdout=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.stdout.layout=org.apache.log4j.PatternLayout\n#log4j.appender.x=no.Such\n"
        "log4j.appender.KAFKA = org.apache.kafka.log4jappender.KafkaLog4jAppender\n"
    )
    found = upgrade_facts._read_log4j({"log4j.configuration": f"file:{path}"})
    assert found["appenders"] == [
        "org.apache.kafka.log4jappender.KafkaLog4jAppender",
        "org.apache.log4j.ConsoleAppender",
    ]
    assert upgrade_facts._read_log4j({"log4j2.configurationFile": "/x.yaml"})["version"] == 2
    assert "names no file" in upgrade_facts._read_log4j({})["why"]


def test_formats_of_the_first_batches(tmp_path):
    for name, magic in (("a-0", 1), ("b-1", 2), ("c-0", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000007.log").write_bytes(b"\0" * 16 + bytes([magic]) + b"\0" * 40)
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "empty-0" / "00000000000000000000.log").write_bytes(b"")
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "meta.properties").write_text("")
    assert upgrade_facts.read_formats([str(tmp_path)]) == {
        **{"read": 4, "partitions": 4, "old": {"0": 1, "1": 1}, "named": ["a-0", "c-0"], "why": ""}
    }
    late = upgrade_facts.read_formats([str(tmp_path)], seconds=-1)
    assert late["read"] == 0 and late["partitions"] == 4 and late["why"]
    assert upgrade_facts.read_formats([str(tmp_path / "gone")])["why"].endswith("No such file or directory")


def test_a_directory_of_a_newer_release(tmp_path):
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    assert upgrade_facts.is_formatted_by_newer(str(log)) is False
    assert upgrade_facts.is_formatted_by_newer(str(tmp_path / "gone" / "log")) is False
    assert upgrade_facts.is_formatted_by_newer("") is None
    (tmp_path / "loop").symlink_to("loop")
    assert upgrade_facts.is_formatted_by_newer(str(tmp_path / "loop")) is None, "it cannot be seen"
    (log / "00000000000000000000-0000000000.checkpoint").write_bytes(b"")
    assert upgrade_facts.is_formatted_by_newer(str(log))
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"")
    assert not upgrade_facts.is_formatted_by_newer(str(log)), "kafka-storage --standalone of 3.9 writes both"


def test_mirror_maker_1_is_found_and_mirror_maker_2_is_not():
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    one = subprocess.Popen(
        [*wait, "kafka.tools.MirrorMaker", "--whitelist", "x", "c.properties"], stdin=subprocess.PIPE
    )
    two = subprocess.Popen(
        [*wait, "org.apache.kafka.connect.mirror.MirrorMaker", "m2.properties"], stdin=subprocess.PIPE
    )
    try:
        assert upgrade_facts.find_mirror_makers() == ["c.properties"]
    finally:
        for process in (one, two):
            process.kill()
            process.wait()
            process.stdin.close()


def test_peers_of_a_port():
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert tcp_connections.count_peers([port]) == {}
        client.connect(("127.0.0.1", port))
        accepted, _address = server.accept()
        with accepted:
            assert tcp_connections.count_peers([port]) == {port: {"127.0.0.1": 1}}


def test_what_jmx_tool_prints():
    assert jmx.parse(PRINTED) == {
        "deprecated": [{"request": "Fetch", "version": 0, "name": "sarama", "software": "1.20", "count": 3}],
        "clients": [{"name": "apache-kafka-java", "software": "3.9.2", "connections": 3}],
        "uptime_s": 7230.0,
    }
    assert jmx.parse(PRINTED.rpartition("java.lang")[0]) is None, "without the JVM's answer there is none"
    assert jmx.parse("") is None


def test_a_jmx_port_with_a_login_is_not_asked():
    options = {"com.sun.management.jmxremote.port": "9999", "com.sun.management.jmxremote.ssl": "false"}
    assert "authenticate" in jmx.read(os.getpid(), [], options, "/nowhere")["why"]
    assert "no JMX port" in jmx.read(os.getpid(), [], {}, "/nowhere")["why"]
    options["com.sun.management.jmxremote.authenticate"] = "false"
    # This process is no Java: what runs is Python, which knows no such options
    why = jmx.read(os.getpid(), ["java", "-cp", "libs/*"], options, "/nowhere")["why"]
    assert "JmxTool" in why


def test_old_requests_of_a_log_by_client_and_address(tmp_path):
    log = tmp_path / "server.log"
    lines = [LINE % (0, "billing", "FETCH", "10.0.0.9")] * 3
    lines += [LINE % (12, "new", "FETCH", "10.0.0.8"), LINE % (1, "x", "API_VERSIONS", "10.0.0.7"), "no request\n"]
    (tmp_path / "kafka-request.log").write_text("".join(lines))
    (tmp_path / "kafka-request.log.2026-11-29-13").write_text(LINE % (0, "six", "LIST_OFFSETS", "fe80::1") + "torn{")
    log.write_text("[2026-11-29 14:00:00,000] INFO started\n")
    found = request_log.read("", str(log))
    old = [(client["request"], client["version"], client["address"], client["count"]) for client in found["clients"]]
    assert old == [("FETCH", 0, "10.0.0.9", 3), ("LIST_OFFSETS", 0, "fe80::1", 1)]
    assert found["first"] == found["last"] == "2026-11-29 14:21:54" and not found["cut"]
    assert len(found["files"]) == 2 and found["clients"][0]["principal"] == "User:app"
    assert request_log.read(str(tmp_path), "/nowhere/server.log")["clients"] == found["clients"]
    assert request_log.read("", "/nowhere/server.log")["files"] == []


def test_a_long_request_log_is_read_from_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(request_log, "MOST_BYTES", 2000)
    path = tmp_path / "kafka-request.log"
    path.write_text("x" * 5000 + "\n" + LINE % (0, "last", "FETCH", "10.0.0.9"))
    found = request_log.read(str(tmp_path), "")
    assert found["cut"] and [client["client_id"] for client in found["clients"]] == ["last"]
