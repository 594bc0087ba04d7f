"""Operations that hold programs, and what transformations of flat programs make of them.

An operation says once how its operands feed its programs, as a :class:`Feed`. A forward transformation says what it
makes of a program, and what it carries for each value, as a :class:`Forward`. :func:`lifted` applies one to the other:
it looks for the values that a loop carries with something beside them, has branches agree, and puts what is beside the
operands of a group after that group. So an operation knows no transformation, and a transformation no operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from pullback.core.array import typeof
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.lists import split_list
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis
from pullback.core.zeros import instantiate
from pullback.primitives.arrays.shapes import moveaxis
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import Direction
from pullback.transforms.traces.jaxprs import batch_jaxpr, jvp_jaxpr

feed = RuleKind("feed", "it holds no program that transformations look into")
"""``rule(**params) -> Feed``: how the operands of an operation feed the programs that it holds."""


class Fed(NamedTuple):
    """What an operation is to be applied to, after a transformation.

    Attributes:
      programs: in the place of its programs.
      test: in the place of its test; None if it has none.
      groups: the operands, by group: the values of each, and then what is beside them.
      forward, marks, results: the transformation, and the marks of the operands and of the results; if it is no forward
        one, nothing is beside any.
    """

    programs: tuple[ClosedJaxpr, ...]
    test: ClosedJaxpr | None
    groups: list[list[Any]]
    forward: Forward | None = None
    marks: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()

    def beside(self, marks: Sequence[Any]) -> list[int]:
        """For each array that is beside some values, the position of its value."""
        forward = self.forward
        return [] if forward is None else [i for i, m in enumerate(marks) for _ in range(forward.width(m))]


class Feed(NamedTuple):
    """How the operands of an operation feed its programs.

    Operands come in groups. The inputs of each program are some of these groups, whole.

    Attributes:
      programs: the programs whose results are those of the operation: one, or several of which one is chosen.
      bind: returns the results of the operation for a :class:`Fed`.
      sizes: the number of operands of each group but the last.
      takes: the groups that are the inputs of each program, in order.
      carried: the group that the first results of a program are the next values of; None if it runs once.
      rows: the group of arrays of which each step takes an element. Further results are stacked likewise.
      test: the program that says whether a loop goes on, and the groups that are its inputs; None without. The steps of
        such a loop take a group of constants.
      scope: makes the context that programs are transformed in, which take parts of the operands; None if that is the
        one at hand, and they take the operands.
      keeps_shapes: whether what is beside a value must have its shape.
      choice: the group of one operand that is the number of the program that runs; None if there is one program.
      length: the number of steps of a loop; None if a test says whether there is another.
      reverse: whether the steps go from the last element of each row to the first.
    """

    programs: tuple[ClosedJaxpr, ...]
    bind: Callable[[Fed], list[Any]]
    sizes: tuple[int, ...] = ()
    takes: tuple[int, ...] = (0,)
    carried: int | None = None
    rows: int | None = None
    test: tuple[ClosedJaxpr, tuple[int, ...]] | None = None
    scope: Callable[[], AbstractContextManager[None]] | None = None
    keeps_shapes: bool = False
    choice: int | None = None
    length: int | None = None
    reverse: bool = False

    def within(self) -> AbstractContextManager[None]:
        """The context that programs are transformed in."""
        return nullcontext() if self.scope is None else self.scope()


class Forward:
    """What a transformation carries for each value, and what it makes of a program.

    A mark says what there is for a value: ``nothing``, or more. It is hashable, and so is the transformation, by which
    programs are kept. What is carried is a tuple, of the value and of what says more; arrays among that are beside it.
    """

    __slots__ = ("options",)
    nothing: Any
    alone = False
    """Whether there is never anything beside a value, and an operation is transformed whatever its marks."""
    moves_rows = True
    """Whether :meth:`row`, :meth:`element` and :meth:`stacked` do something."""

    def __init__(self, *options: Any) -> None:
        """A transformation with options, which are hashable."""
        self.options = options

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.options == self.options

    def __hash__(self) -> int:
        return hash((type(self), self.options))

    def marks(self, xs: Sequence[Any]) -> tuple[Any, ...]:
        """What there is for some values."""
        raise NotImplementedError

    def width(self, mark: Any) -> int:
        """How many arrays are beside a value."""
        return int(mark)

    def values(self, xs: Sequence[Any]) -> list[Any]:
        """The values."""
        return [x[0] for x in xs]

    def beside(self, xs: Sequence[Any]) -> list[Any]:
        """The arrays beside values, those of the first value first."""
        raise NotImplementedError

    def made(self, values: Sequence[Any], beside: Iterator[Any], marks: Sequence[Any]) -> list[Any]:
        """The inverse of :meth:`values` and :meth:`beside`."""
        raise NotImplementedError

    def carried(self, mark: Any) -> Any:
        """The mark of a value that a loop carries, from that of its first value or of what a step returns."""
        return mark

    def joined(self, marks: Sequence[Any]) -> Any:
        """The mark of a value of which several are known."""
        raise NotImplementedError

    def filled(self, x: Any, mark: Any) -> Any:
        """The same with a mark that says more: zeros, or copies."""
        raise NotImplementedError

    def row(self, x: Any) -> Any:
        """An operand of which each step takes an element: along the first axis of all of its arrays."""
        return x

    def element(self, mark: Any) -> Any:
        """The mark of such an element, from that of a :meth:`row`."""
        return mark

    def stacked(self, x: Any) -> Any:
        """The inverse of :meth:`row`, for results that were stacked along the first axis of all of their arrays."""
        return x

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        """A program of values and what is beside them, and the marks of its results.

        It takes what all programs share, the values, and then what is beside each of them; and returns the results,
        and then what is beside each.

        Args:
          closed: the program.
          marks: of its inputs.
          forced: for each result a mark of what there must be at least.
        """
        raise NotImplementedError


class Lifted(NamedTuple):
    """The programs of an operation after a transformation.

    Attributes:
      programs: take the groups of operands, after each what is beside its values; and return results likewise.
      marks: of the results, those of what is carried first.
      carry: how many are carried.
      beside: how many arrays are beside these.
      fills: whether more is carried than the operands have.
    """

    programs: tuple[ClosedJaxpr, ...]
    marks: tuple[Any, ...]
    carry: int
    beside: int
    fills: bool


@cached_by_jaxpr
def _lift(
    first: ClosedJaxpr, others: tuple[ClosedJaxpr, ...], forward: Any, takes: tuple[int, ...], carried: int | None,
    sizes: tuple[int, ...], operands: tuple[Any, ...], shared: int,
) -> Lifted:  # fmt: skip
    """The programs of an operation whose operands have some marks; ``shared`` is how many inputs come before all."""
    groups = split_list(operands, *sizes)
    programs = (first, *others)
    results = len(first.jaxpr.outvars)
    carry = [] if carried is None else list(map(forward.carried, groups[carried]))
    count = len(carry)
    while True:
        marks = [tuple(carry) if g == carried else groups[g] for g in takes]
        inputs = tuple([m for group in marks for m in group])
        forced = (*carry, *[forward.nothing] * (results - count))
        found = [forward.program(closed, inputs, forced) for closed in programs]
        outs = list(found[0][1])
        if others:
            outs = [forward.joined(column) for column in zip(*[each for _, each in found], strict=True)]
            found = [forward.program(closed, inputs, tuple(outs)) for closed in programs]
        after = list(map(forward.carried, outs[:count]))  # no less than before, which was forced
        if after == carry:
            break
        carry = after
    whole = tuple([closed for closed, _ in found])
    if carried is not None or len(takes) > 1:
        ins = [*range(shared), *_grouped(forward, marks, shared)]
        ends = _grouped(forward, [carry, outs[count:]], 0)
        whole = tuple([reordered(closed, ins, ends) for closed in whole])
    fills = carried is not None and carry != groups[carried]
    return Lifted(whole, (*carry, *outs[count:]), count, sum(map(forward.width, carry)), fills)


def _grouped(forward: Any, groups: Sequence[Sequence[Any]], start: int) -> list[int]:
    """The positions of values, and of what is beside them group by group, in a list where that comes after all values.

    For two groups of one value each that has one array beside it, ``a, b, da, db -> a, da, b, db``: [0, 2, 1, 3].
    """
    beside = start + sum(map(len, groups))
    order: list[int] = []
    for marks in groups:
        width = sum(map(forward.width, marks))
        order += [*range(start, start + len(marks)), *range(beside, beside + width)]
        start, beside = start + len(marks), beside + width
    return order


def reordered(closed: ClosedJaxpr, inputs: Sequence[int], results: Sequence[int]) -> ClosedJaxpr:
    """A program with its inputs and its results in another order: a number for each says which one it was."""
    jaxpr = closed.jaxpr
    invars = [jaxpr.invars[i] for i in inputs]
    outvars = [jaxpr.outvars[i] for i in results]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, jaxpr.eqns, outvars), closed.consts)


@cached_by_jaxpr
def ignoring(closed: ClosedJaxpr, at: int, avals: Sequence[Any]) -> ClosedJaxpr:
    """A program that takes more inputs, from a position on, which it does not read."""
    invars = closed.jaxpr.invars
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=[*invars[:at], *map(Var, avals), *invars[at:]]))


def lifted(
    primitive: Primitive, forward: Any, operands: Sequence[Any], params: dict[str, Any], shared: Sequence[Any] = ()
) -> list[Any]:
    """The results of an operation that holds programs, under a transformation.

    Args:
      primitive, params: the operation.
      forward: the transformation.
      operands: what it carries for each operand.
      shared: what all programs take first, in any dtype.
    """
    rule = feed.needed(primitive, "a transformation of programs")
    programs, bind, sizes, takes, carried, rows, test, scope, *_ = rule(**params)
    groups = split_list(operands, *sizes)
    marks = forward.marks(operands)
    if rows is not None and forward.moves_rows:
        start = sum(sizes[:rows])
        end = start + len(groups[rows])
        if marks[start:end].count(forward.nothing) < end - start:
            groups[rows] = list(map(forward.row, groups[rows]))
            marks = (*marks[:start], *map(forward.element, forward.marks(groups[rows])), *marks[end:])
    if len(takes) <= len(sizes) and not forward.alone:
        by_group = split_list(marks, *sizes)
        if all(m == forward.nothing for g in takes for m in by_group[g]):
            outs = primitive.bind(*forward.values(operands), **params)
            return forward.made(outs, iter(()), [forward.nothing] * len(outs))  # type: ignore[no-any-return]
    if scope is None:
        found = _lift(programs[0], programs[1:], forward, takes, carried, sizes, marks, len(shared))
    else:
        with scope():
            found = _lift(programs[0], programs[1:], forward, takes, carried, sizes, marks, len(shared))
    wholes, ends, count, width, fills = found
    if fills and carried is not None:
        groups[carried] = list(map(forward.filled, groups[carried], ends))
    given = list(map(forward.values, groups))
    condition = None if test is None else test[0]
    if not forward.alone:
        beside = {g: forward.beside(groups[g]) for g in takes}
        for g, arrays in beside.items():
            given[g] += arrays
        if test is not None:
            avals = tuple([typeof(x) for g in test[1] for x in beside.get(g, ())])
            condition = ignoring(test[0], len(test[0].in_avals), avals)
    if shared:
        types = wholes[0].in_avals
        given[takes[0]][:0] = [convert_element_type(x, a.dtype) for x, a in zip(shared, types, strict=False)]
    outs = bind(Fed(wholes, condition, given, forward, marks, ends))
    size = len(ends) - count
    rest = outs[count + width :]
    results: list[Any] = []
    if count:
        results = forward.made(outs[:count], iter(outs[count : count + width]), ends[:count])
    if size:
        others = forward.made(rest[:size], iter(rest[size:]), ends[count:])
        results += map(forward.stacked, others) if rows is not None and forward.moves_rows else others
    return results


# Forward mode and vmap -----------------------------------------------------------------------------------------------


class Tangents(Forward):
    """Forward mode: pairs of a value and its tangent, which may be ``ZERO``; a mark says whether there is one."""

    __slots__ = ("directional",)
    nothing = False
    moves_rows = False

    def __init__(self, directional: Direction) -> None:
        super().__init__(directional)
        self.directional = directional

    def marks(self, xs: Sequence[Any]) -> tuple[bool, ...]:
        return tuple([t is not ZERO for _, t in xs])

    def beside(self, xs: Sequence[Any]) -> list[Any]:
        return [t for _, t in xs if t is not ZERO]

    def made(self, values: Sequence[Any], beside: Iterator[Any], marks: Sequence[bool]) -> list[Any]:
        return [(x, next(beside) if m else ZERO) for x, m in zip(values, marks, strict=True)]

    def joined(self, marks: Sequence[bool]) -> bool:
        return any(marks)

    def filled(self, x: Any, mark: bool) -> Any:
        return (x[0], instantiate(x[1], x[0])) if mark else x

    def program(self, closed: ClosedJaxpr, marks: Sequence[bool], forced: Sequence[bool]) -> tuple[ClosedJaxpr, Any]:
        return jvp_jaxpr(closed, marks, forced, self.directional)


class Mapped(Forward):
    """``vmap``: pairs of a value and the position of its mapped axis, which is the mark; None without."""

    __slots__ = ("axis",)
    nothing = None
    alone = True

    def __init__(self, axis: MappedAxis) -> None:
        super().__init__(axis)
        self.axis = axis

    def marks(self, xs: Sequence[Any]) -> tuple[int | None, ...]:
        return tuple([d for _, d in xs])

    def width(self, mark: int | None) -> int:
        return 0

    def made(self, values: Sequence[Any], beside: Iterator[Any], marks: Sequence[int | None]) -> list[Any]:
        return list(zip(values, marks, strict=True))

    def carried(self, mark: int | None) -> int | None:
        return None if mark is None else 0

    def joined(self, marks: Sequence[int | None]) -> int | None:
        return None if all(m is None for m in marks) else 0

    def filled(self, x: Any, mark: int | None) -> Any:
        return x if mark is None else (front(x[0], x[1], self.axis), 0)

    def row(self, x: Any) -> Any:
        return (moveaxis(x[0], 0, 1), 1) if x[1] == 0 else x

    def element(self, mark: int | None) -> int | None:
        return None if mark is None else mark - 1

    def stacked(self, x: Any) -> Any:
        return x if x[1] is None else (x[0], x[1] + 1)

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        return batch_jaxpr(closed, self.axis, marks, tuple([m is not None for m in forced]))


def holds_programs(p: Primitive, rule: Callable[..., Feed], directional: bool = False) -> None:
    """Declare how an operation feeds its programs, and have its rules for forward mode and ``vmap`` follow from it.

    Args:
      p: the operation.
      rule: returns the :class:`Feed` for its parameters.
      directional: whether a program may depend otherwise on tangents that are values (``Primitive.directional``).
    """
    feed(p)(rule)
    p.jvp(partial(_jvp, p, Direction.LINEAR))
    if directional:
        p.directional(partial(_jvp, p, Direction.MANY))
    p.batch(partial(batch_of_programs, p))


def _jvp(p: Primitive, directional: Direction, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], ...]:
    outs = lifted(p, Tangents(directional), list(zip(primals, tangents, strict=True)), params)
    return [x for x, _ in outs], [t for _, t in outs]


def batch_of_programs(
    p: Primitive, axis: MappedAxis, args: Any, dims: Any, **params: Any
) -> tuple[list[Any], list[int | None]]:
    """The batch rule of an operation all of whose programs are run for all examples, or for none."""
    outs = lifted(p, Mapped(axis), list(zip(args, dims, strict=True)), params)
    return [x for x, _ in outs], [d for _, d in outs]
