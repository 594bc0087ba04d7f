"""The gamma function of complex numbers and its logarithm, with all derivatives."""

from __future__ import annotations

import math
from typing import Any

from pullback.backends.host import rules as host
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.checks import COMPLEX
from pullback.primitives.special.gamma_functions import stirling_error
from pullback.primitives.special.log_gamma import lgamma_after_two
from pullback.scipy.special.differentiated import by_forward_mode

from pullback.primitives.formulas import (  # isort: skip
    complex, expm1, floor, formula, imag, lifted, log, log1p, maximum, real, round, stop_gradient, where,
)  # fmt: skip

expand_dims, reduce_sum = lifted(shapes.expand_dims), lifted(reductions.reduce_sum)

_LEAST = 9


def _loggamma(z: Any) -> Any:
    """Evaluate log Γ(z) for complex z.

    From 9 on it is Stirling's series. Left of 9 the recurrence is used, and left of 1/2 the reflection formula. The
    logarithms of the recurrence, and of the sine in a half plane, are added as separate terms with their own branches.
    So the sum is on the principal branch (Hare, 1997).
    """
    x, y = real(stop_gradient(z)), imag(stop_gradient(z))
    left = x < 0.5
    right = where(left, 1 - z, z)
    abscissa = real(stop_gradient(right))
    steps = maximum(_LEAST - floor(abscissa), 0)
    index = iota(x.dtype, (_LEAST,), 0)
    axis = len(x.shape)
    needed = expand_dims(steps, (axis,)) > index
    zero = shapes.full((), 0.0, x.dtype)
    shifted = expand_dims(right, (axis,)) + complex(index, zero)
    logarithms = reduce_sum(log(where(needed, shifted, 1)), (axis,))
    base = right + complex(steps, zero)
    stirling = (base - 0.5) * log(base) - base
    value = stirling + stirling_error(base) + 0.5 * math.log(2 * math.pi) - logarithms
    # Near its zeros at 1 and 2 a series is used, since the sum above loses all digits there.
    distance_one, distance_two = (abs(stop_gradient(right) - k) for k in (1, 2))
    at_one, at_two = distance_one < 0.5, distance_two < 0.5
    w = where(at_one, right - 1, where(at_two, right - 2, 0))
    series = lgamma_after_two(w, 27)
    value = where(at_one, series - log1p(w), where(at_two, series, value))
    # log sin(π z) in the upper half plane is log(i / 2) - iπ z + log(1 - exp(2πi z)).
    low = (y < 0) | ((y == 0) & (1 / y < 0))
    upper = where(low, -z, z)  # sin(-π z) = -sin(π z)
    nearest = round(real(stop_gradient(upper)))
    fraction = upper - complex(nearest, zero)
    sine = log(-expm1(fraction * (2j * math.pi))) - upper * (1j * math.pi) + (-math.log(2) + 1j * math.pi / 2)
    turned = sine - complex(zero, where(low, shapes.full((), math.pi, x.dtype), 0))
    reflected = math.log(math.pi) - turned - value
    return where(left, reflected, value)


loggamma_p: Primitive = by_forward_mode(
    "loggamma", formula(_loggamma), arity=1, host=host.special("loggamma"), of=COMPLEX
)


def gamma(z: Any) -> Any:
    """Γ(z), the exponential of its logarithm."""
    return ops.exp(loggamma_p.bind(z, orders=(0,)))
