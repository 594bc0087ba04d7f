"""``jax._src.api``: the transformations, as ``jax`` has them, and helpers that libraries build their own of."""

from collections.abc import Callable, Sequence
from typing import Any

import pullback as _pullback
from pullback.core import tree as _tree
from pullback.core.array import typeof as _typeof
from pullback.core.dtypes import dtype_of as _dtype  # noqa: F401  (PennyLane)
from pullback.core.faces import face as _face
from pullback.transforms.autodiff import jacobian as _jacobian


def _jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Return the value and the tangent of a function, and its auxiliary output. DESC calls it."""
    return _pullback.jvp(fun, tuple(primals), tuple(tangents), has_aux=has_aux)


def _vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of a function and its pullback, and its auxiliary output. DESC calls it."""
    return _pullback.vjp(fun, *primals, has_aux=has_aux)


def _std_basis(pytree: Any) -> Any:
    """Return the basis vectors of the space of a tree's arrays, stacked along a new first axis. DESC maps over them.

    >>> import pullback.numpy as jnp
    >>> from pullback.compat.extras._src.api import _std_basis
    >>> print(_std_basis((jnp.ones(2), 3.0))[0])
    [[1. 0.]
     [0. 1.]
     [0. 0.]]
    """
    leaves, treedef = _tree.flatten(pytree)
    values = [_pullback.numpy.asarray(x) for x in leaves]
    return treedef.unflatten(_jacobian.standard_basis(values, 0, sum(x.size for x in values)))


def _unravel(pytree: Any, shape: Sequence[int], arr: Any, last: bool) -> Any:
    leaves, treedef = _tree.flatten(pytree)
    return treedef.unflatten(_jacobian.split_axis(arr, list(map(_typeof, leaves)), tuple(shape), last))


def _jacfwd_unravel(input_pytree: Any, output_pytree_leaf: Any, arr: Any) -> Any:
    """Split the last axis of a Jacobian, which runs over the elements of a tree, into a block for each array of it."""
    return _unravel(input_pytree, arr.shape[:-1], arr, True)


def _jacrev_unravel(output_pytree: Any, input_pytree_leaf: Any, arr: Any) -> Any:
    """Split the first axis of a Jacobian, which runs over the elements of a tree, into a block for each array of it."""
    return _unravel(output_pytree, arr.shape[1:], arr, False)


def _check_real(x: Any, holomorphic: bool, transformation: str, what: str) -> None:
    array = _pullback.numpy.asarray(x)
    _jacobian._check_real([array], holomorphic, transformation, what, _check_real)


def _check_input_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """Raise a NotDifferentiableError if an input of ``jacfwd`` has the wrong dtype."""
    _check_real(x, holomorphic, "jacfwd", "input")


def _check_output_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    """Raise a NotDifferentiableError if an output of ``jacfwd`` has the wrong dtype."""
    _check_real(x, holomorphic, "jacfwd", "output")


def _check_input_dtype_jacrev(holomorphic: bool, allow_int: bool, x: Any) -> None:
    """Raise a NotDifferentiableError if an input of ``jacrev`` has the wrong dtype."""
    _check_real(x, holomorphic, "jacrev", "input")
    if not allow_int:
        _check_real(x, holomorphic, "jacrev", "output")


def _check_output_dtype_jacrev(holomorphic: bool, x: Any) -> None:
    """Raise a NotDifferentiableError if an output of ``jacrev`` has the wrong dtype."""
    _check_real(x, holomorphic, "jacrev", "output")


_face(
    globals(),
    {
        "pullback": (
            "ShapeDtypeStruct block_until_ready clear_caches copy_to_host_async device_get device_put disable_jit "
            "effects_barrier eval_shape fwd_and_bwd grad hessian jacfwd jacobian jacrev jit jvp linear_transpose "
            "linearize live_arrays make_jaxpr named_call named_scope pmap value_and_grad vjp vmap"
        ),
        "pullback.ad": "DidntWant DontWant GradRef GradValue",
        "pullback.transforms.autodiff.kept_arguments": "NotNeeded NotSaveable",
    },
)
