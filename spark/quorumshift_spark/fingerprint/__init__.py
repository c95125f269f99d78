# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fingerprint of a cluster's data: shows whether the records of the baseline still exist unchanged.

`plan`, `chunks`, `keys`, `groups`, `retention` and `findings` are pure; `cluster` queries Kafka, `scan` reads records
with Spark, `store` keeps the baseline in Parquet.
"""
