"""MLIR's Python bindings and conversions of programs, which come with ``jaxlib``: ``jax.extend.mlir``.

``ir``, ``passmanager`` and ``dialects`` are modules of ``jaxlib``.
"""

from typing import TYPE_CHECKING, Any

from pullback.backends.compiler import client as _client
from pullback.core.faces import face

if TYPE_CHECKING:
    from pullback.extend.mlir import dialects as dialects

    ir: Any
    passmanager: Any

__all__ = [
    "deserialize_portable_artifact", "dialects", "hlo_to_stablehlo", "ir", "passmanager", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]  # fmt: skip


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """Convert a program in HLO to StableHLO.

    Args:
      computation: a serialised ``HloModuleProto``.

    Returns:
      The bytecode of an MLIR module, which ``ir.Module.parse`` reads.

    >>> from pullback import jit
    >>> from pullback.extend.mlir import hlo_to_stablehlo
    >>> compiled = jit(lambda x: x + 1).lower(1.0).compile().runtime_executable()
    >>> hlo_to_stablehlo(compiled.hlo_modules()[0].as_serialized_hlo_module_proto())[:2]
    b'ML'
    """
    return _client.library().jax.mlir.hlo_to_stablehlo(computation)  # type: ignore[no-any-return]


def serialize_portable_artifact(mlir_module: Any, target: str, use_mixed_serialization: bool = False) -> bytes:
    """Serialise a StableHLO module for releases of the compiler that know a version of StableHLO.

    Args:
      mlir_module: an ``ir.Module``, or its text or bytecode.
      target: the version, such as ``"1.9.0"``.
      use_mixed_serialization: whether dialects besides StableHLO may occur.

    Returns:
      The bytes, which :func:`deserialize_portable_artifact` reads.

    >>> from pullback import jit
    >>> from pullback.extend.mlir import serialize_portable_artifact
    >>> text = jit(lambda x: x + 1).lower(1.0).as_text()
    >>> type(serialize_portable_artifact(text, "1.9.0"))
    <class 'bytes'>
    """
    return _client.library().jax.mlir.serialize_portable_artifact(  # type: ignore[no-any-return]
        mlir_module, target, **({"use_mixed_serialization": True} if use_mixed_serialization else {})
    )


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any:
    """Read bytes of :func:`serialize_portable_artifact`.

    Args:
      mlir_module: the bytes.
      context: an ``ir.Context`` for the module.

    Returns:
      An ``ir.Module`` in the context; without a context its bytecode or text.

    >>> from pullback import jit
    >>> from pullback.extend.mlir import deserialize_portable_artifact, serialize_portable_artifact
    >>> data = serialize_portable_artifact(jit(lambda x: x + 1).lower(1.0).as_text(), "1.9.0")
    >>> deserialize_portable_artifact(data) is not None
    True
    """
    read = _client.library().jax.mlir.deserialize_portable_artifact
    return read(mlir_module, _client.mlir_context() if context is None else context)


def refine_polymorphic_shapes(
    mlir_module: bytes,
    enable_shape_assertions: bool = True,
    validate_static_shapes: bool = True,
    enable_shardy: bool = False,
) -> bytes:
    """Replace the dynamic shapes of a module by the static ones that follow from its inputs.

    Args:
      mlir_module: the bytecode or text of a module whose function ``main`` has static shapes.
      enable_shape_assertions: whether to check the assertions in the module.
      validate_static_shapes: whether to raise where a dynamic shape is left.
      enable_shardy: whether the module has shardings of Shardy.

    Returns:
      The bytecode of the refined module.

    >>> from pullback import jit
    >>> from pullback.extend.mlir import refine_polymorphic_shapes
    >>> type(refine_polymorphic_shapes(jit(lambda x: x + 1).lower(1.0).as_text().encode()))
    <class 'bytes'>
    """
    return _client.library().jax.mlir.refine_polymorphic_shapes(  # type: ignore[no-any-return]
        mlir_module, enable_shape_assertions, validate_static_shapes, enable_shardy
    )


face(
    globals(),
    modules="dialects",
    made={"ir": lambda: _client.mlir("ir"), "passmanager": lambda: _client.mlir("passmanager")},
)
