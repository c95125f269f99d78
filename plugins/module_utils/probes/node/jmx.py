# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from a broker's own JMX port which clients it has, and which of them send deprecated requests.

Kafka's JmxTool reads the MBeans, with the Java, the jars and the user of the broker itself. It changes nothing.
Sources:
RequestMetrics.deprecatedRequestRate (KIP-896, from 3.7 on) has a meter for each request, version, and name and version
of a client, from the first such request on; Selector.SelectorMetrics counts connections by name and version (KIP-511).

Runs on managed hosts: standard library only; read-only.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Any, Dict, List, Mapping, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.host import as_user
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation

_TOOL = "org.apache.kafka.tools.JmxTool"
_PORT, _HOST = "com.sun.management.jmxremote.port", "com.sun.management.jmxremote.host"
_GUARDED = ("com.sun.management.jmxremote.authenticate", "com.sun.management.jmxremote.ssl")
_DEPRECATED = "kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,*"
_CONNECTIONS = "kafka.server:type=socket-server-metrics,clientSoftwareName=*,*"
_JVM = "java.lang:type=Runtime"  # each JVM has it: without it, nothing was answered
_LIMIT_S = 40.0
_LINE = re.compile(r"^([\w.]+):(\S.*?):(\w[\w-]*)=(.*)$")


def read(pid: int, arguments: List[str], options: Mapping[str, str], kafka_home: str) -> Dict[str, Any]:
    """Return {deprecated: [{request, version, name, software, count}], clients: [{name, software, connections}],
    uptime_s: for how long the broker counts} of a broker, or {why} where it cannot be asked."""
    port = options.get(_PORT, "")
    if not port.isdigit() or port == "0":
        return {"why": "its JVM has no JMX port (JMX_PORT)"}
    guarded = [name.rpartition(".")[2] for name in _GUARDED if options.get(name, "true").lower() != "false"]
    if guarded:
        return {"why": f"its JMX port {port} asks for {' and '.join(guarded)}, with which this tool does not log in"}
    try:
        java = installation.find_binary(pid)
    except OSError as error:
        return {"why": f"its Java cannot be seen: {error.strerror}"}
    path = _class_path(pid, arguments, kafka_home)
    url = f"service:jmx:rmi:///jndi/rmi://{options.get(_HOST) or '127.0.0.1'}:{port}/jmxrmi"
    command = [java, "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, _TOOL, "--jmx-url", url]
    for name in (_JVM, _DEPRECATED, _CONNECTIONS):
        command += ["--object-name", name]
    command += ["--attributes", "Count,connections,Uptime", "--one-time", "--report-format", "properties"]
    try:
        # As the user of the process: its class path may be that user's to write
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
        done = as_user.run(user, command, _LIMIT_S)
    except (OSError, KeyError) as error:
        return {"why": f"JmxTool cannot be started: {error}"}
    if done.code is None:
        return {"why": f"JmxTool gave no answer within {_LIMIT_S:g} s"}
    found = parse(done.output)
    if found is None:
        last = (done.errors or done.output).strip().splitlines()[-1:] or ["nothing"]
        return {"why": f"JmxTool could not read port {port}: {last[0][:200]}"}
    return found


def parse(text: str) -> Dict[str, Any] | None:
    """Return what JmxTool printed with --report-format properties, as `read`; None without an answer of the JVM."""
    deprecated: Dict[Tuple[str, ...], float] = {}
    clients: Dict[Tuple[str, str], float] = {}
    uptime = None
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        domain, properties, attribute, value = match.groups()
        named = dict(pair.partition("=")[::2] for pair in properties.split(","))
        try:
            number = float(value)
        except ValueError:
            continue
        software = named.get("clientSoftwareName", ""), named.get("clientSoftwareVersion", "")
        if domain == "java.lang" and attribute == "Uptime":
            uptime = number / 1000
        elif domain == "kafka.network" and attribute == "Count":
            key = (named.get("request", ""), named.get("version", ""), *software)
            deprecated[key] = deprecated.get(key, 0) + number
        elif domain == "kafka.server" and attribute == "connections":
            clients[software] = clients.get(software, 0) + number
    if uptime is None:
        return None
    return {
        "deprecated": [
            {"request": key[0], "version": int(key[1]), "name": key[2], "software": key[3], "count": int(count)}
            for key, count in sorted(deprecated.items())
            if count and key[1].isdigit()
        ],
        "clients": [
            {"name": name, "software": version, "connections": int(count)}
            for (name, version), count in sorted(clients.items())
            if count > 0
        ],
        "uptime_s": uptime,
    }


def _class_path(pid: int, arguments: List[str], kafka_home: str) -> str:
    """Return the class path of the process itself, or that of Kafka's directory."""
    for option in ("-cp", "-classpath", "--class-path"):
        if option in arguments[:-1]:
            given = arguments[arguments.index(option) + 1]
            try:
                directory = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                return given
            return os.pathsep.join(os.path.join(directory, part) for part in given.split(os.pathsep) if part)
    home = installation.running_home(pid)
    root = home.path if home else kafka_home
    return os.pathsep.join(os.path.join(root, folder, "*") for folder in ("libs", "share/java/kafka"))
