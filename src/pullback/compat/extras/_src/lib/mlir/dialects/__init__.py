"""``jax._src.lib.mlir.dialects``: the operations of each dialect; ``hlo`` is StableHLO. Lowering rules build them."""

from functools import partial as _partial

from pullback.backends.compiler.client import mlir as _mlir
from pullback.core.faces import face as _face

_face(
    globals(),
    made={
        "hlo": lambda: _mlir("dialects.stablehlo"),
        **{name: _partial(_mlir, f"dialects.{name}") for name in ("arith", "chlo", "func", "sdy")},
    },
)
