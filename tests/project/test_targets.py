"""The modules in C are compiled for other systems and processors, where ``ziglang`` is installed."""

from __future__ import annotations

import importlib.util

import pytest

from tests.project import targets

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="there is no compiler for other systems"),
]


@pytest.mark.parametrize("target", targets.TARGETS)
def test_the_modules_compile(target: str) -> None:
    assert targets.compile_for(target) == ""


def test_what_microsoft_s_compiler_knows() -> None:
    assert targets.compile_for("x86_64-windows-gnu", [*targets.OPTIONS, "-DPULLBACK_MICROSOFT=1"]) == ""


def test_what_does_not_compile_is_reported() -> None:
    assert "error" in targets.compile_for("aarch64-macos", [*targets.OPTIONS, "-DLOCK_FREE=unknown", "-DSLOT=1"])
