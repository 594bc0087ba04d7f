"""A function is the same function eager, compiled, while its program is being compiled, and exported.

That is a law over all public functions, with operands of each kind of dtype (``ways.py``): values, dtypes, weak
types, shapes and shardings of results agree, and what is refused in one way is refused in the others. The usual run
takes a selection of calls that does not change from run to run, PULLBACK_EXHAUSTIVE=1 all of them.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import export, jit, tree
from pullback.backends.compiler import background
from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.config import override
from pullback.errors import ArgumentError, ConcretizationTypeError
from pullback.scipy.special.relations import RELATIONS
from tests.helpers import EXHAUSTIVE
from tests.laws.ways import MODULES, Call, calls

ASK_FOR_VALUES = {
    "numpy.array_repr", "numpy.array_str", "numpy.einsum_path", "numpy.fromiter", "numpy.from_dlpack",
    "numpy.trim_zeros", "scipy.signal.choose_conv_method",
}  # fmt: skip
"""Functions that need elements or memory, return something else than arrays, and refuse traced operands."""

PYTHON_NUMBERS_ARE_NO_OPERANDS = ("lax.",)
"""Where a Python number beside an array of another dtype is taken for one of that dtype, and a traced one refused."""
REFUSED_BY_VALUE = {
    (f"scipy.signal.{name}", "bool")
    for name in (
        "bilinear", "deconvolve", "lfilter", "lfilter_zi", "lp2bp", "lp2bs", "lp2hp", "lp2lp", "normalize", "residue",
        "residuez", "ss2zpk", "tf2ss", "tf2sos", "tf2zpk", "vectorstrength",
    )
}  # fmt: skip
"""Calls with a leading coefficient or a period of zero, which is refused or left out where it is known."""
DESIGNS = {
    f"scipy.signal.{name}"
    for name in (
        "bessel",
        "butter",
        "cheby1",
        "cheby2",
        "ellip",
        "ellipap",
        "firwin",
        "iirfilter",
        "iirnotch",
        "iirpeak",
    )
}
"""Functions that refuse known frequencies out of range; results of traced ones are NaN."""
ALWAYS = ("float16", "int8", "uint32", "uint32 beside int8", "a Python float")
"""Rows of which the types are compared in each run; of the others one in three."""

COUNTS = {"lax": 2000, "nn": 300, "numpy": 4500, "numpy.linalg": 400, "scipy.special": 700, "scipy.signal": 200}
"""So many calls are in the catalogue at least."""


def typed(out: Any) -> list[Any]:
    """The types of the results; None for what is no array."""
    return [(x.shape, x.dtype, x.weak_type) if isinstance(x, Array) else None for x in tree.leaves(out)]


def staged_types(call: Call) -> list[Any]:
    out = pullback.eval_shape(call, call.operands)
    return [(x.shape, x.dtype, x.weak_type) for x in tree.leaves(out)]


def same_types(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(a is None or a == b for a, b in zip(first, second, strict=True))


def attempt(run: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return run(), None
    except Exception as error:
        return None, error


def is_compared(call: Call) -> bool:
    mixed = "beside" in call.row and "Python" in call.row
    return call.name not in ASK_FOR_VALUES and not (mixed and call.name.startswith(PYTHON_NUMBERS_ARE_NO_OPERANDS))


LONG = {"random": 8, "scipy.special": 8, "scipy.linalg": 2, "scipy.integrate": 2}
"""Modules whose programs take long to compile, of which so many times fewer calls are chosen."""


def is_chosen(call: Call, of: int) -> bool:
    """Whether a call is in the selection, one in so many."""
    of *= LONG.get(call.name.rpartition(".")[0], 1)
    return EXHAUSTIVE or zlib.crc32(f"{call.name} {call.row}".encode()) % of == 0


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("module", MODULES)
def test_types_of_results_eager_and_staged(module: str) -> None:
    found, count = [], 0
    for call in filter(is_compared, calls(module)):
        count += 1
        if call.row not in ALWAYS and not is_chosen(call, 3):
            continue
        eager, refusal = attempt(lambda call=call: typed(call(call.operands)))
        staged, error = attempt(lambda call=call: staged_types(call))
        if isinstance(error, ConcretizationTypeError):
            continue
        if (call.name, call.row) in REFUSED_BY_VALUE:
            continue
        if call.name in DESIGNS and isinstance(refusal, ArgumentError) and "must be" in str(refusal):
            continue
        if (refusal is None) != (error is None):
            found.append(f"{call.name} of {call.row}: eager {eager or refusal!r}, staged {staged or error!r}")
        elif refusal is None and not same_types(eager, staged):
            found.append(f"{call.name} of {call.row}: eager {eager}, staged {staged}")
    assert not found, "\n".join(found)
    assert count >= COUNTS.get(module, 10)


# Values --------------------------------------------------------------------------------------------------------------

UNDETERMINED = {
    "numpy.linalg.lstsq": "the residual of equations that are solved is what rounding leaves",
    "numpy.polydiv": "so is a remainder of zero, and what a leading zero divides",
    "numpy.polyfit": "so is a coefficient of zero",
    "scipy.linalg.expm_frechet": "of 4,000,000,000 it is infinite or NaN",
    "scipy.integrate.cubature": "an eager result has the regions, that of a program has none",
}
"""Functions of which results are not determined to rounding, or differ for a reason."""
LOST = {
    "scipy.signal.ss2tf": "coefficients are differences of products of such numbers",
    "scipy.signal.zoom_fft": "angles are thousands of millions of turns",
}
"""Functions whose results in single precision have no digits for operands of 4,000,000,000; known ones are doubles."""
BY_PYTHON = {
    *(f"scipy.signal.{name}" for name in ("argrelextrema", "argrelmax", "argrelmin", "find_peaks", "peak_prominences")),
    *(f"scipy.signal.{name}" for name in ("peak_widths", "tf2sos", "zpk2sos")),
    *(f"scipy.special.{name.partition('.')[0]}" for name, r in RELATIONS.items() if r.formula is None),
}
"""Functions whose programs call Python, so that they cannot be exported: there is an error that says so."""


def difference(name: str, first: Any, second: Any) -> str | None:
    """How two results differ in value, type, weakness or sharding; None if they do not."""
    if not isinstance(first, Array):
        return None
    if not same_types([typed(first)[0]], [typed(second)[0]]):
        return f"{typed(first)}, {typed(second)}"
    if first.sharding != second.sharding:
        return f"{first.sharding}, {second.sharding}"
    if dtypes.is_key(first.dtype):
        first, second = pullback.random.key_data(first), pullback.random.key_data(second)
    a, b = np.asarray(first), np.asarray(second)
    if not dtypes.is_inexact(first.dtype):
        return None if np.array_equal(a, b) else f"{a}, {b}"
    tolerance = max(min(16 * float(jnp.finfo(first.dtype).eps), 0.5), 1e-5)
    wide = np.complex128 if dtypes.is_complex(first.dtype) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    size = np.abs(a[np.isfinite(a)]).max(initial=0)
    close = np.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True)
    return None if close else f"{first.dtype} {a}, {b}"


def differences(call: Call, expected: Any, found: Any) -> list[str]:
    pairs = zip(tree.leaves(expected), tree.leaves(found), strict=True)
    return [f"{call.name} of {call.row}: {d}" for pair in pairs if (d := difference(call.name, *pair)) is not None]


def accepted(module: str, of: int) -> list[tuple[Call, Any]]:
    """The chosen calls that return arrays, also while they are traced, and their results eager."""
    out = []
    for call in filter(is_compared, calls(module)):
        if call.name in LOST and "uint32" in call.row:
            continue
        if not is_chosen(call, of) or call.name in UNDETERMINED or (call.name, call.row) in REFUSED_BY_VALUE:
            continue
        result, refusal = attempt(lambda call=call: call(call.operands))
        if refusal is None and attempt(lambda call=call: staged_types(call))[1] is None:
            out.append((call, result))
    return out


def arrays_of(out: Any) -> list[Any]:
    return [x for x in tree.leaves(out) if isinstance(x, Array)]


def together(chosen: list[Call]) -> Callable[[Any], list[Any]]:
    """One function of the operands of several calls, of which the compiler makes one program."""
    return lambda operands: [
        [x for x in tree.leaves(call(given)) if isinstance(x, Array)]
        for call, given in zip(chosen, operands, strict=True)
    ]


def compare(found: list[tuple[Call, Any]], run: Callable[[Callable[..., Any], Any], Any], size: int) -> list[str]:
    """The differences between eager results and those of programs of several calls each."""
    wrong = []
    for start in range(0, len(found), size):
        part = found[start : start + size]
        chosen = [call for call, _ in part]
        results = run(together(chosen), [call.operands for call in chosen])
        for (call, expected), result in zip(part, results, strict=True):
            wrong += differences(call, arrays_of(expected), result)
    return wrong


@pytest.mark.parametrize("module", MODULES)
def test_values_eager_and_compiled(module: str) -> None:
    wrong = compare(accepted(module, 24), lambda f, operands: jit(f)(operands), 24)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", MODULES)
def test_values_while_programs_are_being_compiled(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compilations wait for ever, so that each call is answered operation by operation."""
    monkeypatch.setattr(background, "submit", lambda job: True)
    with override("tiered", "on"):
        wrong = compare(accepted(module, 12), lambda f, operands: jit(f)(operands), 12)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", MODULES)
def test_values_of_exported_functions(module: str) -> None:
    def run(f: Callable[..., Any], operands: Any) -> Any:
        return export.deserialize(export.export(jit(f))(operands).serialize()).call(operands)

    exported = [(call, result) for call, result in accepted(module, 60) if call.name not in BY_PYTHON]
    wrong = compare(exported, run, 12)
    assert not wrong, "\n".join(wrong)
