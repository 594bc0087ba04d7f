"""NumPy's functions on Pullback's arrays, with NumPy's signatures; all of them can be transformed.

A module of functions is imported when one of its names is first used, so that a program starts as quickly as it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pullback.numpy.methods
import pullback.numpy.operators
from pullback.core.faces import face as _face
from pullback.numpy import logic, ufuncs

if TYPE_CHECKING:  # as type checkers and editors see it
    from pullback.numpy import fft as fft
    from pullback.numpy import linalg as linalg
    from pullback.numpy.contraction import *
    from pullback.numpy.creation import *
    from pullback.numpy.diagonals import *
    from pullback.numpy.editing import *
    from pullback.numpy.einstein import *
    from pullback.numpy.files import *
    from pullback.numpy.histograms import *
    from pullback.numpy.index_tricks import *
    from pullback.numpy.indexing import *
    from pullback.numpy.interpolation import *
    from pullback.numpy.joining import *
    from pullback.numpy.logic import (  # isort: skip
        allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, bitwise_and as bitwise_and,
        bitwise_count as bitwise_count, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift,
        bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as
        bitwise_xor, clip as clip, equal as equal, fmax as fmax, fmin as fmin, gcd as gcd, greater as greater,
        greater_equal as greater_equal, invert as invert, isclose as isclose, iscomplex as iscomplex, iscomplexobj as
        iscomplexobj, isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf,
        isreal as isreal, isrealobj as isrealobj, lcm as lcm, left_shift as left_shift, less as less, less_equal as
        less_equal, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as
        logical_xor, nan_to_num as nan_to_num, not_equal as not_equal, right_shift as right_shift, select as select,
        where as where,
    )  # fmt: skip
    from pullback.numpy.manipulation import *
    from pullback.numpy.mapping import *
    from pullback.numpy.mesh_indices import *
    from pullback.numpy.namespace_info import __array_api_version__ as __array_api_version__
    from pullback.numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
    from pullback.numpy.polynomials import *
    from pullback.numpy.printing import *
    from pullback.numpy.reductions import *
    from pullback.numpy.scalar_types import *
    from pullback.numpy.sorting import *
    from pullback.numpy.statistics import *
    from pullback.numpy.ufunc_objects import *
    from pullback.numpy.ufuncs import (  # isort: skip
        abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, angle as angle, arccos as arccos,
        arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as
        arctanh, around as around, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, cbrt as
        cbrt, ceil as ceil, conj as conj, conjugate as conjugate, copysign as copysign, cos as cos, cosh as cosh,
        deg2rad as deg2rad, degrees as degrees, divide as divide, divmod as divmod, exp as exp, exp2 as exp2, expm1 as
        expm1, fabs as fabs, fix as fix, float_power as float_power, floor as floor, floor_divide as floor_divide, fmod
        as fmod, frexp as frexp, heaviside as heaviside, hypot as hypot, imag as imag, ldexp as ldexp, log as log, log10
        as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp, logaddexp2 as logaddexp2, maximum as maximum,
        minimum as minimum, mod as mod, modf as modf, multiply as multiply, negative as negative, nextafter as
        nextafter, positive as positive, pow as pow, power as power, rad2deg as rad2deg, radians as radians, real as
        real, reciprocal as reciprocal, remainder as remainder, rint as rint, round as round, sign as sign, signbit as
        signbit, sin as sin, sinc as sinc, sinh as sinh, spacing as spacing, sqrt as sqrt, square as square, subtract as
        subtract, tan as tan, tanh as tanh, true_divide as true_divide, trunc as trunc,
    )  # fmt: skip
    from pullback.numpy.windows import *

_NAMES: dict[str, str | list[str]] = {
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
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum "
        "var "
    ),
    ".scalar_types": (
        "ComplexWarning bfloat16 bool bool_ can_cast cdouble character complex128 complex64 complex_ "
        "complexfloating csingle double dtype e euler_gamma finfo flexible float16 float32 float4_e2m1fn float64 "
        "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float_ floating generic iinfo inexact inf int16 int2 int32 int4 int64 int8 int_ integer "
        "isdtype isscalar issubdtype iterable nan ndarray ndim newaxis number object_ pi promote_types result_type "
        "shape signedinteger single size uint uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger "
    ),
    ".sorting": (
        "argpartition argsort intersect1d isin lexsort partition searchsorted setdiff1d setxor1d sort sort_complex "
        "union1d unique unique_all unique_counts unique_inverse unique_values "
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
