"""``preaccumulate``: functions whose derivative is stored as a local Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from pullback.core import source, tree
from pullback.core.arguments import is_listed, require_function
from pullback.core.array import typeof
from pullback.core.config import config
from pullback.core.errors import ArgumentError, PreaccumulationError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, free_axes
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import argument_name, name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.preaccumulation.elimination import ORDERS
from pullback.transforms.preaccumulation.primitive import Region, bind
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.stage import stage_flat

F = TypeVar("F", bound=Callable[..., Any])


def preaccumulate(fun: F, *, order: str = "markowitz") -> F:
    """Return ``fun``, changed so that it stores its local Jacobian for the backward pass, instead of residuals.

    Reverse mode usually stores residuals of each operation until the backward pass. This function computes its Jacobian
    in the forward pass and stores it. If the function has few inputs and results, it takes much less memory than the
    residuals. The backward pass, and also forward mode, multiplies by the Jacobian. Values and derivatives of any order
    agree with those of ``fun``, except for rounding, under all transformations.

    For an elementwise function (with or without ``vmap``) the Jacobian is one array for each pair of an input and a
    result, computed by vertex elimination in the computational graph. A loop on numbers is one vertex, differentiated
    in forward mode. For any other function, the Jacobian is computed by columns or rows, and may have at most 65,536
    entries.

    Args:
      fun: takes and returns trees of arrays. It is traced, as by ``jit``; values that it closes over count as inputs.
      order: the order in which vertices are eliminated: ``"forward"``, ``"reverse"``, or ``"markowitz"``, lowest degree
        first. Only the number of products depends on it.

    Returns:
      A function of the same arguments. In eager calls, a function of more than 100 operations or with loops runs as a
      compiled program, unless its arrays are large. Under ``disable_jit`` it is ``fun`` itself.

    Raises:
      ArgumentError: there is no such order (a TypeError and ValueError).
      PreaccumulationError: a call raises this error if ``fun`` has effects, or an operation along a named axis; a
        derivative, if the Jacobian would be large or complex. The message names the operation and its line (a
        ValueError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 9 and 10.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, vmap
    >>> from pullback.ad_checkpoint import saved_residuals
    >>> from pullback.derivatives import preaccumulate
    >>> def root(a):  # Newton's method for x**3 + x == a
    ...     x = a
    ...     for _ in range(12):
    ...         x = x - (x**3 + x - a) / (3 * x**2 + 1)
    ...     return x
    >>> points = jnp.array([0.5, 2.0, 10.0])
    >>> print(vmap(grad(preaccumulate(root)))(points))
    [0.6497... 0.25... 0.0769...]
    >>> [len(saved_residuals(vmap(f), points)) for f in (root, preaccumulate(root))]
    [48, 1]
    """
    require_function("preaccumulate", "fun", fun)
    if not is_listed(order, ORDERS):
        raise ArgumentError(f"preaccumulate of {name_of(fun)}: order must be one of {', '.join(ORDERS)}, got {order!r}")
    maker = partial(preaccumulate, order=order)
    return cast(F, Transformed(fun, lambda args, kwargs: _results(fun, order, args, kwargs), maker))


def _results(fun: Any, order: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``fun(*args, **kwargs)``, recorded as a single operation whose derivative is the local Jacobian.

    ``fun`` is traced to a program, and the operation that holds the program is applied under the current trace. Under
    ``disable_jit``, ``fun`` is called instead. ``order`` is the order of elimination of :func:`preaccumulate`.
    """
    if config.disable_jit:
        return fun(*args, **kwargs)
    leaves, in_tree = tree.flatten_call(args, kwargs)
    arrays = to_arrays(leaves, "preaccumulate", fun, args, None, kwargs)
    call = FlatFunction(fun, in_tree, keywords=True)
    name_input = partial(argument_name, fun=fun, args=args, kwargs=kwargs)
    closed = stage_flat(fun, call, [typeof(x) for x in arrays], "preaccumulate", name_input)
    jaxpr = closed.jaxpr
    _check(jaxpr, name_of(fun))
    program = deduplicated(ClosedJaxpr(Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)))
    return call.result(bind(Region(program, name_of(fun), order), [*closed.consts, *arrays]))


def _check(jaxpr: Jaxpr, name: str) -> None:
    """Raise an error if ``jaxpr``, the program of the function ``name``, has effects or refers to named axes."""
    for eqn in jaxpr.eqns:
        axes = sorted(map(str, free_axes(eqn.primitive, eqn.params)))
        if eqn.effect or axes:
            what = "has an effect" if eqn.effect else f"combines values along the named axis {', '.join(axes)}"
            raise PreaccumulationError(
                f"preaccumulate of {name}: {eqn.primitive} at {source.describe(eqn.made_at)} {what}, but a "
                f"preaccumulated function may only compute results from its inputs. Move it out of the function."
            )
