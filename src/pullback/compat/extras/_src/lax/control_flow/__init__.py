"""``jax._src.lax.control_flow``: the loops and branches of ``jax.lax``, for PyTensor and Oryx."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.lax": (
            "associative_scan cond cond_p cummax cummin cumprod cumsum fori_loop map scan "
            "scan_p switch while_loop while_p custom_linear_solve custom_root linear_solve_p"
        )
    },
    modules="loops",
)
