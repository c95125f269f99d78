# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fingerprint of a cluster's data: shows whether the records of the baseline still exist unchanged.

`plan`, `batches`, `records`, `chunks`, `keys`, `coordinators`, `retention`, `findings` and `compare` are pure.
`cluster` queries Kafka; on Spark's executors, `fetch` reads stored batches, and `data` writes and compares what they
add up to; `store` keeps the baseline.
"""
