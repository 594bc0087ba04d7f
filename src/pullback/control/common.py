"""What branches and loops share: their bodies as programs, how these are run, and what is wrong with them.

A body is staged at each call. What it captured becomes operands, so that a program holds no values; and of
equal programs the first one is used for all, so that what was made of it (derivatives, compiled code) serves a body
that is written as a new closure in each call too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import SCALARS, Array, as_array, host_value
from pullback.core.errors import ControlFlowError, OperandError, RefError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr, jaxpr_as_fun
from pullback.core.refs import RefCell
from pullback.core.trace import Tracer, is_at_work, leaked
from pullback.core.types import ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.collectives import vary
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.autodiff.grad import check_preaccumulate as check_preaccumulate
from pullback.transforms.functions.arguments import as_weak, name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import INTERPRETED as INTERPRETED
from pullback.transforms.traces.equal_programs import deduplicated as deduplicated
from pullback.transforms.traces.equal_programs import op_count as op_count
from pullback.transforms.traces.refs import Ref, Scope, check_aliases, contents
from pullback.transforms.traces.stage import stage_flat

# Values --------------------------------------------------------------------------------------------------------------


def leaves_of(value: Any, what: str, name: str) -> tuple[list[Array], Any]:
    """The leaves of a tree as arrays, and its structure.

    Raises:
      OperandError: a leaf is not an array; the message names it, and says what it was given to (a TypeError).
    """
    leaves, treedef = tree.flatten(value)
    check_no_refs(leaves, what, name)
    arrays: list[Array] = []
    for i, x in enumerate(leaves):
        try:
            arrays.append(x if isinstance(x, Array) else as_array(x))
        except OperandError as error:
            raise type(error)(f"{what}: {leaf_names(name, treedef)[i]}: {error}") from None
    return arrays, treedef


def array_of(x: Any, what: str, name: str) -> Array:
    """An operand as an array; if it is none, the error says what it was given to, and what it is."""
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(f"{what}: {name}: {error}") from None


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """The value of an operand, where Python may look at it.

    Raises:
      UnexpectedTracerError: it is a tracer that leaked.
    """
    if isinstance(x, Tracer):
        if not is_at_work(x._trace):
            raise leaked(x)
        x = x.concrete()
    return None if x is None else host_value(x)


def zero_tangent(aval: ShapedArray) -> Any:
    """Zeros like the tangent of a value."""
    return zeros_of(aval.update(dtype=dtypes.tangent_dtype(aval.dtype)))


# Names of leaves, for error messages ---------------------------------------------------------------------------------


def leaf_names(name: str, treedef: Any) -> list[str]:
    """The leaves of a tree as Python would spell them, such as ``carry['h'][0]``."""
    paths = tree.leaves_with_path(tree.unflatten(treedef, range(treedef.num_leaves)))
    return [f"{name}{tree.keystr(path)}" for path, _ in paths]


def tree_difference(name: str, first: Any, second: Any, where: Sequence[str]) -> str:
    """Where two structures begin to differ: the part, and what it is in each.

    Args:
      name: what they are the structures of.
      first, second: the structures.
      where: says of each where it is, as in ``when it is given``.
    """
    try:
        pair = [tree.unflatten(t, [_LEAF] * t.num_leaves) for t in (first, second)]
        found = _difference(name, *pair)
    except Exception:  # a node that is not made of such leaves
        found = None
    part, *kinds = found or (name, str(first), str(second))
    return f"{part} is {kinds[0]} {where[0]} and {kinds[1]} {where[1]}"


_LEAF = object()


def _difference(name: str, a: Any, b: Any) -> tuple[str, str, str] | None:
    """The part in which two trees of placeholders begin to differ, and what it is in each."""
    if a is b:  # leaves, or None
        return None
    if a is _LEAF or b is _LEAF or type(a) is not type(b):
        return name, _kind(a), _kind(b)
    children = [list(tree.flatten_one_level_with_keys(x)[0]) for x in (a, b)]
    keys = [[tree.keystr((key,)) for key, _ in part] for part in children]
    if keys[0] != keys[1]:
        return name, *(f"{_kind(a)} of {', '.join(part) or 'nothing'}" for part in keys)  # type: ignore[return-value]
    for (_, x), (_, y), key in zip(*children, keys[0], strict=True):
        found = _difference(name + key, x, y)
        if found is not None:
            return found
    return None


def _kind(x: Any) -> str:
    return "an array" if x is _LEAF else "None" if x is None else f"a {type(x).__name__}"


GIVEN_AND_RETURNED = "when it is given", "when it is returned"


def aval_difference(a: ShapedArray, b: ShapedArray) -> str:
    """What differs between two types: shapes, dtypes or both; nothing if they agree but for weak types."""
    parts = [part for part, differs in (("shapes", a.shape != b.shape), ("dtypes", a.dtype != b.dtype)) if differs]
    return f"the {' and '.join(parts)} differ" if parts else ""


# Bodies --------------------------------------------------------------------------------------------------------------


class Body(NamedTuple):
    """A function as a program.

    Attributes:
      jaxpr: without constants; its first inputs are what the function captured, the others its arguments, and then what
        references hold. After its results are those of the references at the end.
      captured: the arrays and tracers that it captured, and what the references hold that it reads and does not write.
      out_tree: the structure of its result.
      refs: the references that it writes, or was told to carry.
    """

    jaxpr: ClosedJaxpr
    captured: list[Any]
    out_tree: Any
    refs: Sequence[Ref] = ()

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results, without those of references."""
        avals = self.jaxpr.out_avals
        return avals[: len(avals) - len(self.refs)]

    def writes(self) -> bool:
        """Whether what a reference holds at the end is something else than at the beginning."""
        jaxpr, count = self.jaxpr.jaxpr, len(self.refs)
        return count > 0 and jaxpr.outvars[-count:] != jaxpr.invars[-count:]


def stage(
    what: str,
    function: Any,
    call: Callable[..., Any],
    avals: Sequence[ShapedArray],
    names: Callable[[], list[str]],
    carried: Sequence[Ref] = (),
    varying: dict[Ref, frozenset[Any]] | None = None,
) -> Body:
    """A function as a program.

    Args:
      what: what it is staged for, for error messages.
      function: the user's function, for error messages.
      call: takes flat arguments, and returns a tree.
      avals: the types of the arguments.
      names: returns the names of the arguments, for error messages.
      carried: references that are among its inputs and results in any case, before others that it writes.
      varying: named axes along which what some references hold is made to vary.
    """
    flat = FlatFunction(call, described=function)
    scope = Scope(carried, varying)
    closed = stage_flat(function, flat, avals, what, lambda i: names()[i], outside=scope)
    jaxpr = closed.jaxpr
    read, count = scope.read, len(avals)
    own, more = jaxpr.invars[:count], jaxpr.invars[count:]
    inputs = [*jaxpr.constvars, *more[: len(read)], *own, *more[len(read) :]]
    hoisted = Jaxpr([], inputs, jaxpr.eqns, jaxpr.outvars)
    return Body(ClosedJaxpr(hoisted), [*closed.consts, *contents(read)], flat.out_structure, scope.written)


def with_varying_predicate(body: Body, axes: frozenset[Any]) -> Body:
    """A program that only some indices of named axes run, as one of operands that vary along these.

    Without, reverse mode would sum in it over all indices, those too that do not run it.
    """
    closed = body.jaxpr
    avals = [a.update(varying=a.varying | axes) for a in closed.in_avals]
    staged = stage_flat(closed, jaxpr_as_fun(closed), avals)
    # Literals that are arrays may be constants of the new program, and are captured as others are.
    inner = staged.jaxpr
    jaxpr = Jaxpr([], [*inner.constvars, *inner.invars], inner.eqns, inner.outvars)
    return body._replace(jaxpr=ClosedJaxpr(jaxpr), captured=[*staged.consts, *(vary(x, axes) for x in body.captured)])


class Carry(NamedTuple):
    """What a loop carries from step to step.

    Attributes:
      what: the loop, for error messages.
      function: the user's function that is its body, for error messages.
      leaves: the initial values: those of hidden variables, and then those of the user's carry.
      treedef: the structure of the user's carry.
      hidden: the names of variables that are carried beside it, such as the number of the step.
    """

    what: str
    function: Any
    leaves: list[Array]
    treedef: Any
    hidden: Sequence[str] = ()

    @property
    def avals(self) -> list[ShapedArray]:
        return [x.aval for x in self.leaves]

    def names(self) -> list[str]:
        return [*self.hidden, *leaf_names("carry", self.treedef)]

    def promoted(self, out_tree: Any, outs: Sequence[ShapedArray]) -> bool:
        """Give those initial values that are weakly typed the dtype of what a step returns, if that is another."""
        if self.hidden:
            out_tree = tree.treedef_children(out_tree)[-1]
        if out_tree != self.treedef:
            raise ControlFlowError(
                f"{self.what}: the body {name_of(self.function)} must return a carry of the tree that it is given, but "
                f"{tree_difference('carry', self.treedef, out_tree, GIVEN_AND_RETURNED)}. Return the carry with the "
                "same containers and keys, or start from an initial value of the tree that the body returns."
            )
        changed = self.vary([out.varying for out in outs])
        for i, (x, out) in enumerate(zip(self.leaves, outs, strict=True)):
            if x.weak_type and x.dtype != out.dtype:
                dtype = dtypes.result_type(x, out)
                if dtype != x.dtype:
                    self.leaves[i] = convert_element_type(x, dtype)
                    changed = True
        return changed

    def vary(self, axes: Iterable[frozenset[Any]]) -> bool:
        """Have initial values vary along the named axes along which what a step returns does; whether one changed."""
        changed = False
        for i, keys in enumerate(axes):
            before = self.leaves[i]
            if keys:
                self.leaves[i] = vary(before, keys)
                changed = changed or self.leaves[i] is not before
        return changed

    def check(self, outs: Sequence[ShapedArray]) -> None:
        """Refuse a step whose results have other types than the carry that it is given."""
        for i, (given, out) in enumerate(zip(self.avals, outs, strict=True)):
            how = aval_difference(given, out)
            if how:
                cure = "reshape it" if given.shape != out.shape else "convert it, with astype for example"
                raise ControlFlowError(
                    f"{self.what}: the body {name_of(self.function)} must return a carry of the types that it is "
                    f"given, but {self.names()[i]} is {given} when it is given and {out} when it is returned: {how}. "
                    f"In the body {cure}, or start from an initial value of type {out}."
                )


def stage_step(
    carry: Carry, call: Callable[..., Any], others: Sequence[ShapedArray], names: Callable[[], list[str]]
) -> Body:
    """The body of a loop, and ``carry`` with weakly typed initial values promoted to what the body makes of them.

    Args:
      carry: what the loop carries.
      call: takes the leaves of the carry and then other arguments; returns a pair of the user's carry (with hidden
        variables, a tuple of these and of it) and of any other tree.
      others: the types of the other arguments.
      names: returns the names of all arguments, for error messages.

    Raises:
      ControlFlowError: the body returns another carry than it takes (a TypeError and ValueError).
    """
    count = len(carry.leaves)
    body = stage(carry.what, carry.function, call, [*carry.avals, *others], names)
    varying: dict[Ref, frozenset[Any]] = {}
    while True:
        changed = carry.promoted(tree.treedef_children(body.out_tree)[0], body.jaxpr.out_avals[:count])
        if not (_spread(body, varying) or changed):
            break
        body = stage(carry.what, carry.function, call, [*carry.avals, *others], names, body.refs, varying)
    carry.check(body.jaxpr.out_avals[:count])
    return body


def _spread(body: Body, varying: dict[Ref, frozenset[Any]]) -> bool:
    """Note the named axes along which references vary after a step, and not before it; whether there are any."""
    changed = False
    count = len(body.refs)
    pairs = zip(body.jaxpr.in_avals[-count:], body.jaxpr.out_avals[-count:], strict=True) if count else ()
    for ref, (before, after) in zip(body.refs, pairs, strict=True):
        if not after.varying <= before.varying:
            varying[ref] = before.varying | after.varying
            changed = True
    return changed


def varied_contents(body: Body) -> list[Any]:
    """What the references hold now that a program writes, of the types that it takes."""
    count = len(body.refs)
    avals = body.jaxpr.in_avals[-count:] if count else []
    return [vary(x, a.varying) for x, a in zip(contents(body.refs), avals, strict=True)]


def without_refs(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A tree with numbers in the place of references, and what puts these back into a tree like it."""
    leaves, treedef = tree.flatten(value)
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, RefCell)}
    if not refs:
        return value, lambda found: found
    check_aliases(list(refs.values()), "a branch")

    def back(found: Any) -> Any:
        return tree.unflatten(treedef, [refs.get(i, x) for i, x in enumerate(tree.leaves(found))])

    return tree.unflatten(treedef, [0 if i in refs else x for i, x in enumerate(leaves)]), back


def check_no_refs(leaves: Sequence[Any], what: str, name: str) -> None:
    """Refuse references where values go from step to step."""
    for x in leaves:
        if isinstance(x, RefCell):
            raise RefError(
                f"{what}: {name} holds {x.described()}. A reference is no part of what is carried: the body closes "
                "over it, and reads and writes it there."
            )


# Programs -----------------------------------------------------------------------------------------------------------


def inlined(closed: ClosedJaxpr, operands: Sequence[Any]) -> tuple[list[Eqn], list[Any]]:
    """The equations of a program for some operands in another program, and its results there."""
    if closed.consts:  # values, which have a place in a program of their own only
        results = [Var(a) for a in closed.out_avals]
        return [Eqn(jit_p, list(operands), {"jaxpr": closed, "name": "invariant"}, results)], results
    places: dict[Any, Any] = dict(zip(closed.jaxpr.invars, operands, strict=True))
    eqns = []
    for eqn in closed.eqns:
        outvars = [Var(v.aval) for v in eqn.outvars]
        eqns.append(eqn.like([places.get(a, a) for a in eqn.invars], outvars))
        places.update(zip(eqn.outvars, outvars, strict=True))
    return eqns, [places.get(a, a) for a in closed.jaxpr.outvars]


@cached_by_jaxpr
def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program, to be run once more for its results, without the operations that are there for their effects alone."""
    jaxpr = closed.jaxpr
    if not jaxpr.effect:
        return closed
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.effect and not eqn.primitive.effect:
            quiet = {name: _quiet(value) for name, value in eqn.params.items()}
            eqns.append(eqn.like(eqn.invars, eqn.outvars, **quiet))
        elif eqn.outvars or not eqn.effect:
            eqns.append(eqn)
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), closed.consts)


def _quiet(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_quiet, value))
    return without_effects(value) if isinstance(value, ClosedJaxpr) else value


# Running eager -------------------------------------------------------------------------------------------------


def run_interpreted(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program for concrete arrays, its operations run one by one by the current trace."""
    return typed(eval_jaxpr(closed.jaxpr, closed.consts, *args), closed)


def typed(outs: Sequence[Any], closed: ClosedJaxpr) -> list[Any]:
    """The first concrete results of a program, with the weak types that it says."""
    values = []
    for x, v in zip(outs, closed.jaxpr.outvars, strict=False):
        if type(x) in SCALARS:
            x = as_array(x)
        values.append(x if x.weak_type == v.aval.weak_type else as_weak(x, v.aval.weak_type))
    return values


def check_checkpoints(what: str, checkpoints: Any) -> None:
    """Refuse what is not a number of states."""
    if checkpoints is None or (isinstance(checkpoints, int) and not isinstance(checkpoints, bool) and checkpoints > 0):
        return
    raise ControlFlowError(
        f"{what}: checkpoints is the number of states that are kept for reverse mode, an int of at least 1, or None, "
        f"got {checkpoints!r}"
    )


def auto_preaccumulated(program: ClosedJaxpr, carry: Carry, changing: range) -> ClosedJaxpr:
    """The program of a step, of which parts keep their local Jacobian; ``changing`` are its inputs that are carried."""
    from pullback.transforms.preaccumulation.automatic import in_step

    return in_step(program, name_of(carry.function), changing)
