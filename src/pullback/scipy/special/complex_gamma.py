"""The gamma function of complex numbers and its logarithm, with all derivatives."""

from __future__ import annotations

import math
from typing import Any

from pullback.backends import host
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import COMPLEX
from pullback.primitives.compositions import lgamma_after_two
from pullback.primitives.elementwise import add, div, log, lt, mul, neg, sub
from pullback.primitives.gamma_functions import stirling_error
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.slicing import iota
from pullback.scipy.special.differentiated import by_forward_mode

_where = ops.where
_LEAST = 9


def _loggamma(z: Any) -> Any:
    """Stirling's series, from 9 on; left of that by the recurrence, and left of zero by the reflection formula.

    The logarithms of the recurrence, and of the sine in a half plane, are added on their own branches, so that the sum
    is on the principal one (Hare, 1997).
    """
    x, y = ops.real(stop_gradient(z)), ops.imag(stop_gradient(z))
    left = lt(x, 0.5)
    right = _where(left, sub(1, z), z)
    place = ops.real(stop_gradient(right))
    steps = ops.max_p.bind(sub(_LEAST, ops.floor_p.bind(place)), 0)
    index = iota(x.dtype, (_LEAST,), 0)
    axis = len(x.shape)
    needed = ops.gt(shapes.expand_dims(steps, (axis,)), index)
    zero = shapes.full((), 0.0, x.dtype)
    shifted = add(shapes.expand_dims(right, (axis,)), ops.complex(index, zero))
    logarithms = reduce_sum(log(_where(needed, shifted, 1)), (axis,))
    base = add(right, ops.complex(steps, zero))
    stirling = sub(mul(sub(base, 0.5), log(base)), base)
    value = sub(add(add(stirling, stirling_error(base)), 0.5 * math.log(2 * math.pi)), logarithms)
    # Near its zeros at 1 and 2 the series, as the sum above loses all digits there.
    place_one, place_two = (ops.abs(sub(stop_gradient(right), k)) for k in (1, 2))
    at_one, at_two = lt(place_one, 0.5), lt(place_two, 0.5)
    w = _where(at_one, sub(right, 1), _where(at_two, sub(right, 2), 0))
    series = lgamma_after_two(w, 27)
    value = _where(at_one, sub(series, ops.log1p_p.bind(w)), _where(at_two, series, value))
    # log sin(π z) of the upper half plane is log(i / 2) - iπ z + log(1 - exp(2πi z)).
    low = ops.or_p.bind(lt(y, 0), ops.and_p.bind(ops.eq(y, 0), lt(div(1, y), 0)))
    upper = _where(low, neg(z), z)  # sin(-π z) = -sin(π z)
    whole = ops.round_p.bind(ops.real(stop_gradient(upper)))
    fraction = sub(upper, ops.complex(whole, zero))
    sine = add(
        sub(log(neg(ops.expm1_p.bind(mul(fraction, 2j * math.pi)))), mul(upper, 1j * math.pi)),
        complex(-math.log(2), math.pi / 2),
    )
    turned = sub(sine, ops.complex(zero, _where(low, shapes.full((), math.pi, x.dtype), 0)))
    reflected = sub(sub(math.log(math.pi), turned), value)
    return _where(left, reflected, value)


loggamma_p: Primitive = by_forward_mode("loggamma", _loggamma, arity=1, host=host.special("loggamma"), of=COMPLEX)


def gamma(z: Any) -> Any:
    """The exponential of the logarithm."""
    return ops.exp(loggamma_p.bind(z, orders=(0,)))
