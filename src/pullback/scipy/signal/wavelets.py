"""Wavelet transforms with PyWavelets' names and modes: ``pullback.scipy.signal.wavelets``.

A transform is a bank of two filters, of which every other result is kept. It is linear in the signal, with derivatives
by the filters too: a :class:`Wavelet` with a ``filter_bank`` is a tree of its filters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.core.interrupts import imported
from pullback.core.source import warn
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.scipy.arguments import on_host
from pullback.scipy.signal import wavelet_filters
from pullback.scipy.signal.arguments import check_mode, constant, extended, positive_int, promoted, signal

__all__ = [
    "Wavelet", "dwt", "dwt2", "dwt_coeff_len", "dwt_max_level", "idwt", "idwt2", "wavedec", "wavedec2", "wavelist",
    "waverec", "waverec2",
]  # fmt: skip

_BEYOND = {
    "zero": "constant", "constant": "edge", "symmetric": "symmetric", "periodic": "wrap", "smooth": "smooth",
    "reflect": "reflect", "antisymmetric": "antisymmetric", "antireflect": "antireflect",
}  # fmt: skip
_MODES = (*_BEYOND, "periodization")
_LARGEST = {"db": 38, "sym": 20}

# Wavelets ------------------------------------------------------------------------------------------------------------


class Wavelet:
    """A wavelet: the filters of analysis and of synthesis of a transform.

    The filters of a name are computed in fifty digits, and rounded to double precision. With a ``filter_bank`` it is a
    pytree of its filters, by which transforms have derivatives.

    Args:
      name: ``"haar"``, ``"db1"`` to ``"db38"`` for Daubechies' wavelets, or ``"sym2"`` to ``"sym20"`` for symlets, with
        as many vanishing moments; any other name with a ``filter_bank``.
      filter_bank: the filters ``(dec_lo, dec_hi, rec_lo, rec_hi)``, vectors of one even size.

    Attributes:
      name: the name.
      dec_lo, dec_hi: the filters of analysis, for low and for high frequencies.
      rec_lo, rec_hi: the filters of synthesis.
      dec_len: the number of elements of a filter.

    Raises:
      ArgumentError: an unknown name (a TypeError and a ValueError).
      ShapeError: filters that are no vectors of one even size (a TypeError and a ValueError).

    Source: Daubechies 1988, "Orthonormal bases of compactly supported wavelets".

    >>> from pullback.scipy.signal.wavelets import Wavelet
    >>> print(Wavelet("db2").rec_lo.round(3))
    [ 0.483  0.837  0.224 -0.129]
    """

    dec_lo: Any
    dec_hi: Any
    rec_lo: Any
    rec_hi: Any

    def __init__(self, name: str, filter_bank: Sequence[ArrayLike] | None = None) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"Wavelet: the name must be a string, got {quote(name)}")
        self.name = name
        self._is_custom = filter_bank is not None
        filters = _filters_of(name) if filter_bank is None else _bank(filter_bank)
        self.dec_lo, self.dec_hi, self.rec_lo, self.rec_hi = filters

    def __repr__(self) -> str:
        return f"Wavelet({self.name!r})"

    @property
    def dec_len(self) -> int:
        """The number of elements of a filter."""
        return int(self.dec_lo.shape[0])

    @property
    def filter_bank(self) -> tuple[Any, Any, Any, Any]:
        """The four filters."""
        return self.dec_lo, self.dec_hi, self.rec_lo, self.rec_hi


def _filters_of(name: str) -> list[Any]:
    family = name.rstrip("0123456789")
    number = name[len(family) :]
    moments = 1 if name == "haar" else int(number) if number and len(number) < 4 else 0
    least = 2 if family == "sym" else 1
    if name != "haar" and not least <= moments <= _LARGEST.get(family, 0):
        raise ArgumentError(
            f"Wavelet: unknown wavelet {name!r}; there are 'haar', 'db1' to 'db38' and 'sym2' to 'sym20', or pass a "
            f"filter_bank"
        )
    low = (wavelet_filters.symlet if family == "sym" else wavelet_filters.daubechies)(moments)
    high = low[::-1] * (-1.0) ** np.arange(len(low))
    return [low[::-1], high[::-1], low, high]


def _bank(filters: Any) -> list[Any]:
    if not isinstance(filters, (tuple, list)) or len(filters) != 4:
        raise ArgumentError(
            f"Wavelet: filter_bank must be four filters (dec_lo, dec_hi, rec_lo, rec_hi), got {quote(filters)}"
        )
    found = promoted("Wavelet", *filters)
    if len({f.shape for f in found}) > 1 or len(found[0].shape) != 1 or found[0].shape[0] % 2 or not found[0].size:
        got = ", ".join(str(f.shape) for f in found)
        raise ShapeError(f"Wavelet: the filters must be vectors of one even size, got shapes {got}")
    return found


def _flatten(w: Wavelet) -> tuple[Any, Any]:
    return (w.filter_bank, (w.name, True)) if w._is_custom else ((), (w.name, False))


def _unflatten(of: Any, children: Any) -> Wavelet:
    name, is_custom = of
    w = object.__new__(Wavelet)
    w.name, w._is_custom = name, is_custom
    w.dec_lo, w.dec_hi, w.rec_lo, w.rec_hi = children if is_custom else _filters_of(name)
    return w


tree.register_pytree_node(Wavelet, _flatten, _unflatten)


def wavelist(family: str | None = None) -> list[str]:
    """Return the names of the wavelets.

    Args:
      family: ``"haar"``, ``"db"`` or ``"sym"``; all by default.

    Returns:
      A list of strings.

    Raises:
      ArgumentError: an unknown family (a TypeError and a ValueError).

    >>> from pullback.scipy.signal.wavelets import wavelist
    >>> print(wavelist("sym")[:3])
    ['sym2', 'sym3', 'sym4']
    """
    names = {"haar": ["haar"]}
    names |= {f: [f"{f}{i}" for i in range(1 + (f == "sym"), most + 1)] for f, most in _LARGEST.items()}
    if family is None:
        return [name for group in names.values() for name in group]
    if not isinstance(family, str) or family not in names:
        raise ArgumentError(f"wavelist: family must be 'haar', 'db' or 'sym', got {quote(family)}")
    return names[family]


def _wavelet(name: str, wavelet: Any) -> Wavelet:
    if isinstance(wavelet, Wavelet):
        return wavelet
    if isinstance(wavelet, str):
        return Wavelet(wavelet)
    raise ArgumentError(f"{name}: wavelet must be a name or a Wavelet, got {quote(wavelet)}")


def dwt_max_level(data_len: int, filter_len: int | str | Wavelet) -> int:
    """Return how often a signal can be transformed until its ends reach all coefficients.

    Args:
      data_len: the number of elements of the signal.
      filter_len: the number of elements of the filters, at least 2, or a wavelet.

    Returns:
      floor(log2(data_len / (filter_len - 1))), at least 0.

    Raises:
      ArgumentError: numbers that make no sense (a TypeError and a ValueError).

    >>> from pullback.scipy.signal.wavelets import dwt_max_level
    >>> print(dwt_max_level(1000, "db4"))
    7
    """
    if isinstance(filter_len, (str, Wavelet)):
        filter_len = _wavelet("dwt_max_level", filter_len).dec_len
    taps, n = known_int("dwt_max_level", "filter_len", filter_len), known_int("dwt_max_level", "data_len", data_len)
    if taps < 2 or n < 0:
        raise ArgumentError(
            f"dwt_max_level: filter_len must be at least 2 and data_len not negative, got {taps} and {n}"
        )
    return max((n // (taps - 1)).bit_length() - 1, 0)


def dwt_coeff_len(data_len: int, filter_len: int | str | Wavelet, mode: str) -> int:
    """Return how many coefficients of a kind :func:`dwt` returns.

    Args:
      data_len: the number of elements of the signal, positive.
      filter_len: the number of elements of the filters, or a wavelet.
      mode: as for :func:`dwt`.

    Returns:
      ceil(data_len / 2) for ``"periodization"``, otherwise floor((data_len + filter_len - 1) / 2).

    Raises:
      ArgumentError: numbers that are not positive, or an unknown mode (a TypeError and a ValueError).

    >>> from pullback.scipy.signal.wavelets import dwt_coeff_len
    >>> print(dwt_coeff_len(9, "db2", "symmetric"), dwt_coeff_len(9, "db2", "periodization"))
    6 5
    """
    if isinstance(filter_len, (str, Wavelet)):
        filter_len = _wavelet("dwt_coeff_len", filter_len).dec_len
    taps = positive_int("dwt_coeff_len", "filter_len", filter_len)
    n = positive_int("dwt_coeff_len", "data_len", data_len)
    check_mode("dwt_coeff_len", mode, _MODES)
    return (n + 1) // 2 if mode == "periodization" else (n + taps - 1) // 2


# One level -----------------------------------------------------------------------------------------------------------

_NUMBERS = ConvDimensionNumbers(*[(0, 1, 2)] * 3)


def _filtered(x: Any, kernel: Any, stride: int, padding: int, dilation: int) -> Any:
    return conv_general_dilated_p.bind(
        x,
        slicing.rev(kernel, (2,)),
        geometry=Geometry((stride,), ((padding, padding),), (dilation,), (1,)),
        dimension_numbers=_NUMBERS,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
    )


def _bank_for(x: Any, low: Any, high: Any) -> Any:
    """Return two filters as a matrix (2, taps) in the precision of ``x``, and ``x`` in that of the filters."""
    if isinstance(low, np.ndarray):
        return x, constant(np.stack([low, high]), dtypes.to_real(x.dtype))
    x, low, high = promoted("dwt", x, low, high)
    return x, pnp.stack([low, high])


def _analysed(x: Any, wavelet: Wavelet, mode: str) -> tuple[Any, Any]:
    """Return the coefficients of the last axis of a signal that has elements."""
    n, taps, last = x.shape[-1], wavelet.dec_len, len(x.shape) - 1
    x, bank = _bank_for(x, wavelet.dec_lo, wavelet.dec_hi)
    if mode == "periodization":
        x = extended(x, 0, n % 2, "edge")
        x = extended(x, taps // 2 - 1, taps // 2 - 1, "wrap")
    else:
        # The last coefficient reads as many elements as there are before an even position beyond the end.
        x = extended(x, taps - 2, (n + taps - 1) // 2 * 2 - n, _BEYOND[mode])
    found = on_host(x, bank)
    if found is not None:
        host = imported("scipy.signal")
        late = [np.concatenate([[0], h]).astype(found[1].dtype) for h in found[1]]
        count = (x.shape[-1] - taps) // 2 + 1
        outs = [host.upfirdn(h, found[0], 1, 2)[..., taps // 2 : taps // 2 + count] for h in late]
        return constant(outs[0], x.dtype), constant(outs[1], x.dtype)
    rows = shapes.reshape(x, (math.prod(x.shape[:-1]), 1, x.shape[-1]))
    kernel = shapes.reshape(pnp.asarray(bank, x.dtype), (2, 1, taps))
    out = _filtered(rows, kernel, 2, 0, 1)
    low, high = (slicing.slice_in_dim(out, k, k + 1, 1) for k in (0, 1))
    shape = (*x.shape[:last], out.shape[-1])
    return shapes.reshape(low, shape), shapes.reshape(high, shape)


def _synthesised(low: Any, high: Any, wavelet: Wavelet, mode: str) -> Any:
    """Return the signal of coefficients of one shape along the last axis."""
    taps, last = wavelet.dec_len, len(low.shape) - 1
    pair = shapes.expand_dims(low, (last,)), shapes.expand_dims(high, (last,))
    both, bank = _bank_for(slicing.concatenate(pair, last), wavelet.rec_lo, wavelet.rec_hi)
    count, padding = 2 * both.shape[-1] - taps + 2, 1
    if mode == "periodization":
        more = taps // 4
        count, padding = 2 * both.shape[-1], taps // 2 - 2 * more
        both = extended(both, more, more, "wrap")
    found = on_host(both, bank)
    if found is not None:
        host, start = imported("scipy.signal"), taps - 1 - padding
        outs = [host.upfirdn(found[1][k], found[0][..., k, :], 2, 1)[..., start : start + count] for k in (0, 1)]
        return constant(outs[0] + outs[1], both.dtype)
    rows = shapes.reshape(both, (math.prod(both.shape[:-2]), 2, both.shape[-1]))
    out = _filtered(rows, shapes.reshape(pnp.asarray(bank, both.dtype), (1, 2, taps)), 1, padding, 2)
    return shapes.reshape(out, (*low.shape[:last], count))


def dwt(data: ArrayLike, wavelet: str | Wavelet, mode: str = "symmetric", axis: int = -1) -> tuple[Array, Array]:
    """Transform a signal to coefficients of low and of high frequencies, half as many of each.

    Args:
      data: the signal, an array of floats or complex numbers of any shape; integers are converted.
      wavelet: its name, or a :class:`Wavelet`.
      mode: how the signal continues beyond its ends: ``"zero"``, ``"constant"``, ``"symmetric"``, ``"periodic"``,
        ``"smooth"`` by its slope there, ``"reflect"``, ``"antisymmetric"``, ``"antireflect"``; or ``"periodization"``
        for a periodic signal and the least number of coefficients.
      axis: along which axis to transform.

    Returns:
      The approximation and the details, two arrays of one shape; see :func:`dwt_coeff_len`.

    Raises:
      ShapeError: a signal without elements, one of a single element for ``"reflect"`` or ``"antireflect"``, or an axis
        out of range (a TypeError and a ValueError).
      ArgumentError: an unknown wavelet or mode (a TypeError and a ValueError).

    Source: Mallat 1989, "A theory for multiresolution signal decomposition".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import dwt
    >>> print(*(part.round(3) for part in dwt(jnp.array([1.0, 3.0, 2.0, 2.0]), "haar")))
    [2.828 2.828] [-1.414  0.   ]
    """
    return _transformed("dwt", data, wavelet, mode, axis)


def _transformed(name: str, data: Any, wavelet: Any, mode: Any, axis: Any) -> tuple[Any, Any]:
    x = signal(name, data)
    check_mode(name, mode, _MODES)
    where, last = axis_index(axis, len(x.shape), name), len(x.shape) - 1
    least = 2 if mode in ("reflect", "antireflect") else 1
    if not x.size or x.shape[where] < least:
        raise ShapeError(f"{name} with mode={mode!r} takes signals of at least {least} elements, got shape {x.shape}")
    low, high = _analysed(shapes.moveaxis(x, where, last), _wavelet(name, wavelet), mode)
    return shapes.moveaxis(low, last, where), shapes.moveaxis(high, last, where)


def idwt(
    cA: ArrayLike | None, cD: ArrayLike | None, wavelet: str | Wavelet, mode: str = "symmetric", axis: int = -1
) -> Array:
    """Return the signal of coefficients of low and of high frequencies: the inverse of :func:`dwt`.

    Args:
      cA, cD: the approximation and the details, arrays of one shape; None for zeros, for one of both.
      wavelet, mode: as for :func:`dwt`.
      axis: along which axis to transform.

    Returns:
      An array with 2 n - dec_len + 2 elements along the axis, or 2 n for ``"periodization"``.

    Raises:
      ShapeError: coefficients of different shapes, or too few of them, or an axis out of range (a TypeError and a
        ValueError).
      ArgumentError: no coefficients, or an unknown wavelet or mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import dwt, idwt
    >>> print(idwt(*dwt(jnp.array([1.0, 3.0, 2.0, 2.0]), "db2"), "db2").round(3))
    [1. 3. 2. 2.]
    """
    return _restored("idwt", cA, cD, wavelet, mode, axis)


def _restored(name: str, low: Any, high: Any, wavelet: Any, mode: Any, axis: Any) -> Any:
    if low is None and high is None:
        raise ArgumentError(f"{name}: at least one of the coefficients cA and cD must not be None")
    check_mode(name, mode, _MODES)
    given = promoted(name, *(v for v in (low, high) if v is not None))
    low, high = (
        (given[0], given[-1])
        if len(given) == 2
        else ((given[0], pnp.zeros_like(given[0])) if high is None else (pnp.zeros_like(given[0]), given[0]))
    )
    if low.shape != high.shape or not low.shape or not low.size:
        raise ShapeError(
            f"{name}: the coefficients must have one shape with elements, got {low.shape} and {high.shape}"
        )
    w = _wavelet(name, wavelet)
    where, last = axis_index(axis, len(low.shape), name), len(low.shape) - 1
    if mode != "periodization" and 2 * low.shape[where] - w.dec_len + 2 < 1:
        raise ShapeError(
            f"{name}: the coefficients along the axis, {low.shape[where]}, are too few for filters of {w.dec_len} "
            f"elements"
        )
    out = _synthesised(shapes.moveaxis(low, where, last), shapes.moveaxis(high, where, last), w, mode)
    return shapes.moveaxis(out, last, where)


# Many levels ---------------------------------------------------------------------------------------------------------


def _levels(name: str, level: Any, sizes: Sequence[int], wavelet: Wavelet) -> int:
    most = min(dwt_max_level(n, wavelet.dec_len) for n in sizes)
    if level is None:
        return most
    number = known_int(name, "level", level)
    if number < 0:
        raise ArgumentError(f"{name}: level must be at least 0, got {number}")
    if number > most:
        warn(f"{name}: with level={number} the ends of the signal reach all coefficients; at most {most} is useful",
             UserWarning)  # fmt: skip
    return number


def wavedec(
    data: ArrayLike, wavelet: str | Wavelet, mode: str = "symmetric", level: int | None = None, axis: int = -1
) -> list[Array]:
    """Transform a signal again and again: the approximations of a level are the signal of the next.

    Args:
      data: the signal, an array of floats or complex numbers of any shape; integers are converted.
      wavelet, mode: as for :func:`dwt`.
      level: how often; :func:`dwt_max_level` by default.
      axis: along which axis to transform.

    Returns:
      The list ``[cA_n, cD_n, ..., cD_1]``: the last approximation, then the details of all levels, the last first.

    Raises:
      ShapeError, ArgumentError: as for :func:`dwt`, and for a negative level.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import wavedec
    >>> print(*(x.round(3) for x in wavedec(jnp.array([1.0, 3.0, 2.0, 2.0]), "haar")))
    [4.] [0.] [-1.414  0.   ]
    """
    x, w = signal("wavedec", data), _wavelet("wavedec", wavelet)
    count = _levels("wavedec", level, [x.shape[axis_index(axis, len(x.shape), "wavedec")]], w)
    details: list[Any] = []
    for _ in range(count):
        x, high = _transformed("wavedec", x, w, mode, axis)
        details.append(high)
    return [x, *reversed(details)]


def waverec(
    coeffs: Sequence[ArrayLike | None], wavelet: str | Wavelet, mode: str = "symmetric", axis: int = -1
) -> Array:
    """Return the signal of the coefficients of many levels: the inverse of :func:`wavedec`.

    Args:
      coeffs: the list that :func:`wavedec` returns; None for details that are zero.
      wavelet, mode: as for :func:`dwt`.
      axis: along which axis to transform.

    Returns:
      An array; it has one element more than the signal if that had an odd number.

    Raises:
      ShapeError: coefficients that do not fit (a TypeError and a ValueError).
      ArgumentError: no list of coefficients, or an unknown wavelet or mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import wavedec, waverec
    >>> print(waverec(wavedec(jnp.array([1.0, 3.0, 2.0, 2.0]), "db2"), "db2").round(3))
    [1. 3. 2. 2.]
    """
    if not isinstance(coeffs, (list, tuple)) or not coeffs:
        raise ArgumentError(f"waverec: coeffs must be a list of arrays, got {quote(coeffs)}")
    x: Any = signal("waverec", coeffs[0])
    w = _wavelet("waverec", wavelet)
    for high in coeffs[1:]:
        if high is not None:
            x = _fitting(x, signal("waverec", high), [axis_index(axis, len(x.shape), "waverec")])
        x = _restored("waverec", x, high, w, mode, axis)
    return x  # type: ignore[no-any-return]


def _fitting(low: Any, high: Any, axes: Sequence[int]) -> Any:
    """Cut off the last element of approximations along axes along which the details have one less."""
    for axis in axes:
        if len(high.shape) == len(low.shape) and low.shape[axis] == high.shape[axis] + 1:
            low = slicing.slice_in_dim(low, 0, high.shape[axis], axis)
    return low


# Images --------------------------------------------------------------------------------------------------------------

Details = tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]


def _two_axes(name: str, axes: Any, rank: int) -> tuple[int, int]:
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentError(f"{name}: axes must be two ints, got {quote(axes)}")
    first, second = (axis_index(a, rank, name) for a in axes)
    if first == second:
        raise ShapeError(f"{name}: the axes must differ, got {quote(axes)} for an array of {rank} axes")
    return first, second


def dwt2(
    data: ArrayLike, wavelet: str | Wavelet, mode: str = "symmetric", axes: tuple[int, int] = (-2, -1)
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Transform an image along two axes.

    Args:
      data: the image, an array of floats or complex numbers with at least two axes; integers are converted.
      wavelet, mode: as for :func:`dwt`.
      axes: along which axes to transform.

    Returns:
      The pair ``(cA, (cH, cV, cD))``: the approximation, and the details along the first axis, the second, and both.

    Raises:
      ShapeError, ArgumentError: as for :func:`dwt`, and for axes that are equal.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import dwt2
    >>> approximation, details = dwt2(jnp.array([[1.0, 1.0], [3.0, 3.0]]), "haar")
    >>> print(approximation.round(3), *(part.round(3) for part in details))
    [[4.]] [[-2.]] [[0.]] [[0.]]
    """
    return _of_image("dwt2", data, wavelet, mode, axes)


def _of_image(name: str, data: Any, wavelet: Any, mode: Any, axes: Any) -> Any:
    x, w = signal(name, data), _wavelet(name, wavelet)
    first, second = _two_axes(name, axes, len(x.shape))
    low, high = _transformed(name, x, w, mode, first)
    (a, v), (h, d) = (_transformed(name, part, w, mode, second) for part in (low, high))
    return a, (h, v, d)


def idwt2(
    coeffs: tuple[ArrayLike | None, Details], wavelet: str | Wavelet, mode: str = "symmetric",
    axes: tuple[int, int] = (-2, -1),
) -> Array:  # fmt: skip
    """Return the image of coefficients: the inverse of :func:`dwt2`.

    Args:
      coeffs: the pair ``(cA, (cH, cV, cD))`` of arrays of one shape; None for those that are zero.
      wavelet, mode: as for :func:`dwt`.
      axes: along which axes to transform.

    Returns:
      An array.

    Raises:
      ShapeError: coefficients that do not fit (a TypeError and a ValueError).
      ArgumentError: no such pair, or an unknown wavelet or mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import dwt2, idwt2
    >>> print(idwt2(dwt2(jnp.array([[1.0, 1.0], [3.0, 4.0]]), "haar"), "haar").round(3))
    [[1. 1.]
     [3. 4.]]
    """
    return _image_of("idwt2", coeffs, wavelet, mode, axes)


def _image_of(name: str, coeffs: Any, wavelet: Any, mode: Any, axes: Any) -> Any:
    if not isinstance(coeffs, (tuple, list)) or len(coeffs) != 2:
        raise ArgumentError(f"{name}: coefficients of an image are pairs (cA, (cH, cV, cD)), got {quote(coeffs)}")
    a, details = coeffs
    if not isinstance(details, (tuple, list)) or len(details) != 3:
        raise ArgumentError(f"{name}: details of an image are three arrays (cH, cV, cD), got {quote(details)}")
    h, v, d = details
    some = next((x for x in (a, h, v, d) if x is not None), None)
    if some is None:
        raise ArgumentError(f"{name}: at least one of the coefficients must not be None")
    first, second = _two_axes(name, axes, len(signal(name, some).shape))
    w = _wavelet(name, wavelet)
    rows = [
        None if low is None and high is None else _restored(name, low, high, w, mode, second)
        for low, high in ((a, v), (h, d))
    ]
    return _restored(name, rows[0], rows[1], w, mode, first)


def wavedec2(
    data: ArrayLike, wavelet: str | Wavelet, mode: str = "symmetric", level: int | None = None,
    axes: tuple[int, int] = (-2, -1),
) -> list[Any]:  # fmt: skip
    """Transform an image again and again: the approximations of a level are the image of the next.

    Args:
      data: the image, an array of floats or complex numbers with at least two axes; integers are converted.
      wavelet, mode: as for :func:`dwt`.
      level: how often; by default :func:`dwt_max_level` of the shorter axis.
      axes: along which axes to transform.

    Returns:
      The list ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``.

    Raises:
      ShapeError, ArgumentError: as for :func:`dwt2`, and for a negative level.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import wavedec2
    >>> parts = wavedec2(jnp.ones((8, 8)), "haar", level=2)
    >>> print(parts[0].shape, parts[1][0].shape, parts[2][0].shape)
    (2, 2) (2, 2) (4, 4)
    """
    x: Any = signal("wavedec2", data)
    w = _wavelet("wavedec2", wavelet)
    where = _two_axes("wavedec2", axes, len(x.shape))
    details: list[Any] = []
    for _ in range(_levels("wavedec2", level, [x.shape[a] for a in where], w)):
        x, parts = _of_image("wavedec2", x, w, mode, where)
        details.append(parts)
    return [x, *reversed(details)]


def waverec2(
    coeffs: Sequence[Any], wavelet: str | Wavelet, mode: str = "symmetric", axes: tuple[int, int] = (-2, -1)
) -> Array:
    """Return the image of the coefficients of many levels: the inverse of :func:`wavedec2`.

    Args:
      coeffs: the list that :func:`wavedec2` returns; None for details that are zero.
      wavelet, mode: as for :func:`dwt`.
      axes: along which axes to transform.

    Returns:
      An array; along an axis along which the image had an odd number of elements it has one more.

    Raises:
      ShapeError: coefficients that do not fit (a TypeError and a ValueError).
      ArgumentError: no list of coefficients, or an unknown wavelet or mode (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.signal.wavelets import wavedec2, waverec2
    >>> print(waverec2(wavedec2(jnp.array([[1.0, 1.0], [3.0, 4.0]]), "haar"), "haar").round(3))
    [[1. 1.]
     [3. 4.]]
    """
    if not isinstance(coeffs, (list, tuple)) or not coeffs:
        raise ArgumentError(f"waverec2: coeffs must be a list of coefficients, got {quote(coeffs)}")
    x: Any = signal("waverec2", coeffs[0])
    w = _wavelet("waverec2", wavelet)
    where = _two_axes("waverec2", axes, len(x.shape))
    for details in coeffs[1:]:
        some = [signal("waverec2", d) for d in details if d is not None] if isinstance(details, (tuple, list)) else []
        if some:
            x = _fitting(x, some[0], where)
        x = _image_of("waverec2", (x, details), w, mode, where)
    return x  # type: ignore[no-any-return]


face(globals())
