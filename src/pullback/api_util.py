"""What libraries that write transformations ask about functions and their arguments."""

from pullback.core.faces import face
from pullback.transforms.functions.flattening import (
    argnums_partial,
    debug_info,
    donation_vector,
    flatten_axes,
    flatten_fun,
    flatten_fun_nokwargs,
    fun_signature,
    fun_sourceinfo,
    rebase_donate_argnums,
    safe_map,
    shaped_abstractify,
)

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "fun_signature", "fun_sourceinfo", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]  # fmt: skip
face(globals())
