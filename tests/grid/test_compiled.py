"""For every row of the table of operations: compiled, it returns what it returns on the host.

Equal dtypes, shapes and weak types; values within a few units in the last place; zeros of the same sign, infinities
and NaN in the same places, also for zeros, infinities, NaN and the extremes of the dtype as operands. Rows and
dtypes of an operation are compiled together, since compiling takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pullback import make_jaxpr
from pullback.backends.compiler.client import default_device
from pullback.backends.compiler.programs import Lowered
from pullback.core import dtypes
from pullback.core.array import host_value, typeof
from pullback.core.config import enable_x64
from tests.grid.all_specs import ALL, OF_PRIMITIVES
from tests.grid.specs import LETTERS, Spec, numbered
from tests.grid.test_grid import UGLY_COMPLEX, UGLY_FLOATS, arrays, leaves
from tests.helpers import EXHAUSTIVE, spread

ROWS = numbered([s for s in ALL if EXHAUSTIVE or not s.operation.startswith("scipy.")])
ULPS = 8
"""How far the two may be apart, in units in the last place of the largest part of an operand's or result's size."""


TOGETHER = 24
"""How many cases are compiled into one program."""


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The leaves of what a function returns, compiled."""
    closed = make_jaxpr(f)(*args)
    return Lowered(closed, "f", default_device()).compile()(args)


def assert_close(got: Any, expected: Any, ulps: float, what: str, strict: bool, signed_zeros: bool) -> None:
    assert typeof(got) == typeof(expected), what
    dtype = got.dtype
    a, b = host_value(got), host_value(expected)
    if not dtypes.is_inexact(dtype):
        assert a.tobytes() == b.tobytes(), f"{what}: {a} != {b}"
        return
    wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    info = dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        scale = 1.0 if strict else np.abs(b[np.isfinite(b)]).max(initial=0)
        size = np.abs(b) if strict else np.maximum(np.abs(b), scale)
        bound = ulps * (float(info.eps) * size + float(info.smallest_normal))
    parts = [(a, b)] if wide is np.float64 else [(a.real, b.real), (a.imag, b.imag)]
    for x, y in parts:
        with np.errstate(all="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= bound)
        assert same.all(), f"{what}: {x[~same][:5]} != {y[~same][:5]} (compiled, host)"
        if strict and signed_zeros:
            zero = (x == 0) & (y == 0)
            assert (np.signbit(x) == np.signbit(y))[zero].all(), f"{what}: zeros differ in sign"


def ugly_values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 7, info.max, info.max - 1, info.min, info.min // 2], dtype)
    if dtypes.is_complex(dtype):
        return np.array(UGLY_COMPLEX, dtype)
    values = np.array(UGLY_FLOATS).astype(dtype)
    least = dtypes.finfo(dtype).smallest_normal  # the compiler's programs take what is less, and is not zero, for zero
    return np.where((values != 0) & (np.abs(values) < least), np.copysign(least, values), values).astype(dtype)


def has_ugly_point(spec: Spec) -> bool:
    return spec.ugly and spec.samples[0].shape == ()


def ugly_point(spec: Spec, letter: str) -> list[Any]:
    values = ugly_values(LETTERS[letter])
    grid = np.meshgrid(*[values] * len(spec.samples), indexing="ij") if len(spec.samples) > 1 else [values]
    return [np.ascontiguousarray(x) for x in grid]


def by_operation(rows: Sequence[Spec]) -> dict[str, list[tuple[Spec, str]]]:
    """The rows of each operation with their dtypes.

    The first row of a primitive, and those with ugly points, have all; other rows, and those of functions, which are
    made of primitives, have one, in turn.
    """
    primitives = {id(spec) for spec in OF_PRIMITIVES}
    found: dict[str, list[tuple[Spec, str]]] = {}
    for number, spec in enumerate(rows):
        others = found.setdefault(spec.operation, [])
        whole = id(spec) in primitives and (not others or has_ugly_point(spec))
        others.append((spec, "".join(spec.dtypes if whole else spread(spec.dtypes, number, 1))))
    return found


OPERATIONS = by_operation(ROWS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_compiled_is_host(operation: str) -> None:
    for letters, x64 in (("dD", True), ("hbfFisuw?", False)):
        with enable_x64(x64):
            pairs = [(spec, d) for spec, dtypes_ in OPERATIONS[operation] for d in dtypes_ if d in letters]
            cases = [(spec, d, arrays(spec.point(d)), False) for spec, d in pairs]
            cases += [
                (spec, d, arrays(ugly_point(spec, d)), True)
                for spec, d in pairs
                if has_ugly_point(spec) and d not in "hb"
            ]
            for begin in range(0, len(cases), TOGETHER):
                assert_as_on_host(cases[begin : begin + TOGETHER])


def assert_as_on_host(cases: Sequence[tuple[Spec, str, list[Any], bool]]) -> None:
    """Compare cases, compiled as one program, with the host."""

    def every_case(*flat: Any) -> list[Any]:
        operands = iter(flat)
        return [leaves(spec.function(*[next(operands) for _ in args])) for spec, _, args, _ in cases]

    got = iter(compiled(every_case, [x for _, _, args, _ in cases for x in args]))
    for spec, letter, args, ugly in cases:
        for expected in leaves(spec.function(*args)):
            what = f"{spec.name}, {letter}{', ugly' if ugly else ''}, operands {[host_value(x) for x in args]}"
            assert_close(next(got), expected, ULPS * spec.tolerance, what, ugly, spec.signed_zeros)
