"""``jax._src.pjit``: the operation that a compiled function is within another; Quax has a rule for it."""

from pullback.transforms.programs.jit_primitive import jit_p as jit_p
