"""``jax.interpreters.batching``: what ``pullback.interpreters.batching`` does not have."""

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
    """Register a class whose objects JAX maps in a way of their own; here ``vmap`` refuses them from then on.

    MuJoCo's MJX does this at import, for data of its kernels for NVIDIA's GPUs, which need Warp; its other data are
    trees like any. Mapped as the trees that they are too, they would be mapped in a way that was not meant.
    """
    vmappable.add(data_type)


__all__ = ["register_vmappable"]
