"""``jax._src.lib.jax_mlir_ext``: what ``jaxlib`` adds to the bindings of MLIR, for JAX's own tutorial Autodidax."""

from __future__ import annotations

from typing import Any

from pullback.backends.compiler.client import mlir as _mlir


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_mlir("_mlir_libs._jax_mlir_ext"), name)


def register_dialects(registry: Any, register_pipelines: bool = True) -> None:
    """Add the dialects that come with ``jaxlib`` to a registry.

    Args:
      registry: an ``ir.DialectRegistry``.
      register_pipelines: without effect: the pipelines are registered once for the process.

    >>> from pullback.compat.extras._src.lib import jax_mlir_ext
    >>> from pullback.extend.mlir import ir
    >>> jax_mlir_ext.register_dialects(ir.DialectRegistry(), register_pipelines=False)
    """
    _mlir("_mlir_libs._jax_mlir_ext").register_dialects(registry)
