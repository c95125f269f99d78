# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the pictures of reports in docs/screenshots: ``python -m tools.screenshots``. Needs Chromium.

It renders recorded results of comparisons of real servers. To record results, run tests of tests/spark with
``QUORUMSHIFT_KEEP_RESULTS=DIRECTORY``. To look at any result: ``python -m tools.screenshots RESULT.json DIRECTORY``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / ".build"), str(ROOT / "spark")]
from quorumshift_spark import report

RESULTS = ROOT / "tests" / "unit" / "spark" / "report" / "results"
PICTURES = ROOT / "docs" / "screenshots"


class Picture(NamedTuple):
    """A picture of a recorded result: size in pixels, and whether the screen is dark."""

    result: str
    width: int
    height: int
    is_dark: bool = False

    @property
    def name(self) -> str:
        return f"{self.result}-{self.width}{'-dark' if self.is_dark else ''}.png"


IN_DOCS = (
    Picture("recorded_differ", 1000, 720),
    Picture("recorded_differ", 390, 820, is_dark=True),
    Picture("recorded_pass", 390, 820),
)


def main(arguments: list[str]) -> int:
    """Make the pictures of the docs, or those of one result in all sizes and colours."""
    if not arguments:
        for picture in IN_DOCS:
            _take(RESULTS / f"{picture.result}.json", picture, PICTURES)
        return 0
    result, directory = map(Path, arguments)
    for width, height in ((390, 1700), (1280, 1100)):
        for is_dark in (False, True):
            _take(result, Picture(result.stem, width, height, is_dark), directory)
    return 0


def _take(result: Path, picture: Picture, directory: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("Chromium is missing: install Debian's package chromium")
    directory.mkdir(parents=True, exist_ok=True)
    page = report.render(json.loads(result.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, "report.html")
        path.write_text(page, encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={home}/profile",
        ]
        options += [f"--window-size={picture.width},{picture.height}"]
        options += [f"--blink-settings=preferredColorScheme={0 if picture.is_dark else 1}"]
        options += [f"--screenshot={directory / picture.name}", path.as_uri()]
        subprocess.run([browser, *options], check=True, capture_output=True, timeout=120)
    print(directory / picture.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
