"""The steps of ``jit``, ahead of time: ``jit(f).trace(...)``, ``.lower()``, ``.compile()``."""

from typing import Any

from pullback.core.faces import face
from pullback.transforms.jit.jit import JitFunction as Wrapped
from pullback.transforms.jit.stages import Compiled as Compiled
from pullback.transforms.jit.stages import Lowered as Lowered
from pullback.transforms.jit.traced import Traced as Traced

CompilerOptions = dict[str, Any]
"""Options of the compiler by name, for annotations."""

__all__ = ["Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
face(globals())
