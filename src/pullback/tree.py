"""Trees, under the short names of ``jax.tree``."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.tree": (
            "all broadcast flatten flatten_with_path leaves leaves_with_path map=tree_map map_with_path reduce "
            "reduce_associative static structure transpose unflatten"
        ),
    },
)
