"""Elementwise programs for ``loops``, the module in C that computes them by small blocks on all cores.

A program consists of steps, each of which calls a loop: one of NumPy's, or one of the module. A host rule becomes the
steps that it consists of, which compute the same bits. A rule that has no translation is left to NumPy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backends.host import fused, own, rules
from pullback.backends.host.axes import Untranslatable, View, few_axes_in_order
from pullback.backends.host.parallel import cores

loops = own.loops

BLOCK = 1 << 13
"""The bytes of a block: those of a few values fit into a processor's first cache."""
ALONE = 8
"""How many times as large a block of a single operation is, which reads and writes memory alone, in longer runs."""

SHARE = 1 << 17
"""The elements, times operations, that are worth a thread: fewer take less time than it needs to wake up."""

CHOICES: dict[Any, str] = {
    np.less: "if_less", np.less_equal: "if_less_equal", np.greater: "if_greater", np.equal: "if_equal",
    np.greater_equal: "if_greater_equal", np.not_equal: "if_not_equal",
}  # fmt: skip
"""The loops of the module that choose by a comparison with a number."""

SHORT = 512
"""The elements of a row from which on NumPy's loops are called for each row."""
PLANES = (np.add, np.subtract, np.multiply, np.true_divide)
"""The functions that the module computes for several rows at once."""

Loop = tuple[int, int]
"""The address of a loop, and that of its data."""
Position = int
"""The index of a value of a program."""
Step = tuple[Loop, tuple[Position, ...]]
"""A loop, and the positions of its operands and of its result."""


class Program:
    """Steps on blocks, and the values that they read and write.

    Attributes:
      ndim: the number of axes of the arrays.
      are_rows_short: whether a row takes less time than a call of NumPy's loop for it.
      dtypes: for each value its dtype.
      sources: for each value where its elements are: for an operand of the expression its index, for a number an array,
        and None for the result of a step.
      steps: for each its loop, and the positions of its operands and of its result.
      numbers: the values that are operands without a dtype of their own: the position, the operand's index, the dtype.
      tests: for each value that is a comparison with a number, the loop that chooses by it, and the two operands.
    """

    def __init__(self, shape: tuple[int, ...] = (0, 0)) -> None:
        self.ndim, self.are_rows_short = len(shape), shape[-1] < SHORT
        self.dtypes: list[np.dtype[Any]] = []
        self.sources: list[Any] = []
        self.steps: list[Step] = []
        self.numbers: list[tuple[Position, int, np.dtype[Any]]] = []
        self.tests: dict[Position, tuple[str, tuple[Position, Position]]] = {}

    def value(self, dtype: np.dtype[Any], source: Any = None) -> Position:
        """Add a value; return its position."""
        self.dtypes.append(dtype)
        self.sources.append(source)
        return len(self.dtypes) - 1

    def apply(self, function: np.ufunc | str, dtype: np.dtype[Any], *operands: Any) -> Position:
        """Add a step; return the position of its result.

        Args:
          function: a ufunc of NumPy's, or the name of a loop of the module.
          dtype: that of the result.
          operands: positions, or :class:`Number`, which get the dtype of the other operands.
        """
        dtypes = [self.dtypes[x] for x in operands if type(x) is int]
        positions = [x if type(x) is int else self.number(x, dtypes[0]) for x in operands]
        if type(function) is str:
            loop = own.loop(function)
        else:
            given = [self.dtypes[x] for x in positions]
            loop = _loop(function, *given, dtype)
            if loop is not None and self.are_rows_short and function in PLANES and dtype.char in "fd":
                loop = own.loop(f"plane {function.__name__} {dtype.char}")
        if loop is None:
            raise Untranslatable
        result = self.value(dtype)
        self.steps.append((loop, (*positions, result)))
        if function in CHOICES and type(operands[1]) is Number and self.dtypes[positions[0]].char in "fd":
            self.tests[result] = f"{CHOICES[function]} {self.dtypes[positions[0]].char}", (positions[0], positions[1])
        return result

    def prune(self, written: set[Position]) -> None:
        """Drop the steps whose results nobody reads.

        Args:
          written: the positions of the values that steps write to arrays.
        """
        read, steps = set(written), []
        for step in reversed(self.steps):
            if step[1][-1] in read:
                read.update(step[1][:-1])
                steps.append(step)
        self.steps = steps[::-1]

    def fuse(self, written: set[Position], single: set[Position]) -> None:
        """Let one step do what two do, where the module has a loop for both.

        Args:
          written: the positions of the values that steps write to arrays.
          single: those of the operands of one element.
        """
        single = single | {x for x, _, _ in self.numbers}
        single |= {x for x, source in enumerate(self.sources) if isinstance(source, np.ndarray)}
        uses = Counter(x for _, positions in self.steps for x in positions[:-1])
        made: dict[Position, Step] = {}
        for k, step in enumerate(self.steps):
            for i, x in enumerate(step[1][:-1]):
                both = None
                if x in made and uses[x] == 1 and x not in written:
                    both = fused.pair(made[x], step, i, single.__contains__)
                if both is not None:
                    self.steps[k] = both
                    break
            made[step[1][-1]] = self.steps[k]

    def reduced(self, kind: str, x: Position, of_rows: bool, whole: set[Position]) -> Position:
        """Add the reduction of pieces of rows, or of columns, as the last step; return the position of its result.

        Args:
          kind: that of the reduction.
          x: what is reduced, the result of the last step.
          of_rows: whether rows are reduced.
          whole: the operands whose elements are side by side.
        """
        given, dtype = [x], self.dtypes[x]
        last, (*operands, _) = self.steps[-1]
        is_product = last == _loop(np.multiply, *[dtype] * 3)
        are_even = all(y in whole or self.sources[y] is None for y in operands)
        if kind == "sum" and of_rows and is_product and are_even:
            kind, given = "dot", operands  # in one pass
        loop = own.loop(f"{'' if of_rows else 'stacked '}{kind} {dtype.char}")
        assert loop is not None
        pieces = self.value(dtype)
        self.steps.append((loop, (*given, pieces)))
        return pieces

    def number(self, number: Number, dtype: np.dtype[Any]) -> Position:
        """Add a number as a value of a dtype."""
        if number.index is None:
            return self.value(dtype, np.full((1,) * self.ndim, number.value, dtype))
        position = self.value(dtype, number.index)
        self.numbers.append((position, number.index, dtype))
        return position

    def written(self, x: Position, taken: set[Position]) -> Position:
        """Return the position of a value that a step writes: that of ``x``, or of a copy of it.

        Args:
          x: a position.
          taken: the positions that are written to another array.
        """
        if self.sources[x] is None and x not in taken:
            return x
        dtype = self.dtypes[x]
        return self.apply(np.positive, dtype, x) if dtype.kind == "f" else self.apply(np.bitwise_or, dtype, x, x)

    def with_buffers(self, written: set[Position]) -> tuple[list[Step], list[Any], dict[Position, int]]:
        """Give each value that has no array a buffer, which others of its size use before and after.

        Args:
          written: the positions of the values that steps write to arrays.

        Returns:
          The steps with the slots of their values; for each slot the bytes of an element of a buffer, a number, or
          None for an array; and the slot of each position.
        """
        last = {x: k for k, (_, positions) in enumerate(self.steps) for x in positions}
        slots: list[Any] = []
        slot: dict[Position, int] = {}
        free: dict[int, list[int]] = {}
        for x, source in enumerate(self.sources):
            if source is not None or x in written:
                slot[x] = len(slots)
                slots.append(source if isinstance(source, np.ndarray) else None)
        steps = []
        for k, (loop, positions) in enumerate(self.steps):
            result = positions[-1]
            given = [slot[x] for x in positions[:-1]]
            for x in set(positions[:-1]):  # their buffers may receive the result
                if last[x] == k and self.sources[x] is None and x not in written:
                    free.setdefault(self.dtypes[x].itemsize, []).append(slot[x])
            if result not in slot:
                size = self.dtypes[result].itemsize
                if not free.get(size):
                    free[size] = [len(slots)]
                    slots.append(size)
                slot[result] = free[size].pop()
            steps.append((loop, (*given, slot[result])))
        return steps, slots, slot


class Number:
    """An operand that has the dtype of the others: the number ``value``, or the expression's operand ``index``."""

    __slots__ = ("index", "value")

    def __init__(self, value: Any = None, index: int | None = None) -> None:
        self.value, self.index = value, index


@lru_cache(maxsize=1024)
def _loop(ufunc: np.ufunc, *dtypes: np.dtype[Any]) -> Loop | None:
    """Return the loop of a ufunc for operands and a result of some dtypes; None if there is none for just these.

    It is NumPy's, or that of the module in its place.
    """
    if ufunc in own.REPLACED and all(dtype.char == "f" for dtype in dtypes):
        return own.loop(f"{ufunc.__name__} f")
    return loops.find(ufunc, bytes([dtype.num for dtype in dtypes]))


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


def by_own(name: str) -> Translation:
    """The translation of a rule for which the module has a loop for each float."""

    def translation(program: Program, dtype: np.dtype[Any], *operands: Any) -> Position:
        _check_dtypes(program, dtype, operands)
        return program.apply(f"{name} {dtype.char}", dtype, *operands)

    return _for_floats(translation)


def _check_dtypes(program: Program, dtype: np.dtype[Any], operands: Sequence[Any]) -> None:
    """Raise Untranslatable if an operand has another dtype than the result: a loop of the module does not convert."""
    if any(type(x) is int and program.dtypes[x] != dtype for x in operands):
        raise Untranslatable


def _of_integers(name: str, ufunc: np.ufunc) -> Translation:
    """The translation of a rule for which NumPy has a loop for floats, and the module one for integers."""

    def translation(program: Program, dtype: np.dtype[Any], *operands: Any) -> Position:
        if dtype.kind not in "iu":
            return _for_floats(lambda *_: program.apply(ufunc, dtype, *operands))(program, dtype)
        _check_dtypes(program, dtype, operands)
        return program.apply(f"{name} {dtype.kind}{dtype.itemsize}", dtype, *operands)

    return translation


def _sign(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    return program.apply(np.sign, dtype, x) if dtype.kind in "iu" else by_own("sign")(program, dtype, x)


def _logistic(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    exp = program.apply(np.exp, dtype, program.apply(np.negative, dtype, x))
    return program.apply(np.true_divide, dtype, Number(1), program.apply(np.add, dtype, exp, Number(1)))


def _logistic_slope(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    exp = program.apply(np.exp, dtype, program.apply(np.negative, dtype, program.apply(np.absolute, dtype, x)))
    divisor = _square(program, dtype, program.apply(np.add, dtype, exp, Number(1)))
    return program.apply(np.true_divide, dtype, exp, divisor)


def _rsqrt(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    return program.apply(np.true_divide, dtype, Number(1), program.apply(np.sqrt, dtype, x))


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


def _clamp(program: Program, dtype: np.dtype[Any], low: Any, x: Any, high: Any) -> Position:
    if dtype.kind != "f":
        return program.apply(np.minimum, dtype, program.apply(np.maximum, dtype, x, low), high)
    larger, smaller = by_own("maximum"), by_own("minimum")
    return smaller(program, dtype, larger(program, dtype, x, low), high)


def _sign_of_numbers(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    is_zero, sign = program.apply(np.equal, np.dtype(bool), x, Number(0)), by_own("sign")(program, dtype, x)
    return _select(program, dtype, is_zero, sign, Number(0))


def _relu(program: Program, dtype: np.dtype[Any], x: Any) -> Position:
    return _select(program, dtype, program.apply(np.less_equal, np.dtype(bool), x, Number(0)), x, Number(0))


def _leaky_relu(program: Program, dtype: np.dtype[Any], x: Any, *, slope: float) -> Position:
    below = program.apply(np.multiply, dtype, x, Number(slope))
    return _select(program, dtype, program.apply(np.greater_equal, np.dtype(bool), x, Number(0)), below, x)


def _logaddexp(program: Program, dtype: np.dtype[Any], x: Any, y: Any) -> Position:
    distance = program.apply(np.absolute, dtype, program.apply(np.subtract, dtype, x, y))
    smaller = program.apply(np.log1p, dtype, program.apply(np.exp, dtype, program.apply(np.negative, dtype, distance)))
    out = program.apply(np.add, dtype, by_own("maximum")(program, dtype, x, y), smaller)
    equal = program.apply(np.equal, np.dtype(bool), x, y)
    return _select(
        program, dtype, equal, out, program.apply(np.add, dtype, x if type(x) is int else y, Number(rules.LOG_2))
    )


def _hypot(program: Program, dtype: np.dtype[Any], x: Any, y: Any) -> Position:
    if dtype.char == "f":
        return by_own("hypot")(program, dtype, x, y)
    truth = np.dtype(bool)
    both = [x if type(x) is int else program.number(x, dtype), y if type(y) is int else program.number(y, dtype)]
    a, b = (program.apply(np.absolute, dtype, z) for z in both)
    large, small = (by_own(name)(program, dtype, a, b) for name in ("maximum", "minimum"))
    safe = _select(program, dtype, program.apply(np.equal, truth, large, Number(0)), large, Number(1))
    ratio = program.apply(np.true_divide, dtype, small, safe)
    square = program.apply(np.add, dtype, _square(program, dtype, ratio), Number(1))
    out = program.apply(np.multiply, dtype, large, program.apply(np.sqrt, dtype, square))
    infinite = [program.apply(np.equal, truth, z, Number(np.inf)) for z in (a, b)]
    return _select(program, dtype, program.apply(np.bitwise_or, truth, *infinite), out, Number(np.inf))


def _select(program: Program, dtype: np.dtype[Any], which: Any, *cases: Any) -> Position:
    if len(cases) != 2 or type(which) is not int or program.dtypes[which].kind != "b":
        raise Untranslatable
    _check_dtypes(program, dtype, cases)
    no, yes = (x if type(x) is int else program.number(x, dtype) for x in cases)
    test = program.tests.get(which)
    if test is not None and program.dtypes[test[1][0]].itemsize == dtype.itemsize:
        return program.apply(test[0], dtype, *test[1], yes, no)
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
    rules.identity: lambda program, dtype, x: x, rules.maximum: by_own("maximum"), rules.minimum: by_own("minimum"),
    rules.max_share: by_own("max_share"), rules.min_share: by_own("min_share"), rules.sign: _sign,
    rules.div: _of_integers("div", np.true_divide), rules.rem: _of_integers("rem", np.fmod),
    rules.logistic: _for_floats(_logistic), rules.logistic_slope: _for_floats(_logistic_slope),
    rules.rsqrt: _for_floats(_rsqrt), rules.square: _square,
    rules.sign_of_numbers: _for_floats(_sign_of_numbers), rules.relu: _for_floats(_relu),
    rules.leaky_relu: _for_floats(_leaky_relu),
    rules.integer_pow: _integer_pow, rules.clamp: _clamp, rules.select_n: _select,
    rules.logaddexp.of_many: _for_floats(_logaddexp), rules.hypot.of_many: _for_floats(_hypot),  # type: ignore[attr-defined]
}  # fmt: skip
"""The translations of rules that are no ufuncs."""
QUICK_IN_SINGLE: set[Any] = set()
"""The rules of special functions that have a quick loop for single precision."""


# Plans ---------------------------------------------------------------------------------------------------------------

Operation = tuple[Any, tuple[tuple[str, Any], ...], np.dtype[Any], tuple[int, ...]]
"""A host rule, the items of its parameters, the dtype of the result, and the operands: the index of an earlier
operation, or ``~index`` of an operand of the expression."""
Operand = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]] | type
"""The shape, strides and dtype of an array; the class of a Python number."""


class Plan:
    """How an expression is evaluated, whatever its operands hold.

    Attributes:
      shape: the two or three sizes of all values.
      steps: those of the module in C.
      slots: what they read and write, without the arrays.
      arrays: for each array that is an operand its slot, its index, and how it becomes one of these axes; None for the
        last if its elements are those of the results, side by side.
      numbers: for each number that is an operand its slot, its index and its dtype.
      outs: the slots of the results that are kept.
      pieces: the slot, dtype and shape of the reductions of pieces, their axis and size, which is 0 for a function of
        whole rows; None if nothing is reduced.
      block: the most bytes of a block of one value.
      helpers: how many threads may help.
      free: the indices of the operands that no step reads after that which computes the last result that is kept.
      order: the permutation of the operands' axes; None for the order that they have.
    """

    __slots__ = ("arrays", "block", "free", "helpers", "numbers", "order", "outs", "pieces", "shape", "slots", "steps")

    shape: tuple[int, ...]
    steps: list[Step]
    slots: list[Any]
    arrays: list[tuple[int, int, View | None]]
    block: int
    helpers: int
    numbers: list[tuple[int, int, np.dtype[Any]]]
    outs: list[int]
    free: list[int]
    pieces: tuple[int, np.dtype[Any], tuple[int, ...], int, int] | None
    order: tuple[int, ...] | None

    def run(self, operands: Sequence[Any], outs: Sequence[Any]) -> Any:
        """Evaluate the expression.

        Args:
          operands: its operands.
          outs: an array for each result that is kept, whose elements are side by side.

        Returns:
          The reductions of pieces, of which :func:`finished` makes those of rows or columns; or None.

        Raises:
          MemoryError: there is no memory for the blocks.
        """
        assert loops is not None
        return loops.run_plan(self, operands, outs)


def viewed(plan: Plan, x: Any, view: View) -> Any:
    """Return an operand as an array of the axes of a plan."""
    part, size = view
    if plan.order is not None:
        x = x.reshape((1,) * (len(plan.order) - x.ndim) + x.shape).transpose(plan.order)
    return (x if part is None else x[part]).reshape(size)


def planned(
    shape: tuple[int, ...],
    operations: tuple[Operation, ...],
    operands: tuple[Operand, ...],
    kept: tuple[int, ...],
    axes: tuple[int, int] | None = None,
    kind: str = "",
) -> Plan | None:
    """Plan the evaluation of an expression of elementwise operations.

    Args:
      shape: that of all results.
      operations: the operations, each after those on whose results it depends.
      operands: those of the expression.
      kept: the indices of the operations whose results are kept; none only if something is reduced.
      axes: the first of the axes that are reduced, and the one after the last; None, if nothing is.
      kind: "", or the kind of the reduction of the last result, as in :func:`reduce_rows`.

    Returns:
      The plan; None if there are no loops for the operations.
    """
    plan = Plan()
    given: list[Any] = [Number(index=i) if isinstance(x, type) else None for i, x in enumerate(operands)]
    arrays = [i for i, x in enumerate(given) if x is None]
    try:
        plan.order, plan.shape, views = few_axes_in_order(shape, [operands[i] for i in arrays], axes, not kept)  # type: ignore[misc]
        program = Program(plan.shape)
        for i in arrays:
            given[i] = program.value(operands[i][2], i)  # type: ignore[index]
        results: list[Any] = []
        for rule, params, dtype, indices in operations:
            slots = [results[i] if i >= 0 else given[~i] for i in indices]
            results.append(translate(program, rule, dict(params), dtype, slots))
        outs: list[Position] = []
        for i in kept:
            outs.append(program.written(results[i], set(outs)))
    except Untranslatable:
        return None
    written, plan.pieces = set(outs), None
    program.fuse(written, {given[i] for i in arrays if _size(operands[i]) == 1})
    whole = [i for i in arrays if plan.order is None and _is_whole(operands[i], shape)]
    if axes is not None:
        if program.sources[results[-1]] is not None:  # an operand, whose elements may be anywhere
            return None
        pieces = program.reduced(kind, results[-1], axes[1] == len(shape), {given[i] for i in whole})
        written.add(pieces)
    program.prune(written)
    read = {x: k for k, (_, positions) in enumerate(program.steps) for x in positions[:-1]}
    end = next((k for k, (_, positions) in enumerate(program.steps) if outs and positions[-1] == outs[-1]), -1)
    plan.free = [i for i in arrays if outs and read.get(given[i], -1) <= end]
    plan.steps, plan.slots, slot = program.with_buffers(written)
    plan.arrays = [(slot[given[i]], i, None if i in whole else view) for i, view in zip(arrays, views, strict=True)]
    plan.block = BLOCK if len(plan.steps) > 1 else ALONE * BLOCK
    plan.helpers = _helpers(math.prod(plan.shape) * len(plan.steps))
    plan.numbers = [(slot[x], i, dtype) for x, i, dtype in program.numbers]
    plan.outs = [slot[x] for x in outs]
    if axes is not None:
        dtype, of_rows = program.dtypes[pieces], axes[1] == len(shape)
        plan.pieces = slot[pieces], dtype, *_pieces(kind, plan.shape, of_rows, plan.block // dtype.itemsize)
    return plan


def _size(operand: Any) -> int:
    """The number of elements of an operand that is an array."""
    return math.prod(operand[0])


def _is_whole(operand: Any, shape: tuple[int, ...]) -> bool:
    """Whether an operand that is an array has a shape, and its elements side by side."""
    own, strides, dtype = operand
    side_by_side = [dtype.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return bool(own == shape and list(strides) == side_by_side)


def _pieces(kind: str, shape: tuple[int, ...], of_rows: bool, items: int) -> tuple[tuple[int, ...], int, int]:
    """Return the shape of the reductions of pieces of rows, or of columns, and their axis of three and size.

    Args:
      kind: the kind of reduction; a function of rows has a result for each element, and the size 0.
      shape: that of the elements.
      of_rows: whether rows are reduced.
      items: the elements of a block.
    """
    if kind in OF_ROWS:
        return shape, 2, 0
    if of_rows:
        count, piece = _pieces_of_rows(shape[-1], items)
        return (*shape[:-1], count), 2, piece
    return (*shape[:-2], -(-shape[-2] // STACK), shape[-1]), 1, STACK


def _pieces_of_rows(columns: int, items: int) -> tuple[int, int]:
    """Return the number of pieces of a row, and their size: whole rows, if blocks are hardly larger for it."""
    return (1, columns) if columns <= 2 * items else (-(-columns // PIECE), PIECE)


def _helpers(work: int) -> int:
    """The number of threads that may help with some work: elements times operations."""
    return min(cores() - 1, work // SHARE)


# Reductions ----------------------------------------------------------------------------------------------------------

PIECE = 512
"""The number of elements that are reduced at once, in 32 interleaved chains. The results of pieces are reduced again,
so that a rounding error hardly grows with the number of elements."""
STACK = 32
"""The same number for columns, each of which is reduced from its first element to its last."""
FOLDED = 1 << 17
"""The least reductions of pieces that several threads reduce further."""


def reduce_rows(kind: str, x: Any, *factor: Any) -> Any:
    """Reduce the rows of a matrix, or of its product with another.

    Args:
      kind: "sum", "product", "largest" or "least".
      x: a matrix of floats of 32 or 64 bits, whose elements are side by side.
      factor: nothing, or, for a sum, a matrix of the same shape and dtype.

    Returns:
      A vector.
    """
    loop = own.loop(f"{'dot' if factor else kind} {x.dtype.char}")
    assert loop is not None
    block = ALONE * BLOCK
    count, piece = _pieces_of_rows(x.shape[1], block // x.itemsize)
    out = np.empty((len(x), count), x.dtype)
    values = [x, *factor, (out, 2, piece)]
    loops.run(x.shape, values, [(loop, tuple(range(len(values))))], block, _helpers(x.size * len(values[1:])))
    return _of_pieces(kind, out)


def reduce_columns(kind: str, x: Any) -> Any:
    """Reduce an array of three axes along the second.

    Args:
      kind: "sum", "product", "largest" or "least".
      x: an array of floats of 32 or 64 bits, which is contiguous.

    Returns:
      An array of two axes.
    """
    groups, group, columns = x.shape
    loop = own.loop(f"stacked {kind} {x.dtype.char}")
    assert loop is not None
    if group <= STACK:  # a block may have several groups
        out, x, size = np.empty((groups, columns), x.dtype), x.reshape(-1, columns), group
    else:
        out, size = np.empty((groups, -(-group // STACK), columns), x.dtype), STACK
    loops.run(x.shape, [x, (out, 1, size)], [(loop, (0, 1))], ALONE * BLOCK, _helpers(x.size))
    return out if out.ndim == 2 else reduce_columns(kind, out)


def finished(kind: str, pieces: Any, of_rows: bool) -> Any:
    """Return the reductions of rows, or of columns, from those of their pieces."""
    if not of_rows:
        return pieces if pieces.shape[1] == 1 else reduce_columns(kind, pieces)
    return _of_pieces(kind, pieces.reshape(-1, pieces.shape[-1]))


def _of_pieces(kind: str, out: Any) -> Any:
    if out.shape[1] == 1:
        return out[:, 0]
    if out.size >= FOLDED:
        return reduce_rows(kind, out)
    loop = own.loop(f"{kind} {out.dtype.char}")
    assert loop is not None
    return loops.fold(loop, out)


# Functions ------------------------------------------------------------------------------------------------------------


def applied(name: str, x: Any) -> Any:
    """Apply a loop of the module to the elements of an array, on all cores.

    The result's elements are in the order of the operand's, as NumPy's are.

    Args:
      name: the loop's name without the dtype; it takes one operand, and its result has the operand's dtype.
      x: an array.
    """
    if not x.flags.c_contiguous:
        order = sorted(range(x.ndim), key=x.strides.__getitem__, reverse=True)
        return applied(name, np.ascontiguousarray(x.transpose(order))).transpose(np.argsort(order))
    flat, out = x.reshape(1, -1), np.empty(x.shape, x.dtype)
    loop = own.loop(f"{name} {x.dtype.char}")
    assert loop is not None
    loops.run(flat.shape, [flat, out.reshape(1, -1)], [(loop, (0, 1))], BLOCK, _helpers(8 * x.size))
    return out


# Running sums and searches --------------------------------------------------------------------------------------------


def running_sum(out: Any, x: Any) -> bool:
    """Sum the elements of each row up to each position, those of single precision in double precision.

    Args:
      out: the result, an array of at least one axis, the last of which is summed along.
      x: an array of its shape and dtype.

    Returns:
      Whether it was done; not if there is no loop for the dtype.
    """
    loop = own.loop(f"running sum {x.dtype.char}") if loops is not None and x.size else None
    if loop is None:
        return False
    size = (-1, x.shape[-1])
    x, rows = x.reshape(size), out.reshape(size, copy=False)
    loops.run(x.shape, [x, rows], [(loop, (0, 1))], max(ALONE * BLOCK, rows.shape[1] * 8), _helpers(x.size))
    return True


MOST_OF_A_ROW = 1 << 21
"""The most elements of a row for functions of rows."""


def are_rows(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether functions of rows can take arrays of a shape, and axes: the last ones."""
    first = len(shape) - len(axes)
    is_last = bool(axes) and axes == tuple(range(first, len(shape)))
    return loops is not None and is_last and 0 < math.prod(shape[first:]) <= MOST_OF_A_ROW


def search(sorted_: Any, values: Any, side: str) -> Any:
    """Return the positions, in int32, of values in a sorted vector of their dtype; None if there is no loop for it.

    Args:
      sorted_: the vector.
      values: an array.
      side: "left" or "right", as in ``np.searchsorted``.
    """
    dtype = values.dtype
    name = dtype.char if dtype.kind == "f" else dtype.kind + str(dtype.itemsize)
    loop = own.loop(f"{side} {name}") if loops is not None and dtype.isnative else None
    if loop is None or not 0 < sorted_.size < 2**31:
        return None
    elements, flat = np.ascontiguousarray(sorted_), np.ascontiguousarray(values).reshape(1, -1)
    described = np.array([elements.ctypes.data, elements.size], np.intp)  # the loop's data
    out = np.empty(flat.shape, np.int32)
    loops.run(flat.shape, [flat, out], [((loop[0], described.ctypes.data), (0, 1))], BLOCK, _helpers(8 * flat.size))
    return out.reshape(values.shape)


OF_ROWS = ("softmax", "log_softmax")
"""The functions of whole rows whose elements may be computed in the same pass."""
REDUCTIONS: dict[Any, str] = {}
"""The kinds of reduction, or of functions of rows, that host rules compute, with the parameter ``axes``. Modules add
those of their rules."""
