# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.transforms.checkpoint.checkpoint import checkpoint as checkpoint
from pullback.transforms.checkpoint.checkpoint import checkpoint as remat
from pullback.transforms.checkpoint.checkpoint_policies import checkpoint_name as checkpoint_name
from pullback.transforms.checkpoint.checkpoint_policies import checkpoint_policies as checkpoint_policies
from pullback.transforms.checkpoint.saved_residuals import print_saved_residuals as print_saved_residuals
from pullback.transforms.checkpoint.saved_residuals import saved_residuals as saved_residuals

__all__ = [
    "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat", "saved_residuals",
]
