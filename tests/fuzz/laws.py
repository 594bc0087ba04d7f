"""What has to hold of every program: several ways to evaluate it agree, as far as rounding lets them.

How far that is, is measured: the program is run in double precision, with each result of an operation changed by
random factors as large as the rounding of the precision. What then moves far has no digits to compare; what jumps was
decided by rounding. And what fails has to fail again at other arguments near by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from pullback import jit, jvp, make_jaxpr, vjp
from pullback.core import dtypes
from pullback.core.array import ArrayImpl, typeof
from pullback.core.config import enable_x64, override
from pullback.core.jaxpr import jaxpr_as_fun
from tests.fuzz.compiler import NeedsCompiler
from tests.fuzz.program import Case, Input, Way, run
from tests.helpers import small_blocks

EPS = {"float32": 6e-8, "complex64": 6e-8, "float16": 5e-4, "bfloat16": 4e-3}
SLACK = 60
"""How many roundings an operation may make of its own, beside those of its operands."""
DISTURBANCES = 4
"""How many times a program is run with random changes."""
MORE_DISTURBANCES = 60
"""How many times, before a whole number is said to be wrong that none of the first changes."""
NEAR = 0.02
"""How far the other arguments are at which a failure has to be seen again."""
STEP = 3e-5
"""Of differences."""

UNDETERMINED = re.compile(r"primitive\('(svd|eigh?|schur|geqrf)'\)|row\('[\w.]*linalg\.(svd|eigh?)\(")
"""Operations whose vectors are determined but for signs and phases, which each precision chooses for itself."""

SECOND = frozenset((
    "derivative_tensor", "hessian", "jacfwd twice", "jacrev of grad", "hvp",
    "laplacian", "forward_laplacian", "taylor", "jet",
))  # fmt: skip
"""Kinds of instructions that take derivatives of derivatives."""

Results = list[Any]
Derived = Callable[[Case, Way, Sequence[Any]], Results]


class Failure(NamedTuple):
    """What does not hold.

    Attributes:
      law: its name.
      how: in what: "value", "type", or the type of an error.
      message: for the reader.
      expected, got: of the first result that is wrong.
    """

    law: str
    how: str
    message: str
    expected: Any = None
    got: Any = None


class Skipped(Exception):
    """A law says nothing about a program: it has no such derivative, or needs the compiler."""


# What is computed ----------------------------------------------------------------------------------------------------


def values(case: Case, way: Way, args: Sequence[Any]) -> Results:
    return run(case.program, args, way)


def _of_inexact(case: Case, way: Way, args: Sequence[Any]) -> tuple[Callable[..., Results], list[Any]]:
    """The inexact results as a function of the inexact arguments, and these."""
    where = [i for i, x in enumerate(args) if dtypes.is_inexact(x.dtype)]

    def f(*xs: Any) -> Results:
        full = list(args)
        for i, x in zip(where, xs, strict=True):
            full[i] = x
        way.count = 0
        return [y for y in run(case.program, full, way) if dtypes.is_inexact(y.dtype)]

    return f, [args[i] for i in where]


def direction(xs: Sequence[Any], seed: int) -> Results:
    """Random arrays of the types of others."""
    rng = np.random.default_rng(seed)
    out = []
    for x in xs:
        v = rng.uniform(-1, 1, x.shape)
        v = v + 1j * rng.uniform(-1, 1, x.shape) if dtypes.is_complex(x.dtype) else v
        out.append(ArrayImpl(np.asarray(v).astype(x.dtype)))
    return out


def tangents(case: Case, way: Way, args: Sequence[Any]) -> Results:
    f, xs = _of_inexact(case, way, args)
    return list(jvp(f, xs, direction(xs, 1))[1])


def cotangents(case: Case, way: Way, args: Sequence[Any]) -> Results:
    f, xs = _of_inexact(case, way, args)
    ys, pull = vjp(f, *xs)
    return list(pull(direction(ys, 2)))


def _all_of(forward: bool, reverse: bool) -> Derived:
    """Values and derivatives at once."""

    def everything(case: Case, way: Way, args: Sequence[Any]) -> Results:
        way.count = 0
        out = values(case, way, args)
        out += tangents(case, way, args) if forward else []
        return out + (cotangents(case, way, args) if reverse else [])

    return everything


def at(case: Case, derived: Derived, way: Way, args: Sequence[Any] | None = None) -> Results:
    """What is computed of a case, in the precision of the way."""
    way.count = 0
    with enable_x64(way.double), np.errstate(all="ignore"):
        return derived(case, way, case.arguments(way.double) if args is None else args)


_last: list[Any] = [None, None]
"""A case and its results in double precision."""


def remember(case: Case, results: Results) -> None:
    """Keep a case's results in double precision, which several laws ask for."""
    _last[:] = case, results


def exact_values(case: Case) -> Results:
    """The results in double precision."""
    if _last[0] is not case:
        remember(case, at(case, values, Way(double=True)))
    return list(_last[1])


# Comparison ----------------------------------------------------------------------------------------------------------


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.int64 if x.dtype.kind in "iub" else np.float64)


def _error(got: Any, expected: Any) -> float:
    """The largest difference of two arrays."""
    a, b = wide(got), wide(expected)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        return float(np.where(same, 0, np.abs(a - b)).max(initial=0)) if not same.all() else 0.0


def _size(x: Any) -> float:
    return float(np.abs(wide(x)).max(initial=0))


def narrowest(case: Case) -> float:
    """The rounding of the narrowest dtype of a case in single precision."""
    texts = [step.text for step in case.program.steps()]
    names = case.names() | {name for name in ("float16", "bfloat16") if any(name in text for text in texts)}
    return max((EPS[name] for name in names if name in EPS), default=EPS["float32"])


def movement(case: Case, derived: Derived, eps: float, exact: Results, times: int = DISTURBANCES) -> list[float]:
    """How far each result moves when every operation is changed by the rounding ``eps``."""
    moved = [0.0] * len(exact)
    for seed in range(times):
        disturbed = at(case, derived, Way(double=True, noise=eps, seed=seed))
        for k, (a, b) in enumerate(zip(disturbed, exact, strict=True)):
            far = _error(a, b)
            moved[k] = max(moved[k], far if np.isfinite(far) and _size(a) < 1e100 else np.inf)
    return moved


def compare(
    law: str, case: Case, derived: Derived, got: Results, expected: Results, eps: float, types: bool
) -> Failure | None:
    """The first result that differs by more than rounding makes it."""
    exact: Results | None = None
    moved: list[float] = []
    if len(got) != len(expected):
        return Failure(law, "type", f"{len(got)} results instead of {len(expected)}")
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        wrong = _types_differ(a, b, types)
        if wrong and law == "single" and a.shape == b.shape and {wide(a).dtype.kind, wide(b).dtype.kind} == {"i", "f"}:
            continue  # sums of unsigned integers have 64 bits in one of the two, and become floats beside signed ones
        if wrong:
            return Failure(law, "type", f"result {k}: {wrong}", b, a)
        error, discrete = _error(a, b), wide(b).dtype.kind == "i"
        if not np.isnan(error) and error <= (0 if discrete else eps * SLACK * _size(b)):
            continue
        if exact is None:
            exact = exact_values(case) if derived is values else at(case, derived, Way(double=True))
            moved = movement(case, derived, eps * 2, exact)
        if discrete and not moved[k]:
            moved = movement(case, derived, eps * 2, exact, MORE_DISTURBANCES)
        room = moved[k] * SLACK if not discrete else (np.inf if moved[k] else 0)
        if not np.isfinite(_size(exact[k])) or error <= room + eps * SLACK * max(_size(b), _size(exact[k])):
            continue
        if eps > 1e-4 and (_size(a) > 3e4 or not np.isfinite(wide(a)).all()):
            continue  # float16 overflows within an operation
        if not np.isfinite(room):
            continue
        return Failure(law, "value", f"result {k} is off by {error:.3g}; rounding moves it by {moved[k]:.3g}", b, a)
    return None


def _types_differ(a: Any, b: Any, exactly: bool) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    if exactly and typeof(a) != typeof(b):
        return f"type {typeof(a)} instead of {typeof(b)}"
    kinds = [np.asarray(wide(x)).dtype.kind for x in (a, b)]
    return "" if kinds[0] == kinds[1] else f"dtype {a.dtype} instead of {b.dtype}"


# Laws ----------------------------------------------------------------------------------------------------------------


def plain(case: Case) -> Failure | None:
    """Transformations are what they mean: loops, differences of one direction after the other, the function itself."""
    if all(step.plain is None for step in case.program.steps()):
        return None
    steps = list(case.program.steps())
    if any(UNDETERMINED.search(step.text) and "spread_complex" in step.text for step in steps) and any(
        step.kind in SECOND for step in steps
    ):
        return None  # derivatives of derivatives know of more phases
    expected = at(case, values, Way(double=True, plain=True))
    return compare("plain", case, values, exact_values(case), expected, 4e-15, types=False)


def single(case: Case) -> Failure | None:
    """Single precision is double precision, rounded."""
    if any(UNDETERMINED.search(step.text) for step in case.program.steps()):
        return None
    expected = exact_values(case)
    return compare("single", case, values, at(case, values, Way()), expected, narrowest(case), types=False)


def pending(case: Case) -> Failure | None:
    """Elements that are computed later, by blocks, have the same bits: those of values and of derivatives.

    A drawn program is computed by the module in C or by NumPy, others by both: so a session checks twice as many.
    """
    everything, way = _all_of(False, True), Way(double=True)
    for by_numpy in (crc32(case.seed.encode()) % 2 == 0,) if case.seed else (False, True):
        with small_blocks(2, 24, by_numpy):
            got = at(case, everything, way)
            with override("eager_fusion", False):
                expected = at(case, everything, way)
        for a, b in zip(got, expected, strict=True):
            if typeof(a) != typeof(b) or np.asarray(wide(a)).tobytes() != np.asarray(wide(b)).tobytes():
                name = "by NumPy" if by_numpy else "by the module in C"
                return Failure("pending", "value", f"{a} with eager_fusion {name}, {b} without", b, a)
    return None


def staged(case: Case) -> Failure | None:
    """A program that is traced and evaluated again is the same."""
    with enable_x64(True):
        args = case.arguments(double=True)
        way = Way(double=True)
        closed = make_jaxpr(lambda *xs: values(case, way, xs))(*args)
        got = jaxpr_as_fun(closed)(*args)
        return compare("staged", case, values, got, exact_values(case), 4e-15, types=True)


def transposed(case: Case) -> Failure | None:
    """Reverse mode is the transpose of forward mode."""
    way = Way(double=True)

    def products(case: Case, way: Way, args: Sequence[Any]) -> Results:
        """u J v by each mode."""
        f, xs = _of_inexact(case, way, args)
        v = direction(xs, 1)
        ys, along = jvp(f, xs, v)
        u = direction(ys, 2)
        back = vjp(f, *xs)[1](u)
        inner = lambda left, right: sum(
            (np.asarray(a) * np.asarray(b)).sum().real for a, b in zip(left, right, strict=True)
        )
        return [np.asarray(inner(u, along), np.float64), np.asarray(inner(back, v), np.float64)]

    forward, reverse = at(case, products, way)
    if abs(forward - reverse) <= 1e-11 * (1 + abs(forward)):
        return None
    moved = movement(case, products, 4e-15, [forward, reverse])
    if not abs(forward - reverse) > SLACK * max(moved) + 1e-9 * abs(forward):
        return None
    return Failure(
        "transposed", "value", f"u J v is {forward} in forward mode and {reverse} in reverse", forward, reverse
    )


def differences(case: Case) -> Failure | None:
    """Derivatives are those of differences, where the program is smooth."""
    if not all(step.smooth for step in case.program.steps()):
        return None
    way = Way(double=True)
    with enable_x64(True):
        args = case.arguments(double=True)
        f, xs = _of_inexact(case, way, args)
    v = direction(xs, 1)

    def beside(h: float) -> list[Any]:
        with enable_x64(True), np.errstate(all="ignore"):
            return [wide(y) for y in f(*(x + h * t for x, t in zip(xs, v, strict=True)))]

    if any(step.kind in ("custom_vjp",) for step in case.program.steps()) and not _has_forward(case):
        return None
    exact = [wide(y) for y in at(case, tangents, way)]
    right, left = beside(STEP), beside(-STEP)
    found = [(a - b) / (2 * STEP) for a, b in zip(right, left, strict=True)]
    for k, (a, b) in enumerate(zip(exact, found, strict=True)):
        error = _error(a, b)
        if error <= 1e-6 * max(_size(b), 1):
            continue
        doubt = _doubt(beside, k, b, right[k], left[k])
        if not error > doubt + 1e-5 * _size(b):
            continue
        moved = (
            movement(case, tangents, 1e-10, exact)[k] + movement(case, _inexact_values, 1e-14, beside(0.0))[k] / STEP
        )
        if not error > 10 * moved + doubt:
            continue
        return Failure("differences", "value", f"the derivative of result {k} is off by {error:.3g}", b, a)
    return None


def _inexact_values(case: Case, way: Way, args: Sequence[Any]) -> Results:
    return [y for y in values(case, way, args) if dtypes.is_inexact(y.dtype)]


def _has_forward(case: Case) -> bool:
    try:
        at(case, tangents, Way(double=True))
    except Exception:
        return False
    return True


def _doubt(beside: Callable[[float], list[Any]], k: int, found: Any, right: Any, left: Any) -> float:
    """How wrong differences may be: by what they change with the step, and infinitely at kinks and jumps."""
    middle = beside(0.0)[k]
    finer_right, finer_left = beside(STEP / 4)[k], beside(-STEP / 4)[k]
    finer = (finer_right - finer_left) / (STEP / 2)
    bend = float(np.abs(right - 2 * middle + left).max(initial=0)) / STEP
    finer_bend = float(np.abs(finer_right - 2 * middle + finer_left).max(initial=0)) / (STEP / 4)
    if not finer_bend <= 0.5 * bend + 1e-7 * (1 + float(np.abs(found).max(initial=0))):
        return np.inf  # a smooth function bends in proportion to the step
    return 10 * _error(finer, found)


def compiled(case: Case, double: bool = False, modes: tuple[bool, bool] = (True, True)) -> Failure | None:
    """A compiled program returns what it returns eagerly, of the same types; and so do its derivatives."""
    way = Way(double=double)
    for forward, reverse in dict.fromkeys([modes, (modes[0], False), (False, modes[1]), (False, False)]):
        derived = _all_of(forward, reverse)
        try:
            expected = at(case, derived, way)
        except Exception:
            if forward or reverse:
                continue  # there is no such derivative
            raise
        got = at(case, lambda case, way, args, run=derived: jit(lambda *xs: run(case, way, xs))(*args), way)
        return compare("compiled", case, derived, got, expected, 4e-15 if double else narrowest(case), types=True)
    return None


Law = Callable[[Case], Failure | None]


COMPILED: tuple[Law, ...] = tuple(
    partial(compiled, double=double, modes=modes)
    for modes in ((False, False), (True, False), (False, True))
    for double in (False, True)
)
"""A program's values, alone or with one kind of derivative, in each precision: the compiler takes most of the time."""


def chosen(number: int) -> tuple[Law, ...]:
    """The laws that an eager program is checked by: all of values, and one of the others."""
    return plain, (single, differences, transposed, single, staged, differences, pending)[number % 7]


BY_NAME = {law.__name__: law for law in (plain, single, staged, transposed, differences, pending)}
"""The laws of eager programs."""


def of_refusal(case: Case) -> Failure | None:
    """What the plain form does, the other does too."""
    at(case, values, Way(double=True, plain=True))
    try:
        at(case, values, Way(double=True))
    except Exception as error:
        return Failure("refused", type(error).__name__, f"{type(error).__name__}: {error}")
    return None


def broken(law: Law, case: Case) -> Failure | None:
    """A failure of a law, an error included; None if it holds, or says nothing."""
    try:
        return law(case)
    except (Skipped, NeedsCompiler):
        return None
    except Exception as error:
        name = getattr(law, "__name__", "compiled")
        if expected_of(error):  # of a branch that is not taken in double precision; or of what is left out elsewhere
            return None
        return Failure(name, type(error).__name__, f"{type(error).__name__}: {error}")


UNDIFFERENTIABLE = (
    "NotDifferentiableError",
    "MissingRuleError",
    "PreaccumulationError",
    "CustomRuleError",
    "NotLinearError",
)


def expected_of(error: Exception) -> bool:
    """Whether an error says that there is no such derivative."""
    name = type(error).__name__
    if name == "MissingRuleError":  # not one of a lowering, or of a batch rule
        return re.search(r"has no (jvp|transpose) rule", str(error)) is not None
    return name in UNDIFFERENTIABLE


def persists(law: Law, case: Case, how: str) -> bool:
    """Whether a failure is seen at other arguments too, near by."""
    again = 0
    for k in range(3):
        rng = np.random.default_rng(k)
        moved = tuple(
            Input((np.asarray(x.values) * (1 + NEAR * rng.uniform(-1, 1, np.shape(x.values)))).tolist(), x.dtype)
            if x.dtype in EPS
            else x
            for x in case.inputs
        )
        failure = broken(law, replace(case, inputs=moved))
        again += failure is not None and failure.how == how
    return again >= 2
