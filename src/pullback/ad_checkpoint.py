"""Checkpointing in reverse mode: which values are stored for the backward pass, and which are recomputed."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.transforms.checkpoint.checkpoint": "checkpoint remat=checkpoint",
        "pullback.transforms.checkpoint.checkpoint_policies": "checkpoint_name checkpoint_policies",
        "pullback.transforms.checkpoint.saved_residuals": "print_saved_residuals saved_residuals",
    },
)
