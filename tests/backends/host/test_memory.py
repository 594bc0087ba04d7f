"""The allocator's thresholds: set once, and never over the user's own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_GLIBC = os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") and sys.platform == "linux" else None
REPORT = "from pullback.backends.host.memory import keep_freed_pages; print(keep_freed_pages())"


def _run(program: str, **environment: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "PULLBACK_"))}
    run = subprocess.run(
        [sys.executable, "-c", program], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def _report(**environment: str) -> str:
    return _run(REPORT, **environment)


@pytest.mark.parametrize(
    "environment",
    [{"PULLBACK_MALLOC": "system"}, {"MALLOC_TRIM_THRESHOLD_": "100000"}, {"GLIBC_TUNABLES": "glibc.malloc.check=0"}],
)
def test_the_users_settings_come_first(environment: dict[str, str]) -> None:
    assert _report(**environment) == "False"


def test_set_where_the_c_library_is_glibc() -> None:
    assert _report() == str(bool(_GLIBC))


FAULTS = """
import resource
import numpy as np
import pullback.backends

def step():
    arrays = [np.ones(3 << 20, np.uint8) for _ in range(20)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

step()
before = faults()
for _ in range(5):
    step()
print((faults() - before) // 5)
"""


@pytest.mark.skipif(_GLIBC is None, reason="the settings are those of glibc")
def test_a_repeated_step_gets_no_new_pages() -> None:
    returned_at_once = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    assert int(_run(FAULTS)) < 100 < int(_run(FAULTS, **returned_at_once))
