# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job's result as one HTML file that needs nothing beside it: no network, no script. `render` is pure.

Its page and style are those of the run's report (plugins/plugin_utils/report_templates): that directory has to be on
the import path next to the collection's module_utils, as files or in the zip.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import Any, Iterable, Iterator, Mapping

import jinja2
import pyarrow.parquet as pq
from ansible_collections.quorumshift.kafka.plugins.module_utils import seal

from quorumshift_spark import result as results
from quorumshift_spark.report import story, wording

NAME = "report.html"

# Read by the loader of a module that stands beside them: a zip's directories are no packages with resources.
_PLACES = (
    (wording, os.path.join(os.path.dirname(wording.__file__), "templates")),
    (seal, os.path.join(os.path.dirname(os.path.dirname(seal.__file__)), "plugin_utils", "report_templates")),
)


def render(result: Mapping[str, Any], differences: Iterable[Mapping[str, Any]] | None = None) -> str:
    """Return the page of a result.

    :arg result: what result.json holds (result.schema.json).
    :arg differences: all of them, as in differences.parquet; None: those that the result itself lists. They may be
        many: each group shows its first ones and counts the rest.
    """
    return _templates().get_template("result.html.j2").render(story=story.tell(result, differences), result=result)


def write(directory: str) -> str:
    """Write report.html (0600) beside the result.json and differences.parquet of a job; returns its path.

    Raises OSError, ValueError where there is no result that can be read.
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
    """Everything that a template shows is escaped, and what cannot be seen in it made visible."""
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
    for module, directory in _PLACES:
        with contextlib.suppress(OSError):
            return module.__spec__.loader.get_data(os.path.join(directory, name)).decode("utf-8")
    return None
