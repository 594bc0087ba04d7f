"""Checkpointing in reverse mode: what is kept for the backward pass, and what is computed again."""

from pullback.core.faces import face
from pullback.transforms.checkpoint.checkpoint import checkpoint
from pullback.transforms.checkpoint.checkpoint_policies import checkpoint_name, checkpoint_policies
from pullback.transforms.checkpoint.saved_residuals import print_saved_residuals, saved_residuals

remat = checkpoint

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
face(globals())
