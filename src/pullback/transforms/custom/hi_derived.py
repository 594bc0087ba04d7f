"""Rules of a user's operation that follow from others of its rules: methods to assign in the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import tree
from pullback.core.errors import ArgumentError
from pullback.core.linear import LinearProgram, LinearTrace
from pullback.core.linear_data import join, split
from pullback.core.lists import scatter_where, select
from pullback.core.trace import state
from pullback.core.types import ZERO
from pullback.core.user_types import has_tangents
from pullback.core.zeros import Zero
from pullback.primitives.elementwise import add_any
from pullback.transforms.custom.hi_primitive import VJPHiPrimitive
from pullback.transforms.custom.hi_rules import by_jvp, transposed, with_zeros
from pullback.transforms.traces.linearize import refused


class Derivative:
    """The derivative of an operation at a point, as a tree whose leaves are its residuals.

    Attributes:
      program: the linear program.
    """

    def __init__(self, program: LinearProgram) -> None:
        self.program = program


tree.register_pytree_node(Derivative, lambda d: split(d.program), lambda structure, xs: Derivative(join(structure, xs)))


@tree.register_static
class Flags(tuple[bool, ...]):
    """Booleans that belong to the structure of a tree, not to its leaves."""


def linear_jvp(
    prim: VJPHiPrimitive, primals: Sequence[Any], perturbed: Sequence[bool]
) -> tuple[list[Any], LinearProgram]:
    """Return the results of an operation, and its method ``jvp`` as a linear program of the perturbed tangents."""
    tape = LinearTrace(state.trace, prim, error=refused)
    inputs = [tape.input(a.to_tangent_aval()) for a in select(prim.in_avals_flat, perturbed)]
    state.trace = tape
    try:
        outs, tangents = by_jvp(prim, primals, scatter_where(perturbed, inputs, ZERO))
    finally:
        state.trace = tape.parent
        tape.live = False
    nodes, tape.nodes = tape.nodes, []
    return outs, LinearProgram(nodes, [x.variable for x in inputs], [tape.end(t) for t in tangents], tape.count)


def _lin(self: Any, nzs_in: Any, *primals: Any) -> Any:
    """Return the result and the residuals of the linear part of ``jvp``."""
    if type(self).jvp is jvp_from_lin:
        raise ArgumentError(
            f"{type(self).__name__} derives jvp from lin (jvp_from_lin) and lin from jvp (linearize_from_jvp): write "
            "one of the two, and derive the other"
        )
    xs = tree.leaves(primals)
    flags = [bool(f) and has_tangents(a) for f, a in zip(_flags(self, nzs_in), self.in_avals_flat, strict=True)]
    outs, program = linear_jvp(self, xs, flags)
    return tree.unflatten(self.out_tree, outs), (Derivative(program), Flags(flags))


def _linearized(self: Any, residuals: Any, *tangents: Any) -> Any:
    """Return the tangent of the result."""
    derivative, flags = residuals
    ts = tree.leaves(tangents, is_leaf=lambda x: isinstance(x, Zero))
    ts = [ZERO if isinstance(t, Zero) else t for t in ts]
    wanted = [
        Zero(a.to_tangent_aval()).instantiate() if t is ZERO else t
        for t, a in zip(select(ts, flags), select(self.in_avals_flat, flags), strict=True)
    ]
    return with_zeros(self.out_tree, derivative.program.run(wanted), self.out_avals_flat)


def jvp_from_lin(self: Any, primals: Any, tangents: Any) -> Any:
    """Compute the method ``jvp`` of a :class:`VJPHiPrimitive` from ``lin`` and ``linearized``: assign it in the class.

    Args:
      self: the operation.
      primals: the arguments.
      tangents: their tangents.

    Returns:
      The result and its tangent.

    Raises:
      ArgumentError: ``lin`` is itself derived from ``jvp`` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jvp, typeof
    >>> from pullback.experimental.hijax import VJPHiPrimitive, jvp_from_lin
    >>> class Sine(VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def lin(self, nzs_in, x):
    ...         return self(x), jnp.cos(x)
    ...     def linearized(self, cos_x, t):
    ...         return cos_x * t
    ...     jvp = jvp_from_lin
    >>> print(*jvp(lambda x: Sine(typeof(x))(x), (0.0,), (1.0,)))
    0.0 1.0
    """
    if type(self).lin is _lin:
        raise ArgumentError(
            f"{type(self).__name__} derives jvp from lin (jvp_from_lin) and lin from jvp (linearize_from_jvp): write "
            "one of the two, and derive the other"
        )
    ts = tree.leaves(tangents, is_leaf=lambda x: isinstance(x, Zero))
    nonzero = tree.unflatten(self.in_tree, [not isinstance(t, Zero) for t in ts])
    out, res, *rest = self.lin(nonzero, *primals)
    return out, self.linearized(res, *rest[1:], *tangents)


def _fwd_from_lin(self: Any, nzs_in: Any, /, *args: Any) -> Any:
    """Return the result and the residuals of ``lin``."""
    out, res, *rest = self.lin(nzs_in, *args)
    return out, ((res, *rest[1:]), Flags(map(bool, _flags(self, nzs_in))))


def _bwd_from_lin(self: Any, res: Any, outgrad: Any, /) -> Any:
    """Return the cotangents of the arguments, by the transpose of ``linearized``."""
    residuals, perturbed = res
    flags = tuple(map(has_tangents, self.out_avals_flat))
    cts = [ZERO if isinstance(c, Zero) else c for c in tree.leaves(outgrad, is_leaf=lambda x: isinstance(x, Zero))]
    found = transposed(self, residuals, perturbed, select(cts, flags), flags)
    return with_zeros(self.in_tree, scatter_where(perturbed, found, ZERO), self.in_avals_flat)


def _fwd_from_jvp(self: Any, nzs_in: Any, /, *args: Any) -> Any:
    """Return the result, and the arguments as residuals."""
    return self(*args), (args, Flags(map(bool, _flags(self, nzs_in))))


def _bwd_from_jvp(self: Any, res: Any, outgrad: Any, /) -> Any:
    """Return the cotangents of the arguments, by linearising and transposing ``jvp``."""
    args, perturbed = res
    cts = [ZERO if isinstance(c, Zero) else c for c in tree.leaves(outgrad, is_leaf=lambda x: isinstance(x, Zero))]
    _, program = linear_jvp(self, tree.leaves(args), perturbed)
    found = program.transpose(cts, add_any, consume=True)
    return with_zeros(self.in_tree, scatter_where(perturbed, found, ZERO), self.in_avals_flat)


def _flags(prim: Any, nzs_in: Any) -> list[Any]:
    """Return whether each leaf of the arguments is differentiated, from booleans in a prefix of their tree."""
    return tree.broadcast_prefix(nzs_in, tree.unflatten(prim.in_tree, [0] * prim.in_tree.num_leaves))


linearize_from_jvp = _lin, _linearized
"""The methods ``lin, linearized`` of a ``VJPHiPrimitive`` that has ``jvp``: assign them in the class."""
vjp_from_lin = _fwd_from_lin, _bwd_from_lin
"""The methods ``vjp_fwd, vjp_bwd_retval`` of one that has ``lin`` and ``linearized``, whose residuals they keep."""
vjp_from_jvp = _fwd_from_jvp, _bwd_from_jvp
"""The methods ``vjp_fwd, vjp_bwd_retval`` of one that has ``jvp``: they keep the arguments."""
