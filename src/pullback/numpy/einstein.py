"""Einstein summation: a formula becomes a list of pairwise contractions, planned once for its shapes.

Each pair is one ``dot_general``, or a multiplication if no index is contracted. Before it, repeated indices of an
operand are reduced to diagonals, and indices that occur in no other operand are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, overload

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PrecisionLike
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.interrupts import imported
from pullback.core.types import Shape
from pullback.numpy.promotion import operand, promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.linalg.contraction import dot_general_p, precisely
from pullback.primitives.reductions import reduce_or, reduce_sum
from pullback.transforms.programs.placement import spread

__all__ = ["einsum", "einsum_path"]

Action = Callable[[Any], Any]
Shapes = tuple[Shape, ...]


@overload
def einsum(
    subscripts: str,
    /,
    *operands: ArrayLike,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
    _dot_general: Callable[..., Any] | None = None,
) -> Array: ...
@overload
def einsum(
    operand: ArrayLike,
    names: Sequence[Any],
    /,
    *operands: ArrayLike | Sequence[Any],
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
    _dot_general: Callable[..., Any] | None = None,
) -> Array: ...
# long: half of it is its documentation
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
    _dot_general: Callable[..., Any] | None = None,
) -> Array:
    """Sums of products over named indices.

    Args:
      subscripts: a formula such as ``"ij,jk->ik"``, where ``...`` stands for any leading axes, and without ``->`` the
        result has the indices that occur once, in alphabetical order. Or operands and their lists of indices in turn,
        as in ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.
      operands: an array for each term.
      out: must be None.
      optimize: the order of contraction: True, the name of an algorithm of ``opt_einsum``, a path as a list of pairs of
        positions, or False for left to right.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: the sharding of the result, or a ``PartitionSpec``; None does not constrain it.
      _dot_general: a function with the signature of ``lax.dot_general``, which is called instead of it.

    Returns:
      An array with the axes that the formula names.

    Raises:
      ShapeError: the formula is ill-formed, or does not fit the operands (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.einsum("ij,j->i", jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0])))
    [21. 43.]
    """
    if precision is not None and _dot_general is None:
        function = partial(
            einsum, out=out, optimize=optimize, preferred_element_type=preferred_element_type,
            out_sharding=out_sharding,
        )  # fmt: skip
        return precisely(precision, function, subscripts, *operands)
    if out_sharding is not None:
        function = partial(
            einsum, out=out, optimize=optimize, precision=precision, preferred_element_type=preferred_element_type,
            _dot_general=_dot_general,
        )  # fmt: skip
        return spread(function, [subscripts, *operands], out_sharding, "einsum")
    if out is not None:
        raise ShapeError("einsum: out must be None, because arrays are immutable")
    formula, values = _formula("einsum", subscripts, operands)
    if not values:
        raise ShapeError("einsum needs at least one operand")
    if preferred_element_type is None:
        result, arrays = None, _of_one_dtype(values)
    else:
        result = dtypes.requested_dtype(preferred_element_type, "einsum")
        arrays = [operand("einsum", x) for x in values]
        wide = dtypes.accumulator(result, *[x.dtype for x in arrays])
        arrays = [convert_element_type(x, wide) for x in arrays]
    product = None
    if _dot_general is not None:
        product = partial(_dot_general, precision=precision, preferred_element_type=preferred_element_type)
    value = contract(formula, arrays, optimize, product)
    return value if result is None else convert_element_type(value, result)


def _of_one_dtype(values: Sequence[Any]) -> Sequence[Any]:
    """Convert operands to arrays of their common dtype; return arrays of one dtype unchanged."""
    dtype = values[0].dtype if isinstance(values[0], Array) else None
    if dtype is not None and all([isinstance(x, Array) and x.dtype is dtype for x in values]):  # noqa: C419
        return values
    return promote_all("einsum", values)


@overload
def einsum_path(
    subscripts: str, /, *operands: ArrayLike, optimize: bool | str | Sequence[Any] = "auto"
) -> tuple[list[tuple[int, ...]], Any]: ...
@overload
def einsum_path(
    operand: ArrayLike,
    names: Sequence[Any],
    /,
    *operands: ArrayLike | Sequence[Any],
    optimize: bool | str | Sequence[Any] = "auto",
) -> tuple[list[tuple[int, ...]], Any]: ...
def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | Sequence[Any] = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which ``einsum`` would contract its operands, and the cost.

    Args:
      subscripts, operands, optimize: as in :func:`einsum`.

    Returns:
      The path, a list of tuples of positions, and a description of it by ``opt_einsum``.

    Raises:
      ShapeError: the formula is ill-formed, or does not fit the operands (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> jnp.einsum_path("ij,jk,k", jnp.ones((9, 9)), jnp.ones((9, 9)), jnp.ones(9))[0]
    [(1, 2), (0, 1)]
    """
    formula, values = _formula("einsum_path", subscripts, operands)
    sizes = tuple(operand("einsum_path", x).shape for x in values)
    terms, output = parse(formula, sizes)
    path, info = imported("opt_einsum").contract_path(
        f"{','.join(terms)}->{output}", *sizes, shapes=True, optimize=optimize
    )
    return list(path), info


def contract(
    formula: str, arrays: Sequence[Any], optimize: Any = "auto", product: Callable[..., Any] | None = None
) -> Any:
    """Evaluate an einsum formula for arrays of one dtype, with ``product``, if any, instead of ``dot_general``."""
    direct, steps = _plan(formula, tuple([x.shape for x in arrays]), _hashable(optimize))
    if direct is not None:
        return direct(*arrays) if product is None else _by(product, direct)(*arrays)
    terms = list(arrays)
    for step in steps:
        args = [terms.pop(i) for i in step.positions][::-1]
        for j, actions in enumerate(step.prepare):
            for action in actions:
                args[j] = action(args[j])
        combine = step.combine if product is None or step.combine is None else _by(product, step.combine)
        value = args[0] if combine is None else combine(*args)
        for action in step.finish:
            value = action(value)
        terms.append(value)
    return terms[0]


# Formulas ----------------------------------------------------------------------------------------------------------


def _formula(name: str, subscripts: Any, operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return the formula as a string, and the list of operands.

    ``einsum("ij,jk", x, y) -> "ij,jk", (x, y)`` and ``einsum(x, [0, 1], y, [1, 2]) -> "AB,BC", [x, y]``.
    """
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), operands
    rest = [subscripts, *operands]
    output = [rest.pop()] if len(rest) % 2 else []
    letters = _letters(name, [*rest[1::2], *output])
    formula = ",".join(map(letters, rest[1::2]))
    return formula + "".join("->" + letters(sublist) for sublist in output), rest[::2]


def _letters(name: str, sublists: Sequence[Any]) -> Callable[[Any], str]:
    """Return a function that converts a list of index names to a string of subscripts: ``[0, ..., 1] -> "A...B"``.

    Each name that occurs in ``sublists`` gets a letter, in sorted order. ``name`` is the public function, for errors.
    """
    try:
        known = sorted({i for sublist in sublists for i in sublist if i is not Ellipsis})
        letter = {name: _letter(i) for i, name in enumerate(known)}
    except TypeError:
        shown = " and ".join(map(repr, sublists))
        raise ShapeError(
            f"{name}: pass the indices as a formula in front of the operands, or as a list of names after each "
            f"operand; names are ints, strings or others that can be sorted; got {shown}"
        ) from None
    return lambda sublist: "".join("..." if i is Ellipsis else letter[i] for i in sublist)


def _letter(i: int) -> str:
    return chr(65 + i if i < 26 else 71 + i if i < 52 else 140 + i)


def parse(formula: str, sizes: Shapes) -> tuple[list[str], str]:
    """Return the subscripts of each operand and of the result of an einsum formula, one character for each axis.

    ``sizes`` holds the shapes of the operands, in which an Ellipsis stands for axes without a letter.

    Raises:
      ShapeError: the formula is ill-formed, or does not fit operands of these shapes.
    """
    left, arrow, output = formula.partition("->")
    terms = left.split(",")
    if len(terms) != len(sizes):
        raise ShapeError(f"einsum: the formula {formula!r} has {len(terms)} terms, but there are {len(sizes)} operands")
    for term in [*terms, output]:
        odd = [c for c in term.replace("...", "", 1) if c in ".->,"]
        if odd:
            raise ShapeError(f"einsum: unexpected {odd[0]!r} in the formula {formula!r}")
    extra = [len(s) - len(t.replace("...", "")) for s, t in zip(sizes, terms, strict=True)]
    for i, (term, n) in enumerate(zip(terms, extra, strict=True)):
        if n < 0 or (n > 0 and "..." not in term):
            raise ShapeError(f"einsum: the indices {term!r} do not fit operand {i} of shape {sizes[i]}, in {formula!r}")
    # The axes of an ellipsis get characters of Unicode's private area, aligned at the last axis.
    deepest = max((n for n, t in zip(extra, terms, strict=True) if "..." in t), default=0)
    hidden = "".join(chr(0xE000 + i) for i in range(deepest))
    full = [t.replace("...", hidden[deepest - n :]) for t, n in zip(terms, extra, strict=True)]
    joined = "".join(full)
    if not arrow:
        output = hidden + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in hidden))
    output = output.replace("...", hidden)
    for c in output:
        if c not in joined:
            raise ShapeError(f"einsum: the index {c!r} of the result is not in any operand, in {formula!r}")
        if output.count(c) > 1:
            raise ShapeError(f"einsum: the index {c!r} occurs more than once in the result, in {formula!r}")
    return full, output


def _sizes(formula: str, terms: Sequence[str], shapes_: Shapes) -> dict[str, int]:
    """Return the size of each index of a formula; raise unless the operands agree, up to axes of size one.

    Args:
      formula: the formula, for errors.
      terms: for each operand the indices of its axes.
      shapes_: the shapes of the operands.
    """
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes_, strict=True)):
        for c, n in zip(term, shape, strict=True):
            known = sizes.get(c, 1)
            own = {m for a, m in zip(term, shape, strict=True) if a == c}
            if len(own) > 1 or (n != known and n != 1 and known != 1):
                name = "..." if c >= "\ue000" else c
                shown = ", ".join(map(str, shapes_))
                raise ShapeError(
                    f"einsum: the sizes of the index {name!r} disagree, in operand {i} of {formula!r} for {shown}"
                )
            sizes[c] = n if known == 1 else known
    return sizes


# Plans -------------------------------------------------------------------------------------------------------------


class _Contraction(NamedTuple):
    """One step of a plan: a contraction of one or two operands. Its result is appended to the list of operands.

    Attributes:
      positions: the positions of the contracted operands in the list, in decreasing order; they are removed.
      prepare: for each of these operands the actions to apply before the contraction, the leftmost operand first.
      combine: contracts two operands; None for one operand.
      finish: the actions to apply to the result.
    """

    positions: Shape  # of the operands to remove, in decreasing order
    prepare: list[list[Action]]  # for each operand, the leftmost first
    combine: Callable[[Any, Any], Any] | None
    finish: list[Action]


@lru_cache(maxsize=4096)
def _plan(formula: str, shapes_: Shapes, optimize: Any) -> tuple[Callable[..., Any] | None, list[_Contraction]]:
    """Plan the contractions that compute a formula for operands of these shapes.

    ``optimize`` is the argument of ``einsum``: how to choose the order of contractions, or the order itself.

    Returns:
      A function of two operands if one contraction is all there is to do, otherwise None; and the list of contractions.
    """
    terms, output = parse(formula, shapes_)
    sizes = _sizes(formula, terms, shapes_)
    steps = []
    present = [_Term(t, s) for t, s in zip(terms, shapes_, strict=True)]
    for pair in _pairs(terms, output, shapes_, optimize):
        positions = tuple(sorted(pair, reverse=True))
        operands = [present.pop(i) for i in positions]
        needed = set(output).union(*(t.indices for t in present))
        last = not present
        if len(operands) == 1:
            (x,) = operands
            x.reduce(sizes, needed)
            steps.append(_Contraction(positions, [x.actions], None, x.reordered(output)))
            continue
        x, y = operands[1], operands[0]  # the leftmost first
        x.reduce(sizes, needed | set(y.indices))
        y.reduce(sizes, needed | set(x.indices))
        x.reduce(sizes, needed | set(y.indices))
        combine, indices = _combine(x, y, needed, output if last else None)
        finish = _Term(indices, ()).reordered(output) if last else []
        steps.append(_Contraction(positions, [x.actions, y.actions], combine, finish))
        result = output if last else indices
        present.append(_Term(result, tuple(sizes[c] for c in result)))
    first = steps[0]
    direct = None if len(steps) > 1 or first.finish or any(first.prepare) else first.combine
    return direct, steps


class _Term:
    """An operand in a plan.

    Attributes:
      indices: the index of each axis, a string of letters.
      shape: the shape.
      actions: the functions to apply to the operand before its contraction, in order.
    """

    def __init__(self, indices: str, shape: Shape) -> None:
        self.indices = indices
        self.shape = shape
        self.actions: list[Action] = []

    def reduce(self, sizes: dict[str, int], needed: set[str]) -> None:
        """Plan to remove axes from the operand before its contraction.

        Repeated indices become diagonals, axes of size one that broadcast are dropped, and indices not in ``needed``
        are summed. ``sizes`` holds the size of each index.
        """
        for c in self.indices:
            while self.indices.count(c) > 1:
                first = self.indices.index(c)
                second = self.indices.index(c, first + 1)
                self._apply(partial(diagonal, axis1=first, axis2=second), (first, second), c)
        short = tuple(i for i, c in enumerate(self.indices) if self.shape[i] != sizes[c])
        if short:
            self._apply(partial(shapes.squeeze, axes=short), short)
        summed = tuple(i for i, c in enumerate(self.indices) if c not in needed)
        if summed:
            self._apply(partial(_sum, axes=summed), summed)

    def _apply(self, action: Action, removed: Shape, added: str = "") -> None:
        """Append ``action`` to the actions of the operand, and update its indices and its shape.

        The action removes the axes ``removed``. If ``added`` is not empty, it is the index of an axis that the action
        appends.
        """
        size = tuple(self.shape[self.indices.index(c)] for c in added)
        self.actions.append(action)
        self.shape = tuple(n for i, n in enumerate(self.shape) if i not in removed) + size
        self.indices = "".join(c for i, c in enumerate(self.indices) if i not in removed) + added

    def reordered(self, indices: str) -> list[Action]:
        """Return the actions that transpose the axes into the order of ``indices``; none if they are in this order."""
        if self.indices == indices:
            return []
        return [partial(shapes.transpose, permutation=tuple(map(self.indices.index, indices)))]

    def spread(self, indices: str) -> None:
        """Plan to transpose the axes into the order of ``indices``, and to insert axes of size one for missing ones."""
        own = "".join(c for c in indices if c in self.indices)
        self.actions += self.reordered(own)
        shape = [self.shape[self.indices.index(c)] if c in own else 1 for c in indices[indices.find(own[:1]) :]]
        if own and len(shape) != len(own):
            self.actions.append(partial(shapes.reshape, shape=tuple(shape)))


def _combine(x: _Term, y: _Term, needed: set[str], output: str | None) -> tuple[Callable[[Any, Any], Any], str]:
    """Plan the contraction of two operands.

    Args:
      x, y: the operands; actions are appended if needed.
      needed: the indices to keep; others that both operands have are summed.
      output: the preferred order of the result's indices, or None. It is used if one operation can compute this order.

    Returns:
      A function that contracts two arrays, and the indices of its result.
    """
    common = [c for c in x.indices if c in y.indices]
    summed = [c for c in common if c not in needed]
    batch = [c for c in common if c in needed]
    x_free = [c for c in x.indices if c not in common]
    y_free = [c for c in y.indices if c not in common]
    indices = "".join([*batch, *x_free, *y_free])
    if not summed:
        indices = output if output is not None else indices
        x.spread(indices)
        y.spread(indices)
        return ops.mul, indices

    def axes(term: _Term, of: list[str]) -> Shape:
        return tuple(map(term.indices.index, of))

    swapped = "".join([*batch, *y_free, *x_free])
    if indices != output and swapped == output:
        numbers = ((axes(y, summed), axes(x, summed)), (axes(y, batch), axes(x, batch)))
        return partial(_swapped, dimension_numbers=numbers), swapped
    numbers = ((axes(x, summed), axes(y, summed)), (axes(x, batch), axes(y, batch)))
    return partial(dot_general_p.bind, dimension_numbers=numbers), indices


def _swapped(a: Any, b: Any, dimension_numbers: Any) -> Any:
    return dot_general_p.bind(b, a, dimension_numbers=dimension_numbers)


def _by(product: Callable[..., Any], combine: Any) -> Callable[[Any, Any], Any]:
    """Make the contraction ``combine`` call ``product`` instead of ``dot_general``; return other functions unchanged.

    ``product`` takes two arrays and dimension numbers. A ``combine`` without ``dot_general`` is an elementwise product.
    """
    if not isinstance(combine, partial):
        return combine  # type: ignore[no-any-return]
    numbers = combine.keywords["dimension_numbers"]
    return lambda a, b: product(b, a, numbers) if combine.func is _swapped else product(a, b, numbers)


def _pairs(terms: Sequence[str], output: str, shapes_: Shapes, optimize: Any) -> Iterator[Shape]:
    """Yield the positions of the operands to contract next, one or two at a time, until all are contracted to one.

    Args:
      terms: the indices of each operand.
      output: the indices of the result.
      shapes_: the shapes of the operands.
      optimize: False for the order from left to right, a contraction path, or how to search for one.
    """
    count = len(terms)
    if count <= 2:
        yield tuple(range(count))
        return
    if optimize is False:
        path: Any = ()
    elif isinstance(optimize, tuple):
        path = optimize
    else:
        formula = f"{','.join(terms)}->{output}"
        path, _ = imported("opt_einsum").contract_path(formula, *shapes_, shapes=True, optimize=optimize)
    for together in path:
        group = sorted(together)
        if group and not 0 <= group[0] <= group[-1] < count:
            raise ShapeError(f"einsum: the path {optimize!r} does not fit {len(terms)} operands")
        while len(group) > 1:
            yield group[0], group[1]
            count -= 1
            group = [*(i - 2 for i in group[2:]), count - 1] if len(group) > 2 else []
    for _ in range(count - 1):  # the operands that the path leaves
        yield 0, 1


def _hashable(optimize: Any) -> Any:
    """Convert a contraction path to a tuple of tuples, without NumPy's leading "einsum_path".

    Return values that are not lists or tuples unchanged.
    """
    if not isinstance(optimize, (list, tuple)):
        return optimize
    return tuple(tuple(together) for together in optimize if together != "einsum_path")


# Steps of the sums -------------------------------------------------------------------------------------------------


def diagonal(x: Any, axis1: int, axis2: int) -> Any:
    """Move the diagonal of two axes of one size to the last axis, by a strided slice through both."""
    rank = len(x.shape)
    n = x.shape[axis1]
    moved = shapes.transpose(x, (*(i for i in range(rank) if i not in (axis1, axis2)), axis1, axis2))
    flat = shapes.reshape(moved, (*moved.shape[:-2], n * n))
    return slicing.slice_in_dim(flat, 0, n * n, rank - 2, n + 1)


def _sum(x: Any, axes: Shape) -> Any:
    """Return the sum of ``x`` over ``axes``; for booleans, whether any element is true."""
    return reduce_or(x, axes) if dtypes.is_bool(x.dtype) else reduce_sum(x, axes)
