"""The steps of ``jit``, ahead of time: ``jit(f).trace(...)``, ``.lower()``, ``.compile()``."""

from pullback.transforms.jit.jit import JitFunction as Wrapped
from pullback.transforms.jit.stages import Compiled as Compiled
from pullback.transforms.jit.stages import Lowered as Lowered
from pullback.transforms.jit.stages import Traced as Traced

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]
