# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a host of the simulated world: tools.failure_proof.boundary answers."""

from __future__ import annotations

DOCUMENTATION = """
name: scripted
author: Quorumshift maintainers (@quorumshift)
short_description: Answer from a simulated world
description: Used by tools.failure_proof alone.
extends_documentation_fragment: [connection_pipelining]
"""

import shutil

from ansible.plugins.connection import ConnectionBase


class Connection(ConnectionBase):
    """Passes module calls to the boundary; runs shell commands here."""

    transport = "scripted"
    has_pipelining = True
    has_native_async = True

    def _connect(self):
        self._connected = True
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        from tools.failure_proof import boundary

        return boundary.answer(cmd, in_data)

    def put_file(self, in_path, out_path):
        shutil.copyfile(in_path, out_path)

    def fetch_file(self, in_path, out_path):
        shutil.copyfile(in_path, out_path)

    def close(self):
        self._connected = False
