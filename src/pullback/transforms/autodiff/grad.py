"""Reverse mode: gradients, vector-Jacobian products, and linearisation as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, overload

from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import ArrayImpl, CommittedArray, scalar_array, typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError
from pullback.core.refs import AbstractRef
from pullback.core.runtime import runtime
from pullback.core.types import ZERO
from pullback.core.user_types import is_user_value, types_of_values
from pullback.primitives.arrays.shapes import full
from pullback.transforms.autodiff.kept_arguments import (
    check_saveable,
    references_to,
)
from pullback.transforms.autodiff.saving import Budget, Saving, saving_of, storing_less, with_saving
from pullback.transforms.autodiff.some_arguments import of_some_arguments
from pullback.transforms.autodiff.vjp_functions import LinearFunction, VJPFunction, transposed
from pullback.transforms.functions.api_boundary import Transformed, api_boundary
from pullback.transforms.functions.arguments import (
    Argnums,
    abstractify,
    argument_name,
    check_differentiable,
    dense,
    name_of,
    to_arrays,
)
from pullback.transforms.functions.flat_function import (
    DerivativeOptions,
    FlatFunction,
    differentiable,
    unflatten_arguments,
)
from pullback.transforms.traces.affine import checked_trace, refused_if_affine
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.refs import Ref, WithRefs, check_aliases, content_of, contents, write_all

R = TypeVar("R")
S = TypeVar("S")


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> Callable[..., PyTree]:
    """Make a function that computes the gradient of a function with a scalar result.

    Args:
      fun: takes arrays, numbers or trees of them, and returns a scalar (shape ``()``), or with ``has_aux`` a pair
        of a scalar and auxiliary data.
      argnums: which positional arguments to differentiate with respect to; for several, a tuple is returned. Keyword
        arguments are not differentiated.
      has_aux: whether ``fun`` returns a pair, whose second element is returned with the gradient.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs and result are then complex, and the gradient
        is its complex derivative.
      allow_int: whether to accept integer and boolean inputs, whose gradients have dtype ``float0``.
      reduce_axes: names of axes of ``vmap``. The cotangent of a value that does not vary along such an axis is summed
        over it; along other axes each index has its own cotangent.
      preaccumulate: ``"auto"`` traces the function, and stores the local Jacobian of a region of the program instead of
        its intermediate values wherever that takes less memory; see ``pullback.derivatives.preaccumulate``.
      memory: a budget for the step, as for ``checkpoint``: bytes, ``"2GB"``, or a share of the usual peak such as 0.5.

    Returns:
      A function of the same arguments that returns the gradient, with the shapes and dtypes of the arguments that
      ``argnums`` selects. For a real function of complex arguments it is the transpose of the real derivative, without
      conjugation: its conjugate is the direction of steepest ascent.

    Raises:
      NotDifferentiableError: the result is not a real scalar, or an input is neither real nor complex (a TypeError).
      ArgumentError: ``argnums`` does not fit the arguments (a TypeError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 3.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> print(f"{grad(jnp.tanh)(2.0):.6f}")
    0.070651
    """
    require_function("grad", "fun", fun)
    options = DerivativeOptions.checked("grad", argnums, has_aux, holomorphic, allow_int)
    names = _axis_names(reduce_axes, "grad")
    saving = saving_of("grad", preaccumulate, memory)
    call = partial(_value_and_grad, fun, options, False, names, saving)
    return Transformed(fun, call, with_saving(grad, saving), argnums, has_aux, holomorphic, allow_int, names)


def value_and_grad(
    fun: Callable[..., R],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> Callable[..., tuple[R, PyTree]]:
    """Make a function that computes the value and the gradient of a function in one pass.

    Args:
      fun: takes arrays, numbers or trees of them, and returns a scalar (shape ``()``), or with ``has_aux`` a pair of a
        scalar and auxiliary data.
      argnums: which positional arguments to differentiate with respect to; for several, a tuple is returned.
      has_aux: whether ``fun`` returns a pair, whose second element is returned with the value.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs and result are then complex.
      allow_int: whether to accept integer and boolean inputs, whose gradients have dtype ``float0``.
      reduce_axes: names of axes of ``vmap``. The cotangent of a value that does not vary along such an axis is summed
        over it; along other axes each index has its own cotangent.
      preaccumulate: ``"auto"`` traces the function, and stores the local Jacobian of a region of the program instead of
        its intermediate values wherever that takes less memory; see ``pullback.derivatives.preaccumulate``.
      memory: a budget for the step, as for ``checkpoint``: bytes, ``"2GB"``, or a share of the usual peak such as 0.5.

    Returns:
      A function that returns ``(value, gradient)``, or ``((value, aux), gradient)`` with ``has_aux``.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError and a ValueError).
      NotDifferentiableError: the result is not a real scalar, or an argument is not a float (a TypeError).

    >>> from pullback import value_and_grad
    >>> value, gradient = value_and_grad(lambda x: x**2)(3.0)
    >>> print(value, gradient)
    9.0 6.0
    """
    require_function("value_and_grad", "fun", fun)
    options = DerivativeOptions.checked("value_and_grad", argnums, has_aux, holomorphic, allow_int)
    names = _axis_names(reduce_axes, "value_and_grad")
    saving = saving_of("value_and_grad", preaccumulate, memory)
    call = partial(_value_and_grad, fun, options, True, names, saving)
    maker = with_saving(value_and_grad, saving)
    return Transformed(fun, call, maker, argnums, has_aux, holomorphic, allow_int, names)


def _axis_names(reduce_axes: Any, transformation: str) -> tuple[Any, ...]:
    """Return ``reduce_axes`` as a tuple of axis names; raise unless it is a tuple, a list or a set.

    ``transformation`` is the name of the transformation, for the error message.
    """
    if isinstance(reduce_axes, str) or not isinstance(reduce_axes, (tuple, list, set, frozenset)):
        raise ArgumentError(f"{transformation}: reduce_axes must be a tuple of axis names, got {reduce_axes!r}")
    return tuple(reduce_axes)


class _ScalarFunction(FlatFunction):
    """A flat function, for ``grad``, that raises unless the original function returns a single leaf."""

    __slots__ = ()

    def result_leaves(self, out: Any) -> list[Any]:
        if not tree.all_leaves([out]):
            raise NotDifferentiableError(
                f"a gradient needs a function with a scalar output, but {name_of(self.fun)} returned {out!r}. "
                f"Return one scalar; has_aux=True allows further values."
            )
        return FlatFunction.result_leaves(self, out)


def _value_and_grad(
    fun: Any, options: DerivativeOptions, with_value: bool, names: Sequence[Any], saving: Saving | None,
    args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """Compute the result of ``grad(fun)``, or with ``with_value`` of ``value_and_grad(fun)``, for some arguments.

    Args:
      fun: the function.
      options: the options of the transformation, such as ``argnums``.
      with_value: whether to return the value of ``fun`` as well.
      names: the option ``reduce_axes``.
      saving: the options that reduce memory.
      args, kwargs: the arguments.

    Returns:
      The gradient, ``(gradient, aux)``, ``(value, gradient)`` or ``((value, aux), gradient)``.
    """
    flat, primals = differentiable(_ScalarFunction, fun, options, args, kwargs)
    run = flat if saving is None else storing_less(fun, flat, primals, options.transformation, saving)
    outs, program = linearize_flat(fun, run, primals)
    value = outs[0]
    seed = _seed(value, options.transformation, fun, options.holomorphic)
    if flat.has_aux:
        program.outputs = program.outputs[:1]
    cts = transposed(program, (seed,), outs, names, consume=True)
    for i, (ct, x) in enumerate(zip(cts, primals)):
        if ct is ZERO or (types_of_values and is_user_value(x)) or ct.weak_type != x.weak_type:
            cts[i] = dense(ct, x)
    in_tree = flat.in_tree
    result = cts[0] if in_tree is None else unflatten_arguments(options.argnums, in_tree, cts)
    if flat.has_aux:
        aux = flat.aux(outs)
        return ((value, aux), result) if with_value else (result, aux)
    return (value, result) if with_value else result


def _seed(value: Any, transformation: str, fun: Any, holomorphic: bool) -> Any:
    """Return the cotangent 1 of ``value``, the result of ``fun``, with its dtype.

    Raise unless ``value`` is a scalar: a complex one if ``holomorphic``, else a real one. ``transformation`` is the
    name of the transformation, for the error message.
    """
    if type(value) is ArrayImpl and not holomorphic:  # fast path: a real scalar on the host
        elements = value._host_value
        if elements.shape == () and elements.dtype.kind == "f":
            return scalar_array(elements.dtype.type(1), value.weak_type)
    dtype = value.dtype
    if value.shape != ():
        raise NotDifferentiableError(
            f"gradients need scalar outputs, but {name_of(fun)} returned an output of shape {value.shape}. Sum it, "
            "or use jacrev, jacfwd or vjp."
        )
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise NotDifferentiableError(
                f"{transformation} with holomorphic=True needs a complex output, but {name_of(fun)} returned "
                f"{typeof(value)}. Leave holomorphic out for the gradient of a real function."
            )
    elif dtypes.is_complex(dtype):
        raise NotDifferentiableError(
            f"{transformation} needs a real output, but {name_of(fun)} returned {typeof(value)}. If the function is "
            f"holomorphic, pass holomorphic=True; otherwise use vjp, or take the real part."
        )
    elif not dtypes.is_float(dtype):
        raise NotDifferentiableError(
            f"{transformation} needs a real output, but {name_of(fun)} returned {typeof(value)}. Convert it to a float."
        )
    one = scalar_array(dtype.type(1), value.weak_type) if dtype.kind in "fc" else full((), 1, dtype)
    # What the transposed operations make of it is on the device from the beginning.
    return runtime.following(one, [value]) if type(value) is CommittedArray else one


def _linearize(
    fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, transformation: str,
    kind: type[LinearFunction], reduce_axes: Sequence[Any] = (), saving: Saving | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Evaluate a function at a point, and linearize it there.

    Args:
      fun: the function.
      primals: the point.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.
      transformation: the name of the public function that was called, for error messages.
      kind: the class of the derivative: ``LinearFunction`` or ``VJPFunction``.
      reduce_axes, saving: the options of :func:`vjp`.

    Returns:
      The output, the derivative as an instance of ``kind``, and with ``has_aux`` the auxiliary data.
    """
    require_function(transformation, "fun", fun)
    if has_aux is not False:
        has_aux = flag(transformation, "has_aux", has_aux)
    leaves, in_tree = tree.flatten(primals)
    refs = [x for x in leaves if isinstance(x, Ref)] if kind is VJPFunction else []
    before = contents(refs) if refs else []
    values = [content_of(x) if isinstance(x, Ref) else x for x in leaves] if refs else leaves
    arrays = to_arrays(values, transformation, fun, primals)
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    run: Any = flat
    if refs:
        check_aliases(refs, f"{transformation} of {name_of(fun)}")
        run = WithRefs(flat, [i for i, x in enumerate(leaves) if isinstance(x, Ref)])
    if saving is not None:
        run = storing_less(fun, run, arrays, transformation, saving)
    outs, program = linearize_flat(fun, run, arrays)
    if refs:  # the last results are the last contents of the references; their cotangents are zero
        written = [(r, x) for r, was, x in zip(refs, before, outs[-len(refs) :], strict=True) if x is not was]
        write_all([r for r, _ in written], [x for _, x in written])
        outs = outs[: -len(refs)]
    program.outputs = program.outputs[: flat.count]
    in_avals: list[Any] = [typeof(x) for x in arrays]
    in_avals = [AbstractRef(a) if isinstance(x, Ref) else a for x, a in zip(leaves, in_avals, strict=True)]
    out_avals = [typeof(x) for x in outs[: flat.count]]
    out_tree = flat.out_structure if kind is LinearFunction else flat.out_tree
    names = reduce_axes if type(reduce_axes) is tuple else _axis_names(reduce_axes, transformation)
    derivative = kind(program, in_tree, out_tree, in_avals, out_avals, name_of(fun), names)
    if isinstance(derivative, VJPFunction):
        derivative.arguments = references_to(arrays)
    return flat.result(outs), derivative, *((flat.aux(outs),) if has_aux else ())


@overload
def vjp(
    fun: Callable[..., R],
    *primals: PyTree,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> tuple[R, Callable[[PyTree], tuple[PyTree, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, S]],
    *primals: PyTree,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> tuple[R, Callable[[PyTree], tuple[PyTree, ...]], S]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: PyTree,
    has_aux: bool,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> Any: ...
@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: PyTree,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
    preaccumulate: str | None = None,
    memory: Budget = None,
) -> Any:
    """Return the value of a function, and a function from cotangents of its output to cotangents of its inputs.

    Args:
      fun: takes and returns trees of arrays.
      primals: the point: a tree for each argument. For references among the leaves, the content is differentiated.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.
      reduce_axes: names of axes of ``vmap``. The cotangent of a value that does not vary along such an axis is summed
        over it; along other axes each index has its own cotangent.
      saveable_args: which arguments the derivative may keep, where it needs them unchanged: a boolean for all, or a
        tuple with an entry for each argument, a boolean or a tuple for the children of a container. The others have to
        be assigned to ``vjp_fun.args_res`` before ``vjp_fun`` is called.
      in_nzs: which arguments are differentiated: booleans, as a prefix of the tree of arguments; None for all. The
        others count as constants, and have zero cotangents.
      preaccumulate: ``"auto"`` stores local Jacobians of regions of ``fun``, as for :func:`grad`.
      memory: a budget for ``fun`` and its pullback, as for :func:`grad`.

    Returns:
      ``(out, vjp_fun)``, or ``(out, vjp_fun, aux)``. ``vjp_fun(ct)`` takes a tree like ``out`` and returns a tuple of
      one cotangent for each argument. It may be called many times, and is a pytree: it passes through the other
      transformations as an argument or a result. ``vjp_fun.with_refs`` sets the destination of each cotangent, such as
      a reference, to which it is added; the cotangent of an argument that is a reference must be added to one.

    Raises:
      TangentMismatchError: from ``vjp_fun``, for a cotangent of another tree, shape or dtype (a TypeError and a
        ValueError).
      ArgumentError: ``saveable_args`` does not fit the arguments; or ``vjp_fun`` was called without one that it needs
        (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import vjp
    >>> out, pull = vjp(jnp.sin, 0.0)
    >>> print(pull(jnp.ones(()))[0])
    1.0
    """
    if saveable_args is not True:
        check_saveable(saveable_args, tree.structure(primals))
    fun = of_some_arguments(fun, primals, in_nzs, "vjp")
    saving = saving_of("vjp", preaccumulate, memory)
    results = _linearize(fun, primals, has_aux, "vjp", VJPFunction, reduce_axes, saving)
    if saveable_args is not True:
        results[1].leave_out(saveable_args)
    return results


@overload
def linearize(
    fun: Callable[..., R],
    *primals: PyTree,
    has_aux: Literal[False] = False,
    in_nzs: PyTree = None,
    memory: Budget = None,
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, S]],
    *primals: PyTree,
    has_aux: Literal[True],
    in_nzs: PyTree = None,
    memory: Budget = None,
) -> tuple[R, Callable[..., R], S]: ...
@overload
def linearize(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool, in_nzs: PyTree = None, memory: Budget = None
) -> Any: ...
@api_boundary
def linearize(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False, in_nzs: PyTree = None,
    memory: Budget = None,
) -> Any:  # fmt: skip
    """Return the value of a function at a point, and its derivative there as a function of tangents.

    Args:
      fun: takes and returns trees of arrays.
      primals: the point: a tree for each argument.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.
      in_nzs: which arguments are differentiated, as for :func:`vjp`; the tangents of the others have no effect.
      memory: a budget for ``fun`` and its transposed derivative, as for :func:`grad`.

    Returns:
      ``(out, f_jvp)``, or ``(out, f_jvp, aux)``. ``f_jvp(*tangents)`` takes trees like the arguments and returns the
      tangent of the output without evaluating ``fun`` again. It is a pytree, and may be called many times.

    Raises:
      TangentMismatchError: from ``f_jvp``, for a tangent of another tree, shape or dtype (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import linearize
    >>> out, f_jvp = linearize(lambda x: 3.0 * jnp.sin(x), 0.0)
    >>> print(out, f_jvp(2.0))
    0.0 6.0
    """
    fun = of_some_arguments(fun, primals, in_nzs, "linearize")
    return _linearize(fun, primals, has_aux, "linearize", LinearFunction, (), saving_of("linearize", None, memory))


@api_boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: PyTree, reduce_axes: Sequence[Any] = ()
) -> Callable[[PyTree], tuple[PyTree, ...]]:
    """Return the transpose of a linear function.

    Args:
      fun: linear in all of its arguments jointly.
      primals: arrays, or objects with ``shape`` and ``dtype``, of the types of the arguments.
      reduce_axes: names of axes of ``vmap``, over which cotangents of values that do not vary along them are summed.

    Returns:
      A function that takes a cotangent like the output of ``fun`` and returns a tuple of cotangents, one for each
      argument.

    Raises:
      NotLinearError: ``fun`` is not linear; the message names the operation and its line (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import linear_transpose
    >>> print(linear_transpose(lambda x: 3.0 * x, jnp.ones(2))(jnp.ones(2))[0])
    [3. 3.]
    """
    require_function("linear_transpose", "fun", fun)
    leaves, in_tree = tree.flatten(primals)
    avals = [abstractify(x) for x in leaves]
    for i, aval in enumerate(avals):
        check_differentiable(aval, "linear_transpose", fun, False, False, partial(argument_name, i, fun, primals))
    flat = FlatFunction(fun, in_tree)
    outs, program = refused_if_affine(checked_trace(fun), flat, avals)
    out_avals = [typeof(x) if e is ZERO else e.aval for e, x in zip(program.outputs, outs, strict=True)]
    names = _axis_names(reduce_axes, "linear_transpose")
    return VJPFunction(program, in_tree, flat.out_tree, avals, out_avals, name_of(fun), names)
