# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx' settings of the docs site. `tools.site` copies this file beside the pages, and sets QUORUMSHIFT_VERSION."""

from __future__ import annotations

import os

project = "Quorumshift"
author = "Quorumshift contributors"
release = version = os.environ["QUORUMSHIFT_VERSION"]
language = "en"
extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
# Places in Ansible's own documentation, which is not read: tools/site/ansible_labels.py wrote them down
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/ansible/latest/", "ansible.inv")}
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
# Messages begin with a quotation, and headings of an entry may skip a level
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_title = f"Quorumshift {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"sidebar_hide_name": False}
# Commands are shell and configuration of many kinds: what no lexer is named for stays as it is
highlight_language = "none"
