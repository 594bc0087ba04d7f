"""``export``: a compiled function as an object that can be written as bytes, and called wherever they are read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

from pullback.backends.compiler import portable
from pullback.backends.compiler.backend import backend
from pullback.backends.devices.devices import default_backend, joined
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, sharding_of_tiles
from pullback.core import dtypes, source, tree
from pullback.core.annotations import PyTree
from pullback.core.array import as_array
from pullback.core.dims import any_symbolic
from pullback.core.errors import ArgumentError, ExportError, OperandError, UnsupportedExportError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.types import ShapedArray
from pullback.export import call, jax_format
from pullback.export.checks import DisabledSafetyCheck, check_calls, disabled
from pullback.export.container import MARK, pack, unpack
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit.jit import JitFunction, jit
from pullback.transforms.jit.stages import Traced, out_placements
from pullback.transforms.traces.dce import dce_closed_jaxpr

if TYPE_CHECKING:
    from pullback.core.tree import PyTreeDef

minimum_supported_calling_convention_version = 9
"""The oldest way of calling ``main`` of an exported program that this release reads."""
maximum_supported_calling_convention_version = 10
"""The newest, which is the one that it writes."""

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
LIBRARY = ("pullback.numpy", "pullback.lax", "pullback.nn", "pullback.scipy", "pullback.random")
"""Where functions are that can be exported as they are: in JAX these are compiled ones."""


class Exported:
    """A function that was exported: its program, the types of its arguments and results, and its derivatives.

    :func:`export` and :func:`deserialize` make it. The function ``main`` of the program takes the leaves of the
    arguments that it needs; before them, if there are several platforms, the position of the one on which it runs.

    Attributes:
      fun_name: the name of the function.
      in_tree: the structure of the arguments, ``(args, kwargs)``, without static ones.
      in_avals: the types of their leaves.
      out_tree: the structure of the results.
      out_avals: the types of their leaves.
      platforms: the platforms for which it was written.
      entries: for each platform the function of the program that runs there.
      module_kept_var_idx: which leaves of the arguments the program takes.
      mlir_module_serialized: the program, StableHLO's portable artifact.
      calling_convention_version: how ``main`` is called.
      disabled_safety_checks: the checks that were left out.
      nr_devices: for how many devices it was exported. One for a single device may be called on several.
      in_shardings: how the leaves of the arguments are spread over them: a ``NamedSharding`` over an ``AbstractMesh``,
        or None where nobody asked.
      out_shardings: the same for the leaves of the results.
      ordered_effects, unordered_effects: empty: functions with effects cannot be exported.
    """

    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()

    def __init__(
        self,
        *,
        fun_name: str,
        in_tree: PyTreeDef,
        in_avals: tuple[ShapedArray, ...],
        out_tree: PyTreeDef,
        out_avals: tuple[ShapedArray, ...],
        platforms: tuple[str, ...],
        entries: tuple[str, ...],
        module_kept_var_idx: tuple[int, ...],
        mlir_module_serialized: bytes,
        calling_convention_version: int,
        disabled_safety_checks: tuple[DisabledSafetyCheck, ...],
        nr_devices: int,
        in_shardings: tuple[NamedSharding | None, ...],
        out_shardings: tuple[NamedSharding | None, ...],
        make_vjp: Callable[[], Exported] | None,
    ) -> None:
        self.fun_name = fun_name
        self.in_tree, self.in_avals = in_tree, in_avals
        self.out_tree, self.out_avals = out_tree, out_avals
        self.platforms, self.entries = platforms, entries
        self.module_kept_var_idx = module_kept_var_idx
        self.mlir_module_serialized = mlir_module_serialized
        self.calling_convention_version = calling_convention_version
        self.disabled_safety_checks = disabled_safety_checks
        self.nr_devices = nr_devices
        self.in_shardings, self.out_shardings = in_shardings, out_shardings
        self._make_vjp = make_vjp

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """How the leaves of the arguments are spread, as the compiler writes it; None where nobody asked."""
        return tuple(map(_as_hlo, self.in_shardings, self.in_avals))

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """How the leaves of the results are spread, as the compiler writes it; None where nobody asked."""
        return tuple(map(_as_hlo, self.out_shardings, self.out_avals))

    @property
    def uses_global_constants(self) -> bool:
        """Whether the program depends on the platform, since there are several, or on symbolic sizes."""
        return len(self.platforms) > 1 or any(any_symbolic(a.shape) for a in self.in_avals)

    def mlir_module(self) -> str:
        """The program as StableHLO text."""
        return str(backend().from_portable(self.mlir_module_serialized))

    def in_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """How the leaves of the arguments are to be spread over a mesh.

        Args:
          mesh: one of as many devices as the function was exported for. Its axes may have other names and sizes.

        Returns:
          A sharding over the mesh for each leaf; None where nobody asked.

        Raises:
          ExportError: the mesh has another number of devices, or none of its axes divide an array as the function
            takes it (a ValueError).

        >>> import numpy as np
        >>> import pullback
        >>> mesh = pullback.make_mesh((1,), ("i",))
        >>> rows = pullback.NamedSharding(mesh, pullback.P("i"))
        >>> export(pullback.jit(lambda x: 2 * x, in_shardings=rows))(np.ones(2)).in_shardings_jax(mesh)[0].spec
        P('i',)
        """
        return tuple(self._over(mesh, s, a) for s, a in zip(self.in_shardings, self.in_avals, strict=True))

    def out_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """How the leaves of the results are spread over a mesh; see :meth:`in_shardings_jax`."""
        return tuple(self._over(mesh, s, a) for s, a in zip(self.out_shardings, self.out_avals, strict=True))

    def _over(self, mesh: Any, sharding: NamedSharding | None, aval: ShapedArray) -> NamedSharding | None:
        if sharding is None:
            return None
        if not isinstance(mesh, Mesh):
            raise ExportError(f"the shardings of the exported {self.fun_name} need a Mesh, got {mesh!r}")
        if mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh, sharding.spec)
        found = None
        if mesh.size == sharding.mesh.size:
            found = sharding_of_tiles(mesh, sharding.factors(aval.ndim), sharding.shard_indices(aval.ndim))
        if found is None:
            raise ExportError(
                f"the exported {self.fun_name} takes or returns arrays of {sharding}, but no specification divides "
                f"them so over {mesh!r}, which does not match the mesh used for export: take one "
                f"of {sharding.mesh.size} devices, whose axes have the same sizes"
            )
        return found

    def serialize(self, vjp_order: int = 0, format: str = "pullback") -> bytearray:
        """The function as bytes, which :func:`deserialize` reads.

        Args:
          vjp_order: how many derivatives in reverse mode to write along, each of the one before.
          format: ``"pullback"``, or ``"jax"`` for bytes that ``jax.export.deserialize`` reads, and this module's too.

        Raises:
          ArgumentError: there is no such format, or ``vjp_order`` is no number of derivatives (a ValueError).
          ExportError: it has no derivatives of that order, or takes or returns nodes of trees that are not registered
            for that (a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import jit
        >>> len(export(jit(jnp.sin))(1.0).serialize(vjp_order=1)) > 500
        True
        """
        if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
            raise ArgumentError(f"serialize: vjp_order must be an int that is not negative, got {vjp_order!r}")
        chain = [self]
        for _ in range(vjp_order):
            chain.append(chain[-1].vjp())
        if format not in _FORMATS:
            raise ArgumentError(f"serialize: format must be one of {', '.join(map(repr, _FORMATS))}, got {format!r}")
        return _FORMATS[format](chain)

    def has_vjp(self) -> bool:
        """Whether it can be differentiated in reverse mode: always, unless it was read from bytes without."""
        return self._make_vjp is not None

    def vjp(self) -> Exported:
        """Its derivative in reverse mode.

        Returns:
          A function of the leaves of the arguments, and after them a cotangent for each leaf of the results. It returns
          a tuple of cotangents of the arguments' leaves. Those of integers have dtype ``float0``.

        Raises:
          ExportError: it was read from bytes without that (a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import jit
        >>> print(export(jit(jnp.square))(3.0).vjp().call(3.0, 1.0))
        (Array(6., dtype=float32, weak_type=True),)
        """
        return self._vjp

    @functools.cached_property
    def _vjp(self) -> Exported:
        if self._make_vjp is None:
            raise ExportError(
                f"the exported {self.fun_name} has no derivative: No VJP is available. Write it along: "
                "serialize(vjp_order=1), or 2 for second derivatives."
            )
        return self._make_vjp()

    def call(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """The results for some arguments, eagerly or within other transformations.

        Args:
          args, kwargs: trees of arrays, of the types for which the function was exported.

        Returns:
          What the function returned when it was exported, of these arguments.

        Raises:
          ExportError: arguments of other types, another platform or another number of devices than those for which it
            was exported; or it is differentiated, but has no derivative (a ValueError and TypeError).

        >>> import pullback.numpy as jnp
        >>> from pullback import grad, jit
        >>> f = export(jit(jnp.square))(3.0).call
        >>> print(f(4.0), grad(f)(4.0))
        16.0 8.0
        """
        try:
            leaves, treedef = tree.flatten_call(args, kwargs)
            if treedef != self.in_tree:
                raise ExportError(
                    f"the exported {self.fun_name} takes arguments of the structure {self.in_tree}, but they have the "
                    f"structure {treedef}"
                )
            arrays = []
            for i, x in enumerate(leaves):
                try:
                    arrays.append(as_array(x))
                except OperandError as error:
                    raise type(error)(f"the exported {self.fun_name}, {self._place(i)}: {error}") from None
            return tree.unflatten(self.out_tree, call.differentiable(self)(*arrays))
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def _place(self, i: int) -> str:
        """Where leaf ``i`` of the arguments is."""
        given = tree.unflatten(self.in_tree, range(len(self.in_avals)))
        path = next(path for path, leaf in tree.leaves_with_path(given) if leaf == i)
        return f"{'kwargs' if path[0].idx else 'args'}{tree.keystr(path[1:])}"

    def __repr__(self) -> str:
        takes, returns = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({takes}) -> ({returns}) for {', '.join(self.platforms)})"

    __str__ = __repr__


_FORMATS = {"pullback": pack, "jax": jax_format.pack}


def default_export_platform() -> str:
    """The platform for which functions are exported unless others are named: that of the default device.

    >>> default_export_platform()
    'cpu'
    """
    return default_backend()


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a compiled function: its program can be written as bytes, and called in other processes.

    Args:
      fun_jit: what ``jit`` returned. Static arguments are bound. If it has ``in_shardings``, or arguments, which may
        be ``ShapeDtypeStruct``, are spread over a mesh, it is exported for that number of devices; an ``AbstractMesh``
        serves as well.
      platforms: those on which it is to run, of ``"cpu"``, ``"cuda"``, ``"rocm"`` and ``"tpu"``; they need not be here.
        By default the one of the default device.
      disabled_checks: checks to leave out.

    Returns:
      A function of arguments, or of what has their shapes and dtypes, that returns an :class:`Exported`.

    Raises:
      ExportError: ``fun_jit`` does not come from ``jit``, or a platform is unknown (a ValueError).
      IncompatibleDevicesError: arguments, results and what is within are spread over different devices (a RuntimeError
        and ValueError).
      UnsupportedExportError: it calls Python functions, or uses references (a ValueError and NotImplementedError).

    >>> import numpy as np
    >>> from pullback import ShapeDtypeStruct, jit
    >>> exported = export(jit(lambda x: {"twice": 2 * x}))(ShapeDtypeStruct((3,), "float32"))
    >>> exported.in_avals, exported.out_avals
    ((ShapedArray(f32[3]),), (ShapedArray(f32[3]),))
    >>> print(exported.call(np.ones(3, "float32"))["twice"])
    [2. 2. 2.]
    """
    trace = _tracer(fun_jit)
    chosen = _platforms(platforms)
    checks = disabled(disabled_checks)

    def exported(*args: Any, **kwargs: Any) -> Exported:
        try:
            return _exported(trace(*args, **kwargs), chosen or (default_export_platform(),), checks)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    return exported


def _tracer(fun: Any) -> Callable[..., Traced]:
    """What traces a compiled function, or a method that is one."""
    if isinstance(fun, MethodType) and isinstance(fun.__func__, JitFunction):
        return functools.partial(fun.__func__.trace, fun.__self__)
    if not isinstance(fun, JitFunction) and str(getattr(fun, "__module__", "")).startswith(LIBRARY):
        fun = jit(fun)
    if not isinstance(fun, JitFunction):
        raise ExportError(f"export takes a function that jit returned, got {name_of(fun)}: write export(jit(f))")
    return fun.trace


def _platforms(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    found = tuple(given) if not isinstance(given, str) else (given,)
    unknown = [p for p in found if p not in PLATFORMS]
    if unknown or len(set(found)) < len(found):
        raise ExportError(
            f"export: platforms must be different names among {', '.join(map(repr, PLATFORMS))}, got {given!r}"
        )
    return found


def _exported(traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]) -> Exported:
    if traced.refs is not None:
        raise UnsupportedExportError(
            f"export of {traced.fun_name}: it uses references, which only this process has: take their contents as "
            "arguments, and return the new ones"
        )
    options = traced.call.options
    in_shardings, out_shardings = _shardings(traced)
    closed = traced.jaxpr
    symbolic = any(any_symbolic(a.shape) for a in closed.in_avals)  # whose sizes are asked of the arguments
    keep = options.keep_unused or symbolic
    smaller, used = dce_closed_jaxpr(closed, (True,) * len(closed.out_avals), instantiate=keep)
    kept = tuple(i for i, u in enumerate(used) if u)
    program = portable.portable(
        smaller, f"jit_{traced.fun_name}", platforms, [in_shardings[i] for i in kept], out_shardings
    )
    check_calls(portable.foreign_calls(program.text), checks, traced.fun_name)
    return Exported(
        fun_name=traced.fun_name,
        in_tree=traced.call.in_tree,
        in_avals=tuple(closed.in_avals),
        out_tree=traced.out_tree,
        out_avals=tuple(closed.out_avals),
        platforms=platforms,
        entries=tuple(program.entries),
        module_kept_var_idx=kept,
        mlir_module_serialized=backend().to_portable(program.text),
        calling_convention_version=maximum_supported_calling_convention_version,
        disabled_safety_checks=checks,
        nr_devices=max(program.devices, *[s.mesh.size for s in (*in_shardings, *out_shardings) if s], 1),
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        make_vjp=functools.partial(
            _export_vjp, closed, traced.fun_name, platforms, checks, in_shardings, out_shardings
        ),
    )


_Shardings = tuple[NamedSharding | None, ...]


def _shardings(traced: Traced) -> tuple[_Shardings, _Shardings]:
    """How the arguments and the results of a function are spread, over meshes without devices."""
    inputs = traced.argument_placements()
    results = out_placements(traced.call, traced) or [None] * len(traced.jaxpr.out_avals)
    found: Any = None
    for place in (*inputs, *results):
        if isinstance(place, NamedSharding) and isinstance(place.mesh, Mesh):
            what = f"the arguments and results of {traced.fun_name}"
            found = place.assignment if found is None else joined(found, place.assignment, what)
    return tuple(map(_without_devices, inputs)), tuple(map(_without_devices, results))


def _without_devices(place: Any) -> NamedSharding | None:
    return NamedSharding(place.mesh.abstract_mesh, place.spec) if isinstance(place, NamedSharding) else None


def _as_hlo(sharding: NamedSharding | None, aval: ShapedArray) -> Any:
    return None if sharding is None else backend().hlo_sharding(sharding, aval.ndim)


def _export_vjp(
    closed: ClosedJaxpr,
    name: str,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
    in_shardings: _Shardings,
    out_shardings: _Shardings,
) -> Exported:
    """The derivative of a program in reverse mode, exported."""
    count = len(closed.in_avals)

    def fun_vjp(*args: Any) -> tuple[Any, ...]:
        def flat(*primals: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *primals)

        pull = vjp(flat, *args[:count])[1]
        return tuple(pull(list(args[count:])))

    fun_vjp.__name__ = f"{name}_vjp"
    cotangents = [a.update(dtype=dtypes.tangent_dtype(a.dtype)) for a in closed.out_avals]
    structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in (*closed.in_avals, *cotangents)]
    given: tuple[_Shardings | None, _Shardings | None] = None, None
    if any((*in_shardings, *out_shardings)):  # cotangents are spread as what they belong to
        given = (*in_shardings, *out_shardings), in_shardings
    spread = jit(fun_vjp, in_shardings=given[0], out_shardings=given[1])
    return _exported(spread.trace(*structs), platforms, checks)


def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function that ``Exported.serialize`` wrote, here or in JAX (0.10 to 0.12).

    Args:
      blob: the bytes. Nothing of them is run or unpickled before the function is called. Bytes of JAX's have no
        checksum: what is damaged in their program is found when it is compiled.

    Returns:
      The function; its derivatives are those that were written too.

    Raises:
      ExportError: the bytes are no exported function, are damaged or cut off, are of a newer release, or name
        classes of nodes that are not registered (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import export, jit
    >>> data = export.export(jit(jnp.square))(3.0).serialize()
    >>> print(deserialize(data).call(4.0))
    16.0
    """
    found: Exported | None = None
    try:
        of_jax = isinstance(blob, (bytes, bytearray)) and not blob.startswith(MARK) and jax_format.is_jax(bytes(blob))
        for attributes in reversed(jax_format.unpack(bytes(blob)) if of_jax else unpack(blob)):
            found = Exported(**attributes, make_vjp=None if found is None else functools.partial(_same, found))
    except Exception as error:
        source.hide_internal_frames(error)
        raise
    if found is None:
        raise ExportError("deserialize: the bytes hold no function")
    return found


def _same(exported: Exported) -> Exported:
    return exported
