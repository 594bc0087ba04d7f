"""The rows for ``pullback.scipy`` of signals, transforms, images, interpolation, integrals, rotations and clusters.

References are SciPy's functions. Few rows have more than one dtype, and shapes are small: each has all laws to pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal
from scipy.spatial.transform import Rotation as TheirRotation
from scipy.spatial.transform import Slerp as TheirSlerp

from pullback.primitives.signals.cosine_transforms import cosine_transform_p
from pullback.primitives.signals.recursive_filter import recursive_filter_p
from pullback.scipy import cluster, fft, integrate, interpolate, ndimage, signal
from pullback.scipy.spatial.transform import Rotation, Slerp
from tests.grid.nn_specs import row
from tests.grid.specs import K, R, Sample, Spec, widen
from tests.grid.specs import row as primitive_row

Function = Callable[..., Any]


def rounded(reference: Function) -> Function:
    """A reference computed in double precision, its results in the operands' dtype."""

    def run(*xs: Any) -> Any:
        out = widen(reference)(*xs)
        single = np.result_type(*xs).itemsize <= (8 if np.result_type(*xs).kind == "c" else 4)
        of = {"f": np.float32, "c": np.complex64} if single else {"f": np.float64, "c": np.complex128}
        return [np.asarray(y).astype(of.get(np.asarray(y).dtype.kind, np.asarray(y).dtype)) for y in _listed(out)]

    return run


def _listed(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def of(module: Any, theirs: Any, name: str, *samples: Sample, call: Function, label: str = "", **options: Any) -> Spec:
    """A row for a function of ours and SciPy's, which ``call(function, *arrays)`` calls."""
    options.setdefault("dtypes", "f")
    options.setdefault("tolerance", 16)
    full = f"scipy.{module.__name__.removeprefix('pullback.scipy.')}.{name}"
    return row(
        full, lambda *xs: call(getattr(module, name), *xs), rounded(lambda *xs: call(getattr(theirs, name), *xs)),
        *samples, label=label, **options,
    )  # fmt: skip


def filtered(a: Any, x: Any, reverse: bool) -> Any:
    """The recursive filter by its definition, of one set of coefficients or one for each signal."""
    shape = (*np.broadcast_shapes(a.shape[:-1], x.shape[:-1]), x.shape[-1])
    a, x = np.broadcast_to(a, (*shape[:-1], a.shape[-1])), np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    for i in np.ndindex(*shape[:-1]):
        line = x[i][::-1] if reverse else x[i]
        y = scipy.signal.lfilter(np.ones(1, x.dtype), np.concatenate([np.ones(1, x.dtype), a[i]]), line)
        out[i] = y[::-1] if reverse else y
    return out


SCIPY_PRIMITIVES = [
    *(
        primitive_row(
            cosine_transform_p,
            lambda x, type, sine: (scipy.fft.dst if sine else scipy.fft.dct)(x, type),
            R(2, 5) if type % 2 else R(4),
            params={"type": type, "sine": sine},
            tolerance=16,
        )
        for type in (1, 2, 3, 4)
        for sine in (False, True)
    ),
    *(
        primitive_row(
            recursive_filter_p, filtered, R(*a, lo=-0.4, hi=0.4), R(*x), params={"reverse": reverse},
            dtypes="fF" if a == (2,) else "f", tolerance=4,
        )
        for a, x, reverse in (
            ((1,), (4,), False), ((2,), (2, 5), True), ((2, 1, 3), (1, 2, 4), False), ((2,), (1,), False),
            ((3,), (2, 0), False), ((18,), (4,), True),
        )
    ),
]  # fmt: skip
for _spec in SCIPY_PRIMITIVES:
    if _spec.reference is not None:
        _given = dict(_spec.function.keywords)  # type: ignore[attr-defined]
        _spec.reference = lambda *xs, _f=_spec.reference, _p=_given: _f(*xs, **_p)

SOS = np.array([[0.2, 0.1, 0.3, 1.0, -0.3, 0.1], [1.0, 0.5, 0.0, 1.0, 0.2, 0.4]])
GRID = [np.array([0.0, 1.0, 2.5]), np.array([-1.0, 0.0, 0.5, 2.0])]

SIGNAL = [
    *(
        of(signal, scipy.signal, name, R(*a), R(*b), call=lambda f, x, y, mode=mode: f(x, y, mode), label=mode)
        for name in ("convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d")
        for a, b, mode in (((3, 4), (2, 3), "same"), ((2, 3), (3, 2), "full"))
    ),
    of(signal, scipy.signal, "convolve", R(5), R(2), call=lambda f, x, y: f(x, y, "same"), label="same"),
    of(signal, scipy.signal, "correlate", R(2), R(4), call=lambda f, x, y: f(x, y), label="full", dtypes="F"),
    of(
        signal, scipy.signal, "convolve2d", R(2, 3), R(2, 1), call=lambda f, x, y: f(x, y, "full", "wrap"),
        label="wrap",
    ),
    of(
        signal, scipy.signal, "stft", R(2, 9), call=lambda f, x: f(x, nperseg=4, noverlap=3, detrend="constant")[2],
        derivative="d", tolerance=64,
    ),
    of(signal, scipy.signal, "istft", R(3, 5), call=lambda f, x: f(x, nperseg=4)[1], dtypes="F", tolerance=64),
    of(signal, scipy.signal, "welch", R(10), call=lambda f, x: f(x, 2.0, nperseg=4, detrend="linear")[1], tolerance=64),
    of(signal, scipy.signal, "csd", R(8), R(8), call=lambda f, x, y: f(x, y, nperseg=4)[1], tolerance=64),
    of(signal, scipy.signal, "detrend", R(2, 6), call=lambda f, x: f(x, 1, bp=[2]), tolerance=64),
    of(
        signal, scipy.signal, "lfilter", R(2), R(3, lo=1.5, hi=2), R(3, 4), R(3, 2),
        call=lambda f, b, a, x, z: f(b, a, x, -1, z),
    ),
    of(signal, scipy.signal, "lfilter_zi", R(2), R(3, lo=1.5, hi=2), call=lambda f, b, a: f(b, a)),
    of(
        signal, scipy.signal, "sosfilt", K(SOS.astype(np.float32), fixed=True), R(3, 4), R(2, 3, 2),
        call=lambda f, s, x, z: f(s, x, zi=z), differentiable=(1, 2),
    ),
    of(signal, scipy.signal, "savgol_filter", R(7, 2), call=lambda f, x: f(x, 5, 2, 1, 0.5, 0)),
    of(signal, scipy.signal, "savgol_filter", R(5), call=lambda f, x: f(x, 3, 1, mode="mirror"), label="mirror"),
]  # fmt: skip

TRANSFORMS = [
    *(
        of(
            fft, scipy.fft, name, R(2, 4), call=lambda f, x, k=k, norm=norm: f(x, k, norm=norm),
            label=f"{k},{norm}", dtypes="F" if k == 4 else "f",
        )
        for i, name in enumerate(fft.__all__)
        for k, norm in ((1 + i % 4, "ortho"), (2, None))
    ),
    of(fft, scipy.fft, "dctn", R(2, 3), call=lambda f, x: f(x, 3, (3, 2), norm="forward"), label="sizes"),
]  # fmt: skip

GRID_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}


def mapped(mode: str, order: int) -> Function:
    return lambda f, x, *cs: f(
        x, np.stack(cs) if f is scipy.ndimage.map_coordinates else cs, order=order,
        mode=GRID_MODES.get(mode, mode) if f is scipy.ndimage.map_coordinates else mode, cval=0.5,
    )  # fmt: skip


IMAGES = [
    of(
        ndimage, scipy.ndimage, "map_coordinates", R(3, 4), R(3, lo=0.6, hi=1.4), R(3, lo=-0.9, hi=4.2),
        call=mapped(mode, order), label=f"{mode},{order}", second=order != 1, tolerance=64,
        differentiable=(0,) if order < 2 else None,
    )
    for mode, order in (
        ("constant", 0), ("nearest", 1), ("constant", 1), ("mirror", 2), ("constant", 3), ("wrap", 3), ("nearest", 3),
    )
]  # fmt: skip


def attitude(method: str, *args: Any) -> Function:
    """A function of quaternions, which are divided by their norms."""
    return lambda kind, *xs: getattr(kind.from_quat(xs[0]), method)(*xs[1:], *args)


def turned(name: str, call: Function, *samples: Sample, **options: Any) -> Spec:
    options.setdefault("tolerance", 64)
    title = f"scipy.spatial.transform.{name}"
    return row(
        title, lambda *xs: call(Rotation, *xs), rounded(lambda *xs: call(TheirRotation, *xs)), *samples, dtypes="f",
        **options,
    )  # fmt: skip


ROTATIONS = [
    *(
        turned("Rotation", attitude(method, *args), R(2, 4, lo=0.2, hi=1.5), *samples, label=method)
        for method, args, samples in (
            ("as_matrix", (), ()), ("as_rotvec", (), ()), ("as_mrp", (), ()), ("as_euler", ("XYZ",), ()),
            ("as_euler", ("zxz",), ()), ("apply", (), (R(2, 3),)), ("magnitude", (), ()),
        )
    ),
    turned("Rotation", lambda kind, v: kind.from_rotvec(v).as_quat(), R(2, 3), label="from_rotvec"),
    turned("Rotation", lambda kind, v: kind.from_mrp(v).as_quat(), R(3), label="from_mrp"),
    turned("Rotation", lambda kind, v: kind.from_euler("xzy", v).as_quat(), R(2, 3), label="from_euler"),
    turned(
        "Rotation", lambda kind, q: kind.from_matrix(kind.from_quat(q).as_matrix()).as_rotvec(),
        R(3, 4, lo=0.2, hi=1.5), label="from_matrix",
    ),
    turned(
        "Slerp",
        lambda kind, q, t: (
            Slerp.init(np.arange(3.0, dtype=np.float32), kind.from_quat(q))(t) if kind is Rotation
            else TheirSlerp(np.arange(3.0), kind.from_quat(q))(t)
        ).as_rotvec(),
        R(3, 4, lo=0.2, hi=1.5), R(2, lo=0.2, hi=0.8),
    ),
]  # fmt: skip


def interpolated(name: str, *samples: Sample, call: Function, **options: Any) -> Spec:
    return of(interpolate, scipy.interpolate, name, *samples, call=call, **{"tolerance": 64, **options})


FUNCTIONS = [
    *(
        interpolated(
            "RegularGridInterpolator", R(3, 4, 2), R(3, 2, lo=0.1, hi=0.9),
            call=lambda f, v, x, method=method: f([g.astype(np.float32) for g in GRID], v, method)(x),
            label=method, second=False,
        )
        for method in ("linear", "nearest")
    ),
    *(
        interpolated(
            "CubicSpline", R(5, lo=0, hi=5, sort=True), R(5, 2), R(3, lo=1, hi=4),
            call=lambda f, x, y, t, bc=bc: f(x, y, 0, bc)(t), label=str(bc),
        )
        for bc in ("not-a-knot", "natural", ((2, (0.5, -0.5)), "clamped"))
    ),
    interpolated(
        "CubicSpline", R(5, lo=0, hi=5, sort=True), R(4), R(3, lo=1, hi=4),
        call=lambda f, x, y, t: f(
            x, (np.append if f is scipy.interpolate.CubicSpline else pullback_append)(y, y[:1]), 0, "periodic"
        )(t),
        label="periodic",
    ),
    *(
        interpolated(
            "interp1d", R(5, lo=0, hi=5, sort=True), R(2, 5), R(2, lo=1.1, hi=3.9),
            call=lambda f, x, y, t, kind=kind: f(x, y, kind, fill_value="extrapolate")(t), label=kind,
            second=kind in ("quadratic", "cubic"),
        )
        for kind in ("linear", "nearest", "previous", "quadratic", "cubic")
    ),
    row(
        "scipy.interpolate.PPoly", lambda c, t: interpolate.PPoly(c, np.arange(3.0, dtype=np.float32))(t, 1),
        rounded(lambda c, t: scipy.interpolate.PPoly(c, np.arange(3.0))(t, 1)), R(3, 2), R(3, lo=0.1, hi=0.9),
        dtypes="f", tolerance=16,
    ),
    *(
        of(
            integrate, scipy.integrate, name, R(2, n), R(n, lo=0, hi=4, sort=True),
            call=lambda f, y, x: f(y, x=x), tolerance=64,
        )
        for name, n in (("trapezoid", 4), ("simpson", 5), ("simpson", 6), ("cumulative_trapezoid", 4))
    ),
    row(
        "scipy.integrate.quad",
        lambda a, b, k: integrate.quad(lambda x: np.exp(-k * x) * x, a, b)[0],
        lambda a, b, k: np.asarray(
            scipy.integrate.quad(lambda x: np.exp(-float(k) * x) * x, float(a), float(b))[0]
        ).astype(a.dtype),
        R(lo=-1, hi=0), R(lo=1, hi=2), R(lo=0.5, hi=1), dtypes="f", tolerance=16,
    ),
    of(
        cluster.vq, scipy.cluster.vq, "vq", R(4, 2), R(3, 2), call=lambda f, x, book: f(x, book),
    ),
]  # fmt: skip


def pullback_append(x: Any, y: Any) -> Any:
    import pullback.numpy as pnp

    return pnp.append(x, y)


OF_SCIPY = [*SIGNAL, *TRANSFORMS, *IMAGES, *ROTATIONS, *FUNCTIONS]
MODULES = (signal, fft, ndimage, interpolate, integrate, cluster.vq)
