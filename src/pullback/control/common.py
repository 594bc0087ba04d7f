"""Helpers of branches and loops: staging bodies, running their programs, and checking their types.

A body is staged once for a function, trees and types (`kept_bodies`). Captured values become operands, so that the
program holds no values. Equal programs are deduplicated, so that a body that is a new closure in each call, which is
staged again, shares derivatives and compiled code with earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control import kept_bodies
from pullback.core import dtypes, tree
from pullback.core.array import SCALARS, Array, as_array, as_value, host_value, typeof
from pullback.core.errors import ControlFlowError, OperandError, RefError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr, jaxpr_as_fun
from pullback.core.refs import RefCell
from pullback.core.trace import Tracer, is_at_work, leaked
from pullback.core.types import ShapedArray
from pullback.core.user_types import has_user_types, types_of_values
from pullback.core.zeros import zeros_of
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.varying import vary
from pullback.transforms.autodiff.saving import check_preaccumulate as check_preaccumulate
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
    """Flatten a tree to arrays; return them, and the structure of the tree.

    Raises:
      OperandError: a leaf is not an array; the message names the leaf and the operation ``what`` (a TypeError).
    """
    leaves, treedef = tree.flatten(value)
    check_no_refs(leaves, what, name)
    arrays: list[Array] = []
    for i, x in enumerate(leaves):
        try:
            arrays.append(x if isinstance(x, Array) else as_value(x))
        except OperandError as error:
            raise type(error)(f"{what}: {leaf_names(name, treedef)[i]}: {error}") from None
    return arrays, treedef


def array_of(x: Any, what: str, name: str) -> Array:
    """Convert an operand to an array; an error names the operation ``what`` and the operand."""
    try:
        return as_value(x)  # type: ignore[no-any-return]
    except OperandError as error:
        raise type(error)(f"{what}: {name}: {error}") from None


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """The value of an operand as a NumPy array, or None if it is a tracer whose value is unknown.

    Raises:
      UnexpectedTracerError: the operand is a tracer that leaked.
    """
    if isinstance(x, Tracer):
        if not is_at_work(x._trace):
            raise leaked(x)
        x = x.concrete()
    return None if x is None else host_value(x)


def zero_tangent(aval: ShapedArray) -> Any:
    """An array of zeros of the tangent type of ``aval``."""
    return zeros_of(aval.to_tangent_aval())


# Names of leaves, for error messages ---------------------------------------------------------------------------------


def leaf_names(name: str, treedef: Any) -> list[str]:
    """Name the leaves of a tree as Python expressions, such as ``carry['h'][0]``."""
    paths = tree.leaves_with_path(tree.unflatten(treedef, range(treedef.num_leaves)))
    return [f"{name}{tree.keystr(path)}" for path, _ in paths]


def tree_difference(name: str, first: Any, second: Any, where: Sequence[str]) -> str:
    """Describe the first difference between two tree structures: the subtree, and its type in each.

    Args:
      name: the name of the tree.
      first, second: the structures.
      where: for each structure, the words of the message for its origin, such as ``when it is given``.
    """
    try:
        pair = [tree.unflatten(t, [_LEAF] * t.num_leaves) for t in (first, second)]
        found = _difference(name, *pair)
    except Exception:  # a user's container that does not accept placeholders
        found = None
    subtree, *kinds = found or (name, str(first), str(second))
    return f"{subtree} is {kinds[0]} {where[0]} and {kinds[1]} {where[1]}"


_LEAF = object()


def _difference(name: str, a: Any, b: Any) -> tuple[str, str, str] | None:
    """Find the first subtree in which the trees ``a`` and ``b`` differ; the values of leaves do not count.

    Returns:
      The subtree's name, an expression that begins with ``name``; its kind in ``a``; and its kind in ``b``. None if the
      trees do not differ.
    """
    if a is b:  # leaves, or None
        return None
    if a is _LEAF or b is _LEAF or type(a) is not type(b):
        return name, _kind(a), _kind(b)
    children = [list(tree.flatten_one_level_with_keys(x)[0]) for x in (a, b)]
    keys = [[tree.keystr((key,)) for key, _ in pairs] for pairs in children]
    if keys[0] != keys[1]:
        return name, *(f"{_kind(a)} of {', '.join(names) or 'nothing'}" for names in keys)  # type: ignore[return-value]
    for (_, x), (_, y), key in zip(*children, keys[0], strict=True):
        found = _difference(name + key, x, y)
        if found is not None:
            return found
    return None


def _kind(x: Any) -> str:
    """The kind of a node, for error messages: ``an array``, ``None``, ``a dict``."""
    return "an array" if x is _LEAF else "None" if x is None else f"a {type(x).__name__}"


ARGUMENT_AND_RESULT = "when it is given", "when it is returned"
"""Occasions for :func:`tree_difference`: a value as an argument of a body, and as its result."""


def aval_difference(a: ShapedArray, b: ShapedArray) -> str:
    """Say whether shapes, dtypes or both differ between two types; empty if neither does."""
    names = [name for name, differs in (("shapes", a.shape != b.shape), ("dtypes", a.dtype != b.dtype)) if differs]
    return f"the {' and '.join(names)} differ" if names else ""


# Bodies --------------------------------------------------------------------------------------------------------------


class Body(NamedTuple):
    """A staged function.

    Attributes:
      jaxpr: the program, without constants. Its inputs are the captured values, the arguments, and the contents of
        ``refs``; its results are those of the function, followed by the new contents of ``refs``.
      captured: the captured arrays and tracers, and the contents of references that are only read.
      out_tree: the structure of the result.
      refs: the references that the function writes, and those that the caller of :func:`stage` asked for.
      in_rules: whether custom rules take references, to which a backward pass may write.
    """

    jaxpr: ClosedJaxpr
    captured: list[Any]
    out_tree: Any
    refs: Sequence[Ref] = ()
    in_rules: bool = False

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the function's results, without the new contents of references."""
        avals = self.jaxpr.out_avals
        return avals[: len(avals) - len(self.refs)]

    def writes(self) -> bool:
        """Whether the function changes the content of a reference."""
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
    key: Any = None,
) -> Body:
    """Return a function of flat arguments as a :class:`Body`: the program that was kept, or a new one.

    Args:
      what: the operation that it is staged for, for error messages.
      function: the user's function, for error messages.
      call: takes flat arguments, and returns a tree.
      avals: the types of the arguments.
      names: returns the names of the arguments, for error messages.
      carried: references whose contents are inputs and results even if the function does not write them. They come
        before other references.
      varying: for some references, the named axes along which the program declares their initial contents to vary.
      key: the operation and the trees of the arguments, on which `call` depends besides `function`; None if it depends
        on more, so that the program is not kept.
    """
    of_arrays = not types_of_values or not has_user_types(avals)
    cached = kept_bodies.full_key(key, avals) if key is not None and of_arrays and not (carried or varying) else None
    if cached is not None and (found := kept_bodies.kept(function, cached)) is not None:
        captured = [*found.consts, *contents(found.read)]
        return Body(found.program, captured, found.out_tree, found.written)
    flat = FlatFunction(call, described=function)
    scope = Scope(carried, varying)
    closed = stage_flat(function, flat, avals, what, lambda i: names()[i], outside=scope)
    jaxpr = closed.jaxpr
    read, count = scope.read, len(avals)
    own, more = jaxpr.invars[:count], jaxpr.invars[count:]
    inputs = [*jaxpr.constvars, *more[: len(read)], *own, *more[len(read) :]]
    program = ClosedJaxpr(Jaxpr([], inputs, jaxpr.eqns, jaxpr.outvars))
    written, out_tree = scope.written, flat.out_structure
    if cached is not None and not scope.in_rules:
        kept_bodies.keep(function, cached, program, closed.consts, read, written, out_tree)
    return Body(program, [*closed.consts, *contents(read)], out_tree, written, scope.in_rules)


def with_varying_predicate(body: Body, axes: frozenset[Any]) -> Body:
    """Mark the operands of a branch as varying along ``axes``, as its predicate varies along these named axes.

    Only some indices of the axes then run the branch. If an operand did not vary, reverse mode would sum its cotangent
    over all indices within the branch, although some do not run it.
    """
    closed = body.jaxpr
    avals = [a.update(varying=a.varying | axes) for a in closed.in_avals]
    staged = stage_flat(closed, jaxpr_as_fun(closed), avals)
    # Literals that are arrays may have become constants of the new program: capture these, too.
    inner = staged.jaxpr
    jaxpr = Jaxpr([], [*inner.constvars, *inner.invars], inner.eqns, inner.outvars)
    return body._replace(jaxpr=ClosedJaxpr(jaxpr), captured=[*staged.consts, *(vary(x, axes) for x in body.captured)])


class Carry(NamedTuple):
    """The carry of a loop.

    Attributes:
      what: the loop, for error messages.
      function: the user's body function, for error messages.
      leaves: the initial values: those of hidden variables, followed by the leaves of the user's carry.
      treedef: the structure of the user's carry.
      hidden: the names of further carried variables, such as the number of the step.
      key: the key of the body for :func:`stage`; None if its program is not kept.
    """

    what: str
    function: Any
    leaves: list[Array]
    treedef: Any
    hidden: Sequence[str] = ()
    key: Any = None

    @property
    def avals(self) -> list[ShapedArray]:
        return list(map(typeof, self.leaves))

    def names(self) -> list[str]:
        return [*self.hidden, *leaf_names("carry", self.treedef)]

    def promoted(self, out_tree: Any, outs: Sequence[ShapedArray]) -> bool:
        """Promote weakly typed initial values to the types ``outs`` that a step returns; return whether any changed.

        Raise if ``out_tree``, the tree of these results, is not the tree of the carry.
        """
        if self.hidden:
            out_tree = tree.treedef_children(out_tree)[-1]
        if out_tree != self.treedef:
            raise ControlFlowError(
                f"{self.what}: the body {name_of(self.function)} must return a carry with the same tree as its "
                f"argument, but "
                f"{tree_difference('carry', self.treedef, out_tree, ARGUMENT_AND_RESULT)}. Return the carry with the "
                "same containers and keys, or start with an initial value of the tree that the body returns."
            )
        changed = self.vary([out.varying for out in outs])
        for i, (x, out) in enumerate(zip(self.leaves, outs, strict=True)):
            if isinstance(out, ShapedArray) and x.weak_type and x.dtype != out.dtype:
                dtype = dtypes.result_type(x, out)
                if dtype != x.dtype:
                    self.leaves[i] = convert_element_type(x, dtype)
                    changed = True
        return changed

    def vary(self, axes: Iterable[frozenset[Any]]) -> bool:
        """Mark each initial value as varying along the named axes given in ``axes``; return whether any changed."""
        changed = False
        for i, keys in enumerate(axes):
            before = self.leaves[i]
            if keys:
                self.leaves[i] = vary(before, keys)
                changed = changed or self.leaves[i] is not before
        return changed

    def check(self, outs: Sequence[ShapedArray]) -> None:
        """Raise unless ``outs``, the types of the carry that a step returns, are those of the carry it takes."""
        for i, (before, out) in enumerate(zip(self.avals, outs, strict=True)):
            how = aval_difference(before, out)
            if how:
                cure = "reshape it" if before.shape != out.shape else "convert it, with astype for example"
                raise ControlFlowError(
                    f"{self.what}: the body {name_of(self.function)} must return a carry of the same types as its "
                    f"argument, but {self.names()[i]} is {before} when it is given and {out} when it is returned: "
                    f"{how}. In the body {cure}, or start with an initial value of type {out}."
                )


def stage_step(
    carry: Carry, call: Callable[..., Any], others: Sequence[ShapedArray], names: Callable[[], list[str]]
) -> Body:
    """Stage the body of a loop; promote weakly typed initial values in ``carry`` to the types that the body returns.

    Args:
      carry: the carry of the loop.
      call: takes the leaves of the carry, followed by other arguments; returns a pair: the carry, and any other tree.
        If ``carry`` has hidden variables, the first of the pair is a tuple: these variables, and the user's carry.
      others: the types of the other arguments.
      names: returns the names of all arguments, for error messages.

    Raises:
      ControlFlowError: the body returns another carry than it takes (a TypeError and ValueError).
    """
    count = len(carry.leaves)
    body = stage(carry.what, carry.function, call, [*carry.avals, *others], names, key=carry.key)
    varying: dict[Ref, frozenset[Any]] = {}
    while True:
        changed = carry.promoted(tree.treedef_children(body.out_tree)[0], body.jaxpr.out_avals[:count])
        if not (_spread(body, varying) or changed):
            break
        body = stage(carry.what, carry.function, call, [*carry.avals, *others], names, body.refs, varying, carry.key)
    carry.check(body.jaxpr.out_avals[:count])
    return body


def _spread(body: Body, varying: dict[Ref, frozenset[Any]]) -> bool:
    """Find the references whose content varies along more named axes after a step of a loop than before the step.

    Set the entries of these references in ``varying`` to all of their axes. Return whether there are such references:
    the step must then be staged again.
    """
    changed = False
    count = len(body.refs)
    pairs = zip(body.jaxpr.in_avals[-count:], body.jaxpr.out_avals[-count:], strict=True) if count else ()
    for ref, (before, after) in zip(body.refs, pairs, strict=True):
        if not after.varying <= before.varying:
            varying[ref] = before.varying | after.varying
            changed = True
    return changed


def varied_contents(body: Body) -> list[Any]:
    """The current contents of the references that a staged function writes, to pass to its program.

    Each is marked as varying along the named axes that the program declares for this input.
    """
    count = len(body.refs)
    avals = body.jaxpr.in_avals[-count:] if count else []
    return [vary(x, a.varying) for x, a in zip(contents(body.refs), avals, strict=True)]


def without_refs(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Replace the references in a tree by zeros.

    Return the new tree, and a function that puts the references back into a tree of the same structure.
    """
    leaves, treedef = tree.flatten(value)
    refs = {i: x for i, x in enumerate(leaves) if isinstance(x, RefCell)}
    if not refs:
        return value, lambda other: other
    check_aliases(list(refs.values()), "a branch")

    def back(other: Any) -> Any:
        return tree.unflatten(treedef, [refs.get(i, x) for i, x in enumerate(tree.leaves(other))])

    return tree.unflatten(treedef, [0 if i in refs else x for i, x in enumerate(leaves)]), back


def check_no_refs(leaves: Sequence[Any], what: str, name: str) -> None:
    """Raise if a leaf of carried or stacked values is a reference."""
    for x in leaves:
        if isinstance(x, RefCell):
            raise RefError(
                f"{what}: {name} holds {x.described()}. A reference cannot be carried: close over it in the body, "
                f"and read and write it there."
            )


# Programs -----------------------------------------------------------------------------------------------------------


def inlined(closed: ClosedJaxpr, operands: Sequence[Any]) -> tuple[list[Eqn], list[Any]]:
    """Return the equations of a program with ``operands`` substituted for its inputs; and its results."""
    if closed.consts:  # only a separate program can hold values
        results = [Var(a) for a in closed.out_avals]
        return [Eqn(jit_p, list(operands), {"jaxpr": closed, "name": "invariant"}, results)], results
    env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, operands, strict=True))
    eqns = []
    for eqn in closed.eqns:
        outvars = [Var(v.aval) for v in eqn.outvars]
        eqns.append(eqn.like([env.get(a, a) for a in eqn.invars], outvars))
        env.update(zip(eqn.outvars, outvars, strict=True))
    return eqns, [env.get(a, a) for a in closed.jaxpr.outvars]


@cached_by_jaxpr
def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Remove from a program the operations that run only for their effects.

    It is for a program that runs a second time to compute its results again.
    """
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
    """Remove the operations that run only for their effects from a program, or from each of a tuple of programs.

    ``value`` is a parameter of an equation; any other value is returned unchanged.
    """
    if isinstance(value, tuple):
        return tuple(map(_quiet, value))
    return without_effects(value) if isinstance(value, ClosedJaxpr) else value


# Eager evaluation ----------------------------------------------------------------------------------------------


def run_interpreted(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Evaluate a program on concrete arrays, operation by operation, under the current trace."""
    return typed(eval_jaxpr(closed.jaxpr, closed.consts, *args), closed)


def typed(outs: Sequence[Any], closed: ClosedJaxpr) -> list[Any]:
    """Convert concrete results of a program to arrays with the weak types that the program declares.

    ``outs`` may have only the first results.
    """
    values = []
    for x, v in zip(outs, closed.jaxpr.outvars, strict=False):
        if type(x) in SCALARS:
            x = as_array(x)
        values.append(x if x.weak_type == v.aval.weak_type else as_weak(x, v.aval.weak_type))
    return values


def check_checkpoints(what: str, checkpoints: Any) -> None:
    """Raise unless ``checkpoints`` is None or a positive int."""
    if checkpoints is None or (isinstance(checkpoints, int) and not isinstance(checkpoints, bool) and checkpoints > 0):
        return
    raise ControlFlowError(
        f"{what}: checkpoints, the number of states saved for reverse mode, must be an int of at least 1 or None, "
        f"got {checkpoints!r}"
    )


def auto_preaccumulated(program: ClosedJaxpr, carry: Carry, changing: range) -> ClosedJaxpr:
    """Rewrite the program of a loop's step so that reverse mode stores fewer bytes.

    A region whose local Jacobian is smaller than its residuals becomes one equation with that Jacobian.

    Args:
      program: the program of the step.
      carry: the carry of the loop, whose function error messages name.
      changing: the indices of the inputs that change from step to step.
    """
    from pullback.transforms.preaccumulation.automatic import in_step

    return in_step(program, name_of(carry.function), changing)
