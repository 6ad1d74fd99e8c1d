"""`--share`: what continuous integration has time for, each program on one of the machines in turn."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", action="store_true")
