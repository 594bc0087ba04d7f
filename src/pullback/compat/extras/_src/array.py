"""``jax._src.array``: the class of arrays, for Levanter."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.array": "ArrayImpl",
        "pullback": "make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays",
    },
)
