"""Cases of operations of ``lax`` and ``numpy.fft``, whose values and gradients JAX has recorded in ``recorded.json``.

``python lax_cases.py`` with JAX installed records them anew, in single precision. A case is a function of a library and
of arrays. Where JAX has no derivative, none is recorded.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORDED = Path(__file__).with_name("recorded.json")


class Case(NamedTuple):
    """One function.

    Attributes:
      name: of the case.
      run: takes a library, with ``lax`` and ``numpy``, and arrays.
      operands: the arrays; derivatives are by all of them that are inexact.
    """

    name: str
    run: Callable[..., Any]
    operands: tuple[Any, ...]


def real(*shape: int, lo: float = -1, hi: float = 1) -> np.ndarray[Any, Any]:
    """Numbers between two bounds, in single precision."""
    drawn = np.random.default_rng([*shape, int(10 * hi)]).uniform(lo, hi, shape)
    return drawn.astype(np.float32)


def both(*shape: int) -> np.ndarray[Any, Any]:
    """Complex numbers, in single precision."""
    return (real(*shape) + 1j * real(*shape, hi=2)).astype(np.complex64)


def fft(name: str, **options: Any) -> Callable[..., Any]:
    return lambda lib, x: getattr(lib.numpy.fft, name)(x, **options)


def of_lax(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    return lambda lib, *xs: getattr(lib.lax, name)(*xs, *args, **options)


ONE = [
    ("fft", both(3, 4)),
    ("ifft", both(3, 4)),
    ("rfft", real(3, 4)),
    ("irfft", both(3, 4)),
    ("hfft", both(3, 4)),
    ("ihfft", real(3, 4)),
]
SEVERAL = [("fftn", both(2, 3, 4)), ("ifftn", both(2, 3, 4)), ("rfftn", real(2, 3, 4)), ("irfftn", both(2, 3, 4))]
A, X = real(10, lo=0.3, hi=6), real(10, lo=0.1, hi=9)
P = real(10, lo=0.05, hi=0.95)
WORDS = np.array([[1, 2, 3, 4], [5, 6, 7, 2**32 - 1]], np.uint32)
SIZES = np.array([2, 0, 3], np.int32)
LONG = np.array([2**31 - 1, -(2**31), 12345678, -7, 0, 3], np.int32)

CASES = [
    *(
        Case(f"{name}, {options}", fft(name, **options), (x,))
        for name, x in ONE
        for options in ({}, {"n": 5}, {"n": 2, "axis": 0}, {"axis": 0, "norm": "ortho"}, {"norm": "forward"})
    ),
    *(
        Case(f"{name}, {options}", fft(name, **options), (x,))
        for name, x in SEVERAL
        for options in ({}, {"s": (3, 2)}, {"axes": (2, 0), "norm": "ortho"}, {"s": (4, 4), "axes": (0, 1)})
    ),
    *(
        Case(f"{name}2", fft(f"{name}2", norm="forward"), (x,))
        for name, x in (("fft", both(3, 4)), ("rfft", real(3, 4)))
    ),
    *(Case(f"fftfreq {n}", lambda lib, n=n: lib.numpy.fft.fftfreq(n, 0.25), ()) for n in (1, 4, 5)),
    *(Case(f"rfftfreq {n}", lambda lib, n=n: lib.numpy.fft.rfftfreq(n, 0.25), ()) for n in (1, 4, 5)),
    *(
        Case(f"{name} {axes}", fft(name, axes=axes), (real(3, 4),))
        for name in ("fftshift", "ifftshift")
        for axes in (None, 1)
    ),
    *(Case(f"lax.fft {kind}", of_lax("fft", kind, (4,)), (both(2, 4),)) for kind in ("FFT", "IFFT")),
    Case("lax.fft RFFT", of_lax("fft", "RFFT", (3, 4)), (real(2, 3, 4),)),
    Case("lax.fft IRFFT", of_lax("fft", "IRFFT", (3, 4)), (both(2, 3, 3),)),
    *(Case(name, of_lax(name), (A, X)) for name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad")),
    *(Case(name, of_lax(name), (real(10, lo=-12, hi=12),)) for name in ("bessel_i0e", "bessel_i1e")),
    Case("betainc", of_lax("betainc"), (A, X, P)),
    Case("betainc by x", lambda lib, x: lib.lax.betainc(A, X, x), (P,)),
    Case("zeta by q", lambda lib, q: lib.lax.zeta(A + 1.2, q), (X,)),
    *(Case(f"mulhi by {n}", lambda lib, n=n: lib.lax.mulhi(LONG, np.int32(n)), ()) for n in (3, -5, 2**30)),
    *(
        Case(f"reduce_precision {e} {m}", of_lax("reduce_precision", e, m), (X,))
        for e, m in ((5, 10), (8, 7), (3, 2), (2, 0))
    ),
    *(
        Case(f"bitcast to {d}", lambda lib, d=d: lib.lax.bitcast_convert_type(X, d), ())
        for d in ("int32", "uint8", "int16")
    ),
    Case("approx_max_k", of_lax("approx_max_k", 3), (real(2, 6),)),
    Case("approx_min_k", of_lax("approx_min_k", 3, reduction_dimension=0), (real(6, 2),)),
    Case("tile", of_lax("tile", (2, 3)), (real(2, 3),)),
    Case(
        "index_take",
        lambda lib, x: lib.lax.index_take(x, (np.array([2, -1, 0]), np.array([0, 1, 1])), (0, 2)),
        (real(3, 4, 2),),
    ),
    Case("stack", lambda lib, x, y: lib.lax.stack([x, y], axis=-1), (real(2, 3), real(2, 3, hi=2))),
    Case(
        "scatter_sub",
        lambda lib, x, u: lib.lax.scatter_sub(
            x, np.array([[1], [3], [1]]), u, lib.lax.ScatterDimensionNumbers((), (0,), (0,))
        ),
        (real(4), real(3)),
    ),
    Case(
        "scatter_apply",
        lambda lib: lib.lax.scatter_apply(
            real(4),
            np.array([[1], [3], [1]]),
            lib.lax.sin,
            lib.lax.ScatterDimensionNumbers((), (0,), (0,)),
            update_shape=(3,),
        ),
        (),
    ),
    Case("ragged_dot", lambda lib, x, y: lib.lax.ragged_dot(x, y, SIZES), (real(6, 2), real(3, 2, 4))),
    Case(
        "ragged_dot of batches",
        lambda lib, x, y: lib.lax.ragged_dot_general(
            x, y, np.array([[1, 2], [3, 1]]), lib.lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), [1], [0])
        ),
        (real(2, 5, 3), real(2, 2, 3, 4)),
    ),
    Case(
        "ragged_dot of contracted",
        lambda lib, x, y: lib.lax.ragged_dot_general(
            x, y, SIZES, lib.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
        ),
        (real(6, 2), real(6, 4)),
    ),
    Case(
        "ragged_dot of outer and inner axes",
        lambda lib, x, y: lib.lax.ragged_dot_general(
            x, y, np.array([[1, 2], [2, 0]]), lib.lax.RaggedDotDimensionNumbers((((3,), (1,)), ((), ())), [1], [0])
        ),
        (real(2, 3, 2, 3), real(2, 3, 4)),
    ),
    Case(
        "scaled_dot",
        lambda lib: lib.lax.scaled_dot(
            np.round(8 * real(2, 8)),
            np.round(8 * real(8, 3)),
            lhs_scale=np.round(4 * real(2, 4)),
            rhs_scale=np.round(4 * real(2, 3)),
            preferred_element_type="float32",
        ),
        (),
    ),
    *(
        Case(
            f"rng_bit_generator {d} {a}",
            lambda lib, d=d, a=a: lib.lax.rng_bit_generator(WORDS[0], (2, 3), d, lib.lax.RandomAlgorithm(a)),
            (),
        )
        for d in ("uint8", "uint16", "uint32")
        for a in (0, 1, 2)
    ),
    Case(
        "platform_dependent",
        lambda lib, x: lib.lax.platform_dependent(x, cuda=lambda x: x, cpu=lambda x: x * x),
        (real(3),),
    ),
    Case("mul out_dtype", lambda lib: lib.lax.mul(real(3), real(3), out_dtype="bfloat16").astype("float32"), ()),
    Case("exp accuracy", lambda lib, x: lib.lax.exp(x, accuracy=lib.lax.Tolerance(ulps=1)), (real(3),)),
]


def flat(out: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in (out if isinstance(out, (tuple, list)) else [out])]


def weights(x: Any) -> np.ndarray[Any, Any]:
    """Weights for the elements of a result, so that no two of its elements are alike."""
    return np.cos(np.arange(x.size, dtype=np.float32)).reshape(x.shape)


def gradients(lib: Any, case: Case) -> Any:
    """The gradients of a weighted sum of what is inexact in the result."""

    def loss(*xs: Any) -> Any:
        out = case.run(lib, *xs)
        total = 0.0
        for x in out if isinstance(out, (tuple, list)) else [out]:
            if x.dtype.kind == "f":
                total = total + (x * weights(x)).sum()
            elif x.dtype.kind == "c":
                total = total + (lib.numpy.real(x) * weights(x)).sum() + (lib.numpy.imag(x) * weights(x)).sum() * 0.5
        return total

    return lib.grad(loss, argnums=tuple(range(len(case.operands))))(*case.operands)


def encoded(xs: Any) -> Any:
    """Arrays as lists of numbers; of complex ones the parts."""
    whole = [np.ascontiguousarray(x) for x in flat(xs)]
    return [(x.view(x.real.dtype) if x.dtype.kind == "c" else x).ravel().tolist() for x in whole]


def record() -> None:
    """Write what JAX returns for the cases."""
    import jax

    found: dict[str, Any] = {}
    for case in CASES:
        out = case.run(jax, *case.operands)
        found[case.name] = {"values": encoded(out), "types": [f"{x.dtype}{list(x.shape)}" for x in flat(out)]}
        if case.operands:
            try:
                found[case.name]["gradients"] = encoded(gradients(jax, case))
            except (NotImplementedError, ValueError) as error:
                print(f"{case.name}: {type(error).__name__}")
    RECORDED.write_text(json.dumps({"jax": jax.__version__, "cases": found}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
