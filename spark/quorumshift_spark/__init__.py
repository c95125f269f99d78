# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verification of a migration on Spark: every view of a cluster's metadata in one normal form, compared by one table.

Runs on the driver and on executors. The zip of --py-files also holds the collection's `plugins/module_utils`.
"""

from __future__ import annotations

from quorumshift_spark import installed

installed.prefer_installed()  # before any module of this package imports PySpark
