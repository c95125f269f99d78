# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decoded metadata records in the JSON form of Kafka's generated *JsonConverter classes, to compare with Kafka's own."""

from __future__ import annotations

import base64

from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.metadata_schemas import default_of


def kafka_json(fields, version, values):
    """`values` as Kafka prints them: fields of the version only, tagged ones only when not default, bytes in base64."""
    out = {}
    for field in fields:
        value = values[field.name]
        if field.since > version or (field.tag is not None and value == default_of(field)):
            continue
        if field.type == "[]struct" and value is not None:
            value = [kafka_json(field.fields, version, element) for element in value]
        elif field.type == "struct":
            value = kafka_json(field.fields, version, value)
        elif field.type == "bytes":
            value = base64.b64encode(value).decode()
        out[field.name] = value
    return out
