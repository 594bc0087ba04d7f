"""Derivatives with respect to the data of sparse arguments, whose indices are constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pullback.numpy as pnp
from pullback.core import source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.errors import ArgumentError, NotDifferentiableError
from pullback.experimental.sparse.formats import BCOO
from pullback.experimental.sparse.layouts import spread
from pullback.experimental.sparse.sparsify import is_sparse
from pullback.transforms.autodiff import grad as gradients
from pullback.transforms.autodiff import jacobian as jacobians
from pullback.transforms.functions.arguments import check_argnums, name_of

R = TypeVar("R")

Argnums = int | Sequence[int]


def data_of(x: Any) -> Any:
    """Replace the sparse arrays in a tree by their data."""
    return tree.tree_map(lambda y: y.data if is_sparse(y) else y, x, is_leaf=is_sparse)


def with_data_of(x: Any, data: Any) -> Any:
    """Replace the data of the sparse and dense arrays in a tree."""
    leaves, treedef = tree.flatten(x, is_leaf=is_sparse)
    inner = tree.structure(data_of(x))
    new = _leaves_up_to(inner, data)
    return tree.unflatten(treedef, [_replaced(a, b) for a, b in zip(leaves, new, strict=True)])


def _leaves_up_to(treedef: Any, data: Any) -> list[Any]:
    return list(treedef.flatten_up_to(data))


def _replaced(x: Any, data: Any) -> Any:
    if not is_sparse(x):
        return data
    leaves, static = x.tree_flatten()
    return type(x).tree_unflatten(static, (data, *leaves[1:]))


def _by_data(
    name: str, transformation: Callable[..., Any], fun: Callable[..., Any], argnums: Any, has_aux: bool, kwargs: Any,
    package: Callable[[Any, Any, Any], Any],
) -> Callable[..., Any]:  # fmt: skip
    """Apply a transformation such as ``grad`` to ``fun``, with respect to the data of its sparse arguments.

    Args:
      name: the name of the public function, for errors.
      transformation: takes a function, ``argnums``, ``has_aux`` and ``kwargs``.
      fun, argnums, has_aux: as for ``grad``.
      kwargs: other options of the transformation.
      package: ``package(result, arguments, has_aux)`` rebuilds sparse arrays from the result of the transformed
        function.

    Returns:
      A function of the arguments of ``fun``.
    """
    require_function(name, "fun", fun)
    nums = check_argnums(argnums, name)

    @source.named_as(fun)
    def transformed(*args: Any, **kw: Any) -> Any:
        wanted = (nums,) if isinstance(nums, int) else tuple(nums)
        if any(not -len(args) <= i < len(args) for i in wanted):
            raise ArgumentError(
                f"{name}: argnums={argnums} does not fit the {len(args)} positional arguments given to {name_of(fun)}"
            )
        positions = [i % len(args) for i in wanted]

        def of_data(*data: Any) -> Any:
            given = list(args)
            for i, d in zip(positions, data, strict=True):
                given[i] = with_data_of(args[i], d)
            return fun(*given, **kw)

        at = 0 if isinstance(nums, int) else tuple(range(len(positions)))
        result = transformation(of_data, argnums=at, has_aux=has_aux, **kwargs)(*[data_of(args[i]) for i in positions])
        chosen = args[positions[0]] if isinstance(nums, int) else tuple(args[i] for i in positions)
        return package(result, chosen, has_aux)

    return transformed


def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., PyTree]:
    """Return the gradient function of a scalar function, with respect to the data of sparse arguments.

    Args:
      fun: takes sparse or dense arrays, or trees of them, and returns a scalar; with ``has_aux``, a pair of a scalar
        and any value.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair, whose second element is returned along with the gradient.
      kwargs: further options of ``pullback.grad``.

    Returns:
      A function of the same arguments that returns the gradient: for a sparse argument, a sparse array with its
        indices.

    Raises:
      NotDifferentiableError, ArgumentError: as ``pullback.grad`` does.

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> print(sparse.grad(lambda m, v: (m @ v).sum())(sparse.eye(2), jnp.array([3.0, 4.0])).data)
    [3. 4.]
    """

    has_aux = flag("grad", "has_aux", has_aux)

    def package(result: Any, chosen: Any, aux: bool) -> Any:
        return (with_data_of(chosen, result[0]), result[1]) if aux else with_data_of(chosen, result)

    return _by_data("sparse.grad", gradients.grad, fun, argnums, has_aux, kwargs, package)


def value_and_grad(
    fun: Callable[..., R], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[R, PyTree]]:
    """Return a function that computes the value and the gradient by the data of sparse arguments.

    Args:
      fun: takes sparse or dense arrays, or trees of them, and returns a scalar; with ``has_aux``, a pair of a scalar
        and any value.
      argnums: the positions of the arguments to differentiate by, an integer or a sequence of integers.
      has_aux: whether ``fun`` returns a pair, whose second element is returned along with the scalar.
      kwargs: further options of ``pullback.value_and_grad``.

    Returns:
      A function of the same arguments that returns the pair ``(value, gradient)``, or ``((value, aux), gradient)``;
      ``gradient`` is that of :func:`grad`.

    Raises:
      ArgumentError: ``fun`` is no function, or an option has another value (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: the result is no scalar of floats (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> value, gradient = sparse.value_and_grad(lambda m: (m @ jnp.ones(2)).sum())(sparse.eye(2))
    >>> print(value, gradient)
    2.0 BCOO(float32[2, 2], nse=2)
    """
    has_aux = flag("value_and_grad", "has_aux", has_aux)
    package = lambda result, chosen, aux: (result[0], with_data_of(chosen, result[1]))
    return _by_data("sparse.value_and_grad", gradients.value_and_grad, fun, argnums, has_aux, kwargs, package)


def _jacobian(name: str, transformation: Callable[..., Any], fun: Any, argnums: Any, has_aux: bool, kwargs: Any) -> Any:
    def dense_results(*args: Any, **kw: Any) -> Any:
        out = fun(*args, **kw)
        results = out[0] if has_aux else out
        for x in tree.leaves(results, is_leaf=is_sparse):
            if is_sparse(x):
                raise NotDifferentiableError(
                    f"{name}: {name_of(fun)} returns a sparse array, {x!r}, whose Jacobian is not supported; return "
                    "its data, or sparse.todense of it"
                )
        return out

    def package(result: Any, chosen: Any, aux: bool) -> Any:
        rows, extra = result if aux else (result, None)
        template = data_of(chosen)
        inner = tree.structure(template)
        leaves = tree.leaves(rows)
        count = max(inner.num_leaves, 1)
        blocks = [leaves[i : i + count] for i in range(0, len(leaves), count)]
        arguments, shape = tree.flatten(chosen, is_leaf=is_sparse)
        made = [tree.unflatten(shape, [_as_jacobian(a, x) for a, x in zip(arguments, block)]) for block in blocks]
        out = tree.unflatten(_outer_structure(rows, inner), made)
        return (out, extra) if aux else out

    require_function(name, "fun", fun)
    return _by_data(name, transformation, source.named_as(fun)(dense_results), argnums, has_aux, kwargs, package)


def _outer_structure(rows: Any, inner: Any) -> Any:
    """Return the tree structure of a function's result, given its Jacobian.

    The tree ``rows`` of the Jacobian has, instead of each leaf of the result, a tree of the structure ``inner``, which
    is the structure of the arguments.
    """
    is_inner = lambda x: tree.structure(x) == inner
    return tree.structure(rows, is_leaf=is_inner)


def _as_jacobian(x: Any, derivative: Any) -> Any:
    """Convert ``derivative``, the Jacobian with respect to ``x.data``, to that with respect to ``x``: a BCOO array.

    The axes of the function's result become batch axes. If ``x`` is dense, ``derivative`` is returned unchanged.
    """
    if not is_sparse(x):
        return derivative
    if not isinstance(x, BCOO):
        raise NotDifferentiableError(
            f"Jacobians with respect to sparse arrays are BCOO, but the argument is {x!r}; convert it first"
        )
    _data, indices = spread(x)
    lead = derivative.shape[: derivative.ndim - x.data.ndim]
    whole = pnp.broadcast_to(indices, (*lead, *indices.shape))
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((derivative, whole), shape=(*lead, *x.shape), **flags)


def jacfwd(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """Return a function that computes the Jacobian by the data of sparse arguments, in forward mode.

    Args:
      fun: takes arrays, sparse or dense, and returns dense ones, or trees of them.
      argnums: the positions of the arguments to differentiate by, an integer or a sequence of integers.
      has_aux: whether ``fun`` returns a pair, whose second element is returned along with the Jacobian.
      kwargs: further options of ``pullback.jacfwd``.

    Returns:
      A function of the same arguments that returns the Jacobian: by a BCOO, a BCOO with the axes of the result, as
      batch axes, before those of the argument.

    Raises:
      ArgumentError: ``fun`` is no function, or an option has another value (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: an argument or a result is not of floats (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    has_aux = flag("jacfwd", "has_aux", has_aux)
    return _jacobian("sparse.jacfwd", jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """Return a function that computes the same Jacobian as that of :func:`jacfwd`, in reverse mode.

    Args:
      fun: takes arrays, sparse or dense, and returns dense ones, or trees of them.
      argnums: the positions of the arguments to differentiate by, an integer or a sequence of integers.
      has_aux: whether ``fun`` returns a pair, whose second element is returned along with the Jacobian.
      kwargs: further options of ``pullback.jacrev``.

    Returns:
      A function of the same arguments that returns the Jacobian: by a BCOO, a BCOO with the axes of the result, as
      batch axes, before those of the argument.

    Raises:
      ArgumentError: ``fun`` is no function, or an option has another value (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: an argument or a result is not of floats (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import sparse
    >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian("sparse.jacrev", jacobians.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
