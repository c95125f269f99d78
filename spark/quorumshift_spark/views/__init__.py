# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Views: the sources of the cluster's metadata. This module is their interface.

A view is a subclass of :class:`View`, or of :class:`LiveView` if it can be read again. Its instances can be pickled:
`read` and `reread` connect on the executor. They raise :class:`ViewError`, or the probe's error, if reading fails. The
job then ends with `error` and names the view.
"""

from __future__ import annotations

import abc
import functools
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Union

import pyarrow as pa

from quorumshift_spark import normal_form as form
from quorumshift_spark.normal_form import Entity

Key = Tuple[str, str]
"""(kind, key) of an entity."""


NOT_COMPARED = "not_compared"
"""In the state of a Statement: what the part has that Apache Kafka does not, see core.gates.not_compared.Found."""


class ViewError(Exception):
    """A view cannot be read. The message says what, where and what to do."""


class Problem(NamedTuple):
    """Metadata that a view cannot read completely, or that contradicts itself. It makes the verdict `incomplete`.

    `where`: path, offset or request; never a value. `reason`: for the operator.
    """

    where: str
    reason: str


class Statement(NamedTuple):
    """The last item that reading a part of a view yields.

    `state`: the position of the view: {"zxid": n} when reading began, {"offset": n (exclusive), "epoch": n}, or
    {"time_ms": n}; it may hold further facts. `problems`: see Problem.
    """

    state: Dict[str, Any]
    problems: List[Problem]


class Absent(NamedTuple):
    """An entity that a view does not have.

    `at`: the last change that can have removed it, {} if unknown: {"offset": n} of the record that removed it, or
    {"zxid": n} of the innermost existing znode on its path. Where that is a parent, with {"under": its path, "child":
    the path of the missing child, "deletions": how many of its children were ever deleted}. Where it is the topic of a
    partition, with {"created": its czxid}.
    """

    at: Dict[str, Any]


class Shared:
    """Items that a view yields together, and that other views may yield as well: they are converted once.

    :ivar items: entities and batches of columns.PARTITIONS; `rows`: as rows, for views.source.
    """

    def __init__(self, items: List[Entity | pa.RecordBatch]) -> None:
        self.items = items
        self.rows: Any = None

    @functools.cached_property
    def by_key(self) -> Dict[Key, Entity]:
        """The entities by their keys."""
        return {(entity.kind, entity.key): entity for item in self.items for entity in entities("broker", item)}


def entities(view: str, item: Entity | pa.RecordBatch) -> Iterator[Entity]:
    """Yield an item of a view as entities: itself, or one for each row of a batch of columns.PARTITIONS."""
    if isinstance(item, pa.RecordBatch):
        yield from (partition(view, row, row["at"]) for row in item.to_pylist())
    else:
        yield item


def partition(view: str, row: Any, at: int | None) -> Entity:
    """Return the partition of a row with the fields of columns.PARTITIONS. `at`: the offset or zxid of its change."""
    values = {name: row[name] for name in form.FIELDS["partition"]}
    if family(view) == "broker":  # it leaves out what it does not show
        return form.partition(
            row["topic"], row["partition"], {n: value for n, value in values.items() if value is not None}
        )
    if view == "zookeeper":
        values = {name: value for name, value in values.items() if name not in LOG_ONLY}
    place = {} if at is None else {"zxid" if view == "zookeeper" else "offset": at}
    return form.partition(row["topic"], row["partition"], values, place)


class View(abc.ABC):
    """One view. `name`: `zookeeper`, `metadata_log`, `metadata_log:<controller id>`, `broker:<id>`,
    `controller:<id>`, `baseline:<of>`."""

    name: str
    kinds: Tuple[str, ...]
    """The kinds that it serves: an entity of these kinds that it does not yield is absent."""
    has_buckets = False
    """Whether other views may have the same rows (see quorumshift_spark.buckets)."""

    def probe(self) -> Any:
        """Check the view on the driver, once before it is read; may narrow `kinds` to those that it serves."""
        return None

    def carry_files(self) -> None:
        """Take the content of the driver's files in place of their paths, for tasks on other hosts; before `parts`."""
        return None

    def parts(self, at_once: int = 0) -> List[Any]:
        """Return the pieces (picklable) that separate tasks read; runs on the driver.

        :arg at_once: how many tasks Spark runs at once; 0 for as many as there are parts.
        """
        return [None]

    @abc.abstractmethod
    def read(self, part: Any) -> Iterator[Union[Entity, pa.RecordBatch, Shared, Statement]]:
        """Yield every entity of a part, each once over all parts, and then one Statement.

        Partitions, of which there are many, come as batches of columns.PARTITIONS.
        """

    def close(self) -> None:
        """Remove what the view keeps for its tasks."""
        return None


class LiveView(View):
    """A view of what changes while the job runs."""

    _security: Any = None

    def carry_files(self) -> None:
        """See View: the files of the options of its connection."""
        self._security = self._security and self._security.with_content()

    @abc.abstractmethod
    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Union[Entity, Absent]], Statement]:
        """Return these keys as they are now."""


LOG_ONLY = ("elr", "last_known_elr", "directories")
"""Fields of a partition that ZooKeeper does not have."""


def family(name: str) -> str:
    """Return `broker` for `broker:1`: the name of the view in the table of rules."""
    return name.partition(":")[0]
