"""Python's numbers, weak, boolean and unsigned operands beside each other: eager, staged, compiled, and as JAX has it.

``operand_types.json`` holds the dtype and weak type of each result, recorded from JAX 0.10.2 with the functions and
operands of ``operands.py``: for each function the types that occur, and for each pair of operands a letter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operands import NAMES, code, functions, operands, pairs

import pullback.numpy as pnp
from pullback import eval_shape, jit
from pullback.core.config import enable_x64

RECORDED = json.loads((Path(__file__).parent / "operand_types.json").read_text())
FUNCTIONS = functions(pnp)
INTEGERS = {"np.int8", "np.int32"}
PYTHON = {"True", "3", "0.5", "1j"}


BY_SHAPE = {"hypot", "logaddexp", "logaddexp2", "heaviside", "gcd", "lcm"}


def _mixed(a: str, b: str) -> bool:
    """Whether one operand is weak and the other is not."""
    weak = ("3", "0.5", "1j", "weak_int", "weak_float", "weak_complex")
    return (a in weak) != (b in weak)


def differs(name: str, a: str, b: str, ours: str, theirs: str) -> bool:
    """Where the types are others than in JAX, for a reason."""
    if name in ("power", "operator.pow") and b in INTEGERS:
        return True  # JAX takes NumPy's integers for static exponents, whose dtype does not count
    if name in BY_SHAPE and ours.rstrip("*") == theirs.rstrip("*") and _mixed(a, b):
        return True  # in JAX the result is weak or not by the shapes of the operands
    return ours == "refused" and name == "arctan2" and "complex64" in theirs  # of which it gives an angle, too


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args)
    except (TypeError, ValueError):
        return None


def shown(x: Any) -> str:
    return "refused" if x is None else code(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_of_results(name: str) -> None:
    """Eager, staged with the numbers written into the program, and staged with all operands traced: as in JAX."""
    function, values, record = FUNCTIONS[name], operands(pnp), RECORDED[name]
    wrong = []
    for (a, b), letter in zip(pairs(name), record["pairs"], strict=True):
        theirs = record["types"][ord(letter) - ord("a")]
        x, y = values[a], values[b]
        eager = shown(outcome(function, x, y))
        staged = shown(outcome(eval_shape, lambda x=x, y=y: function(x, y)))
        # An integer exponent that is traced may be negative: another function, and another type for booleans.
        traced = shown(outcome(eval_shape, function, x, y)) if b not in ("3", "True") or "pow" not in name else eager
        if not eager == staged == traced:
            wrong.append(f"{a}, {b}: eager {eager}, staged {staged}, traced {traced}")
        if eager != theirs and not differs(name, a, b, eager, theirs):
            wrong.append(f"{a}, {b}: {eager}, JAX {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_results(name: str) -> None:
    """One compiled program of a sample of pairs; the operands that are numbers are written into it."""
    function, values = FUNCTIONS[name], operands(pnp)
    sample = [
        p
        for i, p in enumerate(pairs(name))
        if (i * 7919) % 11 == 0 and outcome(function, *map(values.get, p)) is not None
    ]
    inputs = {n: x for n, x in values.items() if n not in PYTHON}

    def every(given: dict[str, Any]) -> list[Any]:
        return [function(*[given.get(n, values[n]) for n in p]) for p in sample]

    for p, got, expected in zip(sample, jit(every)(inputs), every(values), strict=True):
        for g, e in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True):
            assert code(g) == code(e), p
            g, e = (np.asarray(x).astype("complex64") for x in (g, e))
            tolerance = 1e-2 if "float16" in " ".join(p) else 2e-6
            np.testing.assert_allclose(g, e, rtol=tolerance, atol=tolerance, err_msg=str(p))


COMPARISONS = [n for n in FUNCTIONS if n.removeprefix("operator.") in ("eq", "ne", "lt", "le", "gt", "ge")]
EXTREMES = (-(2**100), -(2**63) - 1, -(2**31) - 1, -129, -1, 0, 1, 7, 8, 255, 256, 300, 2**31, 2**32, 2**63, 2**64)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "int4", "uint4", "int2", "uint2"]
)
def test_integers_are_compared_by_their_values(dtype: str, x64: bool) -> None:
    """With Python's integers, on either side, and with arrays of all dtypes, weak ones too; eager and compiled."""
    with enable_x64(x64):
        if "64" in dtype and not x64:
            return
        info = pnp.iinfo(getattr(pnp, dtype))
        elements = [int(info.min), 0, 1, int(info.max)]
        x = pnp.asarray(elements, dtype=getattr(pnp, dtype))
        exact = np.array(elements, dtype=object)
        others: list[tuple[Any, Any]] = [(n, n) for n in EXTREMES]
        if len(dtype) > 5 or dtype in ("int8", "int32"):
            widths = ["int8", "uint8", "int32", "uint32"] + ["int64", "uint64"] * x64
            for other in widths:
                ends = np.iinfo(other)
                column = np.array([[ends.min], [0], [1], [ends.max]], dtype=other)
                others.append((pnp.asarray(column), column.astype(object)))
        others += [(pnp.asarray(n), n) for n in (-1, 300)] if "2" not in dtype[-1] else []
        if dtype.endswith(("nt2", "nt4")):
            others = [(a, b) for a, b in others if isinstance(a, int)]

        def every(x: Any) -> list[Any]:
            results = []
            for name in COMPARISONS:
                compare = FUNCTIONS[name]
                for other, _ in others:
                    results += [compare(x, other), compare(other, x)]
            return results

        wanted = [
            np.asarray(r).astype(bool)
            for name in COMPARISONS
            for _, other in others
            for r in (FUNCTIONS[name](exact, other), FUNCTIONS[name](other, exact))
        ]
        for results in (every(x), jit(every)(x)):
            for got, expected in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(got), np.broadcast_to(expected, got.shape))
        traced = jit(lambda x, n: [x == n, x < n, n < x])(x, 300 if "2" not in dtype[-1] else 1)
        n = 300 if "2" not in dtype[-1] else 1
        for got, expected in zip(traced, (exact == n, exact < n, exact > n), strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected.astype(bool))


def test_every_operand_has_a_name() -> None:
    assert list(operands(pnp)) == NAMES
