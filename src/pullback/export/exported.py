"""``export``: a compiled function as an object that can be serialised, and called in another process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

from pullback.backends.compiler import portable
from pullback.backends.compiler.backend import backend
from pullback.backends.devices.devices import default_backend, joined
from pullback.backends.devices.meshes import AbstractMesh, Mesh
from pullback.backends.devices.shardings import NamedSharding, sharding_of_tiles
from pullback.core import dtypes, source, tree
from pullback.core.annotations import PyTree
from pullback.core.array import as_array
from pullback.core.dims import any_symbolic
from pullback.core.errors import ArgumentError, ExportError, OperandError, UnsupportedExportError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.locks import cached_property
from pullback.core.types import ShapedArray
from pullback.export import call, jax_format
from pullback.export.checks import DisabledSafetyCheck, check_calls, disabled, targets
from pullback.export.container import MARK, pack, unpack
from pullback.export.descriptions import CALLING_CONVENTIONS, check_chain, check_function
from pullback.primitives import sizes as sizes  # registers the conversion of symbolic sizes to arrays
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit.jit import JitFunction, jit
from pullback.transforms.jit.placements import out_placements
from pullback.transforms.jit.traced import Traced
from pullback.transforms.traces.dce import dce_closed_jaxpr

if TYPE_CHECKING:
    from pullback.core.tree import PyTreeDef

minimum_supported_calling_convention_version = CALLING_CONVENTIONS[0]
"""The oldest calling convention of exported programs that this release reads."""
maximum_supported_calling_convention_version = CALLING_CONVENTIONS[1]
"""The newest calling convention that this release reads, which it also writes."""

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
LIBRARY = ("pullback.numpy", "pullback.lax", "pullback.nn", "pullback.scipy", "pullback.random")
"""The modules whose functions can be exported without ``jit``: in JAX they are compiled functions."""


class Exported:
    """An exported function: its program, the types of its arguments and results, and its derivatives.

    :func:`export` and :func:`deserialize` make it. The function ``main`` of the program takes the leaves of the
    arguments that it uses; if there are several platforms, the index of the current platform comes first.

    Args:
      make_vjp: exports the function's derivative when it is first asked for; None if there is none.
      trusted_targets: the names of custom-call targets that the user allows.

    The other arguments are the attributes.

    Attributes:
      fun_name: the name of the function.
      in_tree: the structure of the arguments, ``(args, kwargs)``, without static arguments.
      in_avals: the types of their leaves.
      out_tree: the structure of the results.
      out_avals: the types of their leaves.
      platforms: the platforms that it was exported for.
      entries: the name of the program's function for each platform.
      module_kept_var_idx: the indices of the leaves of the arguments that the program takes.
      mlir_module_serialized: the program, StableHLO's portable artifact.
      calling_convention_version: the version of the calling convention of ``main``.
      disabled_safety_checks: the checks that were disabled.
      nr_devices: the number of devices that it was exported for. A function for one device can run on several.
      in_shardings: for each leaf of the arguments a ``NamedSharding`` over an ``AbstractMesh``, or None if unspecified.
      out_shardings: the same for the leaves of the results.
      ordered_effects, unordered_effects: empty, since functions with effects cannot be exported.

    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, export, jit
    >>> exported = export.export(jit(jnp.sin))(ShapeDtypeStruct((3,), jnp.float32))
    >>> print(exported.fun_name, exported.in_avals, exported.platforms)
    sin (ShapedArray(float32[3]),) ('cpu',)
    >>> print(export.deserialize(exported.serialize()).call(jnp.zeros(3)))
    [0. 0. 0.]
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
        trusted_targets: frozenset[str] = frozenset(),
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
        self._trusted_targets = trusted_targets  # those of the user's own checks, not those that bytes say

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """The compiler's shardings of the leaves of the arguments; None where unspecified."""
        return tuple(map(_as_hlo, self.in_shardings, self.in_avals))

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """The compiler's shardings of the leaves of the results; None where unspecified."""
        return tuple(map(_as_hlo, self.out_shardings, self.out_avals))

    @property
    def uses_global_constants(self) -> bool:
        """Whether the program was exported for several platforms, or with symbolic sizes."""
        return len(self.platforms) > 1 or any(any_symbolic(a.shape) for a in self.in_avals)

    def mlir_module(self) -> str:
        """Return the program as StableHLO text.

        Returns:
          The text.

        >>> import pullback.numpy as jnp
        >>> from pullback import export, jit
        >>> "stablehlo.sine" in export.export(jit(jnp.sin))(1.0).mlir_module()
        True
        """
        return str(backend().from_portable(self.mlir_module_serialized))

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """The shardings of the leaves of the arguments over a mesh.

        Args:
          mesh: a mesh of as many devices as the function was exported for, with or without devices. Its axes may
            have other names and sizes.

        Returns:
          A sharding over the mesh for each leaf; None where unspecified.

        Raises:
          ExportError: the mesh has another number of devices, or its axes cannot express a sharding (a ValueError).

        >>> import numpy as np
        >>> from pullback import NamedSharding, P, export, jit, make_mesh
        >>> mesh = make_mesh((1,), ("i",))
        >>> rows = NamedSharding(mesh, P("i"))
        >>> export.export(jit(lambda x: 2 * x, in_shardings=rows))(np.ones(2)).in_shardings_jax(mesh)[0].spec
        P('i',)
        """
        return tuple(self._over(mesh, s, a) for s, a in zip(self.in_shardings, self.in_avals, strict=True))

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """Return the shardings of the leaves of the results over a mesh; see :meth:`in_shardings_jax`.

        Args:
          mesh: a mesh of as many devices as the function was exported for.

        Returns:
          For each leaf of the results a :class:`NamedSharding`, or None if unspecified.
        """
        return tuple(self._over(mesh, s, a) for s, a in zip(self.out_shardings, self.out_avals, strict=True))

    def _over(
        self, mesh: Mesh | AbstractMesh, sharding: NamedSharding | None, aval: ShapedArray
    ) -> NamedSharding | None:
        if sharding is None:
            return None
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ExportError(f"the shardings of the exported {self.fun_name} need a mesh, got {mesh!r}")
        if mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh, sharding.spec)
        found = None
        if mesh.size == sharding.mesh.size:
            found = sharding_of_tiles(mesh, sharding.factors(aval.ndim), sharding.shard_indices(aval.ndim))
        if found is None:
            raise ExportError(
                f"the exported {self.fun_name} takes or returns arrays of {sharding}, but no specification divides "
                f"them in this way over {mesh!r}, which does not match the mesh used for export: use a mesh of "
                f"{sharding.mesh.size} devices whose axes have the same sizes"
            )
        return found

    def serialize(self, vjp_order: int = 0, format: str = "pullback") -> bytearray:
        """Serialise the function to bytes for :func:`deserialize`.

        Args:
          vjp_order: how many reverse-mode derivatives to include, each of the one before.
          format: ``"pullback"``, or ``"jax"`` for bytes that ``jax.export.deserialize`` reads too.

        Returns:
          The bytes.

        Raises:
          ArgumentError: the format is unknown, or ``vjp_order`` is no number of derivatives (a ValueError).
          ExportError: it has no derivatives of that order, or its pytrees have classes of nodes that are not registered
            for serialisation (a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import export, jit
        >>> len(export.export(jit(jnp.sin))(1.0).serialize(vjp_order=1)) > 500
        True
        """
        if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
            raise ArgumentError(f"serialize: vjp_order must be a non-negative int, got {vjp_order!r}")
        chain = [self]
        for _ in range(vjp_order):
            chain.append(chain[-1].vjp())
        if format not in _FORMATS:
            raise ArgumentError(f"serialize: format must be one of {', '.join(map(repr, _FORMATS))}, got {format!r}")
        return _FORMATS[format](chain)

    def has_vjp(self) -> bool:
        """Return whether the function has a reverse-mode derivative: False only if bytes without one were read.

        Returns:
          True or False.
        """
        return self._make_vjp is not None

    def vjp(self) -> Exported:
        """Its derivative in reverse mode.

        Returns:
          A function of the leaves of the arguments, followed by a cotangent for each leaf of the results. It returns a
          tuple of cotangents of the arguments' leaves. Cotangents of integers have dtype ``float0``.

        Raises:
          ExportError: it was read from bytes without a derivative (a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import export, jit
        >>> print(export.export(jit(jnp.square))(3.0).vjp().call(3.0, 1.0))
        (Array(6., dtype=float32, weak_type=True),)
        """
        return self._vjp

    @cached_property
    def _vjp(self) -> Exported:
        if self._make_vjp is None:
            raise ExportError(
                f"the exported {self.fun_name} has no derivative: No VJP is available. Serialize it with "
                f"serialize(vjp_order=1), or 2 for second derivatives."
            )
        return self._make_vjp()

    def call(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Call the function, eagerly or within transformations.

        Args:
          args, kwargs: trees of arrays of the types that the function was exported for.

        Returns:
          The results of the exported function.

        Raises:
          ExportError: the types of arguments, the platform or the number of devices are others than the function was
            exported for; it is differentiated without a derivative; or its program has what no exported program has, or
            is too large (a ValueError and TypeError).
          CompilationError: the program is damaged, or of a newer release (a RuntimeError).

        >>> import pullback.numpy as jnp
        >>> from pullback import export, grad, jit
        >>> f = export.export(jit(jnp.square))(3.0).call
        >>> print(f(4.0), grad(f)(4.0))
        16.0 8.0
        """
        try:
            leaves, treedef = tree.flatten_call(args, kwargs)
            if treedef != self.in_tree:
                raise ExportError(
                    f"the exported {self.fun_name} takes arguments with the tree {self.in_tree}, but they have the "
                    f"tree {treedef}"
                )
            arrays = []
            for i, x in enumerate(leaves):
                try:
                    arrays.append(as_array(x))
                except OperandError as error:
                    raise type(error)(f"the exported {self.fun_name}, {self._path(i)}: {error}") from None
            return tree.unflatten(self.out_tree, call.differentiable(self)(*arrays))
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def _path(self, i: int) -> str:
        """Return the path of leaf ``i`` of the arguments, such as ``args[0]['x']``, for error messages."""
        indices = tree.unflatten(self.in_tree, range(len(self.in_avals)))
        path = next(path for path, leaf in tree.leaves_with_path(indices) if leaf == i)
        return f"{'kwargs' if path[0].idx else 'args'}{tree.keystr(path[1:])}"

    def __repr__(self) -> str:
        takes, returns = (", ".join(map(format, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({takes}) -> ({returns}) for {', '.join(self.platforms)})"

    __str__ = __repr__


_FORMATS = {"pullback": pack, "jax": jax_format.pack}


def default_export_platform() -> str:
    """The platform that functions are exported for by default: the platform of the default device.

    Returns:
      The name, such as ``"cpu"``.

    >>> from pullback import export
    >>> export.default_export_platform()
    'cpu'
    """
    return default_backend()


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a compiled function, whose program can be serialised, and called in other processes.

    Args:
      fun_jit: a function that ``jit`` returned. Static arguments are bound. If it has ``in_shardings``, or arguments,
        which may be ``ShapeDtypeStruct``, are sharded over a mesh, it is exported for that number of devices; the mesh
        may be an ``AbstractMesh``.
      platforms: the platforms on which it will run, of ``"cpu"``, ``"cuda"``, ``"rocm"`` and ``"tpu"``, available here
        or not. By default the platform of the default device.
      disabled_checks: the safety checks to disable, a sequence of :class:`DisabledSafetyCheck`.

    Returns:
      A function of the arguments, or of objects with their shapes and dtypes, that returns an :class:`Exported`.

    Raises:
      ExportError: ``fun_jit`` is no function that ``jit`` returned, or a platform is unknown (a ValueError).
      IncompatibleDevicesError: arguments, results and operations are on different devices (a RuntimeError and
        ValueError).
      UnsupportedExportError: it calls Python functions, or uses references (a ValueError and NotImplementedError).
      InconclusiveDimensionOperation: it asks about a symbolic size, and the answer depends on the size (a TypeError and
        ValueError).

    >>> import numpy as np
    >>> from pullback import ShapeDtypeStruct, export, jit
    >>> exported = export.export(jit(lambda x: {"twice": 2 * x}))(ShapeDtypeStruct((3,), "float32"))
    >>> exported.in_avals, exported.out_avals
    ((ShapedArray(float32[3]),), (ShapedArray(float32[3]),))
    >>> print(exported.call(np.ones(3, "float32"))["twice"])
    [2. 2. 2.]
    """
    trace = _tracer(fun_jit)
    selected = _platforms(platforms)
    checks = disabled(disabled_checks)

    def exported(*args: Any, **kwargs: Any) -> Exported:
        try:
            return exported_of(trace(*args, **kwargs), selected or (default_export_platform(),), checks)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    return exported


def _tracer(fun: Any) -> Callable[..., Traced]:
    """Return the method ``trace`` of a function that ``jit`` returned, or of a method that was decorated with ``jit``.

    Functions of this library are compiled first; raise ExportError for other functions.
    """
    if isinstance(fun, MethodType) and isinstance(fun.__func__, JitFunction):
        return functools.partial(fun.__func__.trace, fun.__self__)
    if not isinstance(fun, JitFunction) and str(getattr(fun, "__module__", "")).startswith(LIBRARY):
        fun = jit(fun)
    if not isinstance(fun, JitFunction):
        raise ExportError(f"export takes a function that jit returned, got {name_of(fun)}: write export(jit(f))")
    return fun.trace


def _platforms(platforms: Any) -> tuple[str, ...]:
    if platforms is None:
        return ()
    found = tuple(platforms) if not isinstance(platforms, str) else (platforms,)
    unknown = [p for p in found if p not in PLATFORMS]
    if unknown or len(set(found)) < len(found):
        raise ExportError(
            f"export: platforms must be different names among {', '.join(map(repr, PLATFORMS))}, got {platforms!r}"
        )
    return found


def exported_of(traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...] = ()) -> Exported:
    """Export a traced function; see :func:`export`."""
    if traced.refs is not None:
        raise UnsupportedExportError(
            f"export of {traced.fun_name}: it uses references, which exist only in this process: pass their "
            f"contents as arguments, and return the new contents"
        )
    options = traced.call.options
    in_shardings, out_shardings = _shardings(traced)
    closed = traced.jaxpr
    symbolic = any(any_symbolic(a.shape) for a in closed.in_avals)  # all arguments are used for their sizes
    keep = options.keep_unused or symbolic
    smaller, used = dce_closed_jaxpr(closed, (True,) * len(closed.out_avals), instantiate=keep)
    used_leaves = tuple(i for i, u in enumerate(used) if u)
    inputs, results = traced.argument_placements(), out_placements(traced.call, traced)
    program = portable.portable(
        smaller, f"jit_{traced.fun_name}", platforms, [in_shardings[i] for i in used_leaves], out_shardings,
        ([inputs[i] for i in used_leaves], results),
    )  # fmt: skip
    check_calls(portable.foreign_calls(program.text), checks, traced.fun_name)
    return Exported(
        fun_name=traced.fun_name,
        in_tree=traced.call.in_tree,
        in_avals=tuple(closed.in_avals),
        out_tree=traced.out_tree,
        out_avals=tuple(closed.out_avals),
        platforms=platforms,
        entries=tuple(program.entries),
        module_kept_var_idx=used_leaves,
        mlir_module_serialized=backend().to_portable(program.text),
        calling_convention_version=maximum_supported_calling_convention_version,
        disabled_safety_checks=checks,
        nr_devices=max(program.devices, *[s.mesh.size for s in (*in_shardings, *out_shardings) if s], 1),
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        make_vjp=functools.partial(
            _export_vjp, closed, traced.fun_name, platforms, checks, in_shardings, out_shardings
        ),
        trusted_targets=targets(checks),
    )


_Shardings = tuple[NamedSharding | None, ...]


def _shardings(traced: Traced) -> tuple[_Shardings, _Shardings]:
    """Return the shardings of a traced function's arguments and of its results; their meshes have no devices."""
    inputs = traced.argument_placements()
    results = out_placements(traced.call, traced) or [None] * len(traced.jaxpr.out_avals)
    found: Any = None
    for placement in (*inputs, *results):
        if isinstance(placement, NamedSharding) and isinstance(placement.mesh, Mesh):
            what = f"the arguments and results of {traced.fun_name}"
            found = placement.assignment if found is None else joined(found, placement.assignment, what)
    return tuple(map(_without_devices, inputs)), tuple(map(_without_devices, results))


def _without_devices(placement: Any) -> NamedSharding | None:
    return NamedSharding(placement.mesh.abstract_mesh, placement.spec) if isinstance(placement, NamedSharding) else None


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
    """Export the reverse-mode derivative of a program: a function of the inputs and of the results' cotangents.

    Args:
      closed: the program.
      name: the name of the program's function.
      platforms: the platforms to export for.
      checks: the safety checks to disable.
      in_shardings, out_shardings: the shardings of the program's inputs and results.
    """
    count = len(closed.in_avals)

    def fun_vjp(*args: Any) -> tuple[Any, ...]:
        def flat(*primals: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *primals)

        pull = vjp(flat, *args[:count])[1]
        return tuple(pull(list(args[count:])))

    fun_vjp.__name__ = f"{name}_vjp"
    cotangents = [a.update(dtype=dtypes.tangent_dtype(a.dtype)) for a in closed.out_avals]
    structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in (*closed.in_avals, *cotangents)]
    shardings: tuple[_Shardings | None, _Shardings | None] = None, None
    if any((*in_shardings, *out_shardings)):  # cotangents are sharded like their primals
        shardings = (*in_shardings, *out_shardings), in_shardings
    sharded = jit(fun_vjp, in_shardings=shardings[0], out_shardings=shardings[1])
    return exported_of(sharded.trace(*structs), platforms, checks)


def deserialize(blob: bytes | bytearray) -> Exported:
    """Read the exported function that ``Exported.serialize`` wrote, in Pullback or in JAX (0.10 to 0.12).

    Args:
      blob: the bytes. Reading them runs no code of theirs, and unpickles no object; but call only what you would run:
        the program is compiled when it is called. It is checked first, yet one that somebody forged may still end the
        process within the compiler, or not end. JAX's format has no checksum, so that damage is found at the call.

    Returns:
      The function, with the derivatives that the bytes include.

    Raises:
      ExportError: whatever is wrong with the bytes: they are no exported function, are damaged or cut off, come from a
        newer release, or name classes of nodes that are not registered (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import export, jit
    >>> data = export.export(jit(jnp.square))(3.0).serialize()
    >>> print(export.deserialize(data).call(4.0))
    16.0
    """
    found: Exported | None = None
    try:
        of_jax = isinstance(blob, (bytes, bytearray)) and not blob.startswith(MARK) and jax_format.is_jax(bytes(blob))
        chain = jax_format.unpack(bytes(blob)) if of_jax else unpack(blob)
        for attributes in chain:
            check_function(attributes)
        check_chain(chain)
        for attributes in reversed(chain):
            found = Exported(**attributes, make_vjp=None if found is None else functools.partial(_same, found))
    except ExportError as error:
        source.hide_internal_frames(error)
        raise
    except Exception as error:  # of whatever kind: from the readers of JSON, sizes and users' classes of nodes
        raise ExportError(f"deserialize: the bytes are damaged: {type(error).__name__}: {error}") from error
    if found is None:
        raise ExportError("deserialize: the bytes do not contain a function")
    return found


def _same(exported: Exported) -> Exported:
    return exported
