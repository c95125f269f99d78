# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the archive for `spark-submit --py-files`: this package and the parts of the collection that it imports.

python spark/quorumshift_spark/package.py quorumshift_spark.zip
"""

from __future__ import annotations

import os
import pathlib
import sys
import zipfile

_HERE = pathlib.Path(__file__).resolve().parent
_COLLECTION = pathlib.PurePosixPath("ansible_collections/quorumshift/kafka")
_SUFFIXES = (".py", ".json", ".css", ".js", ".html", ".j2")
_TIME = (1980, 1, 1, 0, 0, 0)  # constant, so that the same files give the same archive


def build(path: str, spark: pathlib.Path = _HERE, collection: pathlib.Path = _HERE.parents[1]) -> None:
    """Write the archive to `path` atomically. Raises OSError."""
    trees = {pathlib.PurePosixPath(spark.name): spark}
    for part in ("plugins/module_utils", "plugins/plugin_utils/report_templates"):
        trees[_COLLECTION / part] = collection / part
    files = {}
    for prefix, tree in trees.items():
        for file in tree.rglob("*"):
            if file.suffix in _SUFFIXES and "__pycache__" not in file.parts:
                files[prefix / file.relative_to(tree).as_posix()] = file
    # Python imports a package without __init__.py from a zip only if the directory has its own entry
    directories = {parent for name in files for parent in name.parents if parent.name}
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(directories):
            archive.writestr(zipfile.ZipInfo(f"{name}/", _TIME), b"")
        for name in sorted(files):
            entry = zipfile.ZipInfo(str(name), _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name].read_bytes())
    os.replace(path + ".part", path)


if __name__ == "__main__":
    build(sys.argv[1])
