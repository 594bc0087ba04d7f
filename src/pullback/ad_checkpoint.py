"""Checkpointing in reverse mode: what is kept for the backward pass, and what is computed again."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.transforms.checkpoint.checkpoint": "checkpoint remat=checkpoint",
        "pullback.transforms.checkpoint.checkpoint_policies": "checkpoint_name checkpoint_policies",
        "pullback.transforms.checkpoint.saved_residuals": "print_saved_residuals saved_residuals",
    },
)
