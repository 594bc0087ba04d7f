"""Forward mode from reverse mode alone, and reverse mode from forward mode alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as pnp
from pullback.control import scan
from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed, require_function
from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError
from pullback.core.naming import quoted
from pullback.transforms.autodiff.grad import linear_transpose, vjp
from pullback.transforms.autodiff.jacobian import split_axis, standard_basis
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.custom.custom_rules import custom_jvp, custom_vjp
from pullback.transforms.functions.arguments import (
    check_chunk_size,
    is_float0,
    name_of,
    zero_cotangent,
)

METHODS = ("transpose", "basis")


def jvp_from_vjp(
    fun: Callable[..., Any], method: str = "transpose", chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return ``fun`` with a forward mode that is computed from its reverse mode.

    This is for functions that have rules for reverse mode only, such as a ``custom_vjp`` function whose backward rule
    calls another language by a callback.

    Args:
      fun: takes trees of arrays, by position, and returns a tree of arrays.
      method: ``"transpose"`` transposes the backward pass, which costs about as much as this pass; all operations in
        the pass must be linear and have transposition rules. ``"basis"`` runs the pass for each element of the output,
        and has no such conditions.
      chunk_size: with ``"basis"``, the number of elements at a time; all by default. With 1 the backward pass is not
        mapped, and needs no batching rules.

    Returns:
      A ``custom_jvp`` function. With ``"transpose"`` it has reverse mode too.

    Raises:
      ArgumentError: ``method`` or ``chunk_size`` is none of the allowed values (a TypeError and ValueError).
      NotLinearError: in forward mode, the backward pass is not linear (a TypeError).

    Source: J. Townsend, A new trick for calculating Jacobian vector products, 2017, for the transposed backward pass.

    >>> from pullback import jvp
    >>> from pullback.derivatives import jvp_from_vjp
    >>> print(jvp(jvp_from_vjp(lambda x: x**2), (3.0,), (1.0,))[1])
    6.0
    """
    by_basis = _checked("jvp_from_vjp", fun, method, chunk_size)
    function: Any = custom_jvp(fun)

    @function.defjvp
    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        values, of_values = _of_numbers(fun, primals)
        ts = [t for t in tree.leaves(tuple(tangents)) if not is_float0(t)]
        numbers, pull, out = vjp(of_values, *values, has_aux=True)
        if by_basis:
            found = _products_with_basis(fun, lambda *cts: pull(list(cts)), numbers, ts, chunk_size)
        else:
            (found,) = linear_transpose(lambda cts: list(pull(cts)), numbers)(ts)
        return out, _with_others(out, found, zero_cotangent)

    return function


def vjp_from_jvp(
    fun: Callable[..., Any], method: str = "transpose", chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return ``fun`` with a reverse mode that is computed from its forward mode.

    This is for functions that have rules for forward mode only, such as a primitive whose jvp rule binds an operation
    without a transposition rule.

    Args:
      fun: takes trees of arrays, by position, and returns a tree of arrays.
      method: ``"transpose"`` transposes the forward pass, as ``vjp`` does. ``"basis"`` runs the forward pass for each
        element of the arguments: it needs no transposition rules, and is for arguments of few elements.
      chunk_size: with ``"basis"``, the number of elements at a time; all by default. With 1 the forward pass is not
        mapped, and needs no batching rules.

    Returns:
      A ``custom_vjp`` function; in forward mode it is ``fun``.

    Raises:
      ArgumentError: ``method`` or ``chunk_size`` is none of the allowed values (a TypeError and ValueError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, section 3.2.

    >>> from pullback import grad
    >>> from pullback.derivatives import vjp_from_jvp
    >>> print(grad(vjp_from_jvp(lambda x: x**2, method="basis"))(3.0))
    6.0
    """
    by_basis = _checked("vjp_from_jvp", fun, method, chunk_size)
    function: Any = custom_vjp(fun)

    def forward(*args: Any) -> tuple[Any, Any]:
        return fun(*args), args

    def backward(args: Any, cotangent: Any) -> tuple[Any, ...]:
        values, of_values = _of_numbers(fun, args)
        cts = [ct for ct in tree.leaves(cotangent) if not is_float0(ct)]

        def push(*tangents: Any) -> list[Any]:
            return jvp(of_values, values, tangents, has_aux=True)[1]  # type: ignore[no-any-return]

        found: Sequence[Any]
        if by_basis:
            found = _products_with_basis(fun, push, values, cts, chunk_size)
        else:
            found = linear_transpose(push, *values)(cts)
        return _with_others(args, found, lambda _: None)  # type: ignore[no-any-return]

    function.defvjp(forward, backward)
    function.defjvp(lambda primals, tangents: jvp(fun, primals, tangents))
    return function


def _checked(name: str, fun: Any, method: Any, chunk_size: Any) -> bool:
    """Check the arguments of the public function ``name``, and return whether ``method`` is ``"basis"``.

    Otherwise it is ``"transpose"``.
    """
    require_function(name, "fun", fun)
    check_chunk_size(chunk_size, name)
    if not is_listed(method, METHODS):
        raise ArgumentError(f"{name}: method must be one of {METHODS}, got {quoted(method)}")
    return bool(method == "basis")


def _of_numbers(fun: Any, args: Sequence[Any]) -> tuple[list[Any], Callable[..., Any]]:
    """Return the inexact leaves of ``args``, and ``fun`` as a function of these leaves, the others being constant.

    The returned function takes the inexact leaves as positional arguments. It returns the list of the inexact leaves of
    the output of ``fun``, and the output itself.
    """
    leaves, treedef = tree.flatten(tuple(args))
    values = [x for x in leaves if _is_number(x)]

    def of_values(*values: Any) -> tuple[list[Any], Any]:
        given = iter(values)
        out = fun(*tree.unflatten(treedef, [next(given) if _is_number(x) else x for x in leaves]))
        return [x for x in tree.leaves(out) if _is_number(x)], out

    return values, of_values


def _is_number(x: Any) -> bool:
    return dtypes.is_inexact(dtypes.dtype_of(x))


def _with_others(whole: Any, found: Sequence[Any], other: Callable[[Any], Any]) -> Any:
    """Return a tree like ``whole`` with other leaves.

    The inexact leaves become the arrays ``found``, in order. Any other leaf x becomes ``other(typeof(x))``.
    """
    leaves, treedef = tree.flatten(whole)
    given = iter(found)
    return tree.unflatten(treedef, [next(given) if _is_number(x) else other(typeof(pnp.asarray(x))) for x in leaves])


def _products_with_basis(
    fun: Any,
    linear: Callable[..., Sequence[Any]],
    space: Sequence[Any],
    vectors: Sequence[Any],
    chunk_size: int | None,
) -> list[Any]:
    """Return the inner product of ``vectors`` with ``linear(e)``, for each vector e of the standard basis.

    Args:
      fun: the user's function, for errors.
      linear: a linear function from arrays like ``space`` to arrays like ``vectors``.
      space: real arrays; the basis has a vector for each of their elements.
      vectors: real arrays.
      chunk_size: the number of basis vectors to map at a time; None for all.

    Returns:
      Arrays like ``space``, whose elements are the inner products.
    """
    if any(dtypes.is_complex(dtypes.dtype_of(x)) for x in [*space, *vectors]):
        raise NotDifferentiableError(
            f'{name_of(fun)} has complex arguments or results, which method="basis" does not support: pass real and '
            'imaginary parts as two real arrays, or use method="transpose"'
        )

    def product(vector: Sequence[Any]) -> Any:
        pairs = zip(linear(*vector), vectors, strict=True)
        return sum((pnp.sum(image * v) for image, v in pairs), start=pnp.zeros(()))

    arrays = [pnp.asarray(x) for x in space]
    if not arrays:
        return []
    basis = standard_basis(arrays, 0, sum(x.size for x in arrays))
    if chunk_size is None:
        products = vmap(product)(basis)
    else:
        products = scan.map(product, basis, batch_size=None if chunk_size == 1 else chunk_size)
    parts = split_axis(products, [typeof(x) for x in arrays], (), last=False)
    return [part.astype(x.dtype) for part, x in zip(parts, arrays, strict=True)]
