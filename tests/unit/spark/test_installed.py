# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spark's archives are dropped where the same PySpark is installed, and nowhere else."""

from __future__ import annotations

import sys

import pytest
from quorumshift_spark import installed


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A directory of installed packages, after Spark's archives in sys.path."""
    here = tmp_path / "site-packages"
    for name in ("pyspark", "py4j"):
        (here / name).mkdir(parents=True)
        (here / name / "__init__.py").touch()
    lib = here / "pyspark" / "python" / "lib"
    (tmp_path / "link").symlink_to(here)  # Spark gives the jar by its real path
    jar = tmp_path / "link" / "pyspark" / "jars" / "spark-core.jar"
    archives = [lib / "pyspark.zip", lib / "py4j-src.zip", jar]
    monkeypatch.setattr(sys, "path", ["/job", *map(str, archives), str(here), "/other"])
    monkeypatch.setattr(sys, "path_importer_cache", {f"{archives[0]}/pyspark": None, "/other": None})
    return here


def test_the_installed_package_is_preferred(packages):
    installed.prefer_installed()
    assert sys.path == ["/job", str(packages), "/other"]
    assert "/other" in sys.path_importer_cache and not [path for path in sys.path_importer_cache if ".zip" in path]
    installed.prefer_installed()
    assert sys.path == ["/job", str(packages), "/other"]


@pytest.mark.parametrize("missing", ["pyspark", "py4j"])
def test_archives_stay_where_a_package_is_not_installed(packages, missing):
    (packages / missing / "__init__.py").unlink()
    if missing == "py4j":
        (packages / missing).rmdir()
    before = list(sys.path)
    installed.prefer_installed()
    assert sys.path == before


def test_archives_stay_where_another_pyspark_is_installed(packages, tmp_path):
    """SPARK_HOME is of another release than the PySpark of this Python."""
    home = tmp_path / "opt" / "spark"
    sys.path[1:4] = [str(home / "python" / "lib" / "pyspark.zip"), str(home / "jars" / "spark-core.jar")]
    before = list(sys.path)
    installed.prefer_installed()
    assert sys.path == before
