"""Convolutions and windows against the values and derivatives that JAX recorded, and what the grid cannot say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from convolution_cases import CASES, RECORDED, Case, quantities, recordable

from helpers import EXHAUSTIVE

import pullback


def spread_over(cases: list[Case]) -> list[Case]:
    """One in five: eager operations are compiled one by one, which takes the time of these tests."""
    return cases if EXHAUSTIVE else cases[::5]


KNOWN = json.loads(RECORDED.read_text())["cases"]


def assert_recorded(case: Case, found: dict[str, Any]) -> None:
    recorded = KNOWN[case.name]
    assert "value" in recorded
    for name, out in found.items():
        if name not in recorded:  # JAX has no such derivative
            continue
        dtype, shape, expected = recorded[name]
        assert (str(out.dtype), list(out.shape)) == (dtype, shape), (case.name, name)
        got = np.array(recordable(out))
        scale = np.abs(got[np.isfinite(got)]).max(initial=1)
        expected = np.array(expected).reshape(got.shape)
        np.testing.assert_allclose(got, expected, rtol=3e-6, atol=1e-6 * scale, err_msg=f"{case.name}: {name}")


def in_groups() -> dict[str, list[Case]]:
    """The cases by the name of the operation, of which those of one are compiled together."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(case.name.split("(")[0].split(" ")[0], []).append(case)
    return found


GROUPS = in_groups()


@pytest.mark.parametrize("operation", GROUPS)
def test_compiled_as_recorded(operation: str) -> None:
    cases = GROUPS[operation]
    every = pullback.jit(lambda: [{k: f() for k, f in quantities(pullback, case).items()} for case in cases])
    for case, found in zip(cases, every(), strict=True):
        assert_recorded(case, found)


@pytest.mark.parametrize("case", spread_over(CASES), ids=lambda case: case.name)
def test_eager_as_recorded(case: Case) -> None:
    assert_recorded(case, {name: compute() for name, compute in quantities(pullback, case).items()})
