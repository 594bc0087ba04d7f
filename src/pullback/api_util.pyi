# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.transforms.functions.flattening import argnums_partial as argnums_partial
from pullback.transforms.functions.flattening import debug_info as debug_info
from pullback.transforms.functions.flattening import donation_vector as donation_vector
from pullback.transforms.functions.flattening import flatten_axes as flatten_axes
from pullback.transforms.functions.flattening import flatten_fun as flatten_fun
from pullback.transforms.functions.flattening import flatten_fun_nokwargs as flatten_fun_nokwargs
from pullback.transforms.functions.flattening import fun_signature as fun_signature
from pullback.transforms.functions.flattening import fun_sourceinfo as fun_sourceinfo
from pullback.transforms.functions.flattening import rebase_donate_argnums as rebase_donate_argnums
from pullback.transforms.functions.flattening import safe_map as safe_map
from pullback.transforms.functions.flattening import shaped_abstractify as shaped_abstractify

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "fun_signature", "fun_sourceinfo", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]
