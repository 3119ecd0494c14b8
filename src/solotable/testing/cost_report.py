"""`--solotable-cost`: a table of what each test cost, also with workers of pytest-xdist."""

from __future__ import annotations

from typing import Any

import pytest

PROPERTY = "solotable_cost"
_HEAD = ("RCU", "WCU", "requests", "scans")


class CostReport:
    """Collects the costs that tests report, and prints them."""

    def __init__(self) -> None:
        self._costs: dict[str, list[Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the cost from a test report, also of a worker."""
        for name, value in report.user_properties:
            if name == PROPERTY:
                self._costs[report.nodeid] = value  # type: ignore[assignment]  # a list, made in the plugin

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, most expensive test first."""
        if not self._costs:
            return
        terminalreporter.section("solotable: cost of the tests")
        terminalreporter.line("".join(f"{title:>10}" for title in _HEAD) + "  test")
        by_cost = sorted(self._costs.items(), key=lambda each: (-each[1][0] - each[1][1], each[0]))
        sums = [sum(costs[column] for costs in self._costs.values()) for column in range(len(_HEAD))]
        for test, costs in [*by_cost, (f"{len(by_cost)} tests", sums)]:
            terminalreporter.line("".join(f"{cost:>10g}" for cost in costs) + f"  {test}")
