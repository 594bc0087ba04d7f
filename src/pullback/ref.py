"""Mutable references to arrays, under the names of ``jax.ref``."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.refs": "AbstractRef",
        "pullback.transforms.traces.refs": "Ref addupdate empty_ref free_ref freeze get new_ref set swap",
    },
)
