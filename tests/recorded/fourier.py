"""Cases of Fourier transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.recorded.cases import Case, both, real


def transform(name: str, x: Any, **options: Any) -> Case:
    return Case(f"{name} {x.shape} {options}", lambda lib, x: getattr(lib.numpy.fft, name)(x, **options), (x,))


def lax_transform(kind: str, sizes: tuple[int, ...], x: Any) -> Case:
    return Case(f"lax.fft {kind} {sizes} {x.shape}", lambda lib, x: lib.lax.fft(x, kind, sizes), (x,))


def made(name: str) -> Callable[..., Any]:
    """What a transform takes: the real ones that go forward, and the inverse of a Hermitian one, take real arrays."""
    return real if name.startswith(("rfft", "ihfft")) else both


OF_ONE: tuple[dict[str, Any], ...] = (
    {}, {"n": 5}, {"n": 2, "axis": 0}, {"axis": 0, "norm": "ortho"}, {"norm": "forward"}, {"norm": "backward", "n": 3},
    {"axis": -2}, {"n": 1}, {"n": 8, "norm": "ortho"}, {"axis": 0, "n": 4, "norm": "forward"},
)  # fmt: skip
OF_SEVERAL: tuple[dict[str, Any], ...] = (
    {}, {"s": (3, 2)}, {"axes": (2, 0), "norm": "ortho"}, {"s": (4, 4), "axes": (0, 1)}, {"norm": "forward"},
    {"axes": (1,)}, {"s": (2, 3, 5)}, {"axes": (-1, -2)}, {"s": (1, 6), "axes": (2, 1)},
    {"axes": (0, 1, 2), "norm": "ortho"},
)  # fmt: skip
OF_TWO: tuple[dict[str, Any], ...] = (
    {}, {"s": (3, 2)}, {"axes": (1, 0)}, {"norm": "ortho"}, {"norm": "forward"}, {"s": (2, 5), "axes": (0, 2)},
    {"axes": (0, 1)}, {"s": (4, 4)}, {"axes": (-1, 0), "norm": "ortho"}, {"s": (1, 2), "norm": "forward"},
)  # fmt: skip
SHAPES = ((8,), (2, 8), (3, 7), (2, 2, 6), (1, 1))

CASES = [
    *(
        transform(name, made(name)(3, 4), **options)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for options in OF_ONE
    ),
    *(
        transform(name, made(name)(2, 3, 4), **options)
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
        for options in OF_SEVERAL
    ),
    *(
        transform(name, made(name)(2, 3, 4), **options)
        for name in ("fft2", "ifft2", "rfft2", "irfft2")
        for options in OF_TWO
    ),
    *(
        Case(f"{name} {n} {d}", lambda lib, name=name, n=n, d=d: getattr(lib.numpy.fft, name)(n, d))
        for name in ("fftfreq", "rfftfreq")
        for n in (1, 2, 4, 5, 8)
        for d in (1.0, 0.25)
    ),
    *(
        transform(name, real(*shape), axes=axes)
        for name in ("fftshift", "ifftshift")
        for shape in SHAPES
        for axes in (None, -1)
    ),
    *(lax_transform(kind, shape[-1:], both(*shape)) for kind in ("FFT", "IFFT") for shape in SHAPES),
    *(lax_transform("RFFT", shape[-2:], real(*shape)) for shape in SHAPES),
    *(
        lax_transform("IRFFT", (*shape[-2:-1], 2 * shape[-1] - odd), both(*shape))
        for shape in SHAPES[:4]
        for odd in (1, 2)
    ),
    lax_transform("FFT", (3, 4), both(2, 3, 4)),
    lax_transform("IFFT", (2, 3, 4), both(2, 3, 4)),
]
assert all(np.size(x) for case in CASES for x in case.operands)
