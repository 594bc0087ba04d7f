"""Helpers about functions and their arguments, for libraries that write transformations."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.transforms.functions.flattening": (
            "argnums_partial debug_info donation_vector flatten_axes flatten_fun flatten_fun_nokwargs fun_signature "
            "fun_sourceinfo rebase_donate_argnums safe_map shaped_abstractify"
        ),
    },
)
