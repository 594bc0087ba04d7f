"""The shapes with which a program may call LAPACK.

A routine reads and writes as much memory as the shape of one operand says, whatever the other operands and the results
are. So a program that was read may call it only with shapes that belong together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pullback.core.types import Shape

_Shapes = tuple[list[Shape], list[Shape]]
"""The shapes of the operands, and those of the results."""
_Sizes = Callable[[Sequence[Shape], Shape, int, int, Mapping[str, str]], _Shapes | None]
"""From the operands' shapes; the batch axes, rows and columns of the first; and the call's options: the shapes that it
must have, or None if it is never right."""


def _square(*results: Callable[[Shape, int], Shape]) -> _Sizes:
    def sizes(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
        return ([(*b, n, n)], [(*b, n, n), *(of(b, n) for of in results)]) if m == n else None

    return sizes


def _orthogonal(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    k = operands[1][-1]
    return ([(*b, m, n), (*b, k)], [(*b, m, n)]) if k <= n <= m else None


def _reflected(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    k, (rows, columns) = operands[1][-1], operands[2][-2:]
    right = k <= n and k <= m == (rows if options.get("left") == "true" else columns)
    return ([(*b, m, n), (*b, k), (*b, rows, columns)], [(*b, rows, columns)]) if right else None


def _solution(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    rows, columns = operands[1][-2:]
    right = m == n == (rows if options.get("side") == str(ord("L")) else columns)
    return ([(*b, n, n), (*b, rows, columns)], [(*b, rows, columns)]) if right else None


def _tridiagonal(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    vector, x = operands[0], operands[3]
    batch = vector[:-1]
    return ([vector, vector, vector, x], [vector, vector, vector, x, batch]) if x[:-1] == vector else None


def _singular(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    k, mode = min(m, n), chr(int(options.get("mode", "0")))
    if mode not in "ANS":
        return None
    factors = [(*b, m, k), (*b, k, n)] if mode == "S" else [(*b, m, m), (*b, n, n)]
    return [(*b, m, n)], [(*b, m, n), (*b, k), *factors, b]


def _vector(b: Shape, n: int) -> Shape:
    return (*b, n)


def _shorter(b: Shape, n: int) -> Shape:
    return (*b, max(n - 1, 0))


def _number(b: Shape, n: int) -> Shape:
    return b


def _eigenvalues(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    values = [(*b, n)] * (1 if options["letter"] in "cz" else 2)  # or the real and the imaginary parts
    return ([(*b, n, n)], [*values, (*b, n, n), (*b, n, n), b]) if m == n else None


def _schur(operands: Sequence[Shape], b: Shape, m: int, n: int, options: Mapping[str, str]) -> _Shapes | None:
    values = [(*b, n)] * (1 if options["letter"] in "cz" else 2)
    return ([(*b, n, n)], [(*b, n, n), (*b, n, n), *values, b, b]) if m == n else None


_SIZES: dict[str, _Sizes] = {
    "potrf": _square(_number),
    "syevd": _square(_vector, _number),
    "heevd": _square(_vector, _number),
    "sytrd": _square(_vector, _shorter, _shorter, _number),
    "hetrd": _square(_vector, _shorter, _shorter, _number),
    "gehrd": _square(_shorter, _number),
    "geev": _eigenvalues,
    "gees": _schur,
    "geqrf": lambda operands, b, m, n, options: ([(*b, m, n)], [(*b, m, n), (*b, min(m, n))]),
    "geqp3": lambda operands, b, m, n, options: ([(*b, m, n), (*b, n)], [(*b, m, n), (*b, n), (*b, min(m, n))]),
    "getrf": lambda operands, b, m, n, options: ([(*b, m, n)], [(*b, m, n), (*b, min(m, n)), b]),
    "orgqr": _orthogonal,
    "ungqr": _orthogonal,
    "ormqr": _reflected,
    "unmqr": _reflected,
    "trsm": _solution,
    "gtsv": _tridiagonal,
    "gesdd": _singular,
    "gesvd": _singular,
}
_LETTERS = {"or": "sd", "sy": "sd", "un": "cz", "he": "cz"}
"""The letters of the dtypes of those routines that are not for all."""
TARGETS = [f"lapack_{letter}{name}_ffi" for name in _SIZES for letter in _LETTERS.get(name[:2], "sdcz")]
"""The names of the routines as targets of custom calls."""
_TARGET = re.compile(r"lapack_([sdcz])(\w+)_ffi")


def fits(target: str, operands: Sequence[Shape], results: Sequence[Shape], options: Mapping[str, str]) -> bool:
    """Whether a routine of LAPACK may be called with these shapes.

    Args:
      target: the name of the routine as a target of custom calls, such as ``lapack_spotrf_ffi``.
      operands, results: the shapes.
      options: the options of the call as text, such as ``{"uplo": "76"}``, letters by their codes.
    """
    found = _TARGET.fullmatch(target)
    sizes = _SIZES.get(found[2]) if found else None
    if found is None or sizes is None:
        return False
    try:
        *batch, m, n = operands[0] if sizes is not _tridiagonal else (*operands[0], 0)
        return sizes(operands, tuple(batch), m, n, {**options, "letter": found[1]}) == (list(operands), list(results))
    except (IndexError, ValueError):  # too few operands, or axes
        return False
