# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places in Ansible's documentation to which antsibull-docs' pages lead, as an inventory of Sphinx.

The site is built without asking another host, so the few places stand here. One that is missing is a warning of Sphinx,
which ends the build.
"""

from __future__ import annotations

import zlib

_LABELS = {
    "action_plugins": ("plugins/action.html", "Action plugins"),
    "callback_plugins": ("plugins/callback.html", "Callback plugins"),
    "ansible_configuration_settings": ("reference_appendices/config.html", "Ansible Configuration Settings"),
    "common_return_values": ("reference_appendices/common_return_values.html", "Return values"),
    "ansible_collections.ansible.builtin.default_callback": (
        "collections/ansible/builtin/default_callback.html",
        "ansible.builtin.default",
    ),
}
_VARIABLES = {"ANSIBLE_LOG_PATH": "reference_appendices/config.html#envvar-ANSIBLE_LOG_PATH"}


def inventory() -> bytes:
    """Return the inventory, in version 2 of its format."""
    lines = [f"{name} std:label -1 {page} {title}" for name, (page, title) in _LABELS.items()]
    lines += [f"{name} std:envvar 1 {page} -" for name, page in _VARIABLES.items()]
    head = (
        "Sphinx inventory version 2",
        "Project: Ansible",
        "Version: ",
        "The remainder of this file is compressed using zlib.",
    )
    text = "".join(f"# {line}\n" for line in head)
    return text.encode() + zlib.compress("".join(f"{line}\n" for line in lines).encode())
