"""The Python bindings of MLIR's dialects, which are modules of ``jaxlib``; importing this module imports them."""

import sys
from typing import Any

from pullback.backends.compiler import client as _client
from pullback.core.faces import face

__path__: list[str] = []  # so that statements such as ``import pullback.extend.mlir.dialects.func`` find them

_NAMES = (
    "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "stablehlo", "vector",
)  # fmt: skip


def _imported() -> dict[str, Any]:
    found = {name: _client.mlir(f"dialects.{name}") for name in _NAMES}
    sys.modules.update({f"{__name__}.{name}": module for name, module in found.items()})
    return found


globals().update(_imported())
__all__ = [*_NAMES]
face(globals())
