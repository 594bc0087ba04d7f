"""Export of compiled functions as bytes, for other processes and later releases.

>>> import numpy as np
>>> import pullback.numpy as jnp
>>> from pullback import export, jit
>>> exported = export.export(jit(jnp.sin))(np.zeros(3, "float32"))
>>> data = exported.serialize()
>>> print(export.deserialize(data).call(np.array([0.0, 1.0, 2.0], "float32")))
[0.         0.84147096 0.9092974 ]
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.dims": "SymbolicScope",
        ".checks": "DisabledSafetyCheck",
        ".exported": (
            "Exported default_export_platform deserialize export maximum_supported_calling_convention_version "
            "minimum_supported_calling_convention_version"
        ),
        ".structures": "register_namedtuple_serialization register_pytree_node_serialization",
        ".symbolic": "is_symbolic_dim symbolic_args_specs symbolic_dim_bounds symbolic_shape",
    },
)
