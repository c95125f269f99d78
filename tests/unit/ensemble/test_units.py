# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence that systemd runs before a server starts."""

from __future__ import annotations

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.ensemble import ensemble_cut
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.text import systemd
from ansible_collections.quorumshift.kafka.plugins.module_utils.ensemble import units


def test_the_fence_is_one_argument_whatever_the_state_directory_is(tmp_path, monkeypatch):
    """With a blank in the path, a start of the server would fail at `sh`, in the middle of a promotion."""
    monkeypatch.setattr(systemd, "drop_in", lambda service, name: str(tmp_path / f"{service}.service.d" / name))
    monkeypatch.setattr(units, "run", lambda _command: None)
    units.add_drop_in("zookeeper-3.8", "/srv/its own/50%")
    (text,) = [path.read_text() for path in tmp_path.rglob("*.conf")]
    assert text == '[Service]\nExecStartPre=+/bin/sh "/srv/its own/50%%/fence.sh"\n'
    units.remove_drop_in("zookeeper-3.8")
    assert not [*tmp_path.iterdir()]


def test_the_fence_is_of_the_unit_that_systemctl_starts():
    assert ensemble_cut.drop_in("zookeeper-3.8") == "/etc/systemd/system/zookeeper-3.8.service.d/quorumshift-fence.conf"
