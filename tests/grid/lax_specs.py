"""The rows for Fourier transforms, incomplete gamma and beta functions, and the rest of ``pullback.lax``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from specs import R, Sample, Spec, derivative_of, row

import pullback.numpy as jnp
from pullback.primitives import fourier
from pullback.primitives.fourier import FftType

# Fourier transforms ------------------------------------------------------------------------------------------------


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
    *(transform(kind, (n,), *lead) for kind in KINDS for n, lead in ((1, ()), (2, (3,)), (5, (2,)), (8, ()), (7, (0,)))),
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

LAX: list[Spec] = TRANSFORMS
OF_LAX: list[Spec] = [*ONE, *SEVERAL]
