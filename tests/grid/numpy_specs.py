"""The rows for the functions of ``pullback.numpy``, whose references are NumPy's functions of the same names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as jnp
from tests.grid.specs import FLOAT, INEXACT, K, Pivoted, PositiveDefinite, R, Sample, Spec, derivative_of


def fn(
    name: str,
    *samples: Sample,
    dtypes: str = "f",
    label: str = "",
    call: Callable[..., Any] | None = None,
    **options: Any,
) -> Spec:
    """A row for a function; ``call(numpy, *arrays)`` says how it is called, if not with arrays and keywords alone."""
    chosen = {k: options.pop(k) for k in list(options) if k not in _OPTIONS}
    options.setdefault("derivative", derivative_of(dtypes))
    run = call if call is not None else lambda module, *xs: getattr(module, name)(*xs, **chosen)
    shown = label or ",".join(f"{k}={v}" for k, v in chosen.items())
    title = f"numpy.{name}({'x'.join(str(s.shape) for s in samples)}{';' + shown if shown else ''})"
    return Spec(title, f"numpy.{name}", partial(run, jnp), partial(run, np), samples, dtypes, **options)


_OPTIONS = {"derivative", "differentiable", "ugly", "second", "tolerance", "exact_dtype"}


def of_list(name: str, *samples: Sample, **options: Any) -> Spec:
    """A row for a function that takes a list of arrays."""
    keywords = {k: options.pop(k) for k in list(options) if k not in _OPTIONS and k not in ("dtypes", "label")}
    options.setdefault("label", ",".join(f"{k}={v}" for k, v in keywords.items()))
    return fn(name, *samples, call=lambda m, *xs: getattr(m, name)(list(xs), **keywords), **options)


def _in_linalg(module: Any, *xs: Any, name: str, options: dict[str, Any]) -> Any:
    return getattr(module.linalg, name)(*xs, **options)


def _top_two(module: Any, x: Any, axis: int, mode: str) -> Any:
    """The two largest or smallest elements along an axis."""
    if module is not np:
        return module.top_k(x, 2, axis=axis, mode=mode)[0]
    ordered = np.sort(x, axis) if mode == "smallest" else np.flip(np.sort(x, axis), axis)
    return np.take(ordered, [0, 1], axis)


def _bound(module: Any, x: Any, i: int) -> Any:
    """The smallest or the largest element along the last axis."""
    return module.minmax(x, axis=-1)[i] if module is not np else (np.max if i else np.min)(x, -1)


def _replaced(module: Any, x: Any, values: Any, name: str) -> Any:
    """What NumPy does in place, in a copy."""
    where = np.array([2, 0])
    arguments = (where, values) if name == "put" else (where, values, 0)
    if module is not np:
        return getattr(module, name)(x, *arguments, inplace=False)
    out = x.copy()
    getattr(np, name)(out, *arguments)
    return out


def each(names: str, *samples: Sample, **options: Any) -> list[Spec]:
    return [fn(name, *samples, **options) for name in names.split()]


def _method(module: Any, x: Any, name: str, way: str) -> Any:
    return getattr(getattr(module, name), way)(x)


def _power_sums(module: Any, p: Any) -> Any:
    """What does not depend on the order of the roots."""
    found = module.roots(p) if module is np else module.roots(p, strip_zeros=False)
    return (found**2).real.sum()


UNARY = [
    *each(
        "sin cos exp sinh cosh tanh expm1 negative positive square conj conjugate angle",
        R(2, 3, lo=-1, hi=1),
        dtypes=INEXACT + "i",
        tolerance=2,
    ),
    *each("tan arcsin arctan arcsinh arctanh asin atan asinh atanh", R(2, 3, lo=-0.8, hi=0.8), dtypes=INEXACT),
    *each("arccos acos exp2 cbrt deg2rad rad2deg radians degrees fabs sinc", R(2, 3, lo=-0.9, hi=0.9), dtypes=FLOAT),
    *each("abs absolute sign", R(2, 3), dtypes=INEXACT + "i"),
    *each("log log1p log2 log10 sqrt reciprocal", R(2, 3, lo=0.2), dtypes=INEXACT, tolerance=4),
    *each("arccosh acosh", R(2, 3, lo=1.2, hi=3), dtypes=INEXACT),
    *each("floor ceil trunc fix rint round around modf", R(2, 3), dtypes="f"),
    fn("round", R(3), decimals=1, derivative=""),
    *each("real imag", R(2, 3), dtypes="fF"),
    *each(
        "isfinite isinf isnan isposinf isneginf signbit isreal iscomplex logical_not", R(2, 3), dtypes="f", ugly=True
    ),
    *each("nan_to_num", R(2, 3), dtypes="fF"),
    *each("invert bitwise_not bitwise_invert bitwise_count", R(2, 3), dtypes="i", derivative="", exact_dtype=False),
    fn("frexp", R(3), derivative=""),
]

BINARY = [
    *[
        fn(name, R(*a), R(*b), dtypes=INEXACT + "i")
        for name in ("add", "subtract", "multiply")
        for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)))
    ],
    *[
        fn(name, R(*a), R(*b, lo=0.5), dtypes=dtypes)
        for name, dtypes in (("divide", INEXACT), ("true_divide", INEXACT))
        for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)))
    ],
    *[
        fn(name, R(*a), R(*b), dtypes="hfi")
        for name in ("maximum", "minimum", "fmax", "fmin")
        for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)))
    ],
    *each("hypot arctan2 atan2 logaddexp logaddexp2 copysign", R(2, 3), R(3), dtypes=FLOAT),
    *each("power pow float_power", R(2, 3, lo=0.3), R(3), dtypes="f", exact_dtype=False),
    fn("power", R(2, 3), call=lambda m, x: m.power(x, 3), label="3", dtypes="fFi"),
    fn("power", R(2, 3), call=lambda m, x: m.power(x, 2), label="2", dtypes="fFi"),
    fn("power", R(2, 3, lo=0.3), call=lambda m, x: m.power(x, -1.5), label="-1.5", dtypes="f"),
    *each("remainder mod fmod floor_divide divmod", R(2, 3), R(3, lo=1.1, hi=1.7), dtypes="f"),
    *each("remainder mod fmod floor_divide", R(2, 3), R(3, lo=1, hi=3), dtypes="i"),
    fn("heaviside", R(2, 3), R(3)),
    fn("nextafter", R(2, 3), R(3), derivative=""),
    fn("ldexp", R(3), K([1, -2, 3]), dtypes="f"),
    *each(
        "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose",
        R(2, 3),
        R(3),
        dtypes="fi",
    ),
    *each("allclose array_equal array_equiv", R(2, 3), R(2, 3), derivative=""),
    *each("bitwise_and bitwise_or bitwise_xor gcd lcm", R(2, 3), R(3), dtypes="i", derivative=""),
    *each(
        "left_shift right_shift bitwise_left_shift bitwise_right_shift", R(2, 3), R(3, lo=0), dtypes="i", derivative=""
    ),
    fn("where", K([[True, False, True]]), R(2, 3), R(3), dtypes="fFi"),
    fn("clip", R(2, 3), R(3, lo=-2, hi=-1), R(lo=1)),
    fn("clip", R(2, 3), call=lambda m, x: m.clip(x, None, 0.5), label="None,0.5"),
    fn(
        "select",
        K([True, False, True]),
        K([False, True, True]),
        R(3),
        R(3),
        call=lambda m, a, b, x, y: m.select([a, b], [x, y], 0.5),
        exact_dtype=False,
    ),
]

AXES: tuple[Any, ...] = (None, 0, (0, 1), -1)
REDUCTIONS = [
    *[
        fn(name, R(2, 3, lo=0.3), dtypes=dtypes, axis=axis)
        for name, dtypes in (
            ("sum", "fFi"),
            ("prod", "fFi"),
            ("mean", "fFi"),
            ("max", "fi"),
            ("min", "fi"),
            ("amax", "f"),
            ("amin", "f"),
            ("var", "fF"),
            ("std", "f"),
            ("ptp", "f"),
            ("nansum", "f"),
            ("nanprod", "f"),
            ("nanmean", "f"),
            ("nanmax", "f"),
            ("nanmin", "f"),
            ("nanvar", "f"),
            ("nanstd", "f"),
        )
        for axis in AXES
    ],
    *[fn(name, R(3, 4, lo=0.3), keepdims=True, axis=1) for name in ("sum", "mean", "max", "var", "prod", "std")],
    *[fn(name, R(3, 4, lo=0.3), axis=0, ddof=1) for name in ("var", "std", "nanvar")],
    *[
        fn(
            name,
            R(3, 4),
            K([[True, False, True, True]] * 3),
            call=partial(lambda m, x, w, n: getattr(m, n)(x, where=w, axis=1), n=name),
            label="where",
        )
        for name in ("sum", "mean", "prod")
    ],
    *[
        fn(
            name,
            R(3, 4),
            K([[True, False, True, True]] * 3),
            call=partial(lambda m, x, w, n: getattr(m, n)(x, where=w, axis=1, initial=-9.0), n=name),
            label="where,initial",
        )
        for name in ("max",)
    ],
    *[
        fn(name, R(3, 2), axis=axis, dtypes="f")
        for name in ("argmax", "argmin", "nanargmax", "nanargmin")
        for axis in (None, 0, 1)
    ],
    *[fn(name, R(3, 2), axis=axis, dtypes="fi") for name in ("all", "any", "count_nonzero") for axis in (None, 0, 1)],
    *[
        fn(name, R(3, 2), axis=axis, dtypes="fFi")
        for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")
        for axis in (None, 0, 1)
    ],
    *[fn(name, R(3, 2), axis=axis) for name in ("cumulative_sum", "cumulative_prod") for axis in (0, 1)],
    fn("cumulative_sum", R(3, 2), axis=0, include_initial=True),
    fn("sum", K([[1, 2, 3], [4, 5, 6]], np.uint8), dtypes="f"),
]

MANIPULATION = [
    fn("reshape", R(2, 3), shape=(3, -1), dtypes="fFi"),
    fn("reshape", R(2, 3), shape=(3, 2), order="F"),
    fn("ravel", R(2, 3)),
    fn("ravel", R(2, 3), order="F"),
    fn("expand_dims", R(2, 3), axis=(0, -1)),
    fn("squeeze", R(1, 3, 1)),
    fn("squeeze", R(1, 3, 1), axis=-1),
    fn("atleast_1d", R()),
    fn("atleast_2d", R(3)),
    fn("atleast_3d", R(2, 3)),
    fn("broadcast_to", R(3), shape=(2, 3)),
    fn("broadcast_arrays", R(3), R(2, 1), call=lambda m, *xs: list(m.broadcast_arrays(*xs))),
    fn("transpose", R(2, 3)),
    fn("transpose", R(2, 3, 2), axes=(2, 0, 1)),
    fn("permute_dims", R(2, 3), axes=(1, 0)),
    fn("matrix_transpose", R(2, 3, 2)),
    fn("swapaxes", R(2, 3, 2), axis1=0, axis2=-1),
    fn("moveaxis", R(2, 3, 2), source=0, destination=-1),
    fn("rollaxis", R(2, 3, 2), axis=2),
    of_list("concatenate", R(2, 3), R(1, 3), dtypes="fFi"),
    of_list("concatenate", R(2, 3), R(2, 1), axis=1),
    of_list("concatenate", R(2), R(1, 3), axis=None),
    of_list("concat", R(2), R(3)),
    of_list("stack", R(2, 3), R(2, 3), axis=-1, dtypes="fFi"),
    of_list("vstack", R(3), R(2, 3)),
    of_list("hstack", R(3), R(2)),
    of_list("dstack", R(2, 3), R(2, 3)),
    of_list("column_stack", R(3), R(3, 2)),
    fn("block", R(2, 3), R(2, 1), R(1, 4), call=lambda m, a, b, c: m.block([[a, b], [c]])),
    fn("split", R(4, 2), call=lambda m, x: list(m.split(x, 2))),
    fn("array_split", R(5), call=lambda m, x: list(m.array_split(x, 3))),
    fn("split", R(5), call=lambda m, x: list(m.split(x, [1, 3])), label="[1,3]"),
    fn("vsplit", R(4, 2), call=lambda m, x: list(m.vsplit(x, 2))),
    fn("hsplit", R(2, 4), call=lambda m, x: list(m.hsplit(x, 2))),
    fn("dsplit", R(1, 2, 4), call=lambda m, x: list(m.dsplit(x, 2))),
    fn("unstack", R(2, 3), call=lambda m, x: list(m.unstack(x, axis=1))),
    fn("tile", R(2, 3), reps=(2, 1)),
    fn("tile", R(3), reps=2),
    fn("repeat", R(2, 3), repeats=2, axis=1),
    fn("repeat", R(3), repeats=2),
    fn("repeat", R(3), call=lambda m, x: m.repeat(x, np.array([1, 0, 2])), label="[1,0,2]"),
    fn("flip", R(2, 3)),
    fn("flip", R(2, 3), axis=1),
    fn("flipud", R(2, 3)),
    fn("fliplr", R(2, 3)),
    fn("rot90", R(2, 3)),
    fn("rot90", R(2, 3), k=2),
    fn("roll", R(2, 3), shift=1),
    fn("roll", R(2, 3), shift=-1, axis=1),
    fn("roll", R(2, 3), shift=(1, 2), axis=(0, 1)),
    fn("copy", R(2, 3)),
    fn("array", R(2, 3)),
    fn("asarray", R(2, 3)),
    fn("astype", R(2, 3), call=lambda m, x: m.astype(x, np.complex64), derivative=""),
    fn("meshgrid", R(2), R(3), call=lambda m, *xs: list(m.meshgrid(*xs))),
    fn("meshgrid", R(2), R(3), call=lambda m, *xs: list(m.meshgrid(*xs, indexing="ij", sparse=True)), label="ij"),
    fn("vander", R(3)),
    fn("full_like", R(2, 3), fill_value=2.0),
    *each("zeros_like ones_like", R(2, 3)),
    fn("linspace", R(), R(), num=4),
    fn("linspace", R(2), R(2), num=3, axis=-1),
    fn("logspace", R(), R(), num=3, tolerance=10),
    fn("geomspace", R(lo=0.5), R(lo=3, hi=4), num=3, tolerance=10),
]

CONTRACTIONS = [
    *[
        fn(name, R(*a), R(*b), dtypes="fFi", tolerance=4)
        for name in ("dot", "inner")
        for a, b in (((3,), (3,)), ((2, 3), (3,)), ((), (3,)))
    ],
    *[
        fn("matmul", R(*a), R(*b), dtypes="fF", tolerance=4)
        for a, b in (
            ((3,), (3,)),
            ((2, 3), (3, 2)),
            ((3,), (3, 2)),
            ((2, 3), (3,)),
            ((2, 2, 3), (3, 2)),
            ((2, 2, 3), (2, 3, 2)),
            ((1, 2, 3), (2, 3, 2)),
        )
    ],
    fn("dot", R(2, 3), R(3, 2), tolerance=4),
    fn("dot", R(2, 2, 3), R(2, 3, 2), tolerance=4),
    fn("inner", R(2, 3), R(2, 3), tolerance=4),
    *[fn(name, R(2, 3), R(2, 3), dtypes="fF", tolerance=4) for name in ("vdot", "vecdot")],
    fn("matvec", R(2, 3), R(3), tolerance=4, call=lambda m, a, x: m.matmul(a, x) if m is np else m.matvec(a, x)),
    fn("vecmat", R(2), R(2, 3), tolerance=4, call=lambda m, x, a: m.matmul(x, a) if m is np else m.vecmat(x, a)),
    fn("outer", R(2), R(3), dtypes="fF"),
    fn("tensordot", R(2, 3), R(3, 2), axes=1),
    fn("tensordot", R(2, 3), R(3, 2), axes=((0, 1), (1, 0))),
    fn("tensordot", R(2), R(3), axes=0),
    fn("kron", R(2), R(3)),
    fn("kron", R(2, 3), R(2, 1)),
    fn("cross", R(3), R(3)),
    fn("cross", R(2, 3), R(2, 3)),
    fn("trace", R(3, 4)),
    fn("trace", R(2, 3), offset=1),
    fn("polyval", R(3), R(2)),
    *[
        fn(name, R(4), R(3), mode=mode, tolerance=4)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
    ],
    *[
        fn(
            "einsum",
            *(R(*s) for s in shapes),
            dtypes="fF",
            tolerance=4,
            label=formula,
            call=partial(lambda m, *xs, f: m.einsum(f, *xs), f=formula),
        )
        for formula, shapes in (
            ("ij,jk->ik", ((2, 3), (3, 2))),
            ("ij->ji", ((2, 3),)),
            ("ii->i", ((3, 3),)),
            ("ii", ((3, 3),)),
            ("i,j->ij", ((2,), (3,))),
            ("ij,ij->", ((2, 3), (2, 3))),
            ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
            ("ij->", ((2, 3),)),
            ("...i,i->...", ((2, 3), (3,))),
            ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 1))),
            ("i,i,i->i", ((3,), (3,), (3,))),
            ("ijj->i", ((2, 3, 3),)),
        )
    ],
]

SORTING = [
    *[fn("sort", R(3, 4), axis=axis, dtypes="fi") for axis in (0, 1, None)],
    *[fn("argsort", R(3, 4), axis=axis, dtypes="fi", derivative="", stable=True) for axis in (0, 1)],
    of_list("lexsort", R(4), R(4), derivative=""),
    fn("partition", R(5), call=lambda m, x: m.sort(m.partition(x, 2)), derivative=""),
    fn(
        "argpartition",
        R(5),
        call=lambda m, x: m.sort(x[m.argpartition(x, 2)]) if m is np else m.sort(m.partition(x, 2)),
        derivative="",
    ),
    *[
        fn("top_k", R(3, 4), dtypes="fi", label=f"{mode},{axis}", call=partial(_top_two, axis=axis, mode=mode))
        for axis in (0, 1)
        for mode in ("largest", "smallest")
    ],
    *[fn("minmax", R(3, 4), dtypes="fi", label=f"{i}", call=partial(_bound, i=i)) for i in (0, 1)],
    fn("sort_complex", R(4), dtypes="F", derivative=""),
    *[fn("searchsorted", R(4, sort=True), R(2, 3), side=side, derivative="") for side in ("left", "right")],
    fn("isin", R(3), R(4), derivative=""),
]

INDICES: dict[str, Any] = {
    "1": 1,
    "-1": -1,
    "1:": np.s_[1:],
    "::-1": np.s_[::-1],
    "::2": np.s_[::2],
    ":,1": np.s_[:, 1],
    "None": np.s_[None],
    "...,0": np.s_[..., 0],
    "[2,0,2]": np.array([2, 0, 2]),
    ":,[1,0]": np.s_[:, np.array([1, 0])],
    "[0,2],[1,1]": (np.array([0, 2]), np.array([1, 1])),
    "[[0],[2]],[0,1]": (np.array([[0], [2]]), np.array([0, 1])),
    "mask": np.array([True, False, True]),
    "[-1],None": (np.array([-1]), None),
    "masks": np.array([[True, False], [False, False], [True, True]]),
    "1,::-1": np.s_[1, ::-1],
    "()": (),
}


def updated(how: str, index: Any) -> Callable[..., Any]:
    """An update of the elements at an index: in place in a copy for NumPy, by ``.at`` for ours."""

    def update(module: Any, x: Any, value: Any) -> Any:
        if module is not np:
            return getattr(x.at[index], how)(value)
        out = x.copy()
        ufuncs = {
            "add": np.add,
            "multiply": np.multiply,
            "min": np.minimum,
            "max": np.maximum,
            "power": np.power,
            "divide": np.divide,
        }
        if how == "set":
            out[index] = value
        elif isinstance(index, np.ndarray) and index.dtype != bool:
            ufuncs[how].at(out, index, value)
        else:
            out[index] = ufuncs[how](out[index], value).astype(x.dtype)
        return out

    return update


INDEXING = [
    *[
        fn("getitem", R(3, 2), dtypes="fFi", label=label, call=partial(lambda m, x, i: x[i], i=index))
        for label, index in INDICES.items()
    ],
    fn("getitem", R(4), K([2, 0]), call=lambda m, x, i: x[i], label="traced index"),
    fn("getitem", R(3, 2), K(1), call=lambda m, x, i: x[i, 0], label="traced scalar"),
    *[
        fn("at", R(3, 2), R(), dtypes="f", label=f"[{label}].{how}", call=updated(how, index), second=how != "power")
        for label, index in INDICES.items()
        for how in ("set", "add", "multiply")
    ],
    *[
        fn("at", R(4, lo=0.5), R(3, lo=0.5), dtypes="f", label=f"[2,0,1].{how}", call=updated(how, np.array([2, 0, 1])))
        for how in ("set", "add", "multiply", "divide", "power", "min", "max")
    ],
    fn("at", R(4), R(3), dtypes="fi", label="[2,0,2].add", call=updated("add", np.array([2, 0, 2]))),
    *[fn("take", R(3, 2), K([2, 0]), axis=axis, dtypes="fFi") for axis in (0, None)],
    fn("take", R(3), K([[1, 5, 2], [0, 1, -1]]), mode="clip"),
    fn("take_along_axis", R(3, 2), K([[0, 1]]), axis=0),
    fn("take_along_axis", R(2, 3), K([[2], [0]]), axis=1),
    fn("choose", K([0, 1, 1]), R(3), R(3), call=lambda m, w, a, b: m.choose(w, [a, b], mode="clip")),
    fn("compress", R(3, 2), call=lambda m, x: m.compress(np.array([True, False, True]), x, axis=0)),
    fn("extract", R(3), call=lambda m, x: m.extract(np.array([True, False, True]), x)),
    fn("ix_", R(3, 2), call=lambda m, x: x[m.ix_([0, 2], [1])]),
    fn("unravel_index", K([1, 5]), shape=(2, 3), exact_dtype=False),
    fn(
        "ravel_multi_index",
        K([0, 1]),
        K([2, 1]),
        call=lambda m, *i: m.ravel_multi_index(i, (2, 3), mode="clip"),
        exact_dtype=False,
    ),
    *[fn(name, R(3), R(2), call=partial(_replaced, name=name)) for name in ("put", "put_along_axis")],
]

STATISTICS = [
    *[
        fn(name, R(3, 4), axis=axis, tolerance=4)
        for name in ("average", "median", "nanmedian")
        for axis in (None, 0, 1)
    ],
    fn("average", R(3), R(3, lo=0.5), call=lambda m, x, w: m.average(x, weights=w)),
    *[
        fn(name, R(3, 4), q=q, axis=1, tolerance=4)
        for name, q in (("quantile", 0.3), ("percentile", 40.0), ("nanquantile", 0.6), ("nanpercentile", 15.0))
    ],
    *[fn("quantile", R(5), q=0.3, method=method, tolerance=4) for method in ("lower", "higher", "midpoint")],
    fn("cov", R(2, 4), tolerance=10, exact_dtype=False),
    fn("corrcoef", R(2, 4), tolerance=10, exact_dtype=False),
    *[fn("diff", R(4, 3), n=n, axis=axis) for n, axis in ((1, -1), (2, 0))],
    fn("ediff1d", R(4)),
    fn("trapezoid", R(4)),
    fn("trapezoid", R(4), dx=0.5),
    fn("trapezoid", R(4), R(4, sort=True)),
    fn("digitize", R(3), K([-1.0, 0.0, 1.0], np.float32, fixed=True), derivative="", exact_dtype=False),
    fn(
        "bincount",
        K([1, 0, 1]),
        R(3),
        call=lambda m, i, w: m.bincount(i, w, 3) if m is np else m.bincount(i, w, length=3),
        exact_dtype=False,
    ),
    fn("histogram", R(5), derivative="", exact_dtype=False, call=lambda m, x: list(m.histogram(x, 3, (-2.0, 2.0)))),
]

POLYNOMIALS = [
    *[fn(name, R(4), R(3)) for name in ("polyadd", "polysub", "polymul")],
    fn("polydiv", R(4), R(2, lo=0.6), exact_dtype=False, tolerance=4),
    *[fn("polyder", R(5), m=m) for m in (1, 3)],
    *[fn("polyint", R(4), m=m) for m in (1, 2)],
    fn("poly", R(4), tolerance=4),
    fn("roots", R(4, lo=0.5), derivative="", exact_dtype=False, tolerance=40, call=_power_sums),
    fn(
        "polyfit",
        R(6, sort=True),
        R(6),
        tolerance=100,
        second=False,
        exact_dtype=False,
        call=lambda m, x, y: m.polyfit(x, y, 1),
    ),
]

GRIDS = [
    fn("gradient", R(4)),
    *[fn("gradient", R(4, 3), axis=0, edge_order=order) for order in (1, 2)],
    fn("gradient", R(4), R(4, sort=True), label="coordinates", tolerance=100),
    fn("i0", R(5, lo=-3, hi=3), tolerance=4),
    fn("kaiser", R(lo=1, hi=3), tolerance=8, exact_dtype=False, call=lambda m, b: m.kaiser(5, b)),
    fn("spacing", R(5), derivative="", exact_dtype=False),
    fn(
        "histogram2d",
        R(6), R(6), R(6),
        differentiable=(2,),
        exact_dtype=False,
        call=lambda m, x, y, w: m.histogram2d(x, y, 2, [(-2.0, 2.0)] * 2, weights=w)[0],
    ),
    *[
        fn(name, R(4, 3), label=way, call=partial(_method, name=name, way=way), exact_dtype=False, tolerance=4)
        for name in ("subtract", "logaddexp")
        for way in ("reduce", "accumulate")
    ],
    fn("multiply", R(3), R(2), label="outer", call=lambda m, x, y: m.multiply.outer(x, y)),
    fn("multiply", R(6), label="reduceat", call=lambda m, x: m.multiply.reduceat(x, np.array([0, 4, 2]))),
    fn("r_", R(3), R(2), call=lambda m, x, y: m.r_[x, y, 0:2]),
    fn("c_", R(3), R(3), call=lambda m, x, y: m.c_[x, y]),
]  # fmt: skip

INTERPOLATION = [
    fn(
        "interp",
        R(4, lo=-1.9, hi=1.9),
        K(np.array([-2.0, -0.71, 0.63, 2.0], np.float32), fixed=True),
        R(4),
        differentiable=(0, 2),
        exact_dtype=False,
        call=lambda m, x, xp, fp: m.interp(x, xp.astype(x.dtype), fp),
    ),
    fn("unwrap", R(5, lo=-6, hi=6), exact_dtype=False),
    fn("unwrap", R(2, 5, lo=-6, hi=6), axis=0, exact_dtype=False),
]

EDITING = [
    *[
        fn("pad", R(2, 3), pad_width=((1, 0), (2, 1)), mode=mode)
        for mode in ("constant", "edge", "wrap", "linear_ramp", "mean", "maximum")
    ],
    *[fn("pad", R(2, 4), pad_width=1, mode=mode) for mode in ("reflect", "symmetric", "minimum")],
    fn("append", R(2), R(3)),
    fn("append", R(2, 3), R(1, 3), axis=0),
    fn("delete", R(4), obj=1),
    fn("delete", R(3, 2), obj=[0, 2], axis=0),
    fn("insert", R(4), R(), call=lambda m, x, v: m.insert(x, 2, v)),
    fn("resize", R(2, 3), new_shape=(3, 3)),
    fn("resize", R(3), new_shape=2),
    fn("apply_along_axis", R(3, 2), call=lambda m, x: m.apply_along_axis(lambda r: r * r, 0, x)),
    fn("apply_over_axes", R(2, 3), call=lambda m, x: m.apply_over_axes(m.sum, x, [0, 1])),
    fn("vectorize", R(3), R(3), call=lambda m, x, y: m.vectorize(lambda a, b: a * b + a)(x, y)),
    fn("piecewise", R(4), call=lambda m, x: m.piecewise(x, [x < 0, x >= 0], [lambda v: -v * v, lambda v: v * v])),
    fn("packbits", K([1, 0, 1, 1, 0, 0, 0, 1], np.uint8), axis=0),
    fn("unpackbits", K([5, 200], np.uint8), axis=0),
]

LINALG = [
    *[
        fn(
            f"linalg.{name}",
            *samples,
            label=label,
            tolerance=4,
            exact_dtype=False,
            call=partial(_in_linalg, name=name, options=options),
        )
        for name, samples, label, options in (
            ("norm", (R(3),), "", {}),
            ("norm", (R(2, 3),), "", {}),
            ("norm", (R(2, 3),), "axis=1", {"axis": 1}),
            ("norm", (R(3),), "ord=1", {"ord": 1}),
            ("norm", (R(3),), "ord=3", {"ord": 3}),
            ("norm", (R(3),), "ord=inf", {"ord": np.inf}),
            ("norm", (R(2, 3),), "ord=1", {"ord": 1}),
            ("vector_norm", (R(3),), "", {}),
            ("matrix_norm", (R(2, 3),), "", {}),
            ("matrix_transpose", (R(2, 3),), "", {}),
            ("matmul", (R(2, 3), R(3, 2)), "", {}),
            ("tensordot", (R(2, 3), R(3, 2)), "axes=1", {"axes": 1}),
            ("vecdot", (R(2, 3), R(2, 3)), "", {}),
            ("outer", (R(2), R(3)), "", {}),
            ("cross", (R(3), R(3)), "", {}),
            ("trace", (R(4, 3),), "", {}),
            ("diagonal", (R(3, 4),), "", {}),
            ("matrix_power", (R(2, 2),), "n=3", {"n": 3}),
            ("matrix_power", (R(2, 2),), "n=0", {"n": 0}),
            ("matrix_power", (Pivoted(3, 3),), "n=-2", {"n": -2}),
        )
    ],
    *(
        fn(
            "linalg.cholesky",
            PositiveDefinite(*shape),
            dtypes="fdFD",
            label=f"upper={upper}",
            tolerance=4,
            call=partial(_in_linalg, name="cholesky", options={"upper": upper}),
        )
        for shape in ((3, 3), (3, 2, 2))
        for upper in (False, True)
    ),
    *(
        fn(
            f"linalg.{name}",
            *(Pivoted(*shape) if i == 0 else R(*shape) for i, shape in enumerate(shapes)),
            dtypes="fdFD",
            tolerance=4,
            call=partial(_in_linalg, name=name, options={}),
        )
        for name, shapes in (
            ("solve", ((3, 3), (3,))),
            ("solve", ((3, 3), (3, 2))),
            ("solve", ((2, 3, 3), (3,))),
            ("solve", ((3, 3), (2, 3, 1))),
            ("solve", ((2, 1, 2, 2), (3, 2, 2))),
            ("inv", ((3, 3),)),
            ("inv", ((3, 2, 2),)),
            ("det", ((4, 4),)),
            ("slogdet", ((4, 4),)),
        )
    ),
    *(
        fn(
            f"linalg.{name}",
            K([[1, 2, 0], [3, -1, 4], [2, 2, 5]], np.int32, fixed=True),
            label="integers",
            derivative="",
            exact_dtype=False,
            tolerance=8,
            call=partial(_in_linalg, name=name, options={}),
        )
        for name in ("inv", "det", "slogdet")
    ),
    fn(
        "linalg.multi_dot",
        R(2, 3),
        R(3, 2),
        R(2),
        tolerance=4,
        exact_dtype=False,
        call=lambda m, *xs: m.linalg.multi_dot(list(xs)),
    ),
]

DIAGONALS = [
    fn("diagonal", R(3, 4)),
    fn("diagonal", R(2, 3, 4), offset=1, axis1=1, axis2=2),
    fn("diag", R(3)),
    fn("diag", R(2), k=1),
    fn("diag", R(4, 3)),
    fn("diag", R(2, 3), k=-1),
    fn("diagflat", R(2, 1)),
    fn("tril", R(3, 4), dtypes="fi"),
    fn("tril", R(2, 3, 3), k=1),
    fn("triu", R(3, 4), dtypes="fi"),
    fn("triu", R(3, 2), k=-1),
    fn(
        "fill_diagonal",
        R(3, 4),
        R(),
        call=lambda m, x, v: np.where(np.eye(3, 4) > 0, v, x) if m is np else m.fill_diagonal(x, v, inplace=False),
    ),
]

# Functions that are found in ``pullback.numpy`` but have nothing to do with derivatives or batches of values.
_WITHOUT_ROWS = """
    arange bool bool_ broadcast_shapes can_cast cdouble character complex128 complex64 complex_ complexfloating csingle
    double dtype e empty empty_like euler_gamma eye finfo flexible float16 float32 float64 float_ floating frombuffer
    from_dlpack fromfunction fromiter full generic identity iinfo indices inexact inf int16 int32 int64 int8 int_
    integer isdtype isscalar issubdtype iterable nan ndarray ndim newaxis number ones pi promote_types result_type shape
    signedinteger single size tri uint uint16 uint32 uint64 uint8 unsignedinteger zeros bfloat16 float4_e2m1fn
    float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
    float8_e5m2fnuz float8_e8m0fnu int2 int4 uint2 uint4 iscomplexobj isrealobj fft linalg einsum_path ComplexWarning
    tril_indices triu_indices tril_indices_from triu_indices_from diag_indices diag_indices_from mask_indices
    IndexUpdateHelper IndexUpdateRef iterate place argwhere flatnonzero nonzero histogram_bin_edges trim_zeros
    __array_api_version__ __array_namespace_info__ array_repr array_str bartlett blackman fromfile frompyfunc fromstring
    get_printoptions hamming hanning histogramdd index_exp load mgrid object_ ogrid printoptions s_ save savez
    set_printoptions ufunc
    intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values
"""
NOT_IN_THE_TABLE = frozenset(_WITHOUT_ROWS.split())

NUMPY: list[Spec] = [
    *UNARY,
    *BINARY,
    *REDUCTIONS,
    *MANIPULATION,
    *CONTRACTIONS,
    *SORTING,
    *INDEXING,
    *STATISTICS,
    *POLYNOMIALS,
    *GRIDS,
    *EDITING,
    *LINALG,
    *DIAGONALS,
    *INTERPOLATION,
]
