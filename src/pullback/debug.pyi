# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.display.shown import show as show
from pullback.transforms.programs.breakpoints import debug_breakpoint as breakpoint
from pullback.transforms.programs.callbacks import debug_callback as callback
from pullback.transforms.programs.callbacks import debug_log as log
from pullback.transforms.programs.callbacks import debug_print as print
from pullback.transforms.programs.sharding_views import inspect_array_sharding as inspect_array_sharding
from pullback.transforms.programs.sharding_views import visualize_array_sharding as visualize_array_sharding
from pullback.transforms.programs.sharding_views import visualize_sharding as visualize_sharding

__all__ = [
    "breakpoint", "callback", "inspect_array_sharding", "log", "print", "show", "visualize_array_sharding",
    "visualize_sharding",
]
