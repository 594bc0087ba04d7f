"""Lifting transformations of flat programs to operations that hold programs.

An operation declares how its operands become inputs of its programs, as a :class:`Feed`. A forward transformation
declares how it transforms a program, and which extra arrays (tangents, for example) accompany each value, as a
:class:`Forward`. :func:`lifted` applies one to the other: it determines which carried values of a loop have extras,
makes branches agree, and inserts the extras of a group of operands after the group. So operations are independent of
transformations, and transformations of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from pullback.core.array import typeof
from pullback.core.errors import BatchAxisError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.lists import split_list
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis
from pullback.core.user_types import MappingSpec
from pullback.core.zeros import instantiate
from pullback.primitives.arrays.shapes import moveaxis
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import Direction
from pullback.transforms.traces.jaxprs import batch_jaxpr, jvp_jaxpr

feed = RuleKind("feed", "transformations look into no program of the operation")
"""``rule(**params) -> Feed``: how the operands of an operation become inputs of the programs that it holds."""


class Fed(NamedTuple):
    """The transformed programs and operands with which an operation that holds programs is applied.

    Extras of a value are further arrays that a forward transformation adds to it, such as a tangent.

    Attributes:
      programs: the transformed programs.
      test: the transformed program that decides whether a loop continues; None if the operation has none.
      groups: the operands, by group: the values of each group, followed by their extras.
      forward: the forward transformation; None for a transformation that adds no extras.
      marks, results: the mark of each operand and of each result, which says what extras it has; empty without extras.
    """

    programs: tuple[ClosedJaxpr, ...]
    test: ClosedJaxpr | None
    groups: list[list[Any]]
    forward: Forward | None = None
    marks: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()

    def owners(self, marks: Sequence[Any]) -> list[int]:
        """Return, for each extra array of some values, the index of the value that the extra array belongs to.

        ``marks`` has the mark of each value, which determines the number of its extras.
        """
        forward = self.forward
        return [] if forward is None else [i for i, m in enumerate(marks) for _ in range(forward.width(m))]


class Feed(NamedTuple):
    """How the operands of an operation become the inputs of its programs.

    Operands come in groups. The inputs of each program are some of these groups.

    Attributes:
      programs: the programs that compute the results: one, or several of which the operation runs one.
      bind: applies the operation to a :class:`Fed`, and returns its results.
      sizes: the number of operands of each group except the last.
      takes: the groups that are the inputs of each program, in order.
      carried: the group that a loop carries: the first results of a step are its next values. None if there is no loop.
      rows: the group of arrays that steps slice along the first axis, or None. Further results of a step are stacked.
      test: the program that decides whether a loop continues, and the groups that are its inputs; None without a test.
        The steps of a loop with a test take a group of consts.
      scope: makes the context for transforming programs whose inputs are shards of the operands; None if the inputs are
        the operands, in the current context.
      keeps_shapes: whether the extras that a transformation adds to a value must have the shape of the value.
      choice: the group of one operand that is the index of the program that runs; None for a single program.
      length: the number of steps of a loop; None if there is a test.
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
        """Return the context for transforming the programs."""
        return nullcontext() if self.scope is None else self.scope()


class Forward:
    """A forward transformation: its representation of values, and its transformation of programs.

    A value is represented by a tuple of the value and further information. Arrays in this information are the extras of
    the value, for example a tangent. The mark of a value says which extras it has; the mark ``nothing`` says that it
    has none. Marks and the transformation are hashable, as they are cache keys of programs.
    """

    __slots__ = ("options",)
    nothing: Any
    alone = False
    """Whether values never have extras, and operations are transformed whatever their marks."""
    moves_rows = True
    """Whether :meth:`row`, :meth:`element` and :meth:`stacked` have an effect."""

    def __init__(self, *options: Any) -> None:
        """Make a transformation with ``options``, which are hashable and mean what the subclass says."""
        self.options = options

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.options == self.options

    def __hash__(self) -> int:
        return hash((type(self), self.options))

    def marks(self, xs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the mark of each value, which says what extras (further arrays, such as a tangent) the value has."""
        raise NotImplementedError

    def width(self, mark: Any) -> int:
        """Return the number of extras (further arrays, such as a tangent) of a value with the mark ``mark``."""
        return int(mark)

    def values(self, xs: Sequence[Any]) -> list[Any]:
        """Return the values without their extras, such as tangents."""
        return [x[0] for x in xs]

    def extras(self, xs: Sequence[Any]) -> list[Any]:
        """Return the extras (further arrays, such as tangents) of all values, in one list."""
        raise NotImplementedError

    def made(self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[Any]) -> list[Any]:
        """Combine each value with its extras, such as a tangent; its mark says how many arrays of ``extras`` it takes.

        This is the inverse of :meth:`values` and :meth:`extras`.
        """
        raise NotImplementedError

    def carried(self, mark: Any) -> Any:
        """Return the mark of a value that a loop carries; ``mark`` is that of its initial value or of a step's result.

        A mark says what extras, such as a tangent, a value has.
        """
        return mark

    def joined(self, marks: Sequence[Any]) -> Any:
        """Return the mark of a result of several branches; ``marks`` are its marks in the branches.

        A mark says what extras, such as a tangent, a value has.
        """
        raise NotImplementedError

    def filled(self, x: Any, mark: Any) -> Any:
        """Extend a value by the extras, such as a tangent, that ``mark`` asks for and the value lacks; return it.

        The new extras are zeros, or copies of the value.
        """
        raise NotImplementedError

    def row(self, x: Any) -> Any:
        """Rearrange the extras of an array that a loop slices, so that the axis of the steps is first in them, too.

        The extras of an array are further arrays, such as a tangent.
        """
        return x

    def element(self, mark: Any) -> Any:
        """Return the mark of the slice of an array that a step of a loop takes.

        A mark says what extras, such as a tangent, a value has. ``mark`` is the mark of the array, after :meth:`row`.
        """
        return mark

    def stacked(self, x: Any) -> Any:
        """Rearrange the extras of an array that a loop stacked; this reverses :meth:`row`.

        The axis of the steps moves from the front of the extras (further arrays, such as a tangent) to its normal
        position.
        """
        return x

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        """Transform a program; return it and the marks of its results.

        The inputs of the new program are those that all programs share, such as weights; the values; and the extras of
        all values. It returns the results, followed by the extras of all results.

        Args:
          closed: the program.
          marks: the marks of its inputs, which say what extras, such as a tangent, an input has.
          forced: for each result, a mark whose extras the result must have, even if they are zeros.
        """
        raise NotImplementedError


class Lifted(NamedTuple):
    """The transformed programs of an operation.

    The extras of a value are further arrays that the transformation adds, such as a tangent. The mark of a value says
    what extras it has.

    Attributes:
      programs: take the groups of operands, each group followed by its extras; return the carry, followed by its
        extras, and the other results, followed by their extras.
      marks: the marks of the results, which begin with the carry.
      carry: the number of carried values.
      extras: the number of extras of carried values.
      fills: whether carried values have more extras than the operands that are their initial values.
    """

    programs: tuple[ClosedJaxpr, ...]
    marks: tuple[Any, ...]
    carry: int
    extras: int
    fills: bool


@cached_by_jaxpr
def _lift(
    first: ClosedJaxpr, others: tuple[ClosedJaxpr, ...], forward: Any, takes: tuple[int, ...], carried: int | None,
    sizes: tuple[int, ...], operands: tuple[Any, ...], shared: int,
) -> Lifted:  # fmt: skip
    """Transform the programs of an operation, for operands with extras such as tangents.

    Args:
      first, others: the programs.
      forward: the transformation.
      takes: the groups of operands that are the programs' inputs, in order.
      carried: the group that a loop carries, or None.
      sizes: the number of operands of each group.
      operands: the mark of each operand, which says what extras the operand has.
      shared: the number of inputs that the transformation passes to all programs first, such as weights.
    """
    groups = split_list(operands, *sizes)
    programs = (first, *others)
    results = len(first.jaxpr.outvars)
    carry = [] if carried is None else list(map(forward.carried, groups[carried]))
    count = len(carry)
    while True:  # until the marks of the carry are a fixed point
        marks = [tuple(carry) if g == carried else groups[g] for g in takes]
        inputs = tuple([m for group in marks for m in group])
        forced = (*carry, *[forward.nothing] * (results - count))
        found = [forward.program(closed, inputs, forced) for closed in programs]
        outs = list(found[0][1])
        if others:
            outs = [forward.joined(column) for column in zip(*[each for _, each in found], strict=True)]
            found = [forward.program(closed, inputs, tuple(outs)) for closed in programs]
        after = list(map(forward.carried, outs[:count]))  # at least the marks before, which were forced
        if after == carry:
            break
        carry = after
    transformed = tuple([closed for closed, _ in found])
    if carried is not None or len(takes) > 1:  # the extras of a single group follow it already
        ins = [*range(shared), *_grouped(forward, marks, shared)]
        ends = _grouped(forward, [carry, outs[count:]], 0)
        transformed = tuple([reordered(closed, ins, ends) for closed in transformed])
    fills = carried is not None and carry != groups[carried]
    return Lifted(transformed, (*carry, *outs[count:]), count, sum(map(forward.width, carry)), fills)


def _grouped(forward: Any, groups: Sequence[Sequence[Any]], start: int) -> list[int]:
    """Return the order of inputs in which each group of values is followed by its extras, such as tangents.

    For two groups of one value with one extra each, ``a, b, da, db -> a, da, b, db``: [0, 2, 1, 3].

    Args:
      forward: the transformation.
      groups: for each group the mark of each value, which says how many extras the value has.
      start: the index of the first value; the extras of all groups follow the values.
    """
    extra = start + sum(map(len, groups))
    order: list[int] = []
    for marks in groups:
        width = sum(map(forward.width, marks))
        order += [*range(start, start + len(marks)), *range(extra, extra + width)]
        start, extra = start + len(marks), extra + width
    return order


def reordered(closed: ClosedJaxpr, inputs: Sequence[int], results: Sequence[int]) -> ClosedJaxpr:
    """Reorder the inputs and the results of a program.

    ``inputs`` has the old index of each new input, ``results`` the old index of each new result. For example, [1, 0]
    reorders ``a, b -> b, a``.
    """
    jaxpr = closed.jaxpr
    invars = [jaxpr.invars[i] for i in inputs]
    outvars = [jaxpr.outvars[i] for i in results]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, jaxpr.eqns, outvars), closed.consts)


@cached_by_jaxpr
def ignoring(closed: ClosedJaxpr, at: int, avals: Sequence[Any]) -> ClosedJaxpr:
    """Add inputs of the types ``avals`` to a program before its input ``at``; the program does not use them."""
    invars = closed.jaxpr.invars
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=[*invars[:at], *map(Var, avals), *invars[at:]]))


def lifted(
    primitive: Primitive, forward: Any, operands: Sequence[Any], params: dict[str, Any], shared: Sequence[Any] = ()
) -> list[Any]:
    """Apply an operation that holds programs under a forward transformation.

    Args:
      primitive, params: the operation.
      forward: the transformation.
      operands: the operands, as the transformation represents them, for example with tangents.
      shared: arrays that all programs take before the operands; they are converted to the programs' dtypes.
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
    if len(takes) <= len(sizes) and not forward.alone:  # perhaps only operands that no program reads have extras
        by_group = split_list(marks, *sizes)
        if all(m == forward.nothing for g in takes for m in by_group[g]):
            outs = primitive.bind(*forward.values(operands), **params)
            return forward.made(outs, iter(()), [forward.nothing] * len(outs))  # type: ignore[no-any-return]
    if scope is None:
        found = _lift(programs[0], programs[1:], forward, takes, carried, sizes, marks, len(shared))
    else:
        with scope():
            found = _lift(programs[0], programs[1:], forward, takes, carried, sizes, marks, len(shared))
    transformed, ends, count, width, fills = found
    if fills and carried is not None:  # a step adds extras to a value that begins without
        groups[carried] = list(map(forward.filled, groups[carried], ends))
    fed = list(map(forward.values, groups))
    condition = None if test is None else test[0]
    if not forward.alone:
        extras = {g: forward.extras(groups[g]) for g in takes}
        for g, arrays in extras.items():
            fed[g] += arrays
        if test is not None:  # a loop passes the extras to its test, which has no use for them
            avals = tuple([typeof(x) for g in test[1] for x in extras.get(g, ())])
            condition = ignoring(test[0], len(test[0].in_avals), avals)
    if shared:
        types = transformed[0].in_avals
        fed[takes[0]][:0] = [convert_element_type(x, a.dtype) for x, a in zip(shared, types, strict=False)]
    outs = bind(Fed(transformed, condition, fed, forward, marks, ends))
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
    """Forward mode of programs.

    A value is represented by a pair of the value and its tangent, which may be ``ZERO``. The mark of a value says
    whether it has a tangent.
    """

    __slots__ = ("directional",)
    nothing = False
    moves_rows = False

    def __init__(self, directional: Direction) -> None:
        super().__init__(directional)
        self.directional = directional

    def marks(self, xs: Sequence[Any]) -> tuple[bool, ...]:
        return tuple([t is not ZERO for _, t in xs])

    def extras(self, xs: Sequence[Any]) -> list[Any]:
        return [t for _, t in xs if t is not ZERO]

    def made(self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[bool]) -> list[Any]:
        return [(x, next(extras) if m else ZERO) for x, m in zip(values, marks, strict=True)]

    def joined(self, marks: Sequence[bool]) -> bool:
        return any(marks)

    def filled(self, x: Any, mark: bool) -> Any:
        return (x[0], instantiate(x[1], x[0])) if mark else x

    def program(self, closed: ClosedJaxpr, marks: Sequence[bool], forced: Sequence[bool]) -> tuple[ClosedJaxpr, Any]:
        return jvp_jaxpr(closed, marks, forced, self.directional)


_TWO_AXES = (
    "vmap maps a loop that slices or stacks values of type {} as {!r}: types of users' values do not say which of "
    "the two axes is first. Let the loop go over arrays, and make the values in it"
)


class Mapped(Forward):
    """``vmap`` of programs.

    A value is represented by a pair: the value, and the position of its mapped axis, or None. The position is its mark.
    """

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

    def made(self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[int | None]) -> list[Any]:
        return list(zip(values, marks, strict=True))

    def carried(self, mark: int | None) -> int | None:
        return mark if mark is None or isinstance(mark, MappingSpec) else 0

    def joined(self, marks: Sequence[int | None]) -> int | None:
        specs = [m for m in marks if isinstance(m, MappingSpec)]
        return specs[0] if specs else None if all(m is None for m in marks) else 0

    def filled(self, x: Any, mark: int | None) -> Any:
        if isinstance(mark, MappingSpec) and x[1] != mark:
            raise BatchAxisError(
                f"vmap: a value of type {typeof(x[0])}, which is mapped as {x[1]!r}, would have to be mapped as "
                f"{mark!r}: map it in all branches, and from the first step of a loop on"
            )
        return x if mark is None or x[1] == mark else (front(x[0], x[1], self.axis), 0)

    def row(self, x: Any) -> Any:
        if isinstance(x[1], MappingSpec):
            raise BatchAxisError(_TWO_AXES.format(typeof(x[0]), x[1]))
        return (moveaxis(x[0], 0, 1), 1) if x[1] == 0 else x

    def element(self, mark: int | None) -> int | None:
        return None if mark is None else mark - 1

    def stacked(self, x: Any) -> Any:
        if isinstance(x[1], MappingSpec):
            raise BatchAxisError(_TWO_AXES.format(typeof(x[0]), x[1]))
        return x if x[1] is None else (x[0], x[1] + 1)

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        return batch_jaxpr(closed, self.axis, marks, tuple([m is not None for m in forced]))


def holds_programs(p: Primitive, rule: Callable[..., Feed], directional: bool = False) -> None:
    """Register the ``feed`` rule of an operation that holds programs, and its rules for forward mode and ``vmap``.

    Args:
      p: the operation.
      rule: takes the parameters of the operation, and returns its :class:`Feed`.
      directional: whether to register also a ``directional`` rule, for forward mode alone, which may be nonlinear in
        the tangents.
    """
    feed(p)(rule)
    p.jvp(partial(_jvp, p, Direction.LINEAR))
    if directional:
        p.directional(partial(_jvp, p, Direction.MANY))
    p.batch(partial(batch_of_programs, p))


def _jvp(p: Primitive, directional: Direction, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], ...]:
    """The jvp rule of an operation that holds programs: it differentiates the programs.

    Return the results and their tangents. ``directional`` is ``LINEAR`` if the rule must be linear in the tangents,
    otherwise ``MANY`` or ``ONE``, for the number of tangents of a primal.
    """
    outs = lifted(p, Tangents(directional), list(zip(primals, tangents, strict=True)), params)
    return [x for x, _ in outs], [t for _, t in outs]


def batch_of_programs(
    p: Primitive, axis: MappedAxis, args: Any, dims: Any, **params: Any
) -> tuple[list[Any], list[int | None]]:
    """The batching rule of an operation that holds programs: batch the programs, and apply the operation to batches.

    Return the results, and the position of the mapped axis in each, or None.
    """
    outs = lifted(p, Mapped(axis), list(zip(args, dims, strict=True)), params)
    return [x for x, _ in outs], [d for _, d in outs]
