"""``jax.interpreters.batching``: the names that ``pullback.interpreters.batching`` lacks."""

from collections.abc import Callable
from typing import Any

from pullback.transforms.autodiff.vmap import vmappable


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Register a class with custom mapping in JAX; here ``vmap`` refuses its objects from then on.

    MuJoCo's MJX does this at import for the data of its Warp kernels on NVIDIA GPUs; its other data are ordinary trees.
    The registered objects are trees too, but mapping them as trees would be wrong.
    """
    vmappable.add(data_type)


__all__ = ["register_vmappable"]
