"""Tools for lowering rules that build operations with MLIR's bindings: ``jax.extend.lowering``."""

from typing import TYPE_CHECKING, Any

from pullback.backends.compiler import client as _client
from pullback.backends.hlo.bindings import LoweringRuleContext as LoweringRuleContext
from pullback.core.faces import face

if TYPE_CHECKING:
    upstream_dialects: Any

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]


def JaxIrContext() -> Any:
    """Return the MLIR context in which programs are built: an ``ir.Context`` of ``jaxlib`` with the dialects loaded.

    Returns:
      The context, the same for all calls.

    >>> from pullback.extend.lowering import JaxIrContext
    >>> JaxIrContext().is_registered_operation("stablehlo.add")
    True
    """
    return _client.mlir_context()


face(globals(), made={"upstream_dialects": lambda: _client.mlir_registry()})
