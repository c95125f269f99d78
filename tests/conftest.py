# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every test run shows."""

from __future__ import annotations

from typing import Any

import pytest


class NamesFailures:
    """Names a failed test at once. pytest does so at its end, which a run that is interrupted does not reach."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Print the test's id."""
        if report.failed:
            self.terminal.write_line(f"\n{report.nodeid}: {report.when} failed")


@pytest.hookimpl(trylast=True)  # once pytest has its terminal
def pytest_configure(config: Any) -> None:
    """Name failures where the results are shown, not in workers."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(NamesFailures(terminal))
