"""``jax._src.pjit``: the primitive of a compiled function within another; Quax has a rule for it."""

from pullback.transforms.programs.jit_primitive import jit_p as jit_p
