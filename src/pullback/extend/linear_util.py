"""Functions wrapped by transformations, for libraries that write their own transformations."""

from collections.abc import Callable as Callable

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.errors": "StoreException",
        "pullback.transforms.functions.linear_util": (
            "Store WrappedFun annotate cache merge_linear_aux transformation transformation2 transformation_with_aux "
            "transformation_with_aux2 wrap_init"
        ),
    },
)
