"""Elementwise programs for ``loops``, the module in C that computes them by small blocks on all cores.

A program consists of steps, each of which calls a loop: one of NumPy's, or one of the module. A host rule becomes the
steps that it consists of, which compute the same bits. A rule that has no translation is left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.host import rules
from pullback.backends.host.parallel import cores

try:
    from pullback.backends.host import loops
except ImportError:  # it was installed without a compiler
    loops = None  # type: ignore[assignment]

BLOCK = 1 << 13
"""The bytes of a block: those of a few values fit into a processor's first cache."""
ALONE = 8
"""How many times as large a block of a single operation is, which reads and writes memory alone, in longer runs."""

Loop = tuple[int, int]
"""The address of a loop, and that of its data."""
Position = int
"""The index of a value of a program."""
Step = tuple[Loop, tuple[Position, ...]]
"""A loop, and the positions of its operands and of its result."""


class Untranslatable(Exception):
    """An operation cannot be expressed in loops; NumPy has to compute it."""


class Program:
    """Steps on blocks, and the values that they read and write.

    Attributes:
      shape: the two sizes that the values have or broadcast to.
      values: for each value an array of two axes, or None if it is not kept.
      dtypes: those of the values.
      steps: for each its loop, and the positions of its operands and of its result.
      positions: those of operands and results, by their identities.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.values: list[Any] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.steps: list[Step] = []
        self.positions: dict[int, Position] = {}

    def value(self, dtype: np.dtype[Any], array: Any = None) -> Position:
        """Add a value; return its position."""
        self.values.append(array)
        self.dtypes.append(dtype)
        return len(self.values) - 1

    def apply(self, function: np.ufunc | str, dtype: np.dtype[Any], *operands: Any) -> Position:
        """Add a step; return the position of its result.

        Args:
          function: a ufunc of NumPy's, or the name of a loop of the module.
          dtype: that of the result.
          operands: positions, or numbers as :class:`Number`, which get the dtype of the other operands.
        """
        dtypes = [self.dtypes[x] for x in operands if type(x) is int]
        positions = [x if type(x) is int else self._number(x.number, dtypes[0]) for x in operands]
        if type(function) is str:
            loop = _own_loop(function)
        else:
            loop = _loop(function, *[self.dtypes[x] for x in positions], dtype)
        if loop is None:
            raise Untranslatable
        result = self.value(dtype)
        self.steps.append((loop, (*positions, result)))
        return result

    def _number(self, number: Any, dtype: np.dtype[Any]) -> Position:
        return self.value(dtype, np.full((1, 1), number, dtype))

    def run(self, kept: Sequence[Any], outs: Sequence[Any]) -> None:
        """Compute some of the results.

        Args:
          kept: what stands for them.
          outs: an array for each, whose elements are side by side.

        Raises:
          MemoryError: there is no memory for the blocks.
        """
        for result, out in zip(kept, outs, strict=True):
            x = self.positions[id(result)]
            if self.values[x] is not None:  # that of an operand, or of another result
                x = self._copy(x)
            self.values[x] = out.reshape(self.shape)
        steps, places = self._with_buffers()
        block = BLOCK if len(steps) > 1 else ALONE * BLOCK
        loops.run(self.shape, places, steps, block, cores() - 1)

    def reduce(self, kind: str, result: Any) -> Any:
        """Add the reduction of the rows of a result by pieces, and return the array that receives those of the pieces.

        Args:
          kind: that of the reduction, as in :func:`reduce_rows`.
          result: what stands for the result of an operation.
        """
        x = self.positions[id(result)]
        loop = _own_loop(f"{kind} {self.dtypes[x].char}")
        assert loop is not None
        out = np.empty((self.shape[0], -(-self.shape[1] // PIECE)), self.dtypes[x])
        self.steps.append((loop, (x, self.value(out.dtype, (out, PIECE)))))
        return out

    def _copy(self, x: Position) -> Position:
        dtype = self.dtypes[x]
        return self.apply(np.positive, dtype, x) if dtype.kind == "f" else self.apply(np.bitwise_or, dtype, x, x)

    def _with_buffers(self) -> tuple[list[Step], list[Any]]:
        """Give each value that is not kept a buffer, which others of its size use before and after.

        Returns:
          The steps with the positions of arrays and buffers, and for each position the array, or the bytes of an
          element.
        """
        last = {x: k for k, (_, positions) in enumerate(self.steps) for x in positions}
        places: list[Any] = []
        place: dict[Position, int] = {}
        free: dict[int, list[int]] = {}
        for x, array in enumerate(self.values):
            if array is not None:
                place[x] = len(places)
                places.append(array)
        steps = []
        for k, (loop, positions) in enumerate(self.steps):
            result = positions[-1]
            given = [place[x] for x in positions[:-1]]
            for x in set(positions[:-1]):  # their buffers may receive the result
                if last[x] == k and self.values[x] is None:
                    free.setdefault(self.dtypes[x].itemsize, []).append(place[x])
            if result not in place:
                size = self.dtypes[result].itemsize
                if not free.get(size):
                    free[size] = [len(places)]
                    places.append(size)
                place[result] = free[size].pop()
            steps.append((loop, (*given, place[result])))
        return steps, places


class Number:
    """An operand that is a number, whose dtype is that of the others."""

    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = number


@lru_cache(maxsize=1024)
def _loop(ufunc: np.ufunc, *dtypes: np.dtype[Any]) -> Loop | None:
    """Return NumPy's loop for operands and a result of some dtypes; None if there is none for just these."""
    return loops.find(ufunc, bytes([dtype.num for dtype in dtypes]))


@lru_cache(maxsize=1024)
def _own_loop(name: str) -> Loop | None:
    return loops.own(name)


# Rules ---------------------------------------------------------------------------------------------------------------

Translation = Callable[..., Position]
"""``translate(program, dtype, *operands, **params)`` adds the steps of a rule whose result has a dtype."""


def translate(
    program: Program, rule: Any, params: dict[str, Any], dtype: np.dtype[Any], operands: list[Any]
) -> Position:
    """Add the steps of a host rule to a program; return the position of the result.

    Args:
      program: to which the steps are added.
      rule, params: the host rule and its parameters.
      dtype: that of the result.
      operands: positions and numbers.

    Raises:
      Untranslatable: there are no loops for the rule, or for these dtypes.
    """
    translation = TRANSLATIONS.get(rule)
    if translation is not None:
        return translation(program, dtype, *operands, **params)
    ufunc = rule if isinstance(rule, np.ufunc) else rules.UFUNCS.get(rule)
    if ufunc is None and dtype.kind == "f":
        ufunc = rules.FLOAT_UFUNCS.get(rule)
    if ufunc is None or params:
        raise Untranslatable
    return program.apply(ufunc, dtype, *operands)


def _for_floats(function: Translation) -> Translation:
    """Let a translation be of floats alone."""

    def translation(program: Program, dtype: np.dtype[Any], *operands: Any, **params: Any) -> Position:
        if dtype.kind != "f":
            raise Untranslatable
        return function(program, dtype, *operands, **params)

    return translation


def _own(name: str) -> Translation:
    """The translation of a rule for which the module has a loop for each float."""

    def translation(program: Program, dtype: np.dtype[Any], *operands: Any) -> Position:
        _check_dtypes(program, dtype, operands)
        return program.apply(f"{name} {dtype.char}", dtype, *operands)

    return _for_floats(translation)


def _check_dtypes(program: Program, dtype: np.dtype[Any], operands: Sequence[Any]) -> None:
    """Raise Untranslatable if an operand has another dtype than the result: a loop of the module does not convert."""
    if any(type(x) is int and program.dtypes[x] != dtype for x in operands):
        raise Untranslatable


def _logistic(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    exp = program.apply(np.exp, dtype, program.apply(np.negative, dtype, x))
    return program.apply(np.reciprocal, dtype, program.apply(np.add, dtype, exp, Number(1)))


def _rsqrt(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    return program.apply(np.reciprocal, dtype, program.apply(np.sqrt, dtype, x))


def _square(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    return program.apply(np.multiply, dtype, x, x)


def _integer_pow(program: Program, dtype: np.dtype[Any], x: Any, *, y: int) -> Position:
    if y < 0:
        power = x if y == -1 else _integer_pow(program, dtype, x, y=-y)
        return _for_floats(lambda *_: program.apply(np.true_divide, dtype, Number(1), power))(program, dtype)
    if y < 2:
        raise Untranslatable
    if y == 3:
        return program.apply(np.multiply, dtype, _square(program, dtype, x), x)
    result, square = None, x
    while True:
        if y & 1:
            result = square if result is None else program.apply(np.multiply, dtype, result, square)
        y >>= 1
        if not y:
            return result  # type: ignore[return-value]
        square = program.apply(np.multiply, dtype, square, square)


def _clamp_by_two(program: Program, dtype: np.dtype[Any], low: Any, x: Any, high: Any) -> Position:
    return program.apply(np.minimum, dtype, program.apply(np.maximum, dtype, x, low), high)


def _clamp(program: Program, dtype: np.dtype[Any], low: Any, x: Any, high: Any) -> Position:
    """Clamp floats between numbers by one loop, which computes the same as two."""
    both = type(low) is not int and type(high) is not int
    if both and dtype.kind == "f":
        return program.apply(_CLIP, dtype, x, low, high)
    return _clamp_by_two(program, dtype, low, x, high)


_CLIP: np.ufunc = getattr(np, "_core").umath.clip  # noqa: B009  (without a public name)


def _select(program: Program, dtype: np.dtype[Any], which: Any, *cases: Any) -> Position:
    if len(cases) != 2 or type(which) is not int or program.dtypes[which].kind != "b":
        raise Untranslatable
    _check_dtypes(program, dtype, cases)
    no, yes = (x if type(x) is int else program._number(x.number, dtype) for x in cases)
    return program.apply(f"select {dtype.itemsize}", dtype, which, yes, no)


def convert(program: Program, dtype: np.dtype[Any], x: Any, *, new_dtype: Any, weak_type: bool = False) -> Position:
    """Translate a conversion between dtypes that NumPy's cast computes as the compiler does."""
    if type(x) is not int:
        raise Untranslatable
    old = program.dtypes[x]
    if old == dtype:
        return x
    if dtype.kind == "b":
        return program.apply(np.not_equal, dtype, x, Number(0))
    source = old.char if old.kind in "fb" else old.kind + str(old.itemsize)
    return program.apply(f"cast {dtype.char}{source}", dtype, x)


TRANSLATIONS: dict[Any, Translation] = {
    rules.identity: lambda program, dtype, x: x, rules.maximum: _own("maximum"), rules.minimum: _own("minimum"),
    rules.max_share: _own("max_share"), rules.min_share: _own("min_share"), rules.sign: _own("sign"),
    rules.logistic: _for_floats(_logistic), rules.rsqrt: _for_floats(_rsqrt), rules.square: _square,
    rules.integer_pow: _integer_pow, rules.clamp: _clamp, rules.select_n: _select,
}  # fmt: skip
"""The translations of rules that are no ufuncs."""


Operation = tuple[Any, Any, dict[str, Any], Sequence[Any]]
"""What stands for the result and has its ``dtype``, the host rule, its parameters, and its operands: results of
earlier operations, NumPy arrays and numbers."""


def translated(shape: tuple[int, ...], operations: Sequence[Operation], axis: int | None = None) -> Program | None:
    """Translate elementwise operations.

    Args:
      shape: that of all results.
      operations: the operations, each after those on whose results it depends.
      axis: the first of the axes that are the columns of the program; any, if None.

    Returns:
      The program; None if there are no loops for the operations.
    """
    if loops is None:
        return None
    results = {id(result) for result, *_ in operations}
    given = [x for *_, operands in operations for x in operands]
    arrays = {id(x): x for x in given if id(x) not in results and isinstance(x, np.ndarray | np.generic)}
    try:
        size, views = two_axes(shape, list(map(np.asarray, arrays.values())), axis)
        program = Program(size)
        position = program.positions
        for key, view in zip(arrays, views, strict=True):
            position[key] = program.value(view.dtype, view)
        for result, rule, params, operands in operations:
            places = [position[id(x)] if id(x) in position else Number(x) for x in operands]
            position[id(result)] = translate(program, rule, params, result.dtype, places)
    except Untranslatable:
        return None
    return program


# Reductions ----------------------------------------------------------------------------------------------------------

PIECE = 512
"""The number of elements that are reduced at once, in 32 interleaved chains. The results of pieces are reduced again,
so that a rounding error hardly grows with the number of elements."""
_FEW = 1 << 16  # The elements of which a reduction takes less time than a thread to wake up.


def reduce_rows(kind: str, x: Any, *factor: Any) -> Any:
    """Reduce the rows of a matrix, or of its product with another.

    Args:
      kind: "sum", "product", "largest" or "least".
      x: a matrix of floats of 32 or 64 bits, whose elements are side by side.
      factor: nothing, or a matrix of the same shape and dtype.

    Returns:
      A vector.
    """
    values: list[Any] = [x]
    steps: list[Step] = []
    if factor:
        product = _loop(np.multiply, *[x.dtype] * 3)
        assert product is not None
        values += [*factor, x.itemsize]
        steps = [(product, (0, 1, 2))]
    out = np.empty((len(x), -(-x.shape[1] // PIECE)), x.dtype)
    loop = _own_loop(f"{kind} {x.dtype.char}")
    assert loop is not None
    steps.append((loop, (len(values) - 1, len(values))))
    helpers = cores() - 1 if x.size >= _FEW else 0
    loops.run(x.shape, [*values, (out, PIECE)], steps, BLOCK if factor else ALONE * BLOCK, helpers)
    return finished(kind, out)


def finished(kind: str, out: Any) -> Any:
    """Return the reductions of rows, from those of their pieces."""
    return out[:, 0] if out.shape[1] == 1 else reduce_rows(kind, out)


REDUCTIONS: dict[Any, str] = {}
"""The kinds of reduction that host rules compute, with the parameter ``axes``. Modules add those of their rules."""


# Arrays --------------------------------------------------------------------------------------------------------------


def two_axes(
    shape: tuple[int, ...], arrays: Sequence[Any], axis: int | None = None
) -> tuple[tuple[int, int], list[Any]]:
    """View arrays that broadcast to a shape as arrays of two axes, rows and columns.

    Args:
      shape: that of the results.
      arrays: NumPy arrays.
      axis: the first of the axes that become the columns; any, if None.

    Returns:
      The two sizes, and the views.

    Raises:
      Untranslatable: no two axes do for all arrays without a copy.
    """
    narrow = [x if x.shape == shape and x.flags.c_contiguous else _without_repetition(x, len(shape)) for x in arrays]
    are_whole = all(x.size == 1 or (x.shape == shape and x.flags.c_contiguous) for x in narrow)
    for k in range(len(shape)) if axis is None else (axis,):
        if are_whole or all(
            _is_full_or_one(x.shape[:k], shape[:k]) and _is_full_or_one(x.shape[k:], shape[k:]) for x in narrow
        ):
            sizes = [(1, 1) if x.size == 1 else (math.prod(x.shape[:k]), math.prod(x.shape[k:])) for x in narrow]
            try:
                views = [np.reshape(x, size, copy=False) for x, size in zip(narrow, sizes, strict=True)]
            except ValueError:  # the elements are not in this order
                continue
            return (math.prod(shape[:k]), math.prod(shape[k:])), views
    raise Untranslatable


def _without_repetition(x: Any, ndim: int) -> Any:
    """Return an array with a number of axes, with one element on those along which it repeats its elements."""
    x = x.reshape((1,) * (ndim - x.ndim) + x.shape)
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides)]


def _is_full_or_one(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return sizes == shape or math.prod(sizes) == 1
