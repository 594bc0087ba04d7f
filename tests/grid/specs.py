"""The table of operations: one row for each, from which all the checks of the grid are generated.

A row has the operation, a reference in NumPy, and shapes of sample operands. ``R(2, 3)`` is a sample of distinct
real numbers (complex ones where the dtype is complex) between ``lo`` and ``hi``; ``K(...)`` holds given values, for
indices, masks and the like.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg
import scipy.special

from pullback.core import dtypes as core_dtypes
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ew
from pullback.primitives import reductions as red
from pullback.primitives import remainders
from pullback.primitives.arrays import indexing, scatter, shapes, slicing, sorting
from pullback.primitives.arrays.indexing import GatherDimensionNumbers, GatherScatterMode
from pullback.primitives.linalg import contraction, determinants, lu
from pullback.primitives.linalg import lapack as linalg
from pullback.primitives.power_series import sum_of_products_p
from pullback.primitives.random import bits as random_bits
from pullback.primitives.random import ciphers, philox
from pullback.primitives.random import rejection as random_rejection
from pullback.primitives.special import others as special

NumpyArray = np.ndarray[Any, Any]

LETTERS: dict[str, np.dtype[Any]] = {
    "h": np.dtype(np.float16),
    "b": np.dtype(ml_dtypes.bfloat16),
    "f": np.dtype(np.float32),
    "d": np.dtype(np.float64),
    "F": np.dtype(np.complex64),
    "D": np.dtype(np.complex128),
    "i": np.dtype(np.int32),
    "s": np.dtype(np.int8),
    "u": np.dtype(np.uint8),
    "w": np.dtype(np.uint32),
    "?": np.dtype(np.bool_),
}
FLOAT = "hbf"
INEXACT = FLOAT + "F"
REAL = FLOAT + "iu"
NUMBER = REAL + "F"
ANY = NUMBER + "?"
BITS = "isuw?"
INTEGER = "isuw"

# Samples -----------------------------------------------------------------------------------------------------------


class R:
    """A sample of distinct numbers between ``lo`` and ``hi``, in the dtype for which a row is being checked."""

    def __init__(self, *shape: int, lo: float = -2, hi: float = 2, sort: bool = False) -> None:
        self.shape, self.lo, self.hi, self.sort = shape, lo, hi, sort

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        rng = np.random.default_rng([seed, len(self.shape), *self.shape])
        if dtype.kind == "c":
            parts = [self._real(rng) for _ in range(2)]
            return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
        if dtype.kind in "iu":
            low, high = math.floor(self.lo * 3), math.ceil(self.hi * 3)
            drawn = np.asarray(rng.integers(low, high + 1, self.shape))
            return (np.maximum(drawn, 0) if dtype.kind == "u" else drawn).astype(dtype)
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, self.shape)).astype(dtype)
        return self._real(rng).astype(dtype)

    def _real(self, rng: Any) -> NumpyArray:
        count = math.prod(self.shape)
        steps = (rng.permutation(count) + rng.uniform(0.25, 0.75, count)) / max(count, 1)
        values = self.lo + (self.hi - self.lo) * (np.sort(steps) if self.sort else steps)
        return np.asarray(values.reshape(self.shape))


class Dominant(R):
    """A sample of matrices whose diagonals outweigh the rest, so that triangles of them are far from singular."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(np.result_type(dtype, np.float32), seed)
        return (x / 4 + 2 * np.eye(self.shape[-1])).astype(dtype)


class Pivoted(R):
    """A sample of matrices whose rows a decomposition puts in another order, all their pivots being large."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(np.result_type(dtype, np.float32), seed)
        return np.roll(x / 4 + 2 * np.eye(*self.shape[-2:]), 1, -2).astype(dtype)


class PositiveDefinite(R):
    """A sample of Hermitian matrices with positive eigenvalues."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed)
        return (x @ x.swapaxes(-1, -2).conj() + np.eye(self.shape[-1])).astype(dtype)


class K:
    """Given values, in a dtype of their own; other samples hold them in another order, unless they must keep it."""

    def __init__(self, values: Any, dtype: Any = None, fixed: bool = False) -> None:
        self.values = np.asarray(values, dtype)
        if self.values.dtype == np.int64:
            self.values = self.values.astype(np.int32)
        self.shape, self.fixed = self.values.shape, fixed

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        return self.values if self.fixed else np.roll(self.values, seed)


Sample = R | K


@dataclass
class Spec:
    """A row: an operation, and everything that is needed to check it.

    Attributes:
      name: of the row, for reports; it starts with that of the operation.
      operation: the name of the primitive, or of the function of ``pullback.numpy``.
      function: takes as many arrays as there are samples; returns a tree of arrays.
      reference: the same function of NumPy arrays; None if there is none.
      samples: the operands.
      dtypes: for which it is compared with the reference: see ``LETTERS``.
      derivative: for which dtypes, in double precision, the derivatives are checked; a part of "dD".
      differentiable: the operands with respect to which they are checked; None for all inexact ones.
      ugly: whether to compare with the reference on zeros, infinities, NaN and the extremes of the dtype too.
      second: whether second derivatives are checked.
      tolerance: of the comparison with the reference, as a multiple of the usual one.
      loops: whether ``vmap`` is a loop.
      signed_zeros: whether the sign of a zero is determined: of max(0, -0) NumPy returns one or the other, by dtype.
    """

    name: str
    operation: str
    function: Callable[..., Any]
    reference: Callable[..., Any] | None
    samples: tuple[Sample, ...]
    dtypes: str = "f"
    derivative: str = "d"
    differentiable: tuple[int, ...] | None = None
    ugly: bool = False
    second: bool = True
    tolerance: float = 1
    exact_dtype: bool = field(default=True)
    signed_zeros: bool = True
    loops: bool = True

    def __repr__(self) -> str:
        return self.name

    def point(self, letter: str, seed: int = 0) -> list[NumpyArray]:
        """Sample operands in a dtype."""
        return [s.draw(LETTERS[letter], 7 * seed + i) for i, s in enumerate(self.samples)]


def derivative_of(dtypes: str) -> str:
    return "".join(d for d, wanted in (("d", set(dtypes) & set("hbfd")), ("D", set(dtypes) & set("FD"))) if wanted)


# Rows --------------------------------------------------------------------------------------------------------------


def row(
    operation: Primitive,
    reference: Any,
    *samples: Sample,
    params: dict[str, Any] | None = None,
    label: str = "",
    **options: Any,
) -> Spec:
    """A row for a primitive with given parameters."""
    params = params or {}
    options.setdefault("dtypes", "f")
    options.setdefault("derivative", derivative_of(options["dtypes"]))
    shown = label or ",".join(str(v) for v in params.values())[:60]
    name = f"{operation.name}({'x'.join(str(s.shape) for s in samples)}{';' + shown if shown else ''})"
    return Spec(name, operation.name, partial(operation.bind, **params), reference, samples, **options)


def unary(
    p: Primitive, reference: Any, dtypes: str = INEXACT, lo: float = -2, hi: float = 2, **options: Any
) -> list[Spec]:
    """Rows for an operation on each element."""
    options = {"ugly": True, "dtypes": dtypes, **options}
    return [row(p, reference, R(*shape, lo=lo, hi=hi), **options) for shape in ((), (2, 3))]


def binary(
    p: Primitive,
    reference: Any,
    dtypes: str = INEXACT,
    lo: float = -2,
    hi: float = 2,
    right: tuple[float, float] | None = None,
    **options: Any,
) -> list[Spec]:
    """Rows for an operation on each pair of elements, of equal and of broadcast shapes."""
    options = {"ugly": True, "dtypes": dtypes, **options}
    low, high = right or (lo, hi)
    shape_pairs: list[Any] = [((), ()), ((2, 3), (2, 3)), ((3,), (2, 1)), ((), (2,)), ((1, 3), (3,))]
    return [row(p, reference, R(*a, lo=lo, hi=hi), R(*b, lo=low, hi=high), **options) for a, b in shape_pairs]


def xla_div(x: Any, y: Any) -> Any:
    """The quotient towards zero; of an integer by zero all bits set; minus the smallest integer is itself."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    info = np.iinfo(x.dtype)
    x, y = np.broadcast_arrays(x, y)
    flat = [
        (info.max if info.min == 0 else -1) if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    ]
    return np.array(flat, np.int64).astype(x.dtype).reshape(x.shape)


def xla_rem(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y))).astype(x.dtype)


def xla_shift(operation: Any, far: Any) -> Any:
    def shift(x: Any, y: Any) -> Any:
        width = x.dtype.itemsize * 8
        x, y = np.broadcast_arrays(x, y)
        inside = (y >= 0) & (y < width)
        return np.where(inside, operation(x, np.where(inside, y, 0).astype(y.dtype)), far(x)).astype(x.dtype)

    return shift


def logical_right(x: Any, y: Any) -> Any:
    bits = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(x.view(bits), y.astype(bits)).view(x.dtype)


def arithmetic_right(x: Any, y: Any) -> Any:
    """The highest bit is repeated, whether the type has a sign or not."""
    signed = np.dtype(f"i{x.dtype.itemsize}")
    shift = xla_shift(np.right_shift, lambda x: np.where(x < 0, -1, 0))
    return shift(x.view(signed), np.where(y < x.dtype.itemsize * 8, y, -1).astype(signed)).view(x.dtype)


def complex_sign(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.where(np.isnan(x), x, np.where(x == 0, x, np.sign(x))).astype(x.dtype)
    return np.where(x == 0, x, x / np.where(x == 0, 1, np.abs(x)))


def leading_zeros(x: Any) -> Any:
    width = x.dtype.itemsize * 8
    bits = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    return np.array([width - int(b).bit_length() for b in bits.ravel()]).astype(x.dtype).reshape(x.shape)


def share(at_least: Any, x: Any, y: Any) -> Any:
    """How much of the extreme of two numbers is the first one."""
    first, second = (at_least(a, b) | np.isnan(a) for a, b in ((x, y), (y, x)))
    return np.where(first & second, 0.5, first).astype(x.dtype)


def weighted_products(scale: float) -> Any:
    return lambda a, b, c, d: (a * b + c * d) * np.asarray(scale).astype(a.dtype)


def widen(f: Any) -> Any:
    return lambda *xs: f(*(np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64) for x in xs))


def moment(x: NumpyArray) -> NumpyArray:
    """The integral of t**2 exp(x t) from 0 to 1, by Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    times = (nodes + 1) / 2
    return np.asarray(np.exp(x[..., None] * times) @ (weights * times**2 / 2))


ELEMENTWISE = [
    *unary(ew.neg_p, np.negative, NUMBER),
    *unary(ew.exp_p, np.exp),
    *unary(ew.exp2_p, np.exp2, FLOAT),
    *unary(ew.expm1_p, np.expm1),
    *unary(ew.log_p, np.log, lo=0.1),
    *unary(ew.log1p_p, np.log1p, lo=-0.5),
    *unary(ew.sqrt_p, np.sqrt, lo=0.1),
    *unary(ew.rsqrt_p, lambda x: 1 / np.sqrt(x), lo=0.1, ugly=False),
    *unary(ew.cbrt_p, np.cbrt, FLOAT),
    *unary(ew.logistic_p, lambda x: 1 / (1 + np.exp(-x)), ugly=False),
    *unary(ew.square_p, np.square, NUMBER),
    *unary(ew.one_minus_square_p, lambda x: (1 + x) * (1 - x), NUMBER),
    *unary(ew.sin_p, np.sin),
    *unary(ew.cos_p, np.cos),
    *unary(ew.tan_p, np.tan, lo=-1, hi=1),
    *unary(ew.asin_p, np.arcsin, lo=-0.9, hi=0.9),
    *unary(ew.acos_p, np.arccos, lo=-0.9, hi=0.9),
    *unary(ew.atan_p, np.arctan, hi=0.8, lo=-0.8),
    *unary(ew.sinh_p, np.sinh),
    *unary(ew.cosh_p, np.cosh),
    *unary(ew.tanh_p, np.tanh, lo=-1, hi=1),
    *unary(ew.asinh_p, np.arcsinh, lo=-0.9, hi=0.9),
    *unary(ew.acosh_p, np.arccosh, lo=1.1, hi=3),
    *unary(ew.atanh_p, np.arctanh, lo=-0.9, hi=0.9),
    *unary(ew.erf_p, widen(scipy.special.erf), FLOAT),
    *unary(ew.erfc_p, widen(scipy.special.erfc), FLOAT),
    *unary(ew.erf_inv_p, widen(scipy.special.erfinv), FLOAT, lo=-0.9, hi=0.9),
    *unary(ew.lgamma_p, widen(scipy.special.gammaln), FLOAT, lo=0.2, hi=4, ugly=False),
    *unary(ew.digamma_p, widen(scipy.special.digamma), FLOAT, lo=0.2, hi=4, ugly=False),
    *unary(ew.floor_p, np.floor, FLOAT),
    *unary(ew.ceil_p, np.ceil, FLOAT),
    *unary(ew.round_p, np.rint, FLOAT),
    *unary(ew.sign_p, complex_sign, NUMBER, ugly=False),
    *unary(ew.is_finite_p, np.isfinite),
    *unary(ew.real_p, np.real, "F"),
    *unary(ew.imag_p, np.imag, "F"),
    *unary(ew.conj_p, np.conj, "F"),
    *unary(ew.abs_p, np.abs, NUMBER, ugly=False),
    *unary(ew.not_p, np.invert, BITS),
    *unary(ew.copy_p, lambda x: x, ANY),
    *unary(ew.once_p, lambda x: x, INEXACT),
    *unary(ew.stop_gradient_p, lambda x: x, ANY, derivative=""),
    *unary(ew.population_count_p, lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype), INTEGER),
    *unary(ew.clz_p, leading_zeros, INTEGER),
    *binary(ew.add_p, np.add, ANY),
    *binary(ew.sub_p, np.subtract, NUMBER),
    *binary(ew.mul_p, np.multiply, ANY),
    *(
        row(sum_of_products_p, weighted_products(scale), *samples, params={"scale": scale}, dtypes=INEXACT)
        for scale, samples in (
            (1, [R(2, 3)] * 4),
            (3, [R()] * 4),
            (-0.5, [R(2, 3), R(3), R(), R(2, 3)]),
            (2, [R(3), R(), R(3), R(2, 1)]),
        )
    ),
    *binary(ew.div_p, xla_div, REAL + "s", right=(0.5, 2)),
    *binary(ew.div_p, np.divide, "F", ugly=False),
    *binary(ew.pow_p, np.power, INEXACT, lo=0.2, ugly=False),
    *binary(ew.hypot_p, np.hypot, FLOAT),
    *binary(ew.logaddexp_p, np.logaddexp, FLOAT),
    *binary(ew.atan2_p, np.arctan2, FLOAT),
    row(ew.inverse_p, lambda x, y: x / (x**2 + y**2), R(2, 3, lo=0.3), R(3), dtypes=FLOAT, tolerance=4),
    *binary(ew.rem_p, xla_rem, REAL, lo=0.1, hi=5, right=(1.1, 2)),
    *binary(remainders.floor_rem_p, np.remainder, FLOAT, lo=0.1, hi=5, right=(1.1, 2)),
    *binary(remainders.floor_div_p, widen(np.floor_divide), FLOAT, lo=0.1, hi=5, right=(1.1, 2)),
    *binary(ew.max_p, np.maximum, ANY, signed_zeros=False),
    *binary(ew.min_p, np.minimum, ANY, signed_zeros=False),
    *binary(ew.max_share_p, partial(share, np.greater_equal), "fF", derivative=""),
    *binary(ew.min_share_p, partial(share, np.less_equal), "fF", derivative=""),
    *binary(ew.nextafter_p, np.nextafter, "hf", derivative=""),
    *binary(ew.eq_p, np.equal, ANY),
    *binary(ew.ne_p, np.not_equal, ANY),
    *binary(ew.lt_p, np.less, REAL),
    *binary(ew.le_p, np.less_equal, REAL),
    *binary(ew.gt_p, np.greater, REAL),
    *binary(ew.ge_p, np.greater_equal, REAL),
    *binary(ew.and_p, np.bitwise_and, BITS),
    *binary(ew.or_p, np.bitwise_or, BITS),
    *binary(ew.xor_p, np.bitwise_xor, BITS),
    *binary(ew.gcd_p, np.gcd, INTEGER, ugly=False),
    *binary(ew.complex_p, lambda x, y: x + 1j * y, "hf", ugly=False),
    *binary(ew.shift_left_p, xla_shift(np.left_shift, np.zeros_like), INTEGER),
    *binary(ew.shift_right_logical_p, xla_shift(logical_right, np.zeros_like), INTEGER),
    *binary(ew.shift_right_arithmetic_p, arithmetic_right, INTEGER),
    *binary(special.xlogy_p, widen(scipy.special.xlogy), lo=0.2, ugly=False),
    *binary(special.xlog1py_p, widen(scipy.special.xlog1py), lo=-0.8, ugly=False),
    row(
        special.quotient_p,
        lambda x, y: x / y**2,
        R(2, 3),
        R(3, lo=0.3),
        params={"power": 2},
        dtypes=INEXACT,
        tolerance=4,
    ),
    *(
        row(special.exprel_derivative_p, moment, R(2, 3, lo=lo, hi=hi), params={"order": 2}, dtypes=FLOAT)
        for lo, hi in ((-2, 2), (-12, 12))
    ),
    row(ew.add_any_p, np.add, R(2, 3), R(2, 3), dtypes=INEXACT),
    row(ew.add_any_p, np.add, R(), R(), dtypes=INEXACT),
    row(
        ew.polygamma_p,
        widen(scipy.special.polygamma),
        K([1.0, 2.0], np.float32, fixed=True),
        R(2, lo=0.5, hi=4),
        differentiable=(1,),
        derivative="",
    ),
    *(
        row(
            ew.integer_pow_p,
            partial(lambda x, y: np.power(x, y), y=y),
            R(2, 3, lo=0.3),
            params={"y": y},
            dtypes=INEXACT,
        )
        for y in (-3, -1, 0, 1, 2, 3, 4, 7)
    ),
    row(ew.integer_pow_p, lambda x: x**3, R(2, 3), params={"y": 3}, dtypes="iu"),
    row(ew.pow_p, np.power, R(3, lo=0), R(3, lo=0), dtypes="iu", derivative=""),
    *(
        row(
            ew.pow_derivative_p,
            reference,
            R(2, 3, lo=0.3),
            R(3),
            params={"by_x": k, "by_y": n},
            dtypes=INEXACT,
            tolerance=8,
        )
        for k, n, reference in (
            (1, 0, lambda x, y: y * x ** (y - 1)),
            (0, 1, lambda x, y: np.log(x) * x**y),
            (1, 1, lambda x, y: (1 + y * np.log(x)) * x ** (y - 1)),
            (2, 1, lambda x, y: (2 * y - 1 + y * (y - 1) * np.log(x)) * x ** (y - 2)),
        )
    ),
    *(
        row(
            ew.clamp_p, lambda a, x, b: np.clip(x, a, b), R(*a, lo=-2, hi=-1), R(2, 3), R(*b, lo=1, hi=1.5), dtypes=REAL
        )
        for a, b in (((), ()), ((2, 3), (2, 3)), ((3,), ()))
    ),
    *(
        row(ew.select_n_p, lambda w, x, y: np.where(w, y, x), K(w), R(2, 3), R(*s), dtypes=ANY)
        for w, s in (([[True, False, True], [False, False, True]], (2, 3)), (True, (2, 3)), ([[True], [False]], (3,)))
    ),
    row(ew.select_n_p, lambda w, *xs: np.choose(w, xs), K([2, 0, 1]), R(3), R(3), R(3), dtypes=ANY),
    *(
        row(
            ew.convert_element_type_p,
            partial(lambda x, d: np.real(x).astype(d) if d.kind != "c" else x.astype(d), d=LETTERS[d]),
            R(2, 3),
            params={"new_dtype": LETTERS[d], "weak_type": False},
            dtypes=dtypes,
            derivative=derivative,
        )
        for d, dtypes, derivative in (
            ("f", "fiuF?", ""),
            ("d", "d", "dD"),
            ("F", "fiuF?", ""),
            ("D", "D", "dD"),
            ("i", ANY, "dD"),
            ("h", REAL, ""),
            ("b", REAL, ""),
            ("u", "iu?", ""),
        )
    ),
    row(
        ew.convert_element_type_p,
        lambda x: np.clip(np.trunc(x), 0, 255).astype(np.uint8),
        R(2, 3, hi=300),
        params={"new_dtype": LETTERS["u"], "weak_type": False},
        label="saturating",
    ),
    row(
        ew.convert_element_type_p,
        lambda x: x != 0,
        R(2, 3),
        params={"new_dtype": LETTERS["?"], "weak_type": False},
        dtypes=REAL,
    ),
    row(
        ew.bitcast_convert_type_p,
        lambda x: x.view(np.int32),
        R(2, 3),
        params={"new_dtype": LETTERS["i"]},
        derivative="",
    ),
]


def reduction(p: Primitive, reference: Any, dtypes: str, **options: Any) -> list[Spec]:
    """Rows for a reduction, over each set of axes."""
    return [
        row(
            p,
            partial(lambda x, a: reference(x, axis=a), a=axes),
            R(*shape, lo=0.3),
            params={"axes": axes},
            dtypes=dtypes,
            **options,
        )
        for shape, axes in (
            ((3,), (0,)),
            ((2, 3), (0,)),
            ((2, 3), (1,)),
            ((2, 3), (0, 1)),
            ((2, 3, 2), (0, 2)),
            ((1, 3), (0,)),
        )
    ]


def cumulative(p: Primitive, reference: Any, dtypes: str, **options: Any) -> list[Spec]:
    """Rows for a cumulative operation along each axis, both ways."""

    def run(x: Any, axis: int, reverse: bool) -> Any:
        return np.flip(reference(np.flip(x, axis), axis=axis), axis) if reverse else reference(x, axis=axis)

    return [
        row(
            p,
            partial(run, axis=axis, reverse=reverse),
            R(*shape),
            params={"axis": axis, "reverse": reverse},
            dtypes=dtypes,
            **options,
        )
        for shape, axis in (((4,), 0), ((3, 2), 0), ((2, 3), 1))
        for reverse in (False, True)
    ]


def same_dtype(f: Any) -> Any:
    return lambda x, axis: f(x, axis=axis, dtype=x.dtype)


def recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    a, b = np.broadcast_arrays(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0))
    order = range(len(b) - 1, -1, -1) if reverse else range(len(b))
    y, out = np.zeros_like(b[0]), np.zeros_like(b)
    for k in order:
        y = out[k] = a[k] * y + b[k]
    return np.moveaxis(out, 0, axis)


REDUCTIONS = [
    *reduction(red.reduce_sum_p, same_dtype(np.sum), NUMBER),
    *reduction(red.reduce_prod_p, same_dtype(np.prod), NUMBER),
    *reduction(red.reduce_max_p, np.max, REAL + "?"),
    *reduction(red.reduce_min_p, np.min, REAL + "?"),
    *reduction(red.norm_p, lambda x, axis: np.sqrt(np.sum(np.abs(x) ** 2, axis)), INEXACT),
    *reduction(red.reduce_and_p, np.bitwise_and.reduce, BITS),
    *reduction(red.reduce_or_p, np.bitwise_or.reduce, BITS),
    *reduction(red.reduce_xor_p, np.bitwise_xor.reduce, BITS),
    *(
        row(
            p,
            partial(lambda x, f, a: f(x, a).astype(np.int32), f=f, a=axis),
            R(2, 3),
            params={"axes": (axis,), "index_dtype": LETTERS["i"]},
            dtypes=REAL,
        )
        for p, f in ((red.argmax_p, np.argmax), (red.argmin_p, np.argmin))
        for axis in (0, 1)
    ),
    *cumulative(red.cumsum_p, same_dtype(np.cumsum), NUMBER),
    *cumulative(red.cumprod_p, same_dtype(np.cumprod), NUMBER),
    *cumulative(red.cummax_p, np.maximum.accumulate, REAL),
    *cumulative(red.cummin_p, np.minimum.accumulate, REAL),
    *cumulative(red.cumlogsumexp_p, np.logaddexp.accumulate, FLOAT),
    *(
        row(
            red.linear_recurrence_p,
            partial(recurrence, axis=axis, reverse=reverse),
            R(*a),
            R(*b),
            params={"axis": axis, "reverse": reverse},
            dtypes=INEXACT,
        )
        for a, b, axis in (((4,), (4,), 0), ((3, 2), (3, 2), 0), ((1, 3), (2, 3), 1))
        for reverse in (False, True)
    ),
]


def broadcast(x: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    spread = [1] * len(shape)
    for n, d in zip(x.shape, dims, strict=True):
        spread[d] = n
    return np.broadcast_to(x.reshape(spread), shape)


def padded(x: Any, value: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    for axis, (lo, hi, inner) in enumerate(config):
        n = x.shape[axis]
        out = np.full((*x.shape[:axis], n + max(n - 1, 0) * inner, *x.shape[axis + 1 :]), value, x.dtype)
        out[(slice(None),) * axis + (slice(None, None, inner + 1),)] = x
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(lo, 0), max(hi, 0))
        out = np.pad(out, widths, constant_values=value)
        x = np.take(out, range(max(-lo, 0), out.shape[axis] - max(-hi, 0)), axis)
    return x


def sliced(x: Any, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


SHAPES = [
    *(
        row(
            shapes.broadcast_in_dim_p,
            partial(broadcast, shape=shape, dims=dims),
            R(*s),
            params={"shape": shape, "broadcast_dimensions": dims},
            dtypes=ANY,
        )
        for s, shape, dims in (
            ((), (2, 3), ()),
            ((3,), (2, 3), (1,)),
            ((2,), (2, 3), (0,)),
            ((2, 1), (2, 3), (0, 1)),
            ((2, 3), (2, 2, 3), (0, 2)),
            ((1,), (1, 2), (0,)),
        )
    ),
    *(
        row(shapes.reshape_p, partial(np.reshape, shape=to), R(*s), params={"new_sizes": to}, dtypes=ANY)
        for s, to in (((2, 3), (6,)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((1,), ()), ((2, 3), (1, 2, 1, 3)))
    ),
    *(
        row(shapes.squeeze_p, partial(np.squeeze, axis=axes), R(*s), params={"dimensions": axes}, dtypes=ANY)
        for s, axes in (((1, 3), (0,)), ((2, 1), (1,)), ((1, 2, 1), (0, 2)), ((1,), (0,)))
    ),
    *(
        row(
            shapes.transpose_p, partial(np.transpose, axes=order), R(2, 3, 2), params={"permutation": order}, dtypes=ANY
        )
        for order in ((1, 0, 2), (2, 0, 1), (0, 2, 1))
    ),
    *(
        row(slicing.slice_p, partial(sliced, **p), R(*s), params=p, dtypes=ANY)
        for s, p in (
            ((5,), {"start_indices": (1,), "limit_indices": (4,), "strides": (1,)}),
            ((5,), {"start_indices": (0,), "limit_indices": (5,), "strides": (2,)}),
            ((3, 4), {"start_indices": (1, 0), "limit_indices": (3, 4), "strides": (1, 3)}),
            ((3,), {"start_indices": (1,), "limit_indices": (1,), "strides": (1,)}),
        )
    ),
    *(
        row(slicing.pad_p, partial(padded, config=c), R(*s), R(), params={"padding_config": c}, dtypes=NUMBER)
        for s, c in (
            ((3,), ((1, 2, 0),)),
            ((3,), ((0, 0, 2),)),
            ((3,), ((-1, 1, 0),)),
            ((2, 3), ((1, 0, 1), (-1, -1, 0))),
            ((3,), ((-2, 1, 1),)),
        )
    ),
    *(
        row(
            slicing.concatenate_p,
            partial(lambda *xs, axis: np.concatenate(xs, axis), axis=axis),
            *(R(*s) for s in ss),
            params={"dimension": axis},
            dtypes=ANY,
        )
        for axis, ss in ((0, [(2,), (3,)]), (1, [(2, 1), (2, 3)]), (0, [(1, 2), (3, 2), (1, 2)]))
    ),
    *(
        row(
            slicing.stack_p,
            partial(lambda *xs, axis: np.stack(xs, axis), axis=axis),
            *(R(*s) for s in ss),
            params={"dimension": axis},
            dtypes=ANY,
        )
        for axis, ss in ((0, [(), ()]), (0, [(2,), (2,)]), (1, [(2,), (2,), (2,)]), (1, [(2, 3), (2, 3)]))
    ),
    *(
        row(
            slicing.unstack_p,
            partial(lambda x, axis: list(np.moveaxis(x, axis, 0)), axis=axis),
            R(*s),
            params={"dimension": axis},
            dtypes=ANY,
        )
        for axis, s in ((0, (3,)), (0, (2, 3)), (1, (2, 3)))
    ),
    *(
        row(slicing.rev_p, partial(np.flip, axis=axes), R(*s), params={"dimensions": axes}, dtypes=ANY)
        for s, axes in (((4,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)))
    ),
    *(
        row(
            slicing.iota_p,
            partial(lambda d, s, a: broadcast(np.arange(s[a]), s, (a,)).astype(LETTERS[d]), d=d, s=s, a=a),
            params={"dtype": LETTERS[d], "shape": s, "dimension": a},
        )
        for d, s, a in (("i", (4,), 0), ("f", (2, 3), 1), ("u", (2, 3), 0), ("F", (3,), 0))
    ),
]


def dot(x: Any, y: Any, dims: Any) -> Any:
    (xc, yc), (xb, yb) = dims
    names = iter("abcdefghijklmnop")
    xs = [next(names) for _ in x.shape]
    ys = [next(names) for _ in y.shape]
    for i, j in (*zip(xc, yc, strict=True), *zip(xb, yb, strict=True)):
        ys[j] = xs[i]
    out = [xs[i] for i in xb] + [n for i, n in enumerate(xs) if i not in (*xb, *xc)]
    out += [n for i, n in enumerate(ys) if i not in (*yb, *yc)]
    return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)


CONTRACTIONS = [
    row(
        contraction.dot_general_p,
        partial(dot, dims=d),
        R(*a),
        R(*b),
        params={"dimension_numbers": d},
        dtypes=NUMBER,
        tolerance=4,
    )
    for a, b, d in (
        ((3,), (3,), (((0,), (0,)), ((), ()))),
        ((2, 3), (3, 2), (((1,), (0,)), ((), ()))),
        ((2, 3), (3,), (((1,), (0,)), ((), ()))),
        ((3,), (3, 2), (((0,), (0,)), ((), ()))),
        ((2, 3), (4, 3), (((1,), (1,)), ((), ()))),
        ((3, 2), (3, 4), (((0,), (0,)), ((), ()))),
        ((2, 3), (2, 3), (((0, 1), (0, 1)), ((), ()))),
        ((2, 3), (3, 2), (((0, 1), (1, 0)), ((), ()))),
        ((2, 2, 3), (2, 3, 2), (((2,), (1,)), ((0,), (0,)))),
        ((2, 3), (2, 3), (((1,), (1,)), ((0,), (0,)))),
        ((2,), (3,), (((), ()), ((), ()))),
        ((2, 3, 2), (3, 2, 2), (((0,), (1,)), ((1,), (0,)))),
        ((), (2,), (((), ()), ((), ()))),
    )
]


def clamped(starts: Any, shape: Any, sizes: Any) -> tuple[slice, ...]:
    firsts = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(f, f + size) for f, size in zip(firsts, sizes, strict=True))


def dynamic_slice(x: Any, *starts: Any, sizes: Any) -> Any:
    return x[clamped(starts, x.shape, sizes)]


def dynamic_update(x: Any, update: Any, *starts: Any) -> Any:
    out = x.copy()
    out[clamped(starts, x.shape, update.shape)] = update
    return out


def take_rows(x: Any, indices: Any, fill: Any, clip: bool) -> Any:
    """x[indices[:, 0]] with its modes for indices out of range."""
    flat = indices[:, 0]
    inside = (flat >= 0) & (flat < len(x))
    taken = x[np.clip(flat, 0, len(x) - 1)]
    return taken if clip else np.where(inside.reshape(-1, *[1] * (x.ndim - 1)), taken, np.asarray(fill, x.dtype))


def put_rows(combine: Any, clip: bool) -> Any:
    def put(x: Any, indices: Any, updates: Any) -> Any:
        out = x.copy()
        for k, i in enumerate(indices[:, 0]):
            if clip or 0 <= i < len(x):
                i = min(max(i, 0), len(x) - 1)
                out[i] = combine(out[i], updates[k])
        return out

    return put


MODES = GatherScatterMode
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
ELEMENTS = GatherDimensionNumbers((), (0,), (0,))


def gather_params(numbers: Any, sizes: Any, mode: Any, fill: Any = None) -> dict[str, Any]:
    return {
        "dimension_numbers": numbers,
        "slice_sizes": sizes,
        "mode": mode,
        "fill_value": fill,
        "indices_are_sorted": False,
        "unique_indices": False,
    }


def scatters(p: Primitive, combine: Any, **options: Any) -> Iterator[Spec]:
    """Rows for a scatter: of elements, of rows, with repeated indices, and indices out of range."""
    for shape, updates, windows, indices, mode in (
        ((4,), (3,), (), [[2], [0], [1]], MODES.FILL_OR_DROP),
        ((4,), (3,), (), [[2], [0], [2]], MODES.FILL_OR_DROP),
        ((3, 4), (2, 4), (1,), [[2], [0]], MODES.CLIP),
        ((3, 2), (3, 2), (1,), [[5], [0], [-1]], MODES.FILL_OR_DROP),
        ((4,), (3,), (), [[7], [0], [1]], MODES.CLIP),
    ):
        params = {
            "dimension_numbers": scatter.ScatterDimensionNumbers(windows, (0,), (0,)),
            "mode": mode,
            "indices_are_sorted": False,
            "unique_indices": False,
        }
        reference = put_rows(combine, mode is MODES.CLIP)
        yield row(
            p,
            reference,
            R(*shape),
            K(indices),
            R(*updates, lo=0.5),
            params=params,
            label=f"{indices},{mode}",
            **options,
        )


INDEXING = [
    *(
        row(
            indexing.dynamic_slice_p,
            partial(dynamic_slice, sizes=sizes),
            R(*s),
            *(K(i) for i in starts),
            params={"slice_sizes": sizes},
            dtypes=ANY,
        )
        for s, sizes, starts in (((5,), (2,), [1]), ((5,), (2,), [4]), ((5,), (3,), [-2]), ((3, 4), (2, 3), [1, 1]))
    ),
    *(
        row(
            indexing.dynamic_update_slice_p,
            dynamic_update,
            R(*s),
            R(*u),
            *(K(i) for i in starts),
            dtypes=ANY,
            label=str(starts),
        )
        for s, u, starts in (((5,), (2,), [1]), ((5,), (2,), [4]), ((3, 4), (2, 3), [0, 1]))
    ),
    *(
        row(
            indexing.gather_p,
            partial(take_rows, fill=fill, clip=mode is not MODES.FILL_OR_DROP),
            R(*s),
            K(i),
            dtypes=dtypes,
            label=f"{i},{mode}",
            params=gather_params(ROWS if len(s) == 2 else ELEMENTS, (1, *s[1:]), mode, fill),
        )
        for s, i, mode, fill, dtypes in (
            ((4,), [[2], [0], [2]], MODES.FILL_OR_DROP, 0, ANY),
            ((3, 2), [[2], [0]], MODES.CLIP, None, ANY),
            ((3, 2), [[7], [0], [-4]], MODES.CLIP, None, ANY),
            ((4,), [[2], [9]], MODES.FILL_OR_DROP, 0, "fFi"),
            ((4,), [[1], [3]], MODES.PROMISE_IN_BOUNDS, None, ANY),
        )
    ),
    *scatters(scatter.scatter_p, lambda a, b: b, dtypes=ANY),
    *scatters(scatter.scatter_add_p, np.add, dtypes=NUMBER),
    *scatters(scatter.scatter_mul_p, np.multiply, dtypes=NUMBER),
    *scatters(scatter.scatter_min_p, np.minimum, dtypes=REAL),
    *scatters(scatter.scatter_max_p, np.maximum, dtypes=REAL),
]


def sort_together(*xs: Any, axis: int, keys: int) -> list[Any]:
    order = np.lexsort(tuple(reversed(xs[:keys])), axis=axis)
    return [np.take_along_axis(x, order, axis) for x in xs]


def largest(x: Any, k: int, axis: int) -> Any:
    order = np.take(np.argsort(-x, axis, kind="stable"), range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def search_rows(x: Any, values: Any, side: Any) -> Any:
    rows = zip(x.reshape(-1, x.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return np.array([np.searchsorted(a, v, side) for a, v in rows], np.int32).reshape(values.shape)


def add_along(x: Any, indices: Any, axis: int, size: int) -> Any:
    x, indices = np.broadcast_arrays(x, indices)
    out = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    where = list(np.indices(x.shape))
    where[axis] = indices
    np.add.at(out, tuple(where), x)
    return out


SORTING = [
    *(
        row(
            sorting.sort_p,
            partial(sort_together, axis=axis, keys=keys),
            *(R(*s) for _ in range(n)),
            dtypes=REAL,
            params={"dimension": axis, "is_stable": True, "num_keys": keys},
        )
        for s, n, axis, keys in (((4,), 1, 0, 1), ((2, 3), 1, 1, 1), ((3, 2), 2, 0, 1), ((4,), 3, 0, 2))
    ),
    *(
        row(sorting.top_k_p, partial(largest, k=k, axis=axis), R(*s), params={"k": k, "axis": axis}, dtypes="f")
        for s, k, axis in (((5,), 2, 0), ((2, 4), 3, 1), ((3, 2), 1, 0))
    ),
    *(
        row(
            sorting.searchsorted_p,
            partial(search_rows, side=side),
            R(*a, sort=len(a) == 1),
            R(*b),
            dtypes="f",
            derivative="",
            params={"side": side, "index_dtype": LETTERS["i"]},
        )
        for side in ("left", "right")
        for a, b in (((4,), (3,)),)
    ),
    *(
        row(
            sorting.take_along_axis_p,
            partial(np.take_along_axis, axis=axis),
            R(*s),
            K(i),
            params={"axis": axis, "unique": False},
            dtypes=ANY,
        )
        for s, i, axis in (((4,), [2, 0, 2], 0), ((2, 3), [[1, 0, 0, 2], [2, 2, 0, 1]], 1), ((3, 2), [[0, 2]], 0))
    ),
    row(
        sorting.take_along_axis_p,
        lambda x, i: np.take_along_axis(x, np.broadcast_to(i, (2, 2)), 1),
        R(2, 3),
        K([[1, 0]]),
        params={"axis": 1, "unique": True},
        dtypes=ANY,
        label="broadcast",
    ),
    *(
        row(
            sorting.add_along_axis_p,
            partial(add_along, axis=axis, size=size),
            R(*s),
            K(i),
            dtypes=NUMBER,
            params={"axis": axis, "size": size, "unique": False},
        )
        for s, i, axis, size in (
            ((3,), [2, 0, 2], 0, 4),
            ((2, 3), [[1, 0, 3], [2, 2, 0]], 1, 4),
            ((3, 2), [[1, 0]], 1, 3),
        )
    ),
]

BOOLEANS = (False, True)


def solve_triangular(
    a: Any, b: Any, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = np.where(np.eye(a.shape[-1]) > 0, 1, a)
    a = a.swapaxes(-1, -2) if transpose_a else a
    a = a.conj() if conjugate_a else a
    if left_side:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def triangular_solves(a: Sequence[int], b: Sequence[int], flags: Sequence[bool], dtypes: str) -> Spec:
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    params = dict(zip(names, flags, strict=True))
    return row(
        linalg.triangular_solve_p,
        partial(solve_triangular, **params),
        Dominant(*a),
        R(*b),
        params=params,
        label=" ".join(name for name in names if params[name]),
        dtypes=dtypes,
        tolerance=4,
    )


def lu_factors(x: Any) -> list[Any]:
    """The factors, the pivots, and the permutation that comes of them."""
    *batch, m, n = x.shape
    factors, pivots = x.copy(), np.zeros((*batch, min(m, n)), np.int32)
    for i in np.ndindex(*batch) if x.size else ():
        factors[i], pivots[i] = scipy.linalg.lu_factor(x[i])
    return [factors, pivots, swapped_rows(pivots, m)]


def swapped_rows(pivots: Any, size: int) -> Any:
    *batch, count = pivots.shape
    rows = np.broadcast_to(np.arange(size, dtype=np.int32), (*batch, size)).copy()
    for i in np.ndindex(*batch):
        for j in range(count):
            rows[i][[j, pivots[i][j]]] = rows[i][[pivots[i][j], j]]
    return rows


def solve_linear(a: Any, b: Any, transpose: bool) -> Any:
    factors, _, permutation = lu.lu(ew.stop_gradient_p.bind(a))
    return lu.linear_solve_p.bind(a, factors, permutation, b, transpose=transpose)


def cofactors(x: Any) -> Any:
    """The cofactors of matrices that are not singular."""
    return np.linalg.det(x)[..., None, None] * np.linalg.inv(x).swapaxes(-1, -2)


def cofactors_along(t: Any, x: Any) -> Any:
    """Their derivatives."""
    inverse = np.linalg.inv(x).swapaxes(-1, -2)
    trace = np.sum(inverse * t, (-1, -2), keepdims=True)
    return np.linalg.det(x)[..., None, None] * (trace * inverse - inverse @ t.swapaxes(-1, -2) @ inverse)


def linear_solves(a: Sequence[int], b: Sequence[int], transpose: bool) -> Spec:
    return Spec(
        f"linear_solve({a}x{b};{transpose})",
        "linear_solve",
        partial(solve_linear, transpose=transpose),
        lambda a, b: np.linalg.solve(a.swapaxes(-1, -2) if transpose else a, b),
        (Pivoted(*a), R(*b)),
        "fdFD",
        "dD",
        tolerance=4,
    )


LINALG = [
    *(
        row(lu.lu_p, lu_factors, Pivoted(*shape), dtypes="fdFD", tolerance=4)
        for shape in ((1, 1), (3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 1, 3, 2), (0, 0), (0, 2), (2, 0), (0, 2, 2))
    ),
    *(
        row(
            lu.lu_pivots_to_permutation_p,
            partial(swapped_rows, size=size),
            K(pivots, np.int32),
            params={"permutation_size": size},
        )
        for pivots, size in (([2, 2, 2], 3), ([3, 1], 5), ([[1, 1], [0, 1], [1, 0]], 2), ([[], []], 2))
    ),
    *(
        linear_solves(a, b, transpose)
        for a, b in (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((1, 1), (1, 1)), ((0, 0), (0, 2)), ((2, 2), (2, 0)))
        for transpose in BOOLEANS
    ),
    *(
        row(operation, reference, sample(*shape), dtypes="fdFD", tolerance=4)
        for operation, reference in ((determinants.det_p, np.linalg.det), (determinants.slogdet_p, np.linalg.slogdet))
        for sample in (Dominant, Pivoted)
        for shape in ((1, 1), (2, 2), (3, 3), (4, 4), (2, 5, 5), (0, 0), (0, 2, 2))
    ),
    *(
        row(determinants.cofactors_p, cofactors, Dominant(*shape), dtypes="fdFD", tolerance=16)
        for shape in ((1, 1), (4, 4), (2, 3, 3))
    ),
    *(
        row(determinants.cofactors_along_p, reference, R(*shape), Dominant(*x), *others, dtypes="fdFD", tolerance=32)
        for reference, shape, x, others in (
            (cofactors_along, (4, 4), (4, 4), ()),
            (cofactors_along, (2, 3, 3), (1, 3, 3), ()),
            (None, (4, 4), (4, 4), (R(4, 4),)),
            (lambda t, x, y: np.zeros_like(t), (2, 2), (2, 2), (R(2, 2),)),
        )
    ),
    *(
        row(linalg.cholesky_p, np.linalg.cholesky, PositiveDefinite(*shape), dtypes="fdFD", tolerance=4)
        for shape in ((1, 1), (3, 3), (3, 2, 2), (2, 1, 3, 3), (0, 0), (0, 2, 2))
    ),
    *(
        triangular_solves((3, 3), (3, 2) if flags[0] else (2, 3), flags, "fF")
        for flags in itertools.product(BOOLEANS, repeat=5)
    ),
    *(
        triangular_solves(a, b, (left_side, True, transpose, True, False), dtypes)
        for left_side in BOOLEANS
        for transpose in BOOLEANS
        for a, b, dtypes in (
            ((3, 2, 2), (3, 2, 1) if left_side else (3, 1, 2), "hbdD"),
            ((2, 3, 3), (2, 3, 1) if left_side else (2, 1, 3), "fF"),
            ((2, 2), (2, 0) if left_side else (0, 2), "fF"),
        )
    ),
]

WORDS = K([[1, 2], [3, 4], [5, 6]], np.uint32)
LONG_WORDS = K(np.arange(12).reshape(3, 4), np.uint32)
SHORT_KEY = core_dtypes.KEY_DTYPES["philox2x32"]
SHORT_WORDS = K(np.arange(3, dtype=np.uint32).reshape(3, 1), np.uint32)
SHORT_KEYS = K(np.arange(3, dtype=np.uint32).view(SHORT_KEY), fixed=True)
LONG_KEYS = K(np.arange(8, dtype=np.uint32).view(core_dtypes.rbg_key_dtype), fixed=True)
GENERATOR = random_rejection.Generator("threefry2x32", True)
KEYS = K(np.array([[1, 2], [3, 4]], np.uint32).view(core_dtypes.key_dtype).reshape(2), fixed=True)

RANDOM = [
    row(
        random_bits.threefry2x32_p,
        None,
        K(1, np.uint32),
        K(2, np.uint32),
        K([1, 2, 3], np.uint32),
        K([4, 5, 6], np.uint32),
        derivative="",
    ),
    *(
        row(p, None, *(K(i, np.uint32) for i in range(count - 1)), K([1, 2, 3], np.uint32), derivative="")
        for p, count in ((ciphers.threefry4x32_p, 8), (ciphers.philox2x32_p, 3), (ciphers.philox4x32_p, 6))
    ),
    row(philox.philox_blocks_p, None, *(K(i, np.uint32) for i in range(4)), K([1, 2, 3], np.uint32), derivative=""),
    row(random_bits.random_wrap_p, None, WORDS, params={"dtype": core_dtypes.key_dtype}, derivative=""),
    row(random_bits.random_wrap_p, None, LONG_WORDS, params={"dtype": core_dtypes.rbg_key_dtype}, derivative=""),
    row(random_bits.random_wrap_p, None, SHORT_WORDS, params={"dtype": SHORT_KEY}, derivative=""),
    # The derivative of a sample is not that of its computation, by differences: see tests/random/test_distributions.py.
    row(
        random_rejection.random_gamma_p,
        None,
        K([1, 2, 3], np.uint32),
        K([4, 5, 6], np.uint32),
        R(3, lo=0.3, hi=4),
        params={"log_space": False, "generator": GENERATOR},
        derivative="",
    ),
    row(
        random_rejection.random_poisson_p,
        None,
        K(1, np.uint32),
        K(2, np.uint32),
        R(3, lo=5, hi=20),
        params={"generator": GENERATOR},
        derivative="",
    ),
    row(
        random_rejection.random_binomial_p,
        None,
        K(1, np.uint32),
        K(2, np.uint32),
        R(3, lo=5, hi=90),
        R(3, lo=0.1, hi=0.9),
        params={"generator": GENERATOR},
        derivative="",
    ),
    row(random_bits.random_unwrap_p, lambda k: np.array([[1, 2], [3, 4]], np.uint32), KEYS, derivative=""),
    row(random_bits.random_use_p, None, KEYS, params={"name": "normal"}, derivative=""),
    row(random_bits.random_clone_p, None, KEYS, derivative=""),
    row(random_bits.random_unwrap_p, lambda k: np.arange(3, dtype=np.uint32).reshape(3, 1), SHORT_KEYS, derivative=""),
    row(random_bits.random_unwrap_p, lambda k: np.arange(8, dtype=np.uint32).reshape(2, 4), LONG_KEYS, derivative=""),
]

PRIMITIVES: list[Spec] = [
    *ELEMENTWISE,
    *REDUCTIONS,
    *SHAPES,
    *CONTRACTIONS,
    *INDEXING,
    *SORTING,
    *LINALG,
    *RANDOM,
]


ROLLS = [
    row(slicing.roll_p, partial(np.roll, shift=k, axis=axis), R(*s), params={"shift": k, "dimension": axis}, dtypes=ANY)
    for s, axis, k in (((4,), 0, 1), ((2, 3), 1, 2), ((3, 2), 0, 0))
]


def numbered(specs: Sequence[Spec]) -> list[Spec]:
    """The rows, with a number in the name of those whose name has come before."""
    count: dict[str, int] = {}
    for spec in specs:
        n = count[spec.name] = count.get(spec.name, 0) + 1
        if n > 1:
            spec.name += f"#{n}"
    return list(specs)
