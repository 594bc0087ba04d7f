"""Tridiagonal systems whose matrix may be singular: pivots that are too small are moved away from zero.

The elimination follows LAPACK's ``lagtf``, which exchanges rows by their scaled pivots. The substitution follows
``lagts``, which moves a pivot only if the quotient would overflow, by a rounding error of the largest element of U.
"""

from __future__ import annotations

from typing import Any

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.control.scan import scan
from pullback.control.solves import custom_linear_solve
from pullback.core import dtypes
from pullback.core.array import Array


def solve(dl: Any, d: Any, du: Any, b: Any) -> Array:
    """Solve the systems with the diagonals ``dl``, ``d`` and ``du``, (..., n), for the right sides ``b``, (..., n, k).

    Derivatives are computed as if the perturbed matrix were the system's own.
    """
    lower, diagonal, upper = (pnp.moveaxis(x, -1, 0) for x in (dl, d, du))
    lower = lower.at[0].set(0)
    upper = upper.at[-1].set(0)
    turned = pnp.roll(upper, 1, 0), diagonal, pnp.roll(lower, -1, 0)

    def product(x: Any) -> Any:
        below = pnp.concatenate([pnp.zeros_like(x[:1]), x[:-1]])
        above = pnp.concatenate([x[1:], pnp.zeros_like(x[:1])])
        return lower[..., None] * below + diagonal[..., None] * x + upper[..., None] * above

    x = custom_linear_solve(
        product,
        pnp.moveaxis(b, -2, 0),
        lambda _, right: _substituted(*_eliminated(lower, diagonal, upper, right)),
        lambda _, right: _substituted(*_eliminated(*turned, right)),
    )
    return pnp.moveaxis(x, 0, -2)


def _size(x: Any) -> Any:
    return abs(x.real) + abs(x.imag) if dtypes.is_complex(x.dtype) else abs(x)


def _eliminated(lower: Any, diagonal: Any, upper: Any, right: Any) -> tuple[Any, Any, Any, Any]:
    """Factorize tridiagonal matrices by Gaussian elimination with row exchanges, and transform the right-hand sides.

    Args:
      lower, diagonal, upper: the three diagonals, with the equations along the first axis.
      right: the right-hand sides.

    Returns:
      The diagonal of the upper triangular factor U, its first and second superdiagonals, and the transformed right-hand
      sides.
    """

    def step(row: Any, next_: Any) -> tuple[Any, Any]:
        a, b, scale, y = row
        c, a2, b2, y2 = next_
        scale2 = _size(c) + _size(a2) + _size(b2)
        exchange = (c != 0) & (_size(c) * scale > _size(a) * scale2)
        pivot = pnp.where(exchange, c, pnp.where(a == 0, 1, a))
        factor = pnp.where(exchange, a, c) / pivot
        first = tuple(pnp.where(exchange, p, q) for p, q in ((c, a), (a2, b), (b2, pnp.zeros_like(b2))))
        swap = exchange[..., None]
        top, bottom = pnp.where(swap, y2, y), pnp.where(swap, y, y2)
        rest = (
            pnp.where(exchange, b - factor * a2, a2 - factor * b),
            pnp.where(exchange, -factor * b2, b2),
            pnp.where(exchange, scale, scale2),
            bottom - factor[..., None] * top,
        )
        return rest, (*first, top)

    start = diagonal[0], upper[0], _size(diagonal[0]) + _size(upper[0]), right[0]
    (a, b, _, y), rows = scan(step, start, (lower[1:], diagonal[1:], upper[1:], right[1:]))
    last = a, b, pnp.zeros_like(b), y
    u0, u1, u2, ys = (pnp.concatenate([many, one[None]]) for many, one in zip(rows, last, strict=True))
    return u0, u1, u2, ys


def _substituted(u0: Any, u1: Any, u2: Any, right: Any) -> Any:
    limits = dtypes.finfo(dtypes.to_real(right.dtype))
    tiny, huge = float(limits.tiny), 1 / float(limits.tiny)
    largest = pnp.max(pnp.maximum(pnp.maximum(_size(u0), _size(u1)), _size(u2)), axis=0)
    shift = pnp.where(largest > 0, largest * float(limits.eps), tiny)[..., None]

    def step(after: Any, row: Any) -> tuple[Any, Any]:
        x1, x2 = after
        a, b, c, y = row
        top = y - b[..., None] * x1 - c[..., None] * x2
        pivot = _moved(pnp.broadcast_to(a[..., None], top.shape), top, shift)
        small = _size(pivot) < tiny
        x = pnp.where(small, top * huge, top) / pnp.where(small, pivot * huge, pivot)
        return (x, x1), x

    def overflows(pivot: Any, top: Any) -> Any:
        size, numerator = _size(pivot), _size(top)
        return (size < 1) & pnp.where(size < tiny, (size == 0) | (numerator * tiny > size), numerator > size * huge)

    def _moved(pivot: Any, top: Any, shift: Any) -> Any:
        """Return ``pivot``, moved away from zero until ``top / pivot`` is finite.

        The first move is by ``shift``; each further move is twice as long.
        """
        sign = pnp.where(pnp.signbit(pivot.real), -1.0, 1.0).astype(shift.dtype)

        def further(state: Any) -> tuple[Any, Any]:
            pivot, shift = state
            return pnp.where(overflows(pivot, top), pivot + shift, pivot), shift * 2

        state = pivot, pnp.broadcast_to(sign * shift, pivot.shape)
        return while_loop(lambda state: pnp.any(overflows(state[0], top)), further, state)[0]

    start = pnp.zeros_like(right[0]), pnp.zeros_like(right[0])
    return scan(step, start, (u0, u1, u2, right), reverse=True)[1]
