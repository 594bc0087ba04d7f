"""Filters without delay, which run in both directions, and the states from which filters begin."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import on_host
from pullback.scipy.signal.arguments import check_vector, constant, promoted
from pullback.scipy.signal.filters import lfilter, lfilter_zi, sosfilt

__all__ = ["filtfilt", "lfiltic", "sosfilt_zi", "sosfiltfilt"]

_PADTYPES = ("odd", "even", "constant", None)


def sosfilt_zi(sos: ArrayLike) -> Array:
    """Return the initial states of :func:`sosfilt` for which its response to a step of height 1 is constant.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator.

    Returns:
      An array (sections, 2).

    Raises:
      ShapeError: sections of another shape (a TypeError and a ValueError).
      ArgumentError: a denominator begins with zero (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> sections = jnp.array([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])
    >>> print(signal.sosfilt_zi(sections), signal.sosfilt(sections, jnp.ones(3), zi=signal.sosfilt_zi(sections))[0])
    [[3. 0.]] [4. 4. 4.]
    """
    (sos,) = promoted("sosfilt_zi", sos)
    if len(sos.shape) != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"sosfilt_zi: the sections sos must have shape (n, 6), n at least 1, got {sos.shape}")
    gain, states = None, []
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        state = lfilter_zi(b, a)
        states.append(state if gain is None else state * gain)
        height = pnp.sum(b) / pnp.sum(a)
        gain = height if gain is None else gain * height
    return pnp.stack(states)


def lfiltic(b: ArrayLike, a: ArrayLike, y: ArrayLike, x: ArrayLike | None = None) -> Array:
    """Return the state of :func:`lfilter` after given results and a given signal.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors.
      y: the last results, the newest first: ``[y[-1], y[-2], ...]``.
      x: the last elements of the signal, in the same order; zeros by default.

    Returns:
      A vector of max(len(a), len(b)) - 1 elements.

    Raises:
      ShapeError: arguments that are no vectors, or coefficients without elements (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> print(signal.lfiltic(jnp.array([1.0]), jnp.array([1.0, -0.5, 0.25]), jnp.array([2.0, 4.0])))
    [ 0.  -0.5]
    """
    b, a, y, x = promoted("lfiltic", b, a, y, np.zeros(0, np.int8) if x is None else x)
    for what, v in (("the coefficients b", b), ("the coefficients a", a)):
        check_vector("lfiltic", v, what)
    if len(y.shape) != 1 or len(x.shape) != 1:
        raise ShapeError(f"lfiltic: y and x must be vectors, got shapes {y.shape} and {x.shape}")
    first = a[:1]
    size = max(b.shape[0], a.shape[0]) - 1

    def rest(taps: Any, past: Any) -> Any:
        """Return the sums of ``taps[m + 1 + k] past[k]`` over k, for each m of the state."""
        taps = pnp.pad(taps[1:], (0, size + 1 - taps.shape[0]))
        past = pnp.pad(past[:size], (0, max(size - past.shape[0], 0)))
        shifted = [pnp.pad(taps[k:], (0, k)) * past[k] for k in range(size)]
        return pnp.sum(pnp.stack(shifted), 0) if shifted else taps

    return (rest(b, x) - rest(a, y)) / first  # type: ignore[no-any-return]


def _edge(name: str, padtype: Any, padlen: Any, n: int, default: int) -> int:
    """Return by how many elements a signal of ``n`` elements is continued at both ends."""
    if isinstance(padtype, str) or padtype is None:
        if padtype not in _PADTYPES:
            raise ArgumentError(f"{name}: padtype must be 'odd', 'even', 'constant' or None, got {padtype!r}")
    else:
        raise ArgumentError(f"{name}: padtype must be 'odd', 'even', 'constant' or None, got {padtype!r}")
    if padtype is None:
        return 0
    edge = default if padlen is None else known_int(name, "padlen", padlen)
    if not 0 <= edge < n:
        raise ShapeError(
            f"{name}: the signal must have more elements than padlen, and padlen must be at least 0; got {n} elements "
            f"and padlen {edge}. Pass a smaller padlen, or padtype=None"
        )
    return edge


def _continued(x: Any, edge: int, padtype: Any) -> Any:
    """Continue the last axis by ``edge`` elements at both ends."""
    if not edge:
        return x
    widths = [(0, 0)] * (len(x.shape) - 1) + [(edge, edge)]
    if padtype == "constant":
        return pnp.pad(x, widths, "edge")
    return pnp.pad(x, widths, "reflect", **({"reflect_type": "odd"} if padtype == "odd" else {}))


def _reversed(x: Any) -> Any:
    return slicing.rev(x, (len(x.shape) - 1,))


# long: half of it is its documentation
def filtfilt(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None,
    method: str = "pad", irlen: int | None = None,
) -> Array:  # fmt: skip
    """Filter a signal forwards and then backwards, so that nothing is delayed.

    Args:
      b, a: the coefficients of the numerator and of the denominator, vectors.
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      axis: along which axis to filter.
      padtype: how the signal continues beyond its ends: by its mirror image about the last point (``"odd"``), by its
        mirror image (``"even"``), by its last element (``"constant"``), or not at all (None).
      padlen: by how many elements; three times the number of coefficients by default.
      method: ``"pad"``, or ``"gust"`` for the initial states with which both orders of the directions agree best.
      irlen: for ``"gust"``, the length of the filter's response, after which it counts as zero; all by default.

    Returns:
      The filtered signal, of the shape of ``x``.

    Raises:
      ShapeError: coefficients that are no vectors or are empty, an axis out of range, or a signal that is not longer
        than ``padlen`` (a TypeError and a ValueError).
      ArgumentError: an unknown method or padtype, or ``a`` begins with zero (a TypeError and a ValueError).

    Source: Gustafsson 1996, "Determining the initial states in forward-backward filtering".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> x = jnp.array([0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0])
    >>> print(signal.filtfilt(jnp.array([0.5, 0.5]), jnp.array([1.0]), x))
    [0. 0. 1. 2. 1. 0. 0.]
    """
    b, a, x = promoted("filtfilt", b, a, x)
    for what, v in (("the coefficients b", b), ("the coefficients a", a)):
        check_vector("filtfilt", v, what)
    where, last = axis_index(axis, len(x.shape), "filtfilt"), len(x.shape) - 1
    if not isinstance(method, str) or method not in ("pad", "gust"):
        raise ArgumentError(f"filtfilt: method must be 'pad' or 'gust', got {method!r}")
    n = x.shape[where]
    length = None if irlen is None else known_int("filtfilt", "irlen", irlen)
    edge = 0
    if method == "pad":
        edge = _edge("filtfilt", padtype, padlen, n, 3 * max(b.shape[0], a.shape[0]))
    if not x.size:
        return x
    found = on_host(b, a, x)
    if found is not None and found[1][0] != 0:
        out = imported("scipy.signal").filtfilt(*found, where, padtype, padlen, method, length)
        return constant(out, x.dtype)
    x = shapes.moveaxis(x, where, last)
    y = _by_states(b, a, x, length) if method == "gust" else _both_ways(b, a, _continued(x, edge, padtype))
    return shapes.moveaxis(slicing.slice_in_dim(y, edge, edge + n, last), last, where)


def _both_ways(b: Any, a: Any, x: Any) -> Any:
    """Filter along the last axis in both directions, from states in which a constant signal stays as it is."""
    state = lfilter_zi(b, a)
    forth, _ = lfilter(b, a, x, -1, x[..., :1] * state)
    back = _reversed(forth)
    y, _ = lfilter(b, a, back, -1, back[..., :1] * state)
    return _reversed(y)


def _by_states(b: Any, a: Any, x: Any, length: int | None) -> Any:
    """Filter along the last axis in both directions, by Gustafsson's initial states.

    The responses to the states are zero after ``length`` elements, which is None for those of the whole signal.
    """
    n, order = x.shape[-1], max(b.shape[0], a.shape[0]) - 1
    if order == 0:
        return x * ops.square(b / a)
    m = n if length is None or n <= 2 * length else length
    unit = np.zeros((order, m))
    zero = constant(unit, x.dtype)
    seen, _ = lfilter(b, a, zero, -1, constant(np.eye(order), x.dtype))  # by each state, (order, m)
    back = _reversed(seen)
    again = lfilter(b, a, back)
    forth = lambda v: lfilter(b, a, v)
    both, other = _reversed(forth(_reversed(forth(x)))), forth(_reversed(forth(_reversed(x))))
    after = _reversed(again)
    difference = other - both
    if m == n:
        matrix = pnp.concatenate([after - seen, back - again])
    else:
        none = pnp.zeros_like(seen)
        of_start = pnp.concatenate([after - seen, none], 1)
        of_end = pnp.concatenate([none, back - again], 1)
        matrix = pnp.concatenate([of_start, of_end])
        difference = pnp.concatenate([difference[..., :m], difference[..., -m:]], -1)
    rows = pnp.reshape(difference, (-1, difference.shape[-1]))
    states = pnp.linalg.lstsq(matrix.T, rows.T)[0].T
    states = pnp.reshape(states, (*x.shape[:-1], 2 * order))
    first, second = pnp.matmul(states[..., :order], after), pnp.matmul(states[..., order:], back)
    if m == n:
        return both + first + second
    widths = [(0, 0)] * (len(x.shape) - 1)
    return both + pnp.pad(first, [*widths, (0, n - m)]) + pnp.pad(second, [*widths, (n - m, 0)])


def sosfiltfilt(
    sos: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Array:
    """Filter a signal forwards and then backwards by sections of second order, so that nothing is delayed.

    Args:
      sos: the sections, (sections, 6): three coefficients of the numerator, and three of the denominator.
      x: the signal, an array of floats or complex numbers of any shape; integers are converted.
      axis: along which axis to filter.
      padtype: how the signal continues beyond its ends, as for :func:`filtfilt`.
      padlen: by how many elements; by default three times as many as the coefficients of the filter, less the zeros at
        the ends of all its sections.

    Returns:
      The filtered signal, of the shape of ``x``.

    Raises:
      ShapeError: sections of another shape, an axis out of range, or a signal that is not longer than ``padlen`` (a
        TypeError and a ValueError).
      ArgumentError: an unknown padtype, or a denominator begins with zero (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> sections = jnp.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]])
    >>> print(signal.sosfiltfilt(sections, jnp.array([0.0, 0.0, 4.0, 0.0, 0.0, 0.0]), padlen=2))
    [0. 1. 2. 1. 0. 0.]
    """
    sos, x = promoted("sosfiltfilt", sos, x)
    where, last = axis_index(axis, len(x.shape), "sosfiltfilt"), len(x.shape) - 1
    if len(sos.shape) != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"sosfiltfilt: the sections sos must have shape (n, 6), n at least 1, got {sos.shape}")
    n = x.shape[where]
    edge = _edge("sosfiltfilt", padtype, padlen, n, _taps(sos) if padlen is None and padtype is not None else 0)
    if not x.size:
        return x
    found = on_host(sos, x)
    if found is not None and found[0][:, 3].all() and not dtypes.is_complex(sos.dtype):
        known = found[0] / found[0][:, 3:4]
        return constant(imported("scipy.signal").sosfiltfilt(known, found[1], where, padtype, edge), x.dtype)
    wide = _continued(shapes.moveaxis(x, where, last), edge, padtype)
    states = pnp.reshape(sosfilt_zi(sos), (sos.shape[0], *(1,) * last, 2))
    forth, _ = sosfilt(sos, wide, -1, states * wide[..., :1])
    back = _reversed(forth)
    y, _ = sosfilt(sos, back, -1, states * back[..., :1])
    return shapes.moveaxis(slicing.slice_in_dim(_reversed(y), edge, edge + n, last), last, where)


def _taps(sos: Any) -> int:
    """Return three times the number of coefficients of a filter in sections.

    Coefficients of second order that are zero in both rows do not count, where the sections are known.
    """
    found = on_host(sos)
    orders = 2 * sos.shape[0] + 1
    if found is not None:
        orders -= int(min((found[0][:, 2] == 0).sum(), (found[0][:, 5] == 0).sum()))
    return 3 * orders
