"""``jax._src.lib.mlir``: the Python bindings of MLIR that come with ``jaxlib``. ``ir`` is the structure of programs."""

from pullback.backends.compiler.client import mlir as _mlir
from pullback.core.faces import face as _face

_face(globals(), made={"ir": lambda: _mlir("ir")}, modules="dialects")
