"""A plug-in of pytest: ``pytest -p pullback.compat.pytest`` runs tests written for JAX on Pullback."""

from typing import Any

from pullback.compat.running import report_text
from pullback.compat.serving import VERSION, install, missing_names


def pytest_load_initial_conftests() -> None:
    install()


def pytest_report_header() -> str:
    return f"jax {VERSION}: served by Pullback"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if missing_names():
        terminalreporter.write(report_text())
