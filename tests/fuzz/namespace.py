"""The names that the texts of programs may use: in double precision all inexact dtypes are the widest ones."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import numpy as np

import pullback
import pullback.image
import pullback.numpy as jnp
import pullback.scipy.linalg
import pullback.scipy.signal
from pullback import derivatives
from pullback.custom_batching import custom_vmap
from tests.fuzz import words

DTYPES = {
    "float32": (jnp.float32, jnp.float64),
    "float16": (jnp.float16, jnp.float64),
    "bfloat16": (jnp.bfloat16, jnp.float64),
    "complex64": (jnp.complex64, jnp.complex128),
    "int32": (jnp.int32, jnp.int32),
    "int16": (jnp.int16, jnp.int16),
    "int8": (jnp.int8, jnp.int8),
    "uint8": (jnp.uint8, jnp.uint8),
    "uint32": (jnp.uint32, jnp.uint32),
    "bool_": (jnp.bool_, jnp.bool_),
}
"""In single and in double precision."""

FACE = (
    "P", "checkpoint", "custom_jvp", "custom_vjp", "grad", "hessian", "image", "jacfwd", "jacrev", "jit", "jvp", "lax",
    "linear_transpose", "linearize", "make_mesh", "masked_zeros", "new_ref", "nn", "ops", "scipy", "shard_map", "tree",
    "value_and_grad", "vjp", "vmap",
)  # fmt: skip
DERIVATIVES = (
    "derivative_tensor", "forward_laplacian", "hvp", "jet", "jvp_from_vjp", "laplacian", "preaccumulate",
    "sparse_hessian", "sparse_jacobian", "taylor", "vjp_from_jvp",
)  # fmt: skip
"""What texts use of ``pullback``, and of ``pullback.derivatives``."""

PUBLIC = {
    "np": np, "math": math, "jnp": jnp, "pullback": pullback, "custom_vmap": custom_vmap,
    "import_module": import_module, "walk_packages": walk_packages,
    **{name: getattr(pullback, name) for name in FACE},
    **{name: getattr(derivatives, name) for name in DERIVATIVES},
}  # fmt: skip

WORDS = {
    name: f for name, f in vars(words).items() if isinstance(f, types.FunctionType) and f.__module__ == words.__name__
}


DISTURBED = ("spread", "like", "positive_definite", "total")
"""The words whose results suffer random changes where those of operations do."""


def _after(f: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: change(f(*args), args)


@cache
def names(double: bool, change: Callable[..., Any] | None = None) -> dict[str, Any]:
    """The namespace of a precision, in which the words are made anew; ``change`` is what results of words suffer."""
    space: dict[str, Any] = {**PUBLIC, **{name: both[double] for name, both in DTYPES.items()}}
    from tests.fuzz import rows

    for name, f in WORDS.items():
        made = types.FunctionType(f.__code__, space, name, f.__defaults__)
        space[name] = _after(made, change) if change and name in DISTURBED else made
    space["row"] = rows.function
    space["primitive"] = lambda name: rows.primitives()[name]  # which looks once
    return space
