"""Cases of smaller operations of ``lax``: special functions, bits, products of groups, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

A, X = real(20, lo=0.3, hi=6), real(20, lo=0.1, hi=9)
P = real(20, lo=0.05, hi=0.95)
KEY = np.array([1, 2, 3, 2**32 - 1], np.uint32)
LONG = np.array([2**31 - 1, -(2**31), 12345678, -7, 0, 3, 1, -1, 2**30, -(2**20)], np.int32)


def calls(name: str, /, *args: Any, **options: Any) -> Any:
    """A call of a function of ``lax``, of the operands first."""
    return lambda lib, *xs: getattr(lib.lax, name)(*xs, *args, **options)


def elements(name: str, *xs: Any, **options: Any) -> Case:
    return Case(name, calls(name, **options), xs, elementwise=True)


def indexed(name: str, index: Any, shape: tuple[int, ...], window: int, mode: str | None) -> Case:
    """A scatter of one axis, of numbers or of whole rows."""

    def run(lib: Any, x: Any, u: Any) -> Any:
        along = tuple(range(1, len(shape)))
        numbers = lib.lax.ScatterDimensionNumbers(along, (0,), (0,))
        where = np.array(index, np.int32)[:, None]
        if name == "scatter_apply":
            return lib.lax.scatter_apply(
                x, where, lib.lax.sin, numbers, update_shape=(len(index), *shape[1:]), mode=mode
            )
        return getattr(lib.lax, name)(x, where, u, numbers, mode=mode)

    updates = real(len(index), *shape[1:], hi=2)
    return Case(
        f"{name} {index} {shape} {mode} {window}", run, (real(*shape), updates), derivatives=name != "scatter_apply"
    )


INDICES = ([1, 3, 1], [0], [2, 2, 2], [3, 0], [1, 7])


def ragged(lhs: tuple[int, ...], rhs: tuple[int, ...], sizes: Any, numbers: Any = None) -> Case:
    def run(lib: Any, x: Any, y: Any) -> Any:
        group_sizes = np.array(sizes, np.int32)
        if numbers is None:
            return lib.lax.ragged_dot(x, y, group_sizes)
        contraction, lhs_ragged, rhs_group = numbers
        of = lib.lax.RaggedDotDimensionNumbers(contraction, [lhs_ragged], rhs_group)
        return lib.lax.ragged_dot_general(x, y, group_sizes, of)

    title = "ragged_dot" if numbers is None else "ragged_dot_general"
    return Case(f"{title} {lhs} {rhs} {sizes} {numbers}", run, (real(*lhs), real(*rhs, hi=2)))


ROWS = (((1,), (1,)), ((), ())), 0, [0]
CONTRACTED = (((0,), (0,)), ((), ())), 0, []
OF_BATCHES = (((2,), (2,)), ((0,), (1,))), 1, [0]
OUTER_AND_INNER = (((3,), (1,)), ((), ())), 1, [0]

SCALED = ((2, 8, 3, 4, 4), (2, 8, 3, 4, None), (2, 8, 3, None, 2), (1, 4, 1, 1, 1), (3, 6, 2, 2, 3))

TAKEN: tuple[tuple[tuple[tuple[int, ...], ...], tuple[int, ...]], ...] = (
    (((2, -1, 0), (0, 1, 1)), (0, 2)), (((0,), (0,)), (0, 1)), (((1, 2, 0),), (0,)), (((1, 3),), (1,)),
    (((-1, -2),), (1,)), (((0, 1), (1, 0), (1, 1)), (0, 1, 2)), (((1, 1, 1),), (2,)), (((3, 0), (0, 1)), (1, 2)),
    (((),), (0,)), (((2, 1), (1, 0)), (0, 2)),
)  # fmt: skip

CASES = [
    *(elements(name, A, X) for name in ("igamma", "igammac", "igamma_grad_a")),
    # The tangent of JAX is right to three digits only.
    Case("random_gamma_grad", calls("random_gamma_grad"), (A, X), derivatives=False, elementwise=True),
    *(elements(name, real(20, lo=-12, hi=12)) for name in ("bessel_i0e", "bessel_i1e")),
    elements("betainc", A, X, P),
    Case("betainc by x", lambda lib, x: lib.lax.betainc(A, X, x), (P,)),
    Case("zeta by q", lambda lib, q: lib.lax.zeta(A + 1.2, q), (X,), elementwise=True),
    *(
        Case(f"mulhi by {n}", lambda lib, x, n=n: lib.lax.mulhi(x, np.int32(n)), (LONG,), elementwise=True)
        for n in (3, -5, 2**30)
    ),
    *(
        Case(f"reduce_precision {e} {m}", calls("reduce_precision", e, m), (X,), elementwise=True)
        for e, m in ((5, 10), (8, 7), (3, 2), (2, 0))
    ),
    *(
        Case(f"bitcast_convert_type {x.dtype} to {d}", calls("bitcast_convert_type", d), (x,), derivatives=False)
        for x in (X, LONG, KEY.view(np.uint16).reshape(2, 2, 2), KEY.view(np.uint8).reshape(4, 4))
        for d in ("int32", "uint8", "int16", "float32", "float16")
        if x.ndim > 1 or np.dtype(d).itemsize <= x.itemsize
        if x.dtype != np.uint16 or np.dtype(d).itemsize <= 4
        if x.dtype != np.uint8 or np.dtype(d).itemsize in (1, 4)
    ),
    *(
        Case(
            f"{name} {k} {shape} {axis}",
            lambda lib, x, name=name, k=k, axis=axis: getattr(lib.lax, name)(x, k, reduction_dimension=axis),
            (real(*shape),),
        )
        for name in ("approx_max_k", "approx_min_k")
        for shape in ((2, 6), (6, 2), (7, 1))
        for axis in (0, 1)
        for k in (1, 2)
        if k <= shape[axis]
    ),
    *(
        Case(f"tile {shape} {times}", calls("tile", times), (real(*shape),))
        for shape in ((2, 3), (1, 3))
        for times in ((2, 3), (1, 1), (0, 2), (3, 1), (1, 4))
    ),
    *(
        Case(
            f"index_take {at} {axes}",
            lambda lib, x, at=at, axes=axes: lib.lax.index_take(x, tuple(np.array(i, np.int32) for i in at), axes),
            (real(3, 4, 2),),
        )
        for at, axes in TAKEN
    ),
    *(
        Case(
            f"stack {n} of {shape} at {axis}",
            lambda lib, *xs, axis=axis: lib.lax.stack(xs, axis=axis),
            tuple(real(*shape, seed=i) for i in range(n)),
        )
        for n in (1, 2, 3)
        for shape in ((2, 3), (4,))
        for axis in (0, -1)
    ),
    *(
        indexed(name, index, shape, 1, mode)
        for name in ("scatter_sub", "scatter_apply")
        for index in INDICES
        for shape, mode in (((4,), None), ((4, 2), None), ((4,), "clip"))
        if name != "scatter_apply" or mode is None
    ),
    *(
        ragged((6, k), (groups, k, n), sizes)
        for k, n in ((2, 4), (1, 3))
        for groups, sizes in ((3, [2, 0, 3]), (1, [6]), (2, [0, 0]), (2, [1, 5]), (3, [4, 1, 1]))
    ),
    *(ragged((6, 2), (3, 2, 4), sizes, ROWS) for sizes in ([2, 0, 3], [1, 2, 3], [0, 0, 6])),
    *(ragged((6, 2), (6, 4), sizes, CONTRACTED) for sizes in ([2, 0, 3], [1, 2, 3], [6], [0, 2])),
    *(ragged((2, 5, 3), (2, 2, 3, 4), sizes, OF_BATCHES) for sizes in ([[1, 2], [3, 1]], [[0, 5], [5, 0]])),
    ragged((2, 3, 2, 3), (2, 3, 4), [[1, 2], [2, 0]], OUTER_AND_INNER),
    *(
        Case(
            f"scaled_dot {m} {k} {n} {by_lhs} {by_rhs} {dtype}",
            lambda lib, m=m, k=k, n=n, by_lhs=by_lhs, by_rhs=by_rhs, dtype=dtype: lib.lax.scaled_dot(
                np.round(8 * real(m, k)),
                np.round(8 * real(k, n)),
                lhs_scale=None if by_lhs is None else np.round(4 * real(m, by_lhs, lo=0.3)),
                rhs_scale=None if by_rhs is None else np.round(4 * real(by_rhs, n, lo=0.3)),
                preferred_element_type=dtype,
            ),
        )
        for m, k, n, by_lhs, by_rhs in SCALED
        for dtype in ("float32", "bfloat16")
    ),
    *(
        Case(
            f"rng_bit_generator {d} {a} {shape}",
            lambda lib, d=d, a=a, shape=shape: lib.lax.rng_bit_generator(KEY, shape, d, lib.lax.RandomAlgorithm(a)),
        )
        for d in ("uint8", "uint16", "uint32")
        for a in (0, 1, 2)
        for shape in ((2, 3), (5,))
    ),
    *(
        Case(
            f"platform_dependent {x.shape} {names}",
            lambda lib, x, names=names: lib.lax.platform_dependent(
                x, **{name: lambda x, i=i: lib.lax.sin(x) * (i + 2) for i, name in enumerate(names)}
            ),
            (x,),
        )
        for x in (real(3), real(2, 2))
        for names in (("cuda", "cpu"), ("cpu",), ("default",), ("tpu", "default"), ("cpu", "default"))
    ),
    *(
        Case(
            f"mul out_dtype={d}",
            lambda lib, x, d=d: lib.lax.mul(x, x, out_dtype=d),
            (real(10),),
            derivatives=False,
            elementwise=True,
        )
        for d in ("bfloat16", "float16")
    ),
    *(
        elements(f"{name}", real(10, lo=0.1), accuracy=None)
        for name in (
            "exp",
            "log",
            "sin",
            "cos",
            "tan",
            "tanh",
            "exp2",
            "log1p",
            "expm1",
            "logistic",
            "sqrt",
            "rsqrt",
            "cbrt",
        )
    ),
]
