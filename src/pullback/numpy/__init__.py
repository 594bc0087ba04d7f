"""NumPy's functions on Pullback's arrays, with NumPy's signatures; all of them can be transformed.

A module of functions is imported when one of its names is first used, so that a program starts as quickly as it can.
"""

from __future__ import annotations

import pullback.numpy.methods
import pullback.numpy.operators
from pullback.core.faces import face as _face
from pullback.numpy import logic, ufuncs

_NAMES: dict[str, str | list[str]] = {
    "numpy": (  # the kinds of dtypes, for issubdtype
        "character complexfloating flexible floating generic inexact integer number object_ signedinteger "
        "unsignedinteger "
    ),
    "numpy.exceptions": ("ComplexWarning "),
    "pullback.core.dtypes": ("finfo iinfo isdtype issubdtype promote_types result_type "),
    ".contraction": (
        "convolve correlate cross dot inner kron matmul matvec outer polyval tensordot trace vdot vecdot vecmat "
    ),
    ".creation": (
        "arange array asarray astype copy empty empty_like eye from_dlpack frombuffer fromfunction fromiter full "
        "full_like geomspace identity indices linspace logspace meshgrid ones ones_like tri vander zeros zeros_like "
    ),
    ".diagonals": (
        "diag diag_indices diag_indices_from diagflat diagonal fill_diagonal mask_indices tril tril_indices "
        "tril_indices_from triu triu_indices triu_indices_from "
    ),
    ".editing": ("append delete insert pad resize trim_zeros "),
    ".einstein": ("einsum einsum_path "),
    ".files": ("fromfile fromstring load save savez "),
    ".histograms": ("bincount digitize histogram histogram2d histogram_bin_edges histogramdd "),
    ".index_tricks": ("c_ index_exp mgrid ogrid r_ s_ "),
    ".indexing": (
        "argwhere choose compress extract flatnonzero nonzero place put put_along_axis ravel_multi_index take "
        "take_along_axis "
    ),
    ".interpolation": ("interp unwrap "),
    ".joining": (
        "array_split block column_stack concat concatenate dsplit dstack hsplit hstack row_stack split stack vsplit "
        "vstack "
    ),
    ".manipulation": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr "
        "flipud matrix_transpose moveaxis permute_dims ravel repeat reshape roll rollaxis rot90 squeeze swapaxes tile "
        "transpose unstack "
    ),
    ".mapping": ("apply_along_axis apply_over_axes packbits piecewise unpackbits vectorize "),
    ".mesh_indices": ("ix_ unravel_index "),
    ".namespace_info": ("__array_api_version__ __array_namespace_info__ "),
    ".polynomials": ("poly polyadd polyder polydiv polyfit polyint polymul polysub roots "),
    ".printing": ("array_repr array_str get_printoptions printoptions set_printoptions "),
    ".reductions": (
        "all amax amin any argmax argmin count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean min "
        "minmax nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp "
        "std sum var "
    ),
    ".scalar_types": (
        "bfloat16 bool bool_ can_cast cdouble complex128 complex64 complex_ csingle double dtype e euler_gamma "
        "float16 float32 float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ inf int16 int2 int32 int4 "
        "int64 int8 int_ isscalar iterable nan ndarray ndim newaxis pi shape single size uint uint16 uint2 uint32 "
        "uint4 uint64 uint8 "
    ),
    ".sorting": (
        "argpartition argsort intersect1d isin lexsort partition searchsorted setdiff1d setxor1d sort sort_complex "
        "top_k union1d unique unique_all unique_counts unique_inverse unique_values "
    ),
    ".statistics": (
        "average corrcoef cov diff ediff1d gradient median nanmedian nanpercentile nanquantile percentile quantile "
        "trapezoid "
    ),
    ".ufunc_objects": ("frompyfunc ufunc "),
    ".windows": ("bartlett blackman hamming hanning i0 kaiser "),
}
_NAMES[".ufuncs"], _NAMES[".logic"] = ufuncs.__all__, logic.__all__  # which operators import

_face(globals(), _NAMES, modules="fft linalg")
