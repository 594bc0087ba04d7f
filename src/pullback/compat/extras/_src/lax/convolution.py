"""``jax._src.lax.convolution``: convolutions, whose primitive is ``conv_general_dilated_p``."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {"pullback.lax": "ConvDimensionNumbers conv conv_dimension_numbers conv_general_dilated conv_general_dilated_p "
    "conv_general_dilated_patches conv_general_dilated_local conv_transpose conv_with_general_padding"},
)  # fmt: skip
