# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions that contributors of other collections expect, with nox and antsibull-nox: ``nox --list``.

`make lint` and `make unit` are the checks of this checkout, with pinned tools. antsibull-nox.toml says which of these
sessions run here, and which are configured for the collection's CI and were never run.
"""

from __future__ import annotations

import sys

import nox

try:
    import antsibull_nox
except ImportError:
    print("antsibull-nox is missing beside nox: pip install nox antsibull-nox", file=sys.stderr)
    sys.exit(1)

nox.options.envdir = ".build/nox"  # the checks of this checkout leave .build out
antsibull_nox.load_antsibull_nox_toml()


@nox.session(python=False, default=False)
def make(session: nox.Session) -> None:
    """Run targets of the Makefile: nox -s make -- lint unit."""
    session.run("make", *(session.posargs or ["lint", "unit"]), external=True)


@nox.session(python=False, default=False)
def cores(session: nox.Session) -> None:
    """Run the tests that play on other releases of ansible-core: nox -s cores -- 2.16.19 2.21.5."""
    session.run(".venv/bin/python", "-m", "tools.cores", *session.posargs, external=True)


if __name__ == "__main__":
    nox.main()
