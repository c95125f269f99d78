#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_host
short_description: Prepare a host for a controller, without starting one
version_added: 0.1.0
description:
  - B(Internal.) Roles of this collection call it. Its options and results may change in any release.
  - Creates what is missing of the group, the user, the directories and the service's unit, and enables the service. It
    starts nothing and installs no package.
  - What exists stays as it is. If the controller cannot use it, the module fails and changes nothing, for example with
    a directory of another user, or a unit that starts another properties file.
options:
  service:
    description: The controller's service.
    type: str
    required: true
  config_file:
    description: The controller's properties file. It is not written; its directory is created.
    type: path
    required: true
  log_file:
    description: The controller's own log. Its directory is created, and is C(LOG_DIR) of the service.
    type: path
    required: true
  log_dir:
    description: The controller's log directory, which is created empty.
    type: path
    required: true
  owner:
    description: The user that runs Kafka.
    type: str
    required: true
  group:
    description: Its primary group. By default the group of the user's own name.
    type: str
    default: ""
  kafka_home:
    description: Where Kafka is installed.
    type: path
    required: true
  environment:
    description: Environment of the service. Every user of the host can read it.
    type: dict
    default: {}
  files:
    description: Files that must be there, and that the user must be able to read. The action plugin fills it in.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full, description: Returns what would be created.}
  diff_mode: {support: full, description: 'Shows what is created, and the text of the unit.'}
author: Quorumshift maintainers (@quorumshift)
"""

EXAMPLES = r"""
- name: Prepare the host for a controller
  quorumshift.kafka.controller_host:
    group: confluent
    environment: {KAFKA_HEAP_OPTS: -Xms2g -Xmx2g}
"""

RETURN = r"""
created:
  description: What was created, or would be in check mode.
  type: list
  elements: str
  returned: success
  sample: [user cp-kafka, directory /var/lib/controller/data, unit confluent-kcontroller.service]
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import controller_host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import controller_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.probes.node import installation
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets.masking import mask

_START = "bin/kafka-server-start.sh"


def main():
    """Read the host, refuse or create."""
    module = AnsibleModule(
        argument_spec={
            "service": {"type": "str", "required": True},
            "config_file": {"type": "path", "required": True},
            "log_file": {"type": "path", "required": True},
            "log_dir": {"type": "path", "required": True},
            "owner": {"type": "str", "required": True},
            "group": {"type": "str", "default": ""},
            "kafka_home": {"type": "path", "required": True},
            "environment": {"type": "dict", "default": {}},
            "files": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    given = module.params
    wanted = core.Wanted(
        user=given["owner"],
        group=given["group"] or given["owner"],
        start=installation.tool_path(os.path.join(given["kafka_home"], _START)),
        service=given["service"],
        config_file=given["config_file"],
        log_file=given["log_file"],
        log_dir=given["log_dir"],
        environment={name: str(value) for name, value in given["environment"].items()},
        files=given["files"],
    )
    try:
        planned = core.plan(wanted, controller_host.read(wanted))
        if planned.refusals:
            refused = ". ".join(text[:1].upper() + text[1:] for text in planned.refusals)
            module.fail_json(msg=f"{refused}. Nothing was changed on this host. (QS-HOST-004)")
        diff = [
            {"before": "", "after": "".join(f"{line}\n" for line in planned.created(wanted)), "after_header": "created"}
        ]
        if planned.unit is not None:
            path = os.path.join(core.UNIT_DIR, wanted.unit)
            header = {"before_header": path, "after_header": path}
            diff.append({"before": mask(planned.earlier), "after": mask(planned.unit), **header})
        if not module.check_mode:
            controller_host.prepare(wanted, planned)
    except (controller_host.PreparationError, OSError) as error:
        module.fail_json(
            msg=f"The host could not be prepared: {error}. Correct that and run again: what exists stays. (QS-HOST-004)"
        )
    module.exit_json(changed=planned.changes, created=planned.created(wanted), diff=diff if planned.changes else [])


if __name__ == "__main__":
    main()
