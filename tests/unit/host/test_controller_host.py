# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of paths and created. Users, groups and units: tests/system/e2e/test_cp_ansible.py."""

from __future__ import annotations

import getpass
import os
import pwd
import stat

import pytest
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.admin import controller_host as core
from ansible_collections.quorumshift.kafka.plugins.module_utils.host import controller_host

ME = pwd.getpwuid(os.geteuid())


def wanted(root):
    return core.Wanted(
        user=ME.pw_name,
        group="quorumshift-none",
        start=str(root / "bin" / "kafka-server-start"),
        service="quorumshift-none",
        config_file=str(root / "conf" / "server.properties"),
        log_file=str(root / "log" / "server.log"),
        log_dir=str(root / "lib" / "controller" / "data"),
        environment={},
        files=[str(root / "key.jks")],
    )


def test_a_directory_and_those_above_it_are_created_for_the_user(tmp_path):
    path = tmp_path / "a" / "b" / "c"
    controller_host._create(str(path), ME)
    for created in (path, path.parent, path.parent.parent):
        found = created.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o750, ME.pw_uid)


def test_what_is_read(tmp_path):
    (tmp_path / "conf").write_text("")
    (tmp_path / "log").mkdir()
    (tmp_path / "key.jks").write_text("")
    (tmp_path / "lib").symlink_to(tmp_path / "nowhere")
    given = wanted(tmp_path)
    found = controller_host.read(given)
    paths = {os.path.relpath(path, tmp_path): (there["kind"], there["may"]) for path, there in found["paths"].items()}
    assert paths == {
        "conf": (core.FILE, True),
        "log": (core.DIRECTORY, True),
        "lib/controller/data": (core.MISSING, False),
        "key.jks": (core.FILE, True),
    }
    assert found["paths"][given.files[0]]["owner"] == getpass.getuser()
    assert found["user"]["uid"] == ME.pw_uid and found["gid"] is None and not found["has_start"]


@pytest.mark.parametrize(("mode", "may"), [(0o755, False), (0o757, True), (0o756, False)])
def test_a_user_who_does_not_exist_has_what_every_user_has(tmp_path, mode, may):
    tmp_path.chmod(mode)
    assert controller_host._path(str(tmp_path), "w", "")["may"] is may


def test_a_link_to_nothing_is_no_place_for_a_directory(tmp_path):
    (tmp_path / "data").symlink_to(tmp_path / "gone")
    assert controller_host._path(str(tmp_path / "data"), "w", ME.pw_name)["kind"] == core.OTHER
    (tmp_path / "file").write_text("")
    assert controller_host._path(str(tmp_path / "file" / "x"), "w", ME.pw_name)["kind"] == core.OTHER


def test_a_command_that_fails_is_quoted():
    with pytest.raises(controller_host.PreparationError, match="groupadd --system  failed: "):
        controller_host._call("groupadd", "--system", "")


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "x.service"
    controller_host._write(str(path), "a\n")
    controller_host._write(str(path), "b\n")
    assert path.read_text() == "b\n" and stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["x.service"]
