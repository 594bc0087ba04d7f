"""The rows for Fourier transforms, incomplete gamma and beta functions, and the rest of ``pullback.lax``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from scipy import special

import pullback.numpy as jnp
from pullback import lax
from pullback.core.trace import Primitive
from pullback.primitives import bits
from pullback.primitives import elementwise as ew
from pullback.primitives.linalg import ragged
from pullback.primitives.random import generator as bit_generator
from pullback.primitives.signals import fourier
from pullback.primitives.signals.fourier import FftType
from pullback.primitives.special import bessel, incomplete
from pullback.primitives.special import others as special_functions
from tests.grid.specs import FLOAT, INTEGER, K, R, Sample, Spec, binary, derivative_of, row, unary

Bounds = tuple[float, float]

# Fourier transforms ------------------------------------------------------------------------------------------------


def _at_infinity(function: Any) -> Any:
    """SciPy's function, which is NaN at infinities, where these are infinite."""
    return lambda x: np.where(np.isinf(x), np.abs(x) if function is special.i0 else x, function(x))


def transformed(kind: FftType, lengths: tuple[int, ...]) -> Callable[[Any], Any]:
    """The reference, in the precision of the operand."""
    axes = tuple(range(-len(lengths), 0))
    name = {FftType.FFT: "fftn", FftType.IFFT: "ifftn", FftType.RFFT: "rfftn", FftType.IRFFT: "irfftn"}[kind]
    return lambda x: getattr(scipy.fft, name)(x, lengths, axes)


def transform(kind: FftType, lengths: tuple[int, ...], *lead: int, dtypes: str = "") -> Spec:
    shape = lengths if kind is not FftType.IRFFT else (*lengths[:-1], lengths[-1] // 2 + 1)
    default = {FftType.RFFT: "fd", FftType.IRFFT: "FD"}.get(kind, "FD")
    return row(
        fourier.fft_p,
        transformed(kind, lengths),
        R(*lead, *shape),
        params={"fft_type": kind, "fft_lengths": lengths},
        label=f"{kind.name},{lengths}",
        dtypes=dtypes or default,
        tolerance=8,
    )


def of_fft(name: str, *samples: Sample, dtypes: str = "fF", **options: Any) -> Spec:
    """A row for a function of ``pullback.numpy.fft``."""
    call = partial(lambda module, *xs: getattr(module.fft, name)(*xs, **options))
    shown = ",".join(f"{k}={v}" for k, v in options.items())
    title = f"numpy.fft.{name}({'x'.join(str(s.shape) for s in samples)}{';' + shown if shown else ''})"
    derivative = derivative_of(dtypes)
    reference = lambda *xs: call(np, *xs)
    return Spec(
        title, f"numpy.fft.{name}", partial(call, jnp), reference, samples, dtypes, derivative=derivative, tolerance=16
    )


KINDS = tuple(FftType)
TRANSFORMS = [
    *(
        transform(kind, (n,), *lead)
        for kind in KINDS
        for n, lead in ((1, ()), (2, (3,)), (5, (2,)), (8, ()), (7, (0,)))
    ),
    *(transform(kind, lengths, 2) for kind in KINDS for lengths in ((3, 4), (2, 1, 3), (2, 3, 2, 2))),
    *(transform(kind, (), 3, dtypes="FD") for kind in (FftType.FFT, FftType.IFFT)),
    *(transform(kind, lengths, 2, dtypes="fd") for kind in KINDS[:2] for lengths in ((4,), (3, 2))),
]

ONE = [
    of_fft(name, R(3, 4), dtypes=dtypes, **options)
    for name, dtypes in (("fft", "fFd"), ("ifft", "fF"), ("rfft", "fi"), ("irfft", "fF"), ("hfft", "F"), ("ihfft", "f"))
    for options in ({}, {"n": 5, "norm": "ortho"}, {"n": 2, "axis": 0, "norm": "forward"})
]
SEVERAL = [
    *(
        of_fft(f"{name}{suffix}", R(3, 2, 4), dtypes=dtypes, **options)
        for name, dtypes in (("fft", "fF"), ("ifft", "F"), ("rfft", "f"), ("irfft", "F"))
        for suffix, options in (
            ("n", {}),
            ("n", {"s": (3, 5), "axes": (2, 0), "norm": "ortho"}),
            ("2", {"axes": (0, 1), "norm": "forward"}),
        )
    ),
    *(of_fft(name, R(3, 4), dtypes="fi") for name in ("fftshift", "ifftshift")),
    of_fft("fftshift", R(3, 4), dtypes="f", axes=1),
]

# Special functions ---------------------------------------------------------------------------------------------------


def by_differences(f: Callable[..., Any], order: int = 1) -> Callable[..., Any]:
    """A derivative by the first operand, by central differences of high order, of a function of double precision."""
    steps = np.arange(-4, 5)
    powers = steps[None, :] ** np.arange(9)[:, None]
    weights = np.linalg.solve(powers, np.eye(9)[order] * [1, 1, 2][order])

    def derivative(a: Any, *rest: Any) -> Any:
        h = 0.02 * a.astype(np.float64)
        wide = [x.astype(np.float64) for x in rest]
        total = sum(w * f(a + n * h, *wide) for n, w in zip(steps, weights, strict=True))
        return (total / h**order).astype(a.dtype)

    return derivative


def sample_derivative(a: Any, x: Any) -> Any:
    density = np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))
    return (-by_differences(special.gammainc)(a, x) / density).astype(a.dtype)


SHAPES = (((), ()), ((3,), (2, 1)))


def of_two(p: Primitive, reference: Any, a: Bounds, x: Bounds, dtypes: str = "hbf", **options: Any) -> list[Spec]:
    return [
        row(p, reference, R(*s, lo=a[0], hi=a[1]), R(*t, lo=x[0], hi=x[1]), dtypes=dtypes, **options) for s, t in SHAPES
    ]


GAMMA: list[Spec] = [
    *of_two(incomplete.igamma_p, special.gammainc, (0.3, 3), (0.2, 4), ugly=True),
    *of_two(incomplete.igamma_p, special.gammainc, (0.3, 90), (0.2, 95), "d", tolerance=16, derivative=""),
    *of_two(incomplete.igammac_p, special.gammaincc, (0.3, 3), (0.2, 4), ugly=True),
    *of_two(incomplete.igammac_p, special.gammaincc, (0.01, 0.4), (0.01, 0.9), "d", tolerance=16),
    *(
        row(
            incomplete.igamma_derivative_p,
            by_differences(special.gammainc, order),
            R(2, 3, lo=0.5, hi=5),
            R(3, lo=0.2, hi=9),
            params={"order": order},
            dtypes="f",
            tolerance=10,
        )
        for order in (1, 2)
    ),
    row(
        incomplete.gamma_slope_p,
        lambda a, x: -sample_derivative(a, x) / x,
        R(2, 3, lo=0.5, hi=5),
        R(3, lo=0.2, hi=9),
        params={"order": 1},
        tolerance=10,
    ),
    Spec(
        "random_gamma_grad",
        "random_gamma_grad",
        incomplete.random_gamma_grad,
        sample_derivative,
        (R(2, 3, lo=0.5, hi=5), R(3, lo=0.2, hi=9)),
        "f",
        tolerance=10,
    ),
    *(
        row(
            incomplete.betainc_p,
            special.betainc,
            R(*s, lo=0.3, hi=9),
            R(*t, lo=0.4, hi=7),
            R(*s, lo=0.05, hi=0.95),
            dtypes=dtypes,
            tolerance=tolerance,
        )
        for s, t in SHAPES
        for dtypes, tolerance in (("bf", 2), ("d", 16))
    ),
    *(
        row(
            incomplete.betainc_derivative_p,
            reference,
            R(2, 3, lo=0.5, hi=5),
            R(3, lo=0.4, hi=7),
            R(2, 1, lo=0.1, hi=0.9),
            params={"by_a": k, "by_b": n},
            dtypes="f",
            tolerance=10,
        )
        for k, n, reference in (
            (1, 0, by_differences(special.betainc)),
            (0, 1, lambda a, b, x: by_differences(lambda b, a, x: special.betainc(a, b, x))(b + 0 * a, a, x)),
            (1, 1, None),
        )
    ),
]

OTHERS: list[Spec] = [
    *of_two(special_functions.zeta_p, special.zeta, (1.3, 6), (0.3, 5), "hbfd"),
    row(
        special_functions.zeta_derivative_p,
        by_differences(special.zeta),
        R(2, 3, lo=1.6, hi=6),
        R(3, lo=0.3, hi=5),
        params={"order": 1},
        dtypes="f",
        tolerance=10,
    ),
    *unary(bessel.bessel_i0e_p, special.i0e, FLOAT + "d", lo=-9, hi=12),
    *unary(bessel.bessel_i1e_p, special.i1e, FLOAT + "d", lo=-9, hi=12),
    *unary(bessel.i0_p, _at_infinity(special.i0), FLOAT + "d", lo=-3, hi=3),
    *unary(bessel.i1_p, _at_infinity(special.i1), FLOAT + "d", lo=-3, hi=3),
    *(
        row(
            bessel.bessel_ie_p,
            lambda x, n=n: (special.ive(n, np.abs(x)) * np.sign(x) ** n).astype(x.dtype),
            R(2, 3, lo=-9, hi=12),
            params={"order": n},
            dtypes="fd",
            tolerance=8,
        )
        for n in (2, 3)
    ),
]

# Bits ----------------------------------------------------------------------------------------------------------------


def high_half(x: Any, y: Any) -> Any:
    width = 8 * x.dtype.itemsize
    x, y = np.broadcast_arrays(x, y)
    products = [(int(a) * int(b)) >> width for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    return np.array(products, x.dtype).reshape(x.shape)


def rounded(x: Any) -> Any:
    """To half precision and back, where numbers below the smallest normal one are zero."""
    half = x.astype(np.float16)
    least = np.finfo(np.float16).smallest_normal
    return np.where(np.abs(half) < least, np.copysign(x.dtype.type(0), x), half.astype(x.dtype))


LONG = K([[2**62, -(2**63), -1], [12345678901234567, 3, 2**63 - 1]], np.int64)
BITS_ROWS: list[Spec] = [
    *binary(bits.mulhi_p, high_half, INTEGER),
    *(
        row(
            bits.reduce_precision_p,
            reference,
            R(*shape),
            params={"exponent_bits": e, "mantissa_bits": m},
            dtypes=dtypes,
            ugly=reference is not None,
            derivative="",
        )
        for shape in ((), (2, 3))
        for e, m, dtypes, reference in ((5, 10, "fd", rounded), (8, 23, "hbf", lambda x: x), (4, 0, "hbfd", None))
    ),
    *(
        row(
            ew.bitcast_convert_type_p,
            lambda x, to=to, shape=shape: np.atleast_1d(x).view(to).reshape(shape),
            sample,
            params={"new_dtype": np.dtype(to)},
            dtypes=dtypes,
            derivative="",
        )
        for to, sample, dtypes, shape in (
            (np.int16, R(2, 3), "f", (2, 3, 2)),
            (np.uint8, R(3), "f", (3, 4)),
            (np.float32, R(2, 4), "s", (2,)),
            (np.int16, R(), "f", (2,)),
        )
    ),
]

# Rows in groups, and random bits -------------------------------------------------------------------------------------

SIZES = K([[1, 0, 2], [2, 3, 0]], np.int32, fixed=True)


def memberships(sizes: Any, rows: int) -> Any:
    """For each batch and group which rows are in it."""
    ends = np.cumsum(sizes, 1)[..., None]
    return (np.arange(rows) >= ends - sizes[..., None]) & (np.arange(rows) < ends)


def each_row(x: Any, y: Any, sizes: Any) -> Any:
    return np.einsum("bgm,bmk,bgkn->bmn", memberships(sizes, x.shape[1]).astype(x.dtype), x, y)


def each_group(x: Any, y: Any, sizes: Any) -> Any:
    return np.einsum("bgm,bmk,bmn->bgkn", memberships(sizes, x.shape[1]).astype(x.dtype), x, y)


GROUPS: list[Spec] = [
    row(ragged.grouped_rows_p, each_row, R(2, 5, 2), R(2, 3, 2, 4), SIZES, dtypes="hfF", tolerance=4),
    row(ragged.grouped_rows_p, each_row, R(2, 4, 1), R(2, 3, 1, 1), SIZES, dtypes="fi", tolerance=4),
    row(ragged.grouped_products_p, each_group, R(2, 5, 2), R(2, 5, 3), SIZES, dtypes="fFi", tolerance=4),
    row(
        bit_generator.rng_bit_generator_p,
        None,
        K([1, 2, 3, 4], np.uint32),
        loops=False,  # as in JAX: see tests/lax/test_operations.py
        params={"shape": (2, 3), "dtype": np.dtype(np.uint32), "algorithm": bit_generator.RandomAlgorithm.RNG_PHILOX},
        derivative="",
    ),
]

# Functions of lax ----------------------------------------------------------------------------------------------------


def of_lax(name: str, reference: Callable[..., Any], *samples: Sample, dtypes: str = "f", **options: Any) -> Spec:
    """A row for a function of ``pullback.lax`` that is composed of others."""
    call = options.pop("call", getattr(lax, name))
    title = f"lax.{name}({'x'.join(str(s.shape) for s in samples)})"
    options.setdefault("derivative", derivative_of(dtypes))
    return Spec(title, f"lax.{name}", call, reference, samples, dtypes, **options)


POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))


def applied(x: Any, i: Any) -> Any:
    out = x.copy()
    for position in i.ravel():
        out[position] = np.sin(out[position])
    return out


def subtracted(x: Any, i: Any, updates: Any) -> Any:
    out = x.copy()
    np.subtract.at(out, i.ravel(), updates)
    return out


def in_blocks(x: Any, scale: Any) -> Any:
    return x * np.repeat(scale, x.shape[1] // scale.shape[1], 1)


FUNCTIONS: list[Spec] = [
    of_lax("tile", lambda x: np.tile(x, (2, 3)), R(2, 3), call=lambda x: lax.tile(x, (2, 3))),
    of_lax("stack", lambda x, y: np.stack([x, y], 1), R(2, 3), R(2, 3), call=lambda x, y: lax.stack([x, y], 1)),
    of_lax("unstack", lambda x: (x[:, 0], x[:, 1]), R(3, 2), call=lambda x: lax.unstack(x, -1)),
    of_lax("broadcast_to_rank", lambda x: x[None, None], R(3), call=lambda x: lax.broadcast_to_rank(x, 3)),
    of_lax("broadcast_like", lambda x, y: np.broadcast_to(x, y.shape), R(3), R(2, 3)),
    of_lax("stage", lambda x: x, R(2)),
    of_lax(
        "approx_max_k",
        lambda x: (-np.sort(-x, 0)[:2], np.argsort(-x, 0)[:2].astype(np.int32)),
        R(4, 3),
        call=lambda x: lax.approx_max_k(x, 2, 0),
    ),
    of_lax(
        "approx_min_k",
        lambda x: (np.sort(x)[:, :2], np.argsort(x)[:, :2].astype(np.int32)),
        R(2, 4),
        call=lambda x: lax.approx_min_k(x, 2),
    ),
    of_lax(
        "index_take",
        lambda x, i, j: x[i, :, j],
        R(3, 2, 4),
        K([0, 2, 2]),
        K([3, -1, 0]),
        call=lambda x, i, j: lax.index_take(x, (i, j), (0, 2)),
    ),
    of_lax(
        "scatter_sub",
        subtracted,
        R(4),
        K([[1], [3], [1]]),
        R(3),
        call=lambda x, i, y: lax.scatter_sub(x, i, y, POINTS),
    ),
    of_lax(
        "scatter_apply",
        applied,
        R(4),
        K([[1], [3], [1]]),
        call=lambda x, i: lax.scatter_apply(x, i, jnp.sin, POINTS, update_shape=(3,)),
    ),
    of_lax(
        "scaled_dot",
        lambda x, s, y: in_blocks(x, s) @ y,
        R(2, 6),
        R(2, 3),
        R(6, 3),
        tolerance=4,
        derivative="",
        call=lambda x, s, y: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type="float32"),
    ),
]

LAX: list[Spec] = [*TRANSFORMS, *GAMMA, *OTHERS, *BITS_ROWS, *GROUPS]
OF_LAX: list[Spec] = [*ONE, *SEVERAL, *FUNCTIONS]
