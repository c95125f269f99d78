# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Views: who says what the cluster's metadata is. This is what every view keeps to.

A view is a subclass of :class:`View` whose instances can be pickled before they are used: connections are made in
`read` and `reread`, on the executor. Errors of reading are raised (:class:`ViewError`, or what the probe raises): the
job then ends with `error` and names the view; nothing that was not read is ever passed over in silence.
"""

from __future__ import annotations

import abc
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple, Union

from quorumshift_spark.normal_form import Entity

Key = Tuple[str, str]
"""(kind, key) of an entity."""


class ViewError(Exception):
    """A view cannot be read; the message says what, where and what to do."""


class Problem(NamedTuple):
    """Something that this view could not read whole, or that contradicts itself: it closes the gate as `incomplete`.

    `where`: path, offset or request; never a value. `reason`: for the operator.
    """

    where: str
    reason: str


class Statement(NamedTuple):
    """What a view says of itself when one of its parts has been read to the end.

    `state`: where it stood: {"zxid": n} as the reading began, {"offset": n (exclusive), "epoch": n}, or
    {"time_ms": n}; other facts may stand beside. `problems`: see Problem.
    """

    state: Dict[str, Any]
    problems: List[Problem]


class Absent(NamedTuple):
    """An entity that a view does not have. `at`: the change since when that may be so, {} if unknown."""

    at: Dict[str, int]


class View(abc.ABC):
    """One view. `name`: `zookeeper`, `metadata_log`, `metadata_log:<controller id>`, `broker:<id>`, `baseline:<of>`."""

    name: str
    kinds: Tuple[str, ...]
    """The kinds that it can tell about: of these, what it does not yield is absent."""

    def look(self) -> Any:
        """Called once on the driver before anything is read; may narrow `kinds` to what this one can tell about."""
        return None

    def parts(self) -> List[Any]:
        """The pieces (small, picklable) that separate tasks read; runs on the driver."""
        return [None]

    @abc.abstractmethod
    def read(self, part: Any) -> Iterator[Union[Entity, Statement]]:
        """Every entity of a part, each once over all parts, and then exactly one Statement, the last of all."""

    def reread(self, keys: Iterable[Key]) -> Tuple[Dict[Key, Union[Entity, Absent]], Statement]:
        """These keys as they are now. A view that can ask for single keys overrides this; here, all is read again."""
        wanted = set(keys)
        found: Dict[Key, Union[Entity, Absent]] = {}
        states: Dict[str, Any] = {}
        problems: List[Problem] = []
        for part in self.parts():
            for item in self.read(part):
                if isinstance(item, Statement):
                    states.update(item.state)
                    problems += item.problems
                elif (item.kind, item.key) in wanted:
                    found[(item.kind, item.key)] = item
        for key in wanted.difference(found):
            found[key] = Absent({})
        return found, Statement(states, problems)


def family(name: str) -> str:
    """`broker` of `broker:1`: the word that the table of rules knows a view by."""
    return name.partition(":")[0]
