"""``ffi_call``: calls of foreign compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback.backends.compiler.one_operation import evaluate
from pullback.backends.hlo import foreign
from pullback.control.scan import map as map_examples
from pullback.core import tree
from pullback.core.arguments import flag, is_listed
from pullback.core.array import as_array
from pullback.core.errors import ForeignCallError
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, ShapedArray
from pullback.primitives.arrays.shapes import expand_dims, moveaxis
from pullback.primitives.axis_maps import front
from pullback.primitives.rules import as_inferred, sharding_rule
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify
from pullback.transforms.programs.callbacks import VMAP_METHODS

ffi_call_p = Primitive("ffi_call", multiple_results=True, keeps_weak_type=False)
ffi_effect_p = Primitive("ffi_call_with_effect", multiple_results=True, keeps_weak_type=False, effect=True)
for _p in (ffi_call_p, ffi_effect_p):
    sharding_rule(_p)(as_inferred)  # the compiler shards the results


def _lowering(effect: bool, hlo: Any, *operands: Any, target: str, types: Any, attributes: Any, **params: Any) -> Any:
    """The lowering rule: emit a custom call of the function ``target``, with side effects if ``effect``."""
    foreign.prepare(target)
    version = params["api_version"]
    if version == 4:
        config = f"api_version = 1 : i32, {foreign.CONFIG} = {{{foreign.written(attributes)}}}"
    else:
        config = f"api_version = {version} : i32, backend_config = {foreign.Attribute('', params['legacy'] or '').text}"
    fields = [
        f"call_target_name = {foreign.Attribute('', target).text}",
        f"has_side_effect = {str(effect).lower()}",
        config,
        f"operand_layouts = [{foreign.layouts(params['input_layouts'])}]",
        f"result_layouts = [{foreign.layouts(params['output_layouts'])}]",
        foreign.aliasing(params["aliases"], len(types)),
    ]
    results = [(a.shape, a.dtype) for a in types]
    return hlo.multi_result("stablehlo.custom_call", operands, results, ", ".join(field for field in fields if field))


def _no_derivative(primals: Any, tangents: Any, *, target: str, **params: Any) -> Any:
    """The jvp rule: raises, as a foreign function has no derivative."""
    raise ForeignCallError(
        f"ffi_call of {target!r} was differentiated, but a foreign function has no derivative. Wrap the call in a "
        f"function with a derivative rule: custom_jvp or custom_vjp."
    )


def _batch(primitive: Primitive, axis: MappedAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """The batching rule: call the function for each example or for the batch, as the parameter ``vmap_method`` says."""
    method = params["vmap_method"]
    if method is None:
        raise ForeignCallError(
            f"ffi_call of {params['target']!r} was mapped by vmap, but vmap_method is missing. It must be one of "
            f"{', '.join(map(repr, VMAP_METHODS))}: the first calls the function for each example."
        )
    if method.startswith("sequential"):
        return _one_by_one(primitive, axis, args, dims, params)
    values = []
    mapped = []
    for x, d in zip(args, dims, strict=True):
        if d is not None or method == "broadcast_all":
            x, d = front(x, d, axis), 0
        elif method == "expand_dims":
            x, d = expand_dims(x, (0,)), 0
        values.append(x)
        mapped.append(d is not None)
    types = tuple(a.batched(axis) for a in params["types"])
    input_layouts = [_with_axis(o) if m else o for o, m in zip(params["input_layouts"], mapped, strict=True)]
    changes = {
        "types": types,
        "input_layouts": tuple(input_layouts),
        "output_layouts": tuple(map(_with_axis, params["output_layouts"])),
        # An operand without the mapped axis is smaller than the result, and cannot share its memory.
        "aliases": tuple((i, o) for i, o in params["aliases"] if foreign.types_agree(abstractify(values[i]), types[o])),
    }
    return primitive.bind(*values, **{**params, **changes}), [0] * len(types)


def _one_by_one(primitive: Primitive, axis: MappedAxis, args: Any, dims: Any, params: dict[str, Any]) -> Any:
    """The batching rule for calls that take one example at a time: a loop over the examples."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def one(examples: Sequence[Any]) -> Any:
        rest = iter(examples)
        operands = [x if d is None else next(rest) for x, d in zip(args, dims, strict=True)]
        return primitive.bind(*operands, **params)

    outs = map_examples(one, mapped)
    return outs, [0] * len(outs)


def _with_axis(order: tuple[int, ...]) -> tuple[int, ...]:
    """Add a new first axis to a layout, as the slowest; ``order`` lists the axes from the slowest to the fastest.

    (1, 0) -> (0, 2, 1)
    """
    return (0, *[i + 1 for i in order])


for _primitive in (ffi_call_p, ffi_effect_p):
    _primitive.abstract_eval(lambda *avals, types, **params: list(types))
    _primitive.lowering(lambda hlo, *operands, _p=_primitive, **params: _lowering(_p.effect, hlo, *operands, **params))
    _primitive.impl(lambda args, params, _p=_primitive: evaluate(_p, [as_array(x) for x in args], params))
    _primitive.jvp(_no_derivative)
    _primitive.batch(lambda axis, args, dims, _p=_primitive, **params: _batch(_p, axis, args, dims, **params))


# The public functions ------------------------------------------------------------------------------------------------


def _aliases(aliases: Mapping[int, int] | None, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> Any:
    """Check that each operand and its result in ``aliases`` have the same type.

    Returns the pairs (index of operand, index of result), sorted. ``ins`` and ``outs`` are the types.
    """
    found = tuple(sorted((aliases or {}).items()))
    for i, o in found:
        if not (0 <= i < len(ins) and 0 <= o < len(outs)):
            raise ForeignCallError(
                f"ffi_call: input_output_aliases={dict(found)} names operand {i} and result {o}, but there are "
                f"{len(ins)} operands and {len(outs)} results"
            )
        if not foreign.types_agree(ins[i], outs[o]):
            raise ForeignCallError(
                f"ffi_call: input_output_aliases={dict(found)}: operand {i} is {ins[i]} and result {o} is {outs[o]}, "
                "but only arrays of the same type can share memory"
            )
    return found


def _declared(results: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """The types of the results that ``ffi_call`` was told."""
    for i, x in enumerate(results):
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ForeignCallError(
                f"ffi_call: result_shape_dtypes has {x!r} as result {i}, but it takes types with a shape and a dtype, "
                "such as ShapeDtypeStruct, or one sequence of these"
            )
    return tuple(abstractify(x).update(weak_type=False) for x in results)


def _orders(layouts: Any, avals: Sequence[ShapedArray], what: str) -> tuple[tuple[int, ...], ...]:
    """Convert each array's layout to an order of axes, from major to minor; a layout None is row-major.

    ``what`` is ``operand`` or ``result``, for error messages.
    """
    entries = [None] * len(avals) if layouts is None else list(layouts)
    if len(entries) != len(avals):
        raise ForeignCallError(f"ffi_call: there must be a layout for each {what}, {len(avals)}, got {layouts!r}")
    return tuple(
        foreign.major_to_minor(entry, len(a.shape), f"{what} {i}")
        for i, (entry, a) in enumerate(zip(entries, avals, strict=True))
    )


# long: because each option is described
def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Make a function that calls a registered foreign function, in eager mode and in compiled programs.

    Args:
      target_name: the name of the foreign function, see :func:`register_ffi_target`. The routines of LAPACK are
        registered on CPUs, as ``lapack_spotrf_ffi``.
      result_shape_dtypes: the type of its result, a ``ShapeDtypeStruct`` or an object with a shape and a dtype, or a
        sequence of these.
      has_side_effect: whether it has effects, so that it must run even if its results are not needed.
      vmap_method: how ``vmap`` calls it, as for ``pure_callback``. None: ``vmap`` raises.
      input_layouts: for each operand the order of its axes in memory, the slowest first, or None.
      output_layouts: the layout of the result, or of each result.
      input_output_aliases: pairs of an operand and the result that takes its memory.
      custom_call_api_version: 4 for the typed interface; 1 to 3 for the older interfaces.
      legacy_backend_config: the configuration string of the older interfaces.

    Returns:
      ``call(*operands, **attributes)``, which returns an array, or a tuple of arrays for a sequence of types.
      Attributes are numbers (NumPy scalars for other sizes than 64 bits), strings, NumPy arrays, and tuples or
      dictionaries of these. An array without axes is an array to the function, and no number.

    Raises:
      ForeignCallError: an argument is invalid; from a call, an attribute is of another kind, types do not match, or the
        call was differentiated, or mapped without ``vmap_method`` (a ValueError, TypeError and RuntimeError).
      CompilationError: no function of this name is registered (a JaxRuntimeError).

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, ffi
    >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> types = ShapeDtypeStruct((2, 2), "float32"), ShapeDtypeStruct((), "int32")
    >>> out, info = ffi.ffi_call("lapack_spotrf_ffi", types)(a, uplo=np.uint8(ord("U")))
    >>> print(out[1], info)
    [1. 2.] 0
    """
    if not isinstance(target_name, str):
        raise ForeignCallError(f"ffi_call: target_name must be a str, got {target_name!r}")
    if vmap_method is not None and not is_listed(vmap_method, VMAP_METHODS):
        raise ForeignCallError(
            f"ffi_call: vmap_method must be None or one of {', '.join(map(repr, VMAP_METHODS))}, got {vmap_method!r}"
        )
    has_side_effect = flag("ffi_call", "has_side_effect", has_side_effect)
    if custom_call_api_version not in (1, 2, 3, 4):
        raise ForeignCallError(f"ffi_call: custom_call_api_version is 1 to 4, got {custom_call_api_version!r}")
    if legacy_backend_config is not None and custom_call_api_version == 4:
        raise ForeignCallError("ffi_call: legacy_backend_config is for a custom_call_api_version of 1 to 3")
    several = isinstance(result_shape_dtypes, (tuple, list))
    declared = _declared(result_shape_dtypes if several else [result_shape_dtypes])

    @api_boundary
    def call(*operands: Any, **attributes: Any) -> Any:
        if attributes and custom_call_api_version != 4:
            names = sorted(attributes)
            raise ForeignCallError(f"ffi_call of {target_name!r}: only version 4 has attributes, got {names}")
        arrays = [as_array(x) for x in tree.leaves(operands)]
        avals = [x.aval for x in arrays]
        primitive = ffi_effect_p if has_side_effect else ffi_call_p
        outs = primitive.bind(
            *arrays,
            target=target_name,
            types=declared,
            attributes=foreign.attributes(attributes),
            vmap_method=vmap_method,
            input_layouts=_orders(input_layouts, avals, "operand"),
            output_layouts=_orders(
                output_layouts if several or output_layouts is None else [output_layouts], declared, "result"
            ),
            aliases=_aliases(input_output_aliases, avals, declared),
            api_version=custom_call_api_version,
            legacy=legacy_backend_config,
        )
        return tuple(outs) if several else outs[0]

    call.__name__ = f"ffi_call_{target_name}"
    return call


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a compiled function under a name, for :func:`ffi_call`.

    Args:
      name: the name.
      fn: a capsule with the address of the function (see :func:`pycapsule`), or a dictionary of capsules for the stages
        ``instantiate``, ``prepare``, ``initialize`` and ``execute``.
      platform: ``"cpu"``, ``"cuda"``, ...
      api_version: 1 for the typed interface, 0 for the older interface.
      kwargs: further arguments of the runtime, such as ``traits``.

    Raises:
      ForeignCallError: the runtime rejects the function (a RuntimeError, TypeError and ValueError).

    The example registers a function of Python's own, which is never called.

    >>> import ctypes
    >>> from pullback import ffi
    >>> ffi.register_ffi_target("never_called", ffi.pycapsule(ctypes.pythonapi.Py_IncRef), api_version=0)
    """
    foreign.register(name, fn, platform, api_version, kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register a type of the state that functions keep between calls.

    Args:
      name: the name of the type.
      type_registration: a dictionary with capsules: ``type_id``, and optionally ``type_info``.
      platform: ``"cpu"``, ``"cuda"``, ...

    Raises:
      ForeignCallError: the runtime rejects the type (a RuntimeError, TypeError and ValueError).

    The runtime writes the number of the type there when it starts: the memory has to stay.

    >>> import ctypes
    >>> from pullback import ffi, jit
    >>> number = ctypes.c_int64(0)
    >>> ffi.register_ffi_type("my_state", {"type_id": ffi.pycapsule(ctypes.pointer(number))})
    >>> print(jit(lambda x: x + 1)(1.0))
    2.0
    >>> number.value > 0
    True
    """
    foreign.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register the identifier of a type: the older form of :func:`register_ffi_type`.

    Args:
      name: the name of the type.
      obj: a capsule with the address of its ``TypeId``.
      platform: ``"cpu"``, ``"cuda"``, ...

    Raises:
      ForeignCallError: the runtime rejects the type (a RuntimeError, TypeError and ValueError).

    The runtime writes the number of the type there when it starts: the memory has to stay.

    >>> import ctypes
    >>> from pullback import ffi, jit
    >>> number = ctypes.c_int64(0)
    >>> ffi.register_ffi_type_id("my_older_state", ffi.pycapsule(ctypes.pointer(number)))
    >>> print(jit(lambda x: x + 1)(1.0))
    2.0
    >>> number.value > 0
    True
    """
    foreign.register_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that a function may be applied to slices of its operands along their leading axes separately.

    Programs over several devices then run it on the shards.

    Args:
      name: the name of the function.

    Raises:
      ForeignCallError: ``name`` is no text (a RuntimeError, TypeError and ValueError).

    >>> from pullback import ffi
    >>> ffi.register_ffi_target_as_batch_partitionable("my_kernel")
    """
    foreign.register_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """Make a capsule with the address of a function, for :func:`register_ffi_target`.

    Args:
      funcptr: a function of a library that ``ctypes`` has loaded, such as ``ctypes.CDLL("./my.so").MyHandler``; or the
        address of one, an integer.

    Returns:
      A capsule of Python's with the address.

    Raises:
      ForeignCallError: ``funcptr`` is no such function (a TypeError).

    >>> import ctypes
    >>> from pullback import ffi
    >>> type(ffi.pycapsule(ctypes.pythonapi.Py_IncRef)).__name__
    'PyCapsule'
    """
    return foreign.capsule(funcptr)


def include_dir() -> str:
    """The directory of the C++ headers for foreign functions: ``xla/ffi/api/ffi.h`` and others.

    Returns:
      The path of the directory.

    Raises:
      BackendError: jaxlib is not installed, or its release is too old or too new (a RuntimeError).

    >>> import os
    >>> from pullback import ffi
    >>> os.path.exists(os.path.join(ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return foreign.include_directory()
