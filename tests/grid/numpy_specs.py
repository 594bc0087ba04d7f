"""The rows of the table for the functions of ``pullback.numpy``, whose reference is NumPy's function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from specs import FLOAT, INEXACT, K, R, Sample, Spec, derivative_of

import pullback.numpy as jnp


def fn(
    name: str, *samples: Sample, dtypes: str = "f", label: str = "", call: Callable[..., Any] | None = None, **options: Any
) -> Spec:  # fmt: skip
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


def each(names: str, *samples: Sample, **options: Any) -> list[Spec]:
    return [fn(name, *samples, **options) for name in names.split()]


UNARY = [
    *each("sin cos exp sinh cosh tanh expm1 negative positive square conj conjugate angle",
          R(2, 3, lo=-1, hi=1), dtypes=INEXACT + "i", tolerance=2),
    *each("tan arcsin arctan arcsinh arctanh asin atan asinh atanh", R(2, 3, lo=-0.8, hi=0.8), dtypes=INEXACT),
    *each("arccos acos exp2 cbrt deg2rad rad2deg radians degrees fabs sinc", R(2, 3, lo=-0.9, hi=0.9), dtypes=FLOAT),
    *each("abs absolute sign", R(2, 3), dtypes=INEXACT + "i"),
    *each("log log1p log2 log10 sqrt reciprocal", R(2, 3, lo=0.2), dtypes=INEXACT, tolerance=4),
    *each("arccosh acosh", R(2, 3, lo=1.2, hi=3), dtypes=INEXACT),
    *each("floor ceil trunc fix rint round around modf", R(2, 3), dtypes="f"),
    fn("round", R(3), decimals=1, derivative=""), *each("real imag", R(2, 3), dtypes="fF"),
    *each("isfinite isinf isnan isposinf isneginf signbit isreal iscomplex logical_not", R(2, 3), dtypes="f", ugly=True),
    *each("nan_to_num", R(2, 3), dtypes="fF"), *each("invert bitwise_not bitwise_invert bitwise_count", R(2, 3), dtypes="i", derivative="",
                                                     exact_dtype=False),
    fn("frexp", R(3), derivative=""),
]  # fmt: skip

BINARY = [
    *[fn(name, R(*a), R(*b), dtypes=INEXACT + "i") for name in ("add", "subtract", "multiply") for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)))],
    *[fn(name, R(*a), R(*b, lo=0.5), dtypes=dtypes) for name, dtypes in (("divide", INEXACT), ("true_divide", INEXACT)) for a, b in
      (((2, 3), (2, 3)), ((3,), (2, 1)))],
    *[fn(name, R(*a), R(*b), dtypes="hfi") for name in ("maximum", "minimum", "fmax", "fmin") for a, b in (((2, 3), (2, 3)), ((3,), (2, 1)))],
    *each("hypot arctan2 atan2 logaddexp logaddexp2 copysign", R(2, 3), R(3), dtypes=FLOAT),
    *each("power pow float_power", R(2, 3, lo=0.3), R(3), dtypes="f", exact_dtype=False),
    fn("power", R(2, 3), call=lambda m, x: m.power(x, 3), label="3", dtypes="fFi"),
    fn("power", R(2, 3), call=lambda m, x: m.power(x, 2), label="2", dtypes="fFi"),
    fn("power", R(2, 3, lo=0.3), call=lambda m, x: m.power(x, -1.5), label="-1.5", dtypes="f"),
    *each("remainder mod fmod floor_divide divmod", R(2, 3), R(3, lo=1.1, hi=1.7), dtypes="f"),
    *each("remainder mod fmod floor_divide", R(2, 3), R(3, lo=1, hi=3), dtypes="i"),
    fn("heaviside", R(2, 3), R(3)), fn("nextafter", R(2, 3), R(3), derivative=""),
    fn("ldexp", R(3), K([1, -2, 3]), dtypes="f"),
    *each("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose", R(2, 3), R(3), dtypes="fi"),
    *each("allclose array_equal array_equiv", R(2, 3), R(2, 3), derivative=""),
    *each("bitwise_and bitwise_or bitwise_xor gcd lcm", R(2, 3), R(3), dtypes="i", derivative=""),
    *each("left_shift right_shift bitwise_left_shift bitwise_right_shift", R(2, 3), R(3, lo=0), dtypes="i", derivative=""),
    fn("where", K([[True, False, True]]), R(2, 3), R(3), dtypes="fFi"), fn("clip", R(2, 3), R(3, lo=-2, hi=-1), R(lo=1)),
    fn("clip", R(2, 3), call=lambda m, x: m.clip(x, None, 0.5), label="None,0.5"),
    fn("select", K([True, False, True]), K([False, True, True]), R(3), R(3),
       call=lambda m, a, b, x, y: m.select([a, b], [x, y], 0.5), exact_dtype=False),
]  # fmt: skip

AXES: tuple[Any, ...] = (None, 0, (0, 1), -1)
REDUCTIONS = [
    *[fn(name, R(2, 3, lo=0.3), dtypes=dtypes, axis=axis)
      for name, dtypes in (("sum", "fFi"), ("prod", "fFi"), ("mean", "fFi"), ("max", "fi"), ("min", "fi"), ("amax", "f"), ("amin", "f"),
                           ("var", "fF"), ("std", "f"), ("ptp", "f"), ("nansum", "f"), ("nanprod", "f"), ("nanmean", "f"),
                           ("nanmax", "f"), ("nanmin", "f"), ("nanvar", "f"), ("nanstd", "f")) for axis in AXES],
    *[fn(name, R(3, 4, lo=0.3), keepdims=True, axis=1) for name in ("sum", "mean", "max", "var", "prod", "std")],
    *[fn(name, R(3, 4, lo=0.3), axis=0, ddof=1) for name in ("var", "std", "nanvar")],
    *[fn(name, R(3, 4), K([[True, False, True, True]] * 3), call=partial(lambda m, x, w, n: getattr(m, n)(x, where=w, axis=1), n=name),
         label="where") for name in ("sum", "mean", "prod")],
    *[fn(name, R(3, 4), K([[True, False, True, True]] * 3),
         call=partial(lambda m, x, w, n: getattr(m, n)(x, where=w, axis=1, initial=-9.0), n=name), label="where,initial") for name in ("max",)],
    *[fn(name, R(3, 2), axis=axis, dtypes="f") for name in ("argmax", "argmin", "nanargmax", "nanargmin") for axis in (None, 0, 1)],
    *[fn(name, R(3, 2), axis=axis, dtypes="fi") for name in ("all", "any", "count_nonzero") for axis in (None, 0, 1)],
    *[fn(name, R(3, 2), axis=axis, dtypes="fFi") for name in ("cumsum", "cumprod", "nancumsum", "nancumprod") for axis in (None, 0, 1)],
    *[fn(name, R(3, 2), axis=axis) for name in ("cumulative_sum", "cumulative_prod") for axis in (0, 1)],
    fn("cumulative_sum", R(3, 2), axis=0, include_initial=True), fn("sum", K([[1, 2], [3, 4]], np.uint8), dtypes="f"),
]  # fmt: skip

MANIPULATION = [
    fn("reshape", R(2, 3), shape=(3, -1), dtypes="fFi"), fn("reshape", R(2, 3), shape=(3, 2), order="F"),
    fn("ravel", R(2, 3)), fn("ravel", R(2, 3), order="F"), fn("expand_dims", R(2, 3), axis=(0, -1)), fn("squeeze", R(1, 3, 1)),
    fn("squeeze", R(1, 3, 1), axis=-1), fn("atleast_1d", R()), fn("atleast_2d", R(3)), fn("atleast_3d", R(2, 3)),
    fn("broadcast_to", R(3), shape=(2, 3)), fn("broadcast_arrays", R(3), R(2, 1), call=lambda m, *xs: list(m.broadcast_arrays(*xs))),
    fn("transpose", R(2, 3)), fn("transpose", R(2, 3, 2), axes=(2, 0, 1)), fn("permute_dims", R(2, 3), axes=(1, 0)),
    fn("matrix_transpose", R(2, 3, 2)), fn("swapaxes", R(2, 3, 2), axis1=0, axis2=-1), fn("moveaxis", R(2, 3, 2), source=0, destination=-1),
    fn("rollaxis", R(2, 3, 2), axis=2), of_list("concatenate", R(2, 3), R(1, 3), dtypes="fFi"), of_list("concatenate", R(2, 3), R(2, 1), axis=1),
    of_list("concatenate", R(2), R(1, 3), axis=None), of_list("concat", R(2), R(3)), of_list("stack", R(2, 3), R(2, 3), axis=-1, dtypes="fFi"),
    of_list("vstack", R(3), R(2, 3)), of_list("hstack", R(3), R(2)), of_list("dstack", R(2, 3), R(2, 3)), of_list("column_stack", R(3), R(3, 2)),
    fn("block", R(2, 2), R(2, 1), R(1, 3), call=lambda m, a, b, c: m.block([[a, b], [c]])),
    fn("split", R(4, 2), call=lambda m, x: list(m.split(x, 2))), fn("array_split", R(5), call=lambda m, x: list(m.array_split(x, 3))),
    fn("split", R(5), call=lambda m, x: list(m.split(x, [1, 3])), label="[1,3]"), fn("vsplit", R(4, 2), call=lambda m, x: list(m.vsplit(x, 2))),
    fn("hsplit", R(2, 4), call=lambda m, x: list(m.hsplit(x, 2))), fn("dsplit", R(1, 2, 4), call=lambda m, x: list(m.dsplit(x, 2))),
    fn("unstack", R(2, 3), call=lambda m, x: list(m.unstack(x, axis=1))), fn("tile", R(2, 3), reps=(2, 1)), fn("tile", R(3), reps=2),
    fn("repeat", R(2, 3), repeats=2, axis=1), fn("repeat", R(3), repeats=2), fn("repeat", R(3), call=lambda m, x: m.repeat(x, np.array([1, 0, 2])),
                                                                             label="[1,0,2]"),
    fn("flip", R(2, 3)), fn("flip", R(2, 3), axis=1), fn("flipud", R(2, 3)), fn("fliplr", R(2, 3)), fn("rot90", R(2, 3)), fn("rot90", R(2, 3), k=2),
    fn("roll", R(2, 3), shift=1), fn("roll", R(2, 3), shift=-1, axis=1), fn("roll", R(2, 3), shift=(1, 2), axis=(0, 1)),
    fn("copy", R(2, 3)), fn("array", R(2, 3)), fn("asarray", R(2, 3)), fn("astype", R(2, 3), call=lambda m, x: m.astype(x, np.complex64), derivative=""),
    fn("meshgrid", R(2), R(3), call=lambda m, *xs: list(m.meshgrid(*xs))), fn("meshgrid", R(2), R(3), call=lambda m, *xs: list(m.meshgrid(
        *xs, indexing="ij", sparse=True)), label="ij"), fn("vander", R(3)), fn("full_like", R(2, 3), fill_value=2.0), *each("zeros_like ones_like", R(2, 3)),
    fn("linspace", R(), R(), num=4), fn("linspace", R(2), R(2), num=3, axis=-1), fn("logspace", R(), R(), num=3, tolerance=10),
    fn("geomspace", R(lo=0.5), R(lo=3, hi=4), num=3, tolerance=10),
]  # fmt: skip

CONTRACTIONS = [
    *[fn(name, R(*a), R(*b), dtypes="fFi", tolerance=4) for name in ("dot", "inner") for a, b in (((3,), (3,)), ((2, 3), (3,)), ((), (3,)))],
    *[fn("matmul", R(*a), R(*b), dtypes="fF", tolerance=4) for a, b in (((3,), (3,)), ((2, 3), (3, 2)), ((3,), (3, 2)), ((2, 3), (3,)),
                                                                       ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((1, 2, 3), (2, 3, 2)))],
    fn("dot", R(2, 3), R(3, 2), tolerance=4), fn("dot", R(2, 2, 3), R(2, 3, 2), tolerance=4), fn("inner", R(2, 3), R(2, 3), tolerance=4),
    *[fn(name, R(2, 3), R(2, 3), dtypes="fF", tolerance=4) for name in ("vdot", "vecdot")],
    fn("matvec", R(2, 3), R(3), tolerance=4, call=lambda m, a, x: m.matmul(a, x) if m is np else m.matvec(a, x)),
    fn("vecmat", R(2), R(2, 3), tolerance=4, call=lambda m, x, a: m.matmul(x, a) if m is np else m.vecmat(x, a)),
    fn("outer", R(2), R(3), dtypes="fF"), fn("tensordot", R(2, 3), R(3, 2), axes=1), fn("tensordot", R(2, 3), R(3, 2), axes=((0, 1), (1, 0))),
    fn("tensordot", R(2), R(3), axes=0), fn("kron", R(2), R(3)), fn("kron", R(2, 2), R(2, 1)), fn("cross", R(3), R(3)), fn("cross", R(2, 3), R(2, 3)),
    fn("trace", R(3, 3)), fn("trace", R(2, 3), offset=1), fn("polyval", R(3), R(2)),
    *[fn(name, R(4), R(3), mode=mode, tolerance=4) for name in ("convolve", "correlate") for mode in ("full", "same", "valid")],
    *[fn("einsum", *(R(*s) for s in shapes), dtypes="fF", tolerance=4, label=formula, call=partial(lambda m, *xs, f: m.einsum(f, *xs), f=formula))
      for formula, shapes in (("ij,jk->ik", ((2, 3), (3, 2))), ("ij->ji", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("i,j->ij", ((2,), (3,))),
                              ("ij,ij->", ((2, 3), (2, 3))), ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))), ("ij->", ((2, 3),)), ("...i,i->...", ((2, 3), (3,))),
                              ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 2))), ("i,i,i->i", ((3,), (3,), (3,))), ("ijj->i", ((2, 3, 3),)))],
]  # fmt: skip

SORTING = [
    *[fn("sort", R(3, 4), axis=axis, dtypes="fi") for axis in (0, 1, None)], *[fn("argsort", R(3, 4), axis=axis, dtypes="fi", derivative="",
                                                                               stable=True) for axis in (0, 1)],
    of_list("lexsort", R(4), R(4), derivative=""), fn("partition", R(5), call=lambda m, x: m.sort(m.partition(x, 2)), derivative=""),
    fn("argpartition", R(5), call=lambda m, x: m.sort(x[m.argpartition(x, 2)]) if m is np else m.sort(m.partition(x, 2)), derivative=""),
    fn("sort_complex", R(4), dtypes="F", derivative=""), *[fn("searchsorted", R(4, sort=True), R(2, 2), side=side, derivative="")
                                                          for side in ("left", "right")],
    fn("isin", R(3), R(4), derivative=""),
]  # fmt: skip

# Functions that are found in ``pullback.numpy`` but have nothing to do with derivatives or batches of values.
NOT_IN_THE_TABLE = frozenset(
    ["arange", "bool", "bool_", "broadcast_shapes", "can_cast", "cdouble", "character", "complex128", "complex64", "complex_", "complexfloating", "csingle", "double", "dtype", "e", "empty", "empty_like", "euler_gamma", "eye", "finfo", "flexible", "float16", "float32", "float64", "float_", "floating", "frombuffer", "from_dlpack", "fromfunction", "fromiter", "full", "generic", "identity", "iinfo", "indices", "inexact", "inf", "int16", "int32", "int64", "int8", "int_", "integer", "isdtype", "isscalar", "issubdtype", "iterable", "nan", "ndarray", "ndim", "newaxis", "number", "ones", "pi", "promote_types", "result_type", "shape", "signedinteger", "single", "size", "tri", "uint", "uint16", "uint32", "uint64", "uint8", "unsignedinteger", "zeros", "bfloat16", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int2", "int4", "uint2", "uint4", "iscomplexobj", "isrealobj", "linalg", "einsum_path", "ComplexWarning", "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]
)

NUMPY: list[Spec] = [*UNARY, *BINARY, *REDUCTIONS, *MANIPULATION, *CONTRACTIONS, *SORTING]
