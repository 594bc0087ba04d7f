"""Cases of the signals, transforms, images, interpolation, integrals, rotations and clusters of ``scipy``."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.recorded.cases import Case, both, real

Run = Callable[..., Any]


def module(lib: Any, name: str) -> Any:
    """A module of ``scipy`` of a library."""
    return importlib.import_module(f"{lib.__name__}.scipy.{name}")


def case(where: str, name: str, *operands: Any, label: str = "", run: Run | None = None, **options: Any) -> Case:
    """A call of a function with keywords; ``run(function, *arrays)`` says how, if not so."""
    derivatives = options.pop("derivatives", True)
    sizes = " x ".join(f"{np.asarray(x).dtype.char}{np.shape(x)}" for x in operands)

    def call(lib: Any, *xs: Any) -> Any:
        function = getattr(module(lib, where), name)
        return function(*xs, **options) if run is None else run(function, *xs)

    return Case(f"{name} {sizes} {options} {label}".strip(), call, operands, derivatives=derivatives)


MODES = ("full", "same", "valid")
PAIRS = (((7,), (3,)), ((3,), (5,)), ((4, 5), (2, 3)), ((2, 3, 4), (1, 2, 2)))
IN_TWO = (((4, 5), (2, 3)), ((3, 3), (2, 2)), ((2, 3), (3, 4)), ((5, 1), (2, 1)))

CONVOLUTIONS = [
    *(
        case("signal", name, real(*a), real(*b, hi=2), mode=mode)
        for name in ("convolve", "correlate", "fftconvolve")
        for a, b in PAIRS
        for mode in MODES
    ),
    *(case("signal", name, both(3, 4), both(2, 2), mode="same") for name in ("convolve", "correlate", "fftconvolve")),
    case("signal", "convolve", real(6), real(4), method="fft"),
    case("signal", "fftconvolve", real(3, 6), real(3, 4), axes=1),
    *(
        case("signal", name, real(*a), real(*b, hi=2), mode=mode)
        for name in ("convolve2d", "correlate2d")
        for a, b in IN_TWO
        for mode in MODES
    ),
    *(case("signal", name, both(3, 4), both(2, 2)) for name in ("convolve2d", "correlate2d")),
]

PARTS: tuple[dict[str, Any], ...] = (
    {"nperseg": 8}, {"nperseg": 6, "noverlap": 4}, {"nperseg": 5, "nfft": 8}, {"nperseg": 8, "window": "boxcar"},
    {"nperseg": 4, "fs": 10.0}, {"nperseg": 7, "window": ("tukey", 0.5)}, {"nperseg": 8, "detrend": "linear"},
    {"nperseg": 6, "return_onesided": False}, {"nperseg": 8, "noverlap": 7}, {"nperseg": 10, "detrend": "constant"},
)  # fmt: skip
BEYOND: tuple[dict[str, Any], ...] = ({"boundary": "even"}, {"boundary": None, "padded": False}, {"boundary": "odd"})
MEANS: tuple[dict[str, Any], ...] = ({"scaling": "spectrum"}, {"average": "median"})

SPECTRA = [
    *(case("signal", "stft", real(20), **options) for options in PARTS),
    *(case("signal", "stft", real(2, 18), nperseg=6, **options) for options in BEYOND),
    case("signal", "stft", both(20), nperseg=8),
    case("signal", "stft", real(20, 2), nperseg=8, axis=0),
    *(case("signal", "welch", real(24), **options) for options in PARTS),
    *(case("signal", "welch", real(24), nperseg=6, **options) for options in MEANS),
    *(case("signal", "csd", real(24), real(24, hi=2), **options) for options in PARTS),
    *(case("signal", "csd", real(24), real(20, hi=2), nperseg=6, **options) for options in MEANS),
    *(
        case("signal", "istft", both(size // 2 + 1, count), nperseg=size, window=window, boundary=boundary)
        for size, count in ((4, 5), (6, 4), (8, 3), (10, 4), (6, 5))
        for boundary, window in ((True, "hann"), (False, "boxcar"))
    ),
    *(
        case("signal", "detrend", x, **options)
        for x in (real(9), real(3, 8), both(8))
        for options in ({}, {"type": "constant"}, {"bp": [3]}, {"bp": [2, 5]})
    ),
]

TRANSFORMS = [
    *(
        case("fft", name, x, **options)
        for name in ("dct", "idct")
        for x in (real(6), real(3, 5))
        for options in ({}, {"norm": "ortho"}, {"n": 4}, {"n": 8}, {"axis": 0})
    ),
    *(
        case("fft", name, real(3, 4), **options)
        for name in ("dctn", "idctn")
        for options in (
            {}, {"norm": "ortho"}, {"s": (4, 3)}, {"axes": (0,)}, {"axes": (1, 0)}, {"s": (2, 6), "axes": (1, 0)},
            {"axes": (1,), "norm": "ortho"}, {"s": (3, 4)}, {"s": (1, 5)}, {"s": (5, 2), "norm": "ortho"},
        )
    ),
]  # fmt: skip

IMAGES = [
    case(
        "ndimage", "map_coordinates", x, *[real(6, lo=-2.3, hi=5.1, seed=i) for i in range(len(x.shape))],
        label=f"{mode} {order}", run=lambda f, x, *cs, o=order, m=mode: f(x, cs, o, m, 0.5),
    )
    for x in (real(5), real(3, 4))
    for order, mode in itertools.product((0, 1), ("constant", "nearest", "mirror", "reflect", "wrap"))
]  # fmt: skip

AXES = (np.array([0.0, 1.0, 2.5, 3.0], np.float32), np.array([-1.0, 0.0, 2.0], np.float32))
GRIDS = [
    case(
        "interpolate", "RegularGridInterpolator", real(4, 3, *rest), real(5, 2, lo=-0.5, hi=2),
        label=f"{method} {fill}", run=lambda f, v, x, m=method, fill=fill: f(AXES, v, m, False, fill)(x),
    )
    for rest in ((), (2,))
    for method in ("linear", "nearest")
    for fill in (np.float32(0.25), None, np.float32(2))
]  # fmt: skip

INTEGRALS = [
    *(
        case("integrate", "trapezoid", real(3, 4), **options)
        for options in ({}, {"dx": 0.5}, {"axis": 0}, {"axis": -2, "dx": 2.0}, {"axis": 1})
    ),
    *(
        case("integrate", "trapezoid", y, np.cumsum(real(n, lo=0.5, hi=2)).astype(np.float32), axis=axis)
        for y, n, axis in (
            (real(4), 4, -1),
            (real(3, 4), 4, 1),
            (real(3, 4), 3, 0),
            (both(5), 5, 0),
            (real(2, 6), 6, -1),
        )
    ),
]

Q = real(5, 4, lo=0.2, hi=1.2)
V = real(5, 3)


def rotation(label: str, *operands: Any, run: Run, derivatives: bool = True) -> Case:
    return case("spatial.transform", "Rotation", *operands, label=label, run=run, derivatives=derivatives)


ROTATIONS = [
    *(
        rotation(method, q, run=lambda kind, q, m=method: getattr(kind.from_quat(q), m)())
        for q in (Q, Q[0])
        for method in ("as_matrix", "as_rotvec", "as_mrp", "as_quat", "magnitude")
    ),
    *(
        rotation(seq, Q, run=lambda kind, q, s=seq: kind.from_quat(q).as_euler(s, True))
        for seq in ("xyz", "XYZ", "zyx", "ZXZ", "yzy")
    ),
    *(
        rotation(f"from {seq}", V[:, : len(seq)], run=lambda kind, v, s=seq: kind.from_euler(s, v).as_quat())
        for seq in ("xyz", "XZ", "zxz", "YX")
    ),
    *(
        rotation(f"from_{name}", V, run=lambda kind, v, n=name: getattr(kind, f"from_{n}")(v).as_quat())
        for name in ("rotvec", "mrp")
    ),
    rotation("from_matrix", Q, run=lambda kind, q: kind.from_matrix(kind.from_quat(q).as_matrix()).as_quat(True)),
    *(
        rotation(f"apply {inverse}", Q, V, run=lambda kind, q, v, i=inverse: kind.from_quat(q).apply(v, i))
        for inverse in (False, True)
    ),
    rotation("product", Q, Q[::-1].copy(), run=lambda kind, p, q: (kind.from_quat(p) * kind.from_quat(q)).as_quat()),
    rotation("inv", Q, run=lambda kind, q: kind.from_quat(q).inv().as_quat()),
    rotation("mean", Q, run=lambda kind, q: kind.from_quat(q).mean().as_matrix(), derivatives=False),
    rotation("identity", run=lambda kind: kind.identity().as_quat()),
]

PATHS = [
    Case(
        f"Slerp {shape} {seed}",
        lambda lib, q, t: (
            module(lib, "spatial.transform")
            .Slerp.init(lib.numpy.arange(4.0), module(lib, "spatial.transform").Rotation.from_quat(q))(t)
            .as_quat()
        ),
        (real(4, 4, lo=0.2, hi=1.2, seed=seed), real(*shape, lo=0.1, hi=2.9, seed=seed)),
    )
    for shape in ((), (3,))
    for seed in range(5)
]

CLUSTERS = [
    case("cluster.vq", "vq", real(m, n), real(k, n, hi=2))
    for m, k, n in ((5, 3, 2), (4, 4, 3), (1, 2, 1), (6, 1, 2), (3, 5, 6), (2, 3, 8), (7, 2, 4), (3, 3, 5), (4, 6, 1))
] + [case("cluster.vq", "vq", real(6), real(3, hi=2))]

CASES = [*CONVOLUTIONS, *SPECTRA, *TRANSFORMS, *IMAGES, *GRIDS, *INTEGRALS, *ROTATIONS, *PATHS, *CLUSTERS]
