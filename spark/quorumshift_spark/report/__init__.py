# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders a job's result as one self-contained HTML file: no network, no script. `render` is pure.

Page and style are those of the run's report. Its directory plugins/plugin_utils/report_templates must be next to the
collection's module_utils on the import path, as files or in the zip.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
from typing import Any, Iterable, Iterator, Mapping

import jinja2
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils.secrets import seal

from quorumshift_spark import result as results
from quorumshift_spark.report import story, wording

NAME = "report.html"

# (module, directory of templates): the module's loader reads them, also from a zip
_SOURCES = (
    (wording, os.path.join(os.path.dirname(wording.__file__), "templates")),
    (seal, str(pathlib.Path(seal.__file__).parents[2] / "plugin_utils" / "report_templates")),
)


def render(result: Mapping[str, Any], differences: Iterable[Mapping[str, Any]] | None = None) -> str:
    """Return the page of a result.

    :arg result: the content of result.json (result.schema.json).
    :arg differences: all rows of differences.parquet; None: those listed in the result. Each group shows its first
        ones and counts the rest.
    """
    return _templates().get_template("result.html.j2").render(story=story.build(result, differences), result=result)


def write(directory: str) -> str:
    """Write report.html (0600) next to a job's result.json and differences.parquet. Return its path.

    Raises OSError, ValueError when the result cannot be read.
    """
    with open(os.path.join(directory, results.NAME), encoding="utf-8") as file:
        result = json.load(file)
    differences = os.path.join(directory, results.DIFFERENCES)
    html = render(result, _rows(differences) if os.path.exists(differences) else None)
    path = os.path.join(directory, NAME)
    with results.replacing(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(html)
    return path


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()


@functools.lru_cache(maxsize=None)
def _templates() -> jinja2.Environment:
    """Return the templates' environment. All values are escaped; invisible characters are shown as codes."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        finalize=wording.visible,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = wording.number
    environment.filters["seconds"] = wording.seconds
    environment.filters["view"] = wording.view
    environment.filters["kind"] = wording.kind
    return environment


def _source(name: str) -> str | None:
    for module, directory in _SOURCES:
        with contextlib.suppress(OSError):
            return module.__spec__.loader.get_data(os.path.join(directory, name)).decode("utf-8")
    return None
