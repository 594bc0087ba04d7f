"""The allocator's thresholds: set once, and never over the user's own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

REPORT = "from pullback.backends.memory import keep_freed_pages; print(keep_freed_pages())"


def _report(**environment: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "PULLBACK_"))}
    run = subprocess.run(
        [sys.executable, "-c", REPORT], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    "environment",
    [{"PULLBACK_MALLOC": "system"}, {"MALLOC_TRIM_THRESHOLD_": "100000"}, {"GLIBC_TUNABLES": "glibc.malloc.check=0"}],
)
def test_the_users_settings_come_first(environment: dict[str, str]) -> None:
    assert _report(**environment) == "False"


def test_set_where_the_c_library_is_glibc() -> None:
    glibc = os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") and sys.platform == "linux" else None
    assert _report() == str(bool(glibc))
