"""Looking into functions while they run, transformed and compiled ones too."""

from pullback.core.faces import face
from pullback.transforms.programs.breakpoints import debug_breakpoint as breakpoint
from pullback.transforms.programs.callbacks import debug_callback as callback
from pullback.transforms.programs.callbacks import debug_print as print
from pullback.transforms.programs.sharding_views import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

__all__ = [
    "breakpoint", "callback", "inspect_array_sharding", "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip
face(globals())
