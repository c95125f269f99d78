#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: zk_observer_join
short_description: Make a ZooKeeper server an observer of another ensemble
version_added: 0.1.0
description:
  - Runs on a host of the destination, with its own ZooKeeper server and an empty data directory. It changes the keys in
    the server's C(zoo.cfg) that make it an observer of the source, writes C(myid), starts the service, and waits until
    the observer serves and has caught up with the source's leader.
  - The source is only read. Its configuration need not name the observers.
  - First checks all preconditions, and fails with each one that does not hold and its remedy. Nothing is changed then.
  - A source with C(reconfigEnabled) has a configuration version, which servers with a lower one cannot join. The
    observer then gets its servers from a dynamic file of the same version. Run the module again after the source's
    configuration has changed.
options:
  zookeeper_connect:
    description: All servers of the source with their client ports. A chroot is ignored.
    type: str
    required: true
  myid:
    description: The id of this host's server. It must be larger than each id of the source, and at most 254.
    type: int
    required: true
  destination_servers:
    description:
      - The address of each destination server by its id, as C(host:quorum port:election port).
    type: dict
    required: true
  destination_connect:
    description: The client ports of all destination servers. An observer that has sessions is restarted only if another
      one of them serves, or if the restart takes no longer than two thirds of the shortest session timeout.
    type: str
    default: ''
  dead_ids:
    description: The ids of destination servers that are dead, which need not be reached from this host.
    type: list
    elements: int
    default: []
  source_servers:
    description:
      - The source's servers by id, as in the server lines of its C(zoo.cfg). By default those in C(/zookeeper/config).
      - Needed for ZooKeeper 3.4, and where the source's configuration has the address C(0.0.0.0).
    type: dict
    default: {}
  source_settings:
    description:
      - Settings of source servers by host, as O(quorumshift.kafka.node_facts#module:gather_subset=connectivity) returns
        them in C(quorumshift_paths.zookeeper). They are compared with this host's.
      - Without them, compare C(jute.maxbuffer), authentication providers, C(skipACL), the super user's digest and the
        limits of session timeouts yourself. The module warns.
    type: dict
    default: {}
  config_file:
    description: The server's C(zoo.cfg), with C(dataDir) and C(clientPort).
    type: path
    required: true
  service:
    description: The server's service.
    type: str
    default: zookeeper
  timeout:
    description: How long a server may take to answer, in seconds.
    type: float
    default: 5
  stop_timeout_s:
    description: How long the service may take to stop, in seconds.
    type: float
    default: 300
  join_timeout_s:
    description: How long the observer may make no progress before it has joined, in seconds.
    type: float
    default: 600
extends_documentation_fragment:
  - quorumshift.kafka.attributes
  - quorumshift.kafka.zookeeper
  - quorumshift.kafka.zookeeper.connect
attributes:
  check_mode:
    support: full
    details:
      - Checks the preconditions and returns what would change.
  diff_mode:
    support: full
    details:
      - Shows the changes of the files, with secrets masked.
  platform:
    platforms: linux
seealso:
  - name: ZooKeeper to ZooKeeper
    description: The whole move to an ensemble of Kafka's own, with what protects it.
    link: https://github.com/quorumshift/kafka/blob/main/docs/zookeeper-to-zookeeper.md
  - name: ZooKeeper Observers
    description: ZooKeeper's own description of observers.
    link: https://zookeeper.apache.org/doc/r3.8.4/zookeeperObservers.html
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Join the source as an observer
  quorumshift.kafka.zk_observer_join:
    zookeeper_connect: z1:2181,z2:2181,z3:2181
    myid: 44
    destination_servers:
      44: z4:2888:3888
      45: z5:2888:3888
      46: z6:2888:3888
    config_file: /etc/zookeeper/zoo.cfg

- name: Show whether all preconditions hold, and which lines would change
  quorumshift.kafka.zk_observer_join:
    zookeeper_connect: z1:2181,z2:2181,z3:2181
    myid: 44
    destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
    config_file: /etc/zookeeper/zoo.cfg
  check_mode: true
  diff: true

# ZooKeeper 3.4 does not keep its servers in /zookeeper/config
- name: Join a source of ZooKeeper 3.4, one destination server at a time
  hosts: new_zookeeper
  serial: 1
  tasks:
    - name: Join the source as an observer
      quorumshift.kafka.zk_observer_join:
        zookeeper_connect: z1:2181,z2:2181,z3:2181
        source_servers:
          1: z1:2888:3888
          2: z2:2888:3888
          3: z3:2888:3888
        myid: "{{ my_zookeeper_id }}"
        destination_servers: {44: "z4:2888:3888", 45: "z5:2888:3888", 46: "z6:2888:3888"}
        destination_connect: z4:2181,z5:2181,z6:2181
        config_file: /etc/zookeeper/zoo.cfg
        service: zookeeper
"""

RETURN = r"""
joined:
  description: Whether the server is an observer that serves and has caught up; false in check mode if it would change.
  type: bool
  returned: success
  sample: true
zxid:
  description: The last transaction that the observer has processed; null in check mode if it would change.
  type: int
  returned: success
  sample: 4294967305
leader_zxid:
  description: The last transaction of the source's leader when the wait began; null like RV(zxid).
  type: int
  returned: success
  sample: 4294967305
files:
  description: The files that were changed, or would be in check mode.
  type: list
  elements: str
  returned: success
  sample: [/srv/z44/data/myid, /srv/z44/zoo.cfg]
"""

import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils import message_ids
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import observer_join
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.zookeeper.zk_log import ZooKeeperFileError
from ansible_collections.quorumshift.kafka.plugins.module_utils.host.service import ServiceError
from ansible_collections.quorumshift.kafka.plugins.module_utils.module_base.argument_specs import (
    ZOOKEEPER_CLIENT_OPTIONS,
)
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.security import SecurityError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.addresses import AddressError
from ansible_collections.quorumshift.kafka.plugins.module_utils.settings.properties import PropertiesError, decode
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError
from ansible_collections.quorumshift.kafka.plugins.module_utils.worker.restart_record import RestartError

SUPER_DIGEST = re.compile(r"(superDigest\s*[=:]\s*).*")
ERRORS = (AddressError, PropertiesError, ZooKeeperFileError, ServiceError, WireError, RestartError, SecurityError)


def main():
    """Plan, carry out, wait."""
    module = AnsibleModule(
        argument_spec={
            "zookeeper_connect": {"type": "str", "required": True},
            "zookeeper_client": {"type": "dict", "options": ZOOKEEPER_CLIENT_OPTIONS},
            "myid": {"type": "int", "required": True},
            "destination_servers": {"type": "dict", "required": True},
            "destination_connect": {"type": "str", "default": ""},
            "dead_ids": {"type": "list", "elements": "int", "default": []},
            "source_servers": {"type": "dict", "default": {}},
            "source_settings": {"type": "dict", "default": {}},
            "config_file": {"type": "path", "required": True},
            "service": {"type": "str", "default": "zookeeper"},
            "timeout": {"type": "float", "default": 5},
            "stop_timeout_s": {"type": "float", "default": 300},
            "join_timeout_s": {"type": "float", "default": 600},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**join(module))
    except (observer_join.JoinError, *ERRORS, OSError, ValueError) as error:
        module.fail_json(msg=message_ids.move_to_end(mask(f"{error}."), message_ids.NO_ID))


def join(module):
    """Return the module's result."""
    given = module.params
    planned = observer_join.plan(given)
    if not given["source_settings"]:
        module.warn(
            "source_settings is not given, so jute.maxbuffer, authentication providers, skipACL, superDigest and the "
            "limits of session timeouts of the source are unknown. Compare them with this host's."
        )
    changes = [file for file in planned.files if file.differs]
    result = {
        "changed": planned.changed,
        "joined": False,
        "zxid": None,
        "leader_zxid": None,
        "files": [file.path for file in changes],
        "diff": [
            {
                "before": mask_file(file.before or b""),
                "after": mask_file(file.after),
                "before_header": file.path,
                "after_header": file.path,
            }
            for file in changes
        ],
    }
    if module.check_mode and planned.changed:
        return result
    if not module.check_mode:
        observer_join.carry_out(given, planned)
    return {**result, **observer_join.await_joined(given, planned), "joined": True}


def mask_file(data):
    """Return a file as text with secrets masked; the super user's digest is one."""
    return mask(SUPER_DIGEST.sub(r"\1********", decode(data)))


if __name__ == "__main__":
    main()
