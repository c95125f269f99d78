# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Update the features of a cluster in one request (KIP-584), and read from every node what became of it.

A request is no transaction: a part of it may be made and the rest refused. A request whose answer is lost may have been
made. In both cases the nodes are read again, and what they serve decides.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.admin import feature_request
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import features
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import Update, name_of
from ansible_collections.quorumshift.kafka.plugins.module_utils.formats.requests import admin_requests
from ansible_collections.quorumshift.kafka.plugins.module_utils.wire.socket_wire import WireError

UNANSWERED = "unanswered"
"""In place of the name of an error, where no answer came."""
_POLL_S = 0.2


class NotUpdated(Exception):
    """A change that was not made, or not wholly, or of which that is not known.

    :ivar errors: {feature: Kafka's name of the reason, or None for one that was accepted}
    :ivar changed: whether a level has changed
    :ivar denied: whether the principal may not do it
    """

    def __init__(self, text: str, errors: Mapping[str, str | None], changed: bool = False, denied: bool = False):
        super().__init__(text)
        self.errors = errors
        self.changed = changed
        self.denied = denied


class Updated(NamedTuple):
    """What the nodes serve after a change. `found`: of features.collect; `waited_s`: until every node served it;
    `lost`: why no answer came, '' where one did."""

    found: Dict[str, Any]
    waited_s: float
    lost: str = ""


class Updater:
    """Makes changes of features. `admin`: a ClusterAdmin or ControllersAdmin; `collect`: returns what
    features.collect does; `wait_s`: how long to wait for the nodes, in seconds."""

    def __init__(self, admin: Any, collect: Callable[[], Dict[str, Any]], wait_s: float) -> None:
        self._admin = admin
        self._collect = collect
        self._wait_s = wait_s

    def validate(self, changes: Tuple[Update, ...], downgrade: str) -> None:
        """Let the controller validate changes without making them. Raises NotUpdated, WireError."""
        error, errors = self._admin.update_features(_asked(changes, downgrade), True)
        self._require_accepted(changes, error, errors)

    def update(self, changes: Tuple[Update, ...], downgrade: str, epoch: int) -> Updated:
        """Make changes, and wait until every node serves them at an epoch after `epoch`.

        Raises NotUpdated; WireError where nothing was sent.
        """
        try:
            error, errors = self._admin.update_features(_asked(changes, downgrade), False)
        except feature_request.Unanswered as lost:
            return self._find_out(changes, str(lost))
        made = () if error else tuple(update for update in changes if not errors.get(update.feature))
        if len(made) == len(changes):
            return self.await_levels({update.feature: update.after for update in changes}, epoch, True)
        if not made:
            self._require_accepted(changes, error, errors)
        try:
            served = self.await_levels({update.feature: update.after for update in made}, epoch, True).found
            now = f"Every node serves {_format_levels(changes, served['finalized'])} at epoch {served['epoch']}"
        except NotUpdated as late:
            now = str(late)
        refused = [f"{name}: {failure}" for name, failure in sorted(errors.items()) if failure]
        raise NotUpdated(
            f"the controller made a part of the change. Made: {_format(made, 'after')}. Refused: {'; '.join(refused)}. "
            f"{now}. Correct what was refused, then run again (QS-ADMIN-013)",
            _names(changes, errors),
            changed=True,
        )

    def await_levels(self, levels: Mapping[str, int], epoch: int, changed: bool) -> Updated:
        """Wait until every node serves these levels at an epoch after `epoch`. Raises NotUpdated with `changed`."""
        found, behind, waited = self._poll(lambda seen: not features.find_behind(seen["nodes"], levels, epoch))
        if found is not None and not features.find_behind(found["nodes"], levels, epoch):
            return Updated(found, waited)
        late = "; ".join(features.find_behind(found["nodes"], levels, epoch)) if found else behind
        raise NotUpdated(
            f"the levels are set, and after {waited:.0f} s these nodes do not serve them: {late}. Check those nodes, "
            "then run again (QS-ADMIN-009)",
            {},
            changed,
        )

    def _find_out(self, changes: Tuple[Update, ...], lost: str) -> Updated:
        """Return what the nodes serve after a change whose answer was lost. Raises NotUpdated unless all of it was
        made."""
        levels = {update.feature: update.after for update in changes}

        def is_made(seen: Mapping[str, Any]) -> bool:
            return all(seen["finalized"].get(feature, 0) == level for feature, level in levels.items())

        found, error, waited = self._poll(is_made)
        if found is not None and is_made(found):
            served = self.await_levels(levels, features.NO_EPOCH, True)
            return Updated(served.found, round(waited + served.waited_s, 3), lost)
        what = "lowered" if all(update.lowers for update in changes) else "raised"
        head = f"the change was sent and its answer was lost, so levels may have been {what}: {lost}. "
        if found is None:
            raise NotUpdated(
                f"{head}They could not be read since: {error}. Run again, it reads the levels first (QS-ADMIN-014)", {}
            )
        made = tuple(update for update in changes if found["finalized"].get(update.feature, 0) == update.after)
        raise NotUpdated(
            f"{head}After {waited:.0f} s the nodes serve {_format_levels(changes, found['finalized'])} at epoch "
            f"{found['epoch']}: {'a part' if made else 'nothing'} of it was made so far. Run again, it reads the "
            "levels first (QS-ADMIN-014)",
            {update.feature: None if update in made else UNANSWERED for update in changes},
            changed=bool(made),
        )

    def _poll(self, is_done: Callable[[Dict[str, Any]], bool]) -> Tuple[Dict[str, Any] | None, str, float]:
        """Read the nodes until `is_done` or the wait ends; return (the last reading or None, the last error, seconds).
        A reading that fails is made again."""
        began = time.monotonic()
        found, error = None, ""
        while True:
            try:
                self._admin.refresh()
                found = self._collect()
            except WireError as failed:
                found, error = None, str(failed)
            waited = round(time.monotonic() - began, 3)
            if (found is not None and is_done(found)) or waited > self._wait_s:
                return found, error, waited
            time.sleep(_POLL_S)

    def _require_accepted(self, changes: Tuple[Update, ...], error: Any, errors: Mapping[str, Any]) -> None:
        """Raise NotUpdated where the controller refused a change, none of which was made."""
        failed = {name: failure for name, failure in errors.items() if failure}
        if not (error or failed):
            return
        listed = "; ".join(f"{name}: {failure}" for name, failure in sorted(failed.items())) or str(error)
        denied = any(
            refused.code == feature_request.CLUSTER_AUTHORIZATION_FAILED
            for refused in [error, *failed.values()]
            if refused
        )
        names = _names(changes, errors)
        if error and not failed:
            names = dict.fromkeys(names, error.name)
        raise NotUpdated(
            f"the controller refused the change: {listed}. Nothing was changed (QS-ADMIN-009)", names, denied=denied
        )


def _asked(changes: Tuple[Update, ...], downgrade: str) -> Dict[str, Tuple[int, int]]:
    """Return {feature: (level, upgrade type)}: a request may raise one feature and lower another."""
    lower = admin_requests.UNSAFE_DOWNGRADE if downgrade == "unsafe" else admin_requests.SAFE_DOWNGRADE
    return {update.feature: (update.after, lower if update.lowers else admin_requests.UPGRADE) for update in changes}


def _names(changes: Tuple[Update, ...], errors: Mapping[str, Any]) -> Dict[str, str | None]:
    found = {update.feature: errors.get(update.feature) for update in changes}
    return {name: failure.name if failure else None for name, failure in found.items()}


def _format(changes: Tuple[Update, ...], key: str) -> str:
    return ", ".join(f"{update.feature} {name_of(update.feature, getattr(update, key))}" for update in changes)


def _format_levels(changes: Tuple[Update, ...], finalized: Mapping[str, int]) -> str:
    names: List[str] = [update.feature for update in changes]
    return ", ".join(f"{name} {name_of(name, finalized.get(name, 0))}" for name in names)
