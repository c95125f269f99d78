# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The transient unit that does a host's part of a cut: core.ensemble.cut_host.Worker with the effects of this host.

Standard library only. Everything is loaded before, because Ansible removes the module's files.
"""

from __future__ import annotations

import os

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import cut_host
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble.effects import Effects
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import host_state


def resume(path: str) -> None:
    """Do the worker's work: the entry of the transient unit."""
    spec = host_state.read_json(path)
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.unlink(path)
    cut_host.run(cut_host.Worker(spec).steps(), Effects(spec, spec["directory"]))
