"""Operations that are compiled even eager: those on which XLA beats NumPy, from some size on.

The table was measured on two quiet cores (NumPy 2.4, jaxlib 0.10.2); float32, elements against microseconds of NumPy
and of the compiled operation with the transfers both ways. Compiling takes about 25 ms for each shape, so an operation
is compiled only where it saves half a millisecond or more. For all others NumPy is as fast or faster at every size that
was tried (to a million elements; matrix products to 2048 x 2048: 54 ms against 71).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.errors import BackendError
from pullback.core.trace import Primitive
from pullback.primitives import contraction, eigen, elementwise, fourier, random_bits, reductions, svd

LARGE: dict[Primitive, int] = {
    elementwise.erf_p: 200_000,  # 1,000,000: 3510 / 425
    elementwise.erfc_p: 200_000,  # 1,000,000: 6878 / 963
    elementwise.erf_inv_p: 50_000,  # 100,000: 1846 / 244
    elementwise.logaddexp_p: 50_000,  # 100,000: 1470 / 284
    elementwise.hypot_p: 200_000,  # 1,000,000: 3651 / 562
    elementwise.lgamma_p: 200_000,  # 1,000,000: 12048 / 4780
    elementwise.acosh_p: 500_000,  # 1,000,000: 2833 / 1000
    elementwise.sign_p: 1_000_000,  # 1,000,000: 1275 / 382
    elementwise.nextafter_p: 500_000,  # 1,000,000: 2311 / 397
    elementwise.integer_pow_p: 1_000_000,  # fifth power, 1,000,000: 1007 / 358
    elementwise.select_n_p: 500_000,  # 1,000,000: 4102 / 839
    elementwise.convert_element_type_p: 500_000,  # to integers, 1,000,000: 4052 / 525
    elementwise.clz_p: 500_000,  # 1,000,000: 6564 / 384
    random_bits.threefry2x32_p: 60_000,  # 100,000: 1421 / 483; 1,000,000: 14891 / 1993
    reductions.cumsum_p: 500_000,  # 1000 x 1000, along the second axis: 5517 / 1573
    reductions.cumlogsumexp_p: 50_000,  # 300 x 300: 2857 / 760
    fourier.fft_p: 100_000,  # 512 x 512: 2596 / 1222
}
"""The least number of elements of an operand for which an operation is compiled."""

INTEGER_PRODUCTS = 2_000_000
"""The least number of products in a contraction of integers; 256 x 256 by the same: 14263 / 860, 64 x 64: 131 / 139."""


MATRICES: dict[Primitive, int] = {
    svd.svd_p: 6_000,  # 100 of 8 x 8: 2199 / 1200
    eigen.eigh_p: 12_000,  # 200 of 8 x 8: 2950 / 2300
}
"""The same for decompositions, which the compiler's routines divide among the processors where there are many."""
MANY = 32


def _compiled_if_many(primitive: Primitive, host: Callable[..., Any], least: int) -> Callable[..., Any]:
    def rule(x: Any, **params: Any) -> Any:
        if x.size >= least and math.prod(x.shape[:-2]) >= MANY and config.compile_large_operations:
            return _compiled(primitive, host, (x,), params)
        return host(x, **params)

    return rule


def _compiled_if_large(primitive: Primitive, host: Callable[..., Any], least: int) -> Callable[..., Any]:
    def rule(*values: Any, **params: Any) -> Any:
        for x in values:
            if getattr(x, "size", 0) >= least and config.compile_large_operations:
                return _compiled(primitive, host, values, params)
        return host(*values, **params)

    return rule


def _compiled(primitive: Primitive, host: Callable[..., Any], values: Any, params: dict[str, Any]) -> Any:
    from pullback.backends.one_operation import evaluate

    try:
        out = evaluate(primitive, [ArrayImpl(x) if hasattr(x, "dtype") else x for x in values], params)
    except BackendError:  # there is no compiler here
        return host(*values, **params)
    return [x._value for x in out] if primitive.multiple_results else out._value


def _integer_contraction(host: Callable[..., Any]) -> Callable[..., Any]:
    primitive = contraction.dot_general_p

    def rule(x: Any, y: Any, *, dimension_numbers: Any) -> Any:
        if x.dtype.kind in "iu" and x.size >= 1000 and config.compile_large_operations:
            (_, contracted), (_, mapped) = dimension_numbers
            free = math.prod(n for i, n in enumerate(y.shape) if i not in contracted and i not in mapped)
            if x.size * free >= INTEGER_PRODUCTS:
                return _compiled(primitive, host, (x, y), {"dimension_numbers": dimension_numbers})
        return host(x, y, dimension_numbers=dimension_numbers)

    return rule


for _primitive, _least in LARGE.items():
    assert _primitive.host_rule is not None
    _primitive.host_rule = _compiled_if_large(_primitive, _primitive.host_rule, _least)
for _primitive, _least in MATRICES.items():
    assert _primitive.host_rule is not None
    _primitive.host_rule = _compiled_if_many(_primitive, _primitive.host_rule, _least)
assert contraction.dot_general_p.host_rule is not None
contraction.dot_general_p.host_rule = _integer_contraction(contraction.dot_general_p.host_rule)
