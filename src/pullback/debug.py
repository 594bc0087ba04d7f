"""Looking into functions while they run, transformed and compiled ones too."""

from pullback.transforms.programs.callbacks import debug_breakpoint as breakpoint
from pullback.transforms.programs.callbacks import debug_callback as callback
from pullback.transforms.programs.callbacks import debug_print as print

__all__ = ["breakpoint", "callback", "print"]
