"""Rows for products in which a zero makes a zero: those of their base, and by elements of extreme values too."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pullback.core.trace import Primitive
from pullback.primitives import masked, reductions
from pullback.primitives.arrays import scatter
from pullback.primitives.linalg import contraction, lu, ragged, tridiagonal
from pullback.primitives.linalg import lapack as linalg
from pullback.primitives.linalg import sparse_products as sparse
from pullback.primitives.signals import convolution, recursive_filter
from tests.grid.convolution_specs import CONVOLUTIONS
from tests.grid.decomposition_specs import DECOMPOSITIONS
from tests.grid.lax_specs import LAX
from tests.grid.scipy_signal_specs import SCIPY_PRIMITIVES
from tests.grid.sparse_specs import SPARSE
from tests.grid.specs import CONTRACTIONS, PRIMITIVES, NumpyArray, Spec, binary, linear_solves, triangular_solves

FIRST, SECOND, BOTH = (True, False), (False, True), (True, True)


def with_zeros(product: Any, zeros: tuple[bool, bool]) -> Any:
    """A product of elements, in NumPy."""

    def reference(x: NumpyArray, y: NumpyArray) -> Any:
        nothing = (zeros[0] & (x == 0)) | (zeros[1] & (y == 0))
        return np.where(nothing, x.dtype.type(0), product(x, y))

    return reference


def on_elements(p: Primitive, product: Any, zeros: tuple[bool, bool], dtypes: str, **options: Any) -> list[Spec]:
    rows = binary(p, with_zeros(product, zeros), dtypes, **options)
    return [replace(s, name=f"{s.name}{zeros}", function=partial(p.bind, zeros=zeros)) for s in rows]


def as_base(p: Primitive, base: Spec, zeros: tuple[bool, ...], **options: Any) -> Spec:
    """The row of an operation, which serves for the masked one: no sample has a zero in it."""
    keywords = getattr(base.function, "keywords", {})
    function = partial(p.bind, **keywords, zeros=zeros)
    return replace(base, name=f"masked_{base.name}{zeros}", operation=p.name, function=function, **options)


def masked_linear_solve(a: Any, b: Any) -> Any:
    factors, _, permutation = lu.lu(a)
    zeros = (False, False, False, True)
    return lu.masked_linear_solve_p.bind(a, factors, permutation, b, transpose=False, zeros=zeros)


OTHERS: list[tuple[Primitive, tuple[bool, ...]]] = [
    (reductions.masked_linear_recurrence_p, SECOND),
    (recursive_filter.masked_recursive_filter_p, SECOND),
    (scatter.masked_scatter_mul_p, (True, False, False)),
    (ragged.masked_grouped_rows_p, (True, False, False)),
    (ragged.masked_grouped_products_p, (False, True, False)),
    (sparse.masked_blocks_times_dense_p, (True, False, False)),
    (sparse.masked_blocks_times_dense_p, (False, False, True)),
    (sparse.masked_blocks_of_product_p, (True, False, False)),
    (tridiagonal.masked_tridiagonal_solve_p, (False, False, False, True)),
]
BASES = {s.operation: s for s in [*PRIMITIVES, *LAX, *SPARSE, *SCIPY_PRIMITIVES, *DECOMPOSITIONS][::-1]}


MASKED: list[Spec] = [
    *on_elements(masked.masked_mul_p, np.multiply, FIRST, "hbfF", signed_zeros=False),
    *on_elements(masked.masked_mul_p, np.multiply, SECOND, "f", signed_zeros=False),
    *on_elements(masked.masked_mul_p, np.multiply, BOTH, "f", signed_zeros=False),
    *on_elements(masked.masked_div_p, np.divide, FIRST, "hf", right=(0.5, 2), signed_zeros=False),
    *on_elements(masked.masked_div_p, np.divide, FIRST, "F", right=(0.5, 2), ugly=False),
    *(
        as_base(contraction.masked_dot_general_p, base, zeros, dtypes="hfF", derivative="d")
        for base, zeros in zip(CONTRACTIONS[1:13:2], [FIRST, SECOND, BOTH] * 2, strict=True)
    ),
    *(
        as_base(convolution.masked_conv_general_dilated_p, base, zeros, dtypes="f", derivative="d")
        for base, zeros in zip(CONVOLUTIONS[:3], [FIRST, SECOND, BOTH], strict=True)
    ),
    *(
        as_base(linalg.masked_triangular_solve_p, triangular_solves(a, b, flags, "fF"), (False, True), derivative="d")
        for a, b, flags in (
            ((3, 3), (3, 2), (True, True, False, False, False)),
            ((2, 3, 3), (2, 1, 3), (False, True, True, False, False)),
        )
    ),
    *(
        replace(
            linear_solves(a, b, False), name=f"masked_linear_solve({a}x{b})", operation="masked_linear_solve",
            function=masked_linear_solve, differentiable=(1,),
        )
        for a, b in (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)))
    ),
    *(
        as_base(p, BASES[p.name.removeprefix("masked_")], zeros, dtypes="f", derivative="d", ugly=False)
        for p, zeros in OTHERS
    ),
]  # fmt: skip
