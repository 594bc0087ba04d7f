"""Values, tangents and gradients of operations agree with those that JAX recorded, eager and compiled."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.core.config import enable_x64
from tests.helpers import EXHAUSTIVE
from tests.recorded.cases import FAMILIES, Case, encoded, known, quantities

CASES: dict[str, list[Case]] = {name: import_module(f"tests.recorded.{name}").CASES for name in FAMILIES}
KNOWN = {name: known(name) for name in FAMILIES}
OPERATIONS = [(family, name) for family in FAMILIES for name in dict.fromkeys(c.operation for c in CASES[family])]
COMPILED_ONE_BY_ONE = {name for family, name in OPERATIONS if family == "convolution"} | {
    "rng_bit_generator", "sparsify_jit",
}  # fmt: skip
"""Operations that are compiled when they are eager too, which takes a tenth of a second for each case."""
DEAR = ("random_rest", "random_keys", "scipy_linalg")
"""The families whose programs hold loops of loops, which take a second to compile each."""
DEAREST = "_in_double"
"""How operations end of which the usual run compiles none: with their derivatives they take ten seconds and more."""


def with_types(case: Case) -> Any:
    return enable_x64() if case.x64 else nullcontext()


def assert_recorded(family: str, case: Case, found: dict[str, list[Any]]) -> None:
    recorded = KNOWN[family][case.name]
    least = max(np.abs(np.nan_to_num(x, posinf=0, neginf=0)).max(initial=1e-30) for _, x in recorded["value"])
    for quantity, outs in found.items():
        for out, (type_name, numbers) in zip(outs, recorded[quantity], strict=True):
            got_type, got = encoded(out)
            assert got_type == type_name, (case.name, quantity)
            expected = np.array(numbers)
            rtol = 1e-8 if got_type.startswith(("float64", "complex128")) else 3e-6
            rtol = 1e-2 if got_type.startswith(("bfloat16", "float16")) else rtol
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=least)
            np.testing.assert_allclose(
                got, expected, rtol=10 * rtol, atol=rtol * scale, err_msg=f"{case.name}: {quantity}"
            )


def computed(family: str, case: Case) -> dict[str, list[Any]]:
    """The quantities that are recorded: JAX lacks some derivatives, or its own are not finite."""
    recorded = KNOWN[family][case.name]
    return {name: compute() for name, compute in quantities(pullback, case).items() if name in recorded}


def test_ten_cases_of_each_operation() -> None:
    for family, cases in CASES.items():
        counted: Counter[str] = Counter()
        for case in cases:
            counted[case.operation] += case.points
        assert min(counted.values()) >= 10, (family, counted.most_common()[-5:])
        assert KNOWN[family].keys() == {case.name for case in cases}


@pytest.mark.parametrize(("family", "operation"), OPERATIONS)
def test_eager(family: str, operation: str) -> None:
    cases = [case for case in CASES[family] if case.operation == operation]
    for case in cases[::5] if operation in COMPILED_ONE_BY_ONE and not EXHAUSTIVE else cases:
        with with_types(case):
            assert_recorded(family, case, computed(family, case))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "operation"), [(f, name) for f, name in OPERATIONS if EXHAUSTIVE or not name.endswith(DEAREST)]
)
def test_compiled(family: str, operation: str) -> None:
    """All cases of an operation as one program."""
    cases = [case for case in CASES[family] if case.operation == operation]
    if not EXHAUSTIVE and operation not in COMPILED_ONE_BY_ONE:
        cases = cases[:1] if family in DEAR else cases[::5]
    with with_types(cases[0]):
        every = pullback.jit(lambda: [computed(family, case) for case in cases])
        for case, found in zip(cases, every(), strict=True):
            assert_recorded(family, case, found)
