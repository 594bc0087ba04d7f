"""Cases of polynomials, windows, gradients, histograms of several axes, ufunc methods and index tricks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

f32 = np.float32


def call(name: str, label: str, *operands: Any, derivatives: bool = True, **options: Any) -> Case:
    return Case(
        f"{name} {label}", lambda lib, *xs: getattr(lib.numpy, name)(*xs, **options), operands, derivatives=derivatives
    )


def method(name: str, way: str, label: str, *operands: Any, derivatives: bool = True, **options: Any) -> Case:
    return Case(
        f"{name}.{way} {label}",
        lambda lib, *xs: getattr(getattr(lib.numpy, name), way)(*xs, **options),
        operands,
        derivatives=derivatives,
    )


def indexed(name: str, key: Callable[[Any], Any], label: str, *operands: Any) -> Case:
    return Case(f"{name} {label}", lambda lib, *xs: getattr(lib.numpy, name)[key(xs)], operands)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


SIZES = ((1, 1), (1, 4), (4, 1), (3, 3), (2, 5), (5, 2), (6, 6), (7, 3))
PAIRS = [(real(n), real(m, seed=1)) for n, m in SIZES]
PAIRS += [(ints(1, 2, 3), ints(4, 5)), (real(3) + 1j * real(3, seed=2), real(2))]
POLYNOMIALS = [
    Case(f"{name} {a.shape} {b.shape} {a.dtype}", lambda lib, a, b, name=name: getattr(lib.numpy, name)(a, b), (a, b))
    for name in ("polyadd", "polysub", "polymul")
    for a, b in PAIRS
]
DIVISIONS = [(real(n, lo=0.5), real(m, lo=0.5, hi=2)) for n, m in (*SIZES, (8, 2))]
POLYNOMIALS += [call("polydiv", f"{u.shape} {v.shape}", u, v) for u, v in DIVISIONS]
POLYNOMIALS += [call("polydiv", "of ints", ints(2, 4, 6), ints(2, 1))]
ORDERS = [(n, m) for n, m in ((1, 1), (2, 1), (5, 1), (5, 2), (5, 3), (6, 0), (4, 4), (7, 5))]
for name in ("polyder", "polyint"):
    POLYNOMIALS += [call(name, f"{n} {m}", real(n), m=m) for n, m in ORDERS]
    POLYNOMIALS += [call(name, "of ints", ints(1, 2, 3)), call(name, "of ints twice", ints(3, 4, 5, 6), m=2)]
POLYNOMIALS += [call("polyint", "k", real(4), m=2, k=f32(0.5))]
ROOTS = [np.array(v, f32) for v in ([1.5], [1, 2], [0.5, -1, 2], [1, 1, 1, 1], [-2, 0.5, 3, 1, 0], [0, 0])]
POLYNOMIALS += [call("poly", f"{v.tolist()}", v) for v in ROOTS]
POLYNOMIALS += [
    call("poly", "complex", np.array([1 + 1j, 2 - 1j, 0.5], np.complex64)),
    call("poly", "ints", ints(1, 2, 3, 4)),
    call("poly", "none", np.zeros(0, f32)),
    call("poly", "diagonal", np.diag(np.array([1.0, 2.0, 4.0], f32)), derivatives=False),
]


def _powers(lib: Any, p: Any, **options: Any) -> Any:
    """What does not depend on the order of the roots: the sums of their squares and cubes."""
    found = lib.numpy.roots(p, **options)
    return (found**2).sum(), (found**3).sum()


OF_ROOTS = ([1.0, -3.0, 2.0], [2.0, 1.0, -5.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0], [1, -6, 11, -6.5], [3.0, 1, 1, 1, 1])
POLYNOMIALS += [
    Case(
        f"roots {v} {strip}",
        lambda lib, p, strip=strip: _powers(lib, p, strip_zeros=strip),
        (np.array(v, f32),),
        derivatives=not strip,
    )
    for v in OF_ROOTS
    for strip in (False,)
]
POLYNOMIALS += [
    Case(f"roots sorted {v}", lambda lib, v=v: lib.numpy.sort(lib.numpy.roots(np.array(v, f32)).real))
    for v in ([0, 0, 1.0, -3.0, 2.0], [1.0, -3.0, 2.0, 0], [0.0, 0.0], [5.0], [0, 2.0, 4.0, 0, 0])
]
X, Y = np.linspace(-1, 2, 8, dtype=f32), real(8)
FITS: tuple[dict[str, Any], ...] = (
    {"deg": 0}, {"deg": 1}, {"deg": 2}, {"deg": 3}, {"deg": 2, "w": real(8, lo=0.5)}, {"deg": 1, "cov": True},
    {"deg": 2, "cov": "unscaled"}, {"deg": 2, "w": real(8, lo=0.5), "cov": True}, {"deg": 1, "rcond": 1e-3},
)  # fmt: skip
POLYNOMIALS += [
    Case(
        f"polyfit {i}",
        lambda lib, x, y, o=o: lib.numpy.polyfit(x, y, **o),
        (X, Y),
    )
    for i, o in enumerate(FITS)
]
POLYNOMIALS += [
    call("polyfit", "of two", X, real(8, 2), deg=2),
    call("polyfit", "of two with cov", X, real(8, 2), deg=1, cov=True),
    Case("polyfit full", lambda lib, x, y: lib.numpy.polyfit(x, y, 2, full=True)[:2], (X, Y)),
]

LENGTHS = (0, 1, 3, 4, 5, 6, 8, 13, 16, 31)
WINDOWS = [
    Case(f"{name} {n}", lambda lib, name=name, n=n: getattr(lib.numpy, name)(n))
    for name in ("bartlett", "blackman", "hamming", "hanning")
    for n in LENGTHS
]
BETAS = (0.0, 1.0, 2.5, 5.0, 8.6, 14.0)
WINDOWS += [
    Case(f"kaiser {n} {b}", lambda lib, b, n=n: lib.numpy.kaiser(n, b), (f32(b),), derivatives=b > 0 and n > 1)
    for n, b in [*((7, b) for b in BETAS), (1, 3.0), (0, 3.0), (12, 4.0), (2, 4.0)]
]
WINDOWS += [Case("i0", lambda lib, x: lib.numpy.i0(x), (real(12, lo=-3, hi=6),), elementwise=True)]

GRID = real(4, 5)
STEPS = np.array([0.0, 0.5, 2.0, 2.5, 4.0], f32)
GRADIENTS = [
    call("gradient", "vector", real(6)), call("gradient", "two", real(2)), call("gradient", "matrix", GRID),
    call("gradient", "axis 0", GRID, axis=0), call("gradient", "axis -1", GRID, axis=-1),
    call("gradient", "axes", GRID, axis=(1, 0)), call("gradient", "step", GRID, f32(0.5), axis=1),
    call("gradient", "steps", GRID, f32(0.5), f32(2)), call("gradient", "coordinates", GRID, STEPS, axis=1),
    call("gradient", "ints", ints(1, 4, 9, 16)), call("gradient", "complex", (real(5) + 1j * real(5, seed=3))),
    call("gradient", "three", real(3, 4, 2)),
]  # fmt: skip

A, B = real(20), real(20, seed=5)
EDGES = np.array([-1, -0.2, 0.1, 0.9], f32)
BINNED: tuple[dict[str, Any], ...] = (
    {}, {"bins": 3}, {"bins": (2, 3)}, {"bins": EDGES}, {"bins": [EDGES, 2]}, {"bins": 2, "range": [[-1, 0], [0, 1]]},
    {"bins": 2, "range": [None, [0, 1]]}, {"bins": 4, "density": True}, {"bins": (2, 2), "weights": real(20, seed=6)},
    {"bins": 3, "weights": real(20, seed=6), "density": True},
)  # fmt: skip
HISTOGRAMS = [
    Case(f"histogram2d {i}", lambda lib, a, b, o=o: lib.numpy.histogram2d(a, b, **o), (A, B), derivatives=False)
    for i, o in enumerate(BINNED)
]
IN_SPACE: tuple[dict[str, Any], ...] = (
    {"bins": 2}, {"bins": (1, 2, 3)}, {"bins": [EDGES, EDGES, 2]}, {"bins": 2, "density": True},
    {"bins": 3, "weights": real(15, seed=7)}, {"bins": 2, "range": [None, [0, 1], [-1, 0]]},
    {"bins": (2, 1, 2), "density": True, "weights": real(15, lo=0.1, seed=7)}, {"bins": 4}, {"bins": [EDGES] * 3},
    {"bins": 1},
)  # fmt: skip
HISTOGRAMS += [
    Case(f"histogramdd {i}", lambda lib, x, o=o: lib.numpy.histogramdd(x, **o), (real(15, 3),), derivatives=False)
    for i, o in enumerate(IN_SPACE)
]

M = real(3, 4)
MASK = np.array([[True, False, True, True], [False] * 4, [True] * 4])
METHODS = []
for name in ("add", "multiply", "maximum", "subtract", "logaddexp"):
    METHODS += [
        method(name, "reduce", "axis 0", M), method(name, "reduce", "axis 1", M, axis=1),
        method(name, "reduce", "all", M, axis=None), method(name, "reduce", "keepdims", M, axis=1, keepdims=True),
        method(name, "reduce", "initial", M, initial=f32(0.5)),
        method(name, "reduce", "where", M, initial=f32(0.25), where=MASK),
        method(name, "reduce", "vector", real(7)), method(name, "reduce", "ints", ints(3, 1, 2)),
        method(name, "reduce", "one", real(1, 3)), method(name, "reduce", "three axes", real(2, 3, 2), axis=-1),
        method(name, "accumulate", "axis 0", M), method(name, "accumulate", "axis 1", M, axis=1),
        method(name, "accumulate", "vector", real(6)), method(name, "accumulate", "ints", ints(3, 1, 2)),
        method(name, "accumulate", "one", real(1, 3)), method(name, "accumulate", "last", real(2, 3, 2), axis=-1),
        method(name, "accumulate", "complex" if name in ("add", "multiply") else "again", real(5, seed=8)),
        method(name, "accumulate", "two", real(2, 2)), method(name, "accumulate", "three", real(2, 2, 2), axis=1),
        method(name, "accumulate", "long", real(20)),
    ]  # fmt: skip
    PLACES = (ints(0, 0, 1), ints(2), ints(1, 2, 0), ints(-1, 0), (ints(0, 1), ints(3, 3)))
    METHODS += [
        Case(
            f"{name}.at {i} {b.shape}",
            lambda lib, x, b, name=name, p=p: getattr(lib.numpy, name).at(x, p, b, inplace=False),
            (M, b),
        )
        for i, p in enumerate(PLACES)
        for b in (f32(1.5), real(1, seed=9))
        if not (name in ("maximum", "logaddexp") and b.shape)
    ]
    if name in ("maximum", "logaddexp"):
        METHODS += [
            Case(
                f"{name}.at vector {i}",
                lambda lib, x, b, name=name, p=p: getattr(lib.numpy, name).at(x, p, b, inplace=False),
                (real(4), real(len(p), seed=i)),
            )
            for i, p in enumerate((ints(0), ints(1, 2), ints(3, 0, 2), ints(0, 1, 2, 3), ints(2, 0)))
        ]
    SHAPES = (((2,), (3,)), ((2, 2), (3,)), ((1,), (1,)), ((), (3,)), ((4,), ()), ((2,), (2, 2)))
    METHODS += [method(name, "outer", f"{s} {t}", real(*s), real(*t, seed=4)) for s, t in SHAPES]
    METHODS += [
        method(name, "outer", "ints", ints(1, 2), ints(3, 4, 5)), method(name, "outer", "mixed", ints(1, 2), real(2)),
        method(name, "outer", "empty", real(0), real(2)), method(name, "outer", "scalars", f32(2), f32(3)),
    ]  # fmt: skip
    STRETCHES = (
        ints(0),
        ints(0, 2),
        ints(1, 3),
        ints(0, 4, 1, 5),
        ints(3, 3, 0),
        ints(5, 0),
        ints(0, 1, 2, 3),
        ints(2),
    )
    METHODS += [
        method(name, "reduceat", f"{i} {s.size}", real(6), s, derivatives=name != "logaddexp")
        for i, s in enumerate(STRETCHES)
    ]
    METHODS += [method(name, "reduceat", f"axis {i}", M, ints(0, 2), axis=i) for i in (0, 1)]


def _longer(lib: Any, *xs: Any) -> Any:
    return lib.numpy.frompyfunc(lambda x, y: lib.numpy.sqrt(x * x + y * y), 2, 1)(*xs)


METHODS += [
    Case(f"frompyfunc {s} {t}", _longer, (real(*s, lo=0.1), real(*t, lo=0.2, seed=1)))
    for s, t in (((3,), (3,)), ((2, 3), (3,)), ((), (4,)), ((2, 1), (1, 3)), ((), ()), ((1,), (5,)))
]
METHODS += [
    Case(
        f"frompyfunc reduce {i}",
        lambda lib, x, axis=axis: lib.numpy.frompyfunc(lambda a, b: a * b + a, 2, 1).reduce(x, axis=axis),
        (M,),
    )
    for i, axis in enumerate((0, 1, None, -1))
]

UGLY = np.array([0, 1, -1, 2.5, 1e-30, -1e30, np.inf, np.nan, 1023, 1e-44, 65504, -0.3], f32)
OTHERS = [Case("spacing", lambda lib, x: lib.numpy.spacing(x), (UGLY,), derivatives=False, elementwise=True)]
KEYS: tuple[Any, ...] = (
    np.s_[0:3, 0:2], np.s_[0:1:3j], np.s_[0:5:2, 1:3], np.s_[:3], np.s_[0:2, 0:2, 0:2], np.s_[-1:1:0.5],
    np.s_[0:1:3j, 0:2], np.s_[5:0:-1], np.s_[0:0, 0:2], np.s_[1.5:3],
)  # fmt: skip
for name in ("mgrid", "ogrid"):
    OTHERS += [indexed(name, lambda xs, key=key: key, f"{i}") for i, key in enumerate(KEYS)]
V, W = real(3), real(3, seed=1)
TOGETHER: tuple[tuple[str, Callable[[Any], Any], tuple[Any, ...]], ...] = (
    ("two", lambda xs: (xs[0], xs[1]), (V, W)), ("range", lambda xs: (np.s_[1:4], xs[0]), (V,)),
    ("number", lambda xs: (0.5, xs[0], 2), (V,)), ("points", lambda xs: (np.s_[0:1:4j], xs[0]), (V,)),
    ("range alone", lambda xs: np.s_[1:4], ()), ("ints", lambda xs: (np.s_[0:2], 7), ()),
    ("last axis", lambda xs: ("-1", xs[0], xs[1]), (M, M)), ("two axes", lambda xs: ("0,2", xs[0], xs[1]), (V, W)),
    ("position", lambda xs: ("1,2,0", xs[0], xs[1]), (V, W)), ("row", lambda xs: ("r", xs[0], xs[1]), (V, W)),
    ("column", lambda xs: ("c", xs[0], xs[1]), (V, W)),
)  # fmt: skip
OTHERS += [indexed("r_", key, label, *xs) for label, key, xs in TOGETHER]
SIDE_BY_SIDE: tuple[tuple[str, Callable[[Any], Any], tuple[Any, ...]], ...] = (
    ("two", lambda xs: (xs[0], xs[1]), (V, W)), ("matrices", lambda xs: (xs[0], xs[1]), (M, M)),
    ("mixed", lambda xs: (xs[0], xs[1]), (M, V)), ("range", lambda xs: (np.s_[1:4], xs[0]), (V,)),
    ("ranges", lambda xs: (np.s_[1:3], np.s_[2:4]), ()), ("one", lambda xs: xs[0], (V,)),
    ("ints", lambda xs: (xs[0], xs[1]), (ints(1, 2), ints(3, 4))),
    ("cubes", lambda xs: (xs[0], xs[0]), (real(2, 2, 2),)),
    ("points", lambda xs: (np.s_[0:1:3j], xs[0]), (V,)), ("three", lambda xs: (xs[0], xs[1], xs[0]), (V, W)),
)  # fmt: skip
OTHERS += [indexed("c_", key, label, *xs) for label, key, xs in SIDE_BY_SIDE]
WHERE = np.array([[True, False, True], [False, True, False]])
OTHERS += [
    Case(f"where size={n} {v}", lambda lib, n=n, v=v: lib.numpy.where(WHERE, size=n, fill_value=v))
    for n in (1, 2, 3, 5, 8)
    for v in (None, -1)
]
OTHERS += [
    Case(f"fromstring {i}", lambda lib, text=text, sep=sep, kind=kind: lib.numpy.fromstring(text, kind, sep=sep))
    for i, (text, sep, kind) in enumerate(
        [
            ("1 2 3", " ", float),
            ("1,2,3", ",", int),
            ("4", " ", "int8"),
            ("1.5;2e3", ";", "float16"),
            ("1 , 2", ",", float),
        ]
        + [(f"{k} {k + 1}", " ", "float32") for k in range(5)]
    )
]

CASES = [*POLYNOMIALS, *WINDOWS, *GRADIENTS, *HISTOGRAMS, *METHODS, *OTHERS]
