"""``saved_residuals`` and ``print_saved_residuals``: the arrays that reverse mode saves for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from pullback.core import dtypes, source, tree
from pullback.core.arguments import require_function
from pullback.core.array import typeof
from pullback.core.errors import ConcretizationTypeError
from pullback.core.inlining import runs_once
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs
from pullback.core.linear_data import split
from pullback.core.lists import positions
from pullback.core.trace import Primitive, RelayTrace, Trace, state
from pullback.core.types import ShapedArray
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.checkpoint.checkpoint_policies import name_p
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, argument_name, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.jaxprs import linearize_jaxpr
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import stage_flat


@api_boundary
def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """List the arrays that reverse mode saves between the forward and the backward pass of a function.

    Args:
      fun: takes and returns trees of arrays. It is traced; a function that branches on values is run eagerly instead.
      args, kwargs: trees of arrays, numbers, or objects with ``shape`` and ``dtype``.

    Returns:
      A list of pairs, one for each saved array: its type, and a description of where it comes from: an argument, a
      named value (``checkpoint_name``), the result of an operation with the user's line, or a constant.

    Raises:
      ConcretizationTypeError: ``fun`` branches on values, and the arguments are types instead of values (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import checkpoint
    >>> from pullback.ad_checkpoint import saved_residuals
    >>> [(aval, what)] = saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.0)
    >>> print(aval, what)
    float32[] argument 0 (x)
    """
    require_function("saved_residuals", "fun", fun)
    leaves, in_tree = tree.flatten_call(args, kwargs)
    name_input = partial(argument_name, fun=fun, args=args, kwargs=kwargs)
    flat = FlatFunction(fun, in_tree, keywords=True)
    try:
        closed = stage_flat(fun, flat, [abstractify(x) for x in leaves], "saved_residuals", name_input)
        program, residuals = _of_program(closed)
    except ConcretizationTypeError:
        if not state.trace.is_bottom or any(isinstance(x, ShapeDtypeStruct) for x in leaves):
            raise
        program, residuals = _of_run(fun, flat, to_arrays(leaves, "saved_residuals", fun, args, None, kwargs))
    found = {v: None for v in residuals if isinstance(v, Var)}
    binders = cache(_binders)
    return [(v.aval, _describe(binders, program, v, name_input)) for v in found]


@api_boundary
def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the type, size and description of each array that reverse mode saves; see :func:`saved_residuals`.

    Args:
      fun: takes and returns trees of arrays.
      *args, **kwargs: its arguments: arrays, or ``ShapeDtypeStruct`` for their types.

    Raises:
      ArgumentError: ``fun`` is no function (a TypeError and a ValueError).
      OperandError: a leaf of the arguments or of the result is no array (a TypeError).
      ConcretizationTypeError: ``fun`` branches on values, and the arguments are types (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import checkpoint
    >>> from pullback.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), jnp.ones((3, 4)))
    f32[3,4]  48 bytes  argument 0 (x)
    total: 1 array, 48 bytes
    """
    found = saved_residuals(fun, *args, **kwargs)
    sizes = [aval.size * aval.dtype.itemsize for aval, _ in found]
    rows = [(format(aval), f"{size:,}", what) for (aval, what), size in zip(found, sizes, strict=True)]
    types, numbers = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    for kind, number, what in rows:
        print(f"{kind:<{types}}  {number:>{numbers}} bytes  {what}")
    print(f"total: {len(rows)} array{'s' * (len(rows) != 1)}, {sum(sizes):,} bytes")


# Finding residuals ---------------------------------------------------------------------------------------------------


def _of_program(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """Linearise a program; return the jaxpr of its forward pass, and the variables of this jaxpr that are residuals."""
    linearized = linearize_jaxpr(closed, [dtypes.is_inexact(a.dtype) for a in closed.in_avals])
    jaxpr = linearized.primal.jaxpr
    values = [*jaxpr.invars, *jaxpr.outvars]
    return jaxpr, [*[values[i] for i in linearized.residual_sources], *linearized.linear.jaxpr.constvars]


def _of_run(fun: Any, run: Callable[..., list[Any]], arrays: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Run a function eagerly under reverse mode, and record its operations as a jaxpr.

    Args:
      fun: the user's function, for error messages.
      run: its flat version.
      arrays: the leaves of the arguments.

    Returns:
      The jaxpr of the forward pass, and the variables of this jaxpr that are residuals.
    """
    eqns: list[Eqn] = []
    known = {id(x): (x, Var(typeof(x))) for x in arrays}  # arrays by id, kept alive so that ids are not reused

    def variable(x: Any) -> Var:
        return known.setdefault(id(x), (x, Var(typeof(x))))[1]

    def note(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        out = trace.parent.process(primitive, args, params)
        results = out if primitive.multiple_results else [out]
        atoms: list[Atom] = list(map(variable, args))
        eqns.append(Eqn(primitive, atoms, params, list(map(variable, results)), state.source_loc or source.here()))
        return out

    invars = list(map(variable, arrays))
    trace = RelayTrace(state.trace, note, fun, "saved_residuals")
    trace.quick = False
    _, program = trace.run(linearize_flat, fun, run, arrays)
    residuals = list(map(variable, split(program)[0]))
    return Jaxpr([], invars, eqns, residuals), residuals


# Describing residuals ------------------------------------------------------------------------------------------------


def _describe(binders: Binders, jaxpr: Jaxpr, var: Var, name_input: Callable[[int], str]) -> str:
    """Describe where a residual comes from: from an input, an operation, or a constant.

    Args:
      binders: maps a jaxpr to a dict from its variables to the inputs or equations that bind them.
      jaxpr: the jaxpr of the forward pass.
      var: the residual.
      name_input: from the index of an input to its name.
    """
    found = _origin(binders, jaxpr, var)
    if isinstance(found, int):
        return name_input(found)
    return "a constant that the function captured" if found is None else found


Binders = Callable[[Jaxpr], dict[Atom, Any]]
"""The function :func:`_binders`, cached by jaxpr."""


def _binders(jaxpr: Jaxpr) -> dict[Atom, Any]:
    """Return a dict from each variable of a jaxpr to the input or equation result that it stands for.

    An input is represented by its index, a result by a pair: the equation, and the index of the result.
    """
    results = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
    return {**positions(jaxpr.invars), **results}


def _origin(binders: Binders, jaxpr: Jaxpr, atom: Atom) -> int | str | None:
    """Find where the value of a variable or literal ``atom`` of ``jaxpr`` comes from.

    The search continues inside equations that only call a program. ``binders`` is :func:`_binders`, cached.

    Returns:
      The index of an input; a description of the operation that computes the value; or None for a constant.
    """
    bound = binders(jaxpr).get(atom)
    if not isinstance(bound, tuple):
        return bound
    eqn, index = bound
    inner = list(subjaxprs(eqn))
    if len(inner) == 1 and len(inner[0].outvars) == len(eqn.outvars):
        found = _origin(binders, inner[0], inner[0].outvars[index])
        if runs_once.of(eqn.primitive) is not None:
            return _origin(binders, jaxpr, eqn.invars[found]) if isinstance(found, int) else found
        if isinstance(found, str):
            return f"{found}, within {eqn.primitive}"
    # Of ``checkpoint_name``: the parameter is the user's name of the value.
    what = f"named {eqn.params['name']!r}" if eqn.primitive is name_p else f"output of {eqn.primitive}"
    return f"{what}, at {source.describe(eqn.made_at)}"
