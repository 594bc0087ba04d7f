# Made by `make stubs` from the module itself, for type checkers and editors.

from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import inexact as inexact
from numpy import integer as integer
from numpy import number as number
from numpy import object_ as object_
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger
from numpy.exceptions import ComplexWarning as ComplexWarning
from pullback.core.dtypes import finfo as finfo
from pullback.core.dtypes import iinfo as iinfo
from pullback.core.dtypes import isdtype as isdtype
from pullback.core.dtypes import issubdtype as issubdtype
from pullback.core.dtypes import promote_types as promote_types
from pullback.core.dtypes import result_type as result_type
from pullback.numpy import fft as fft
from pullback.numpy import linalg as linalg
from pullback.numpy.contraction import convolve as convolve
from pullback.numpy.contraction import correlate as correlate
from pullback.numpy.contraction import cross as cross
from pullback.numpy.contraction import dot as dot
from pullback.numpy.contraction import inner as inner
from pullback.numpy.contraction import kron as kron
from pullback.numpy.contraction import matmul as matmul
from pullback.numpy.contraction import matvec as matvec
from pullback.numpy.contraction import outer as outer
from pullback.numpy.contraction import polyval as polyval
from pullback.numpy.contraction import tensordot as tensordot
from pullback.numpy.contraction import trace as trace
from pullback.numpy.contraction import vdot as vdot
from pullback.numpy.contraction import vecdot as vecdot
from pullback.numpy.contraction import vecmat as vecmat
from pullback.numpy.creation import arange as arange
from pullback.numpy.creation import array as array
from pullback.numpy.creation import asarray as asarray
from pullback.numpy.creation import astype as astype
from pullback.numpy.creation import copy as copy
from pullback.numpy.creation import empty as empty
from pullback.numpy.creation import empty_like as empty_like
from pullback.numpy.creation import eye as eye
from pullback.numpy.creation import from_dlpack as from_dlpack
from pullback.numpy.creation import frombuffer as frombuffer
from pullback.numpy.creation import fromfunction as fromfunction
from pullback.numpy.creation import fromiter as fromiter
from pullback.numpy.creation import full as full
from pullback.numpy.creation import full_like as full_like
from pullback.numpy.creation import geomspace as geomspace
from pullback.numpy.creation import identity as identity
from pullback.numpy.creation import indices as indices
from pullback.numpy.creation import linspace as linspace
from pullback.numpy.creation import logspace as logspace
from pullback.numpy.creation import meshgrid as meshgrid
from pullback.numpy.creation import ones as ones
from pullback.numpy.creation import ones_like as ones_like
from pullback.numpy.creation import tri as tri
from pullback.numpy.creation import vander as vander
from pullback.numpy.creation import zeros as zeros
from pullback.numpy.creation import zeros_like as zeros_like
from pullback.numpy.diagonals import diag as diag
from pullback.numpy.diagonals import diag_indices as diag_indices
from pullback.numpy.diagonals import diag_indices_from as diag_indices_from
from pullback.numpy.diagonals import diagflat as diagflat
from pullback.numpy.diagonals import diagonal as diagonal
from pullback.numpy.diagonals import fill_diagonal as fill_diagonal
from pullback.numpy.diagonals import mask_indices as mask_indices
from pullback.numpy.diagonals import tril as tril
from pullback.numpy.diagonals import tril_indices as tril_indices
from pullback.numpy.diagonals import tril_indices_from as tril_indices_from
from pullback.numpy.diagonals import triu as triu
from pullback.numpy.diagonals import triu_indices as triu_indices
from pullback.numpy.diagonals import triu_indices_from as triu_indices_from
from pullback.numpy.editing import append as append
from pullback.numpy.editing import delete as delete
from pullback.numpy.editing import insert as insert
from pullback.numpy.editing import pad as pad
from pullback.numpy.editing import resize as resize
from pullback.numpy.editing import trim_zeros as trim_zeros
from pullback.numpy.einstein import einsum as einsum
from pullback.numpy.einstein import einsum_path as einsum_path
from pullback.numpy.files import fromfile as fromfile
from pullback.numpy.files import fromstring as fromstring
from pullback.numpy.files import load as load
from pullback.numpy.files import save as save
from pullback.numpy.files import savez as savez
from pullback.numpy.histograms import bincount as bincount
from pullback.numpy.histograms import digitize as digitize
from pullback.numpy.histograms import histogram as histogram
from pullback.numpy.histograms import histogram2d as histogram2d
from pullback.numpy.histograms import histogram_bin_edges as histogram_bin_edges
from pullback.numpy.histograms import histogramdd as histogramdd
from pullback.numpy.index_tricks import c_ as c_
from pullback.numpy.index_tricks import index_exp as index_exp
from pullback.numpy.index_tricks import mgrid as mgrid
from pullback.numpy.index_tricks import ogrid as ogrid
from pullback.numpy.index_tricks import r_ as r_
from pullback.numpy.index_tricks import s_ as s_
from pullback.numpy.indexing import argwhere as argwhere
from pullback.numpy.indexing import choose as choose
from pullback.numpy.indexing import compress as compress
from pullback.numpy.indexing import extract as extract
from pullback.numpy.indexing import flatnonzero as flatnonzero
from pullback.numpy.indexing import nonzero as nonzero
from pullback.numpy.indexing import place as place
from pullback.numpy.indexing import put as put
from pullback.numpy.indexing import put_along_axis as put_along_axis
from pullback.numpy.indexing import ravel_multi_index as ravel_multi_index
from pullback.numpy.indexing import take as take
from pullback.numpy.indexing import take_along_axis as take_along_axis
from pullback.numpy.interpolation import interp as interp
from pullback.numpy.interpolation import unwrap as unwrap
from pullback.numpy.joining import array_split as array_split
from pullback.numpy.joining import block as block
from pullback.numpy.joining import column_stack as column_stack
from pullback.numpy.joining import concat as concat
from pullback.numpy.joining import concatenate as concatenate
from pullback.numpy.joining import dsplit as dsplit
from pullback.numpy.joining import dstack as dstack
from pullback.numpy.joining import hsplit as hsplit
from pullback.numpy.joining import hstack as hstack
from pullback.numpy.joining import row_stack as row_stack
from pullback.numpy.joining import split as split
from pullback.numpy.joining import stack as stack
from pullback.numpy.joining import vsplit as vsplit
from pullback.numpy.joining import vstack as vstack
from pullback.numpy.logic import allclose as allclose
from pullback.numpy.logic import array_equal as array_equal
from pullback.numpy.logic import array_equiv as array_equiv
from pullback.numpy.logic import bitwise_and as bitwise_and
from pullback.numpy.logic import bitwise_count as bitwise_count
from pullback.numpy.logic import bitwise_invert as bitwise_invert
from pullback.numpy.logic import bitwise_left_shift as bitwise_left_shift
from pullback.numpy.logic import bitwise_not as bitwise_not
from pullback.numpy.logic import bitwise_or as bitwise_or
from pullback.numpy.logic import bitwise_right_shift as bitwise_right_shift
from pullback.numpy.logic import bitwise_xor as bitwise_xor
from pullback.numpy.logic import clip as clip
from pullback.numpy.logic import equal as equal
from pullback.numpy.logic import fmax as fmax
from pullback.numpy.logic import fmin as fmin
from pullback.numpy.logic import gcd as gcd
from pullback.numpy.logic import greater as greater
from pullback.numpy.logic import greater_equal as greater_equal
from pullback.numpy.logic import invert as invert
from pullback.numpy.logic import isclose as isclose
from pullback.numpy.logic import iscomplex as iscomplex
from pullback.numpy.logic import iscomplexobj as iscomplexobj
from pullback.numpy.logic import isfinite as isfinite
from pullback.numpy.logic import isinf as isinf
from pullback.numpy.logic import isnan as isnan
from pullback.numpy.logic import isneginf as isneginf
from pullback.numpy.logic import isposinf as isposinf
from pullback.numpy.logic import isreal as isreal
from pullback.numpy.logic import isrealobj as isrealobj
from pullback.numpy.logic import lcm as lcm
from pullback.numpy.logic import left_shift as left_shift
from pullback.numpy.logic import less as less
from pullback.numpy.logic import less_equal as less_equal
from pullback.numpy.logic import logical_and as logical_and
from pullback.numpy.logic import logical_not as logical_not
from pullback.numpy.logic import logical_or as logical_or
from pullback.numpy.logic import logical_xor as logical_xor
from pullback.numpy.logic import nan_to_num as nan_to_num
from pullback.numpy.logic import not_equal as not_equal
from pullback.numpy.logic import right_shift as right_shift
from pullback.numpy.logic import select as select
from pullback.numpy.logic import where as where
from pullback.numpy.manipulation import atleast_1d as atleast_1d
from pullback.numpy.manipulation import atleast_2d as atleast_2d
from pullback.numpy.manipulation import atleast_3d as atleast_3d
from pullback.numpy.manipulation import broadcast_arrays as broadcast_arrays
from pullback.numpy.manipulation import broadcast_shapes as broadcast_shapes
from pullback.numpy.manipulation import broadcast_to as broadcast_to
from pullback.numpy.manipulation import expand_dims as expand_dims
from pullback.numpy.manipulation import flip as flip
from pullback.numpy.manipulation import fliplr as fliplr
from pullback.numpy.manipulation import flipud as flipud
from pullback.numpy.manipulation import matrix_transpose as matrix_transpose
from pullback.numpy.manipulation import moveaxis as moveaxis
from pullback.numpy.manipulation import permute_dims as permute_dims
from pullback.numpy.manipulation import ravel as ravel
from pullback.numpy.manipulation import repeat as repeat
from pullback.numpy.manipulation import reshape as reshape
from pullback.numpy.manipulation import roll as roll
from pullback.numpy.manipulation import rollaxis as rollaxis
from pullback.numpy.manipulation import rot90 as rot90
from pullback.numpy.manipulation import squeeze as squeeze
from pullback.numpy.manipulation import swapaxes as swapaxes
from pullback.numpy.manipulation import tile as tile
from pullback.numpy.manipulation import transpose as transpose
from pullback.numpy.manipulation import unstack as unstack
from pullback.numpy.mapping import apply_along_axis as apply_along_axis
from pullback.numpy.mapping import apply_over_axes as apply_over_axes
from pullback.numpy.mapping import packbits as packbits
from pullback.numpy.mapping import piecewise as piecewise
from pullback.numpy.mapping import unpackbits as unpackbits
from pullback.numpy.mapping import vectorize as vectorize
from pullback.numpy.mesh_indices import ix_ as ix_
from pullback.numpy.mesh_indices import unravel_index as unravel_index
from pullback.numpy.namespace_info import __array_api_version__ as __array_api_version__
from pullback.numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
from pullback.numpy.polynomials import poly as poly
from pullback.numpy.polynomials import polyadd as polyadd
from pullback.numpy.polynomials import polyder as polyder
from pullback.numpy.polynomials import polydiv as polydiv
from pullback.numpy.polynomials import polyfit as polyfit
from pullback.numpy.polynomials import polyint as polyint
from pullback.numpy.polynomials import polymul as polymul
from pullback.numpy.polynomials import polysub as polysub
from pullback.numpy.polynomials import roots as roots
from pullback.numpy.printing import array_repr as array_repr
from pullback.numpy.printing import array_str as array_str
from pullback.numpy.printing import get_printoptions as get_printoptions
from pullback.numpy.printing import printoptions as printoptions
from pullback.numpy.printing import set_printoptions as set_printoptions
from pullback.numpy.reductions import all as all
from pullback.numpy.reductions import amax as amax
from pullback.numpy.reductions import amin as amin
from pullback.numpy.reductions import any as any
from pullback.numpy.reductions import argmax as argmax
from pullback.numpy.reductions import argmin as argmin
from pullback.numpy.reductions import count_nonzero as count_nonzero
from pullback.numpy.reductions import cumprod as cumprod
from pullback.numpy.reductions import cumsum as cumsum
from pullback.numpy.reductions import cumulative_prod as cumulative_prod
from pullback.numpy.reductions import cumulative_sum as cumulative_sum
from pullback.numpy.reductions import max as max
from pullback.numpy.reductions import mean as mean
from pullback.numpy.reductions import min as min
from pullback.numpy.reductions import minmax as minmax
from pullback.numpy.reductions import nanargmax as nanargmax
from pullback.numpy.reductions import nanargmin as nanargmin
from pullback.numpy.reductions import nancumprod as nancumprod
from pullback.numpy.reductions import nancumsum as nancumsum
from pullback.numpy.reductions import nanmax as nanmax
from pullback.numpy.reductions import nanmean as nanmean
from pullback.numpy.reductions import nanmin as nanmin
from pullback.numpy.reductions import nanprod as nanprod
from pullback.numpy.reductions import nanstd as nanstd
from pullback.numpy.reductions import nansum as nansum
from pullback.numpy.reductions import nanvar as nanvar
from pullback.numpy.reductions import prod as prod
from pullback.numpy.reductions import ptp as ptp
from pullback.numpy.reductions import std as std
from pullback.numpy.reductions import sum as sum
from pullback.numpy.reductions import var as var
from pullback.numpy.scalar_types import bfloat16 as bfloat16
from pullback.numpy.scalar_types import bool as bool
from pullback.numpy.scalar_types import bool_ as bool_
from pullback.numpy.scalar_types import can_cast as can_cast
from pullback.numpy.scalar_types import cdouble as cdouble
from pullback.numpy.scalar_types import complex128 as complex128
from pullback.numpy.scalar_types import complex64 as complex64
from pullback.numpy.scalar_types import complex_ as complex_
from pullback.numpy.scalar_types import csingle as csingle
from pullback.numpy.scalar_types import double as double
from pullback.numpy.scalar_types import dtype as dtype
from pullback.numpy.scalar_types import e as e
from pullback.numpy.scalar_types import euler_gamma as euler_gamma
from pullback.numpy.scalar_types import float16 as float16
from pullback.numpy.scalar_types import float32 as float32
from pullback.numpy.scalar_types import float4_e2m1fn as float4_e2m1fn
from pullback.numpy.scalar_types import float64 as float64
from pullback.numpy.scalar_types import float6_e2m3fn as float6_e2m3fn
from pullback.numpy.scalar_types import float6_e3m2fn as float6_e3m2fn
from pullback.numpy.scalar_types import float8_e3m4 as float8_e3m4
from pullback.numpy.scalar_types import float8_e4m3 as float8_e4m3
from pullback.numpy.scalar_types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from pullback.numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
from pullback.numpy.scalar_types import float8_e4m3fnuz as float8_e4m3fnuz
from pullback.numpy.scalar_types import float8_e5m2 as float8_e5m2
from pullback.numpy.scalar_types import float8_e5m2fnuz as float8_e5m2fnuz
from pullback.numpy.scalar_types import float8_e8m0fnu as float8_e8m0fnu
from pullback.numpy.scalar_types import float_ as float_
from pullback.numpy.scalar_types import inf as inf
from pullback.numpy.scalar_types import int16 as int16
from pullback.numpy.scalar_types import int2 as int2
from pullback.numpy.scalar_types import int32 as int32
from pullback.numpy.scalar_types import int4 as int4
from pullback.numpy.scalar_types import int64 as int64
from pullback.numpy.scalar_types import int8 as int8
from pullback.numpy.scalar_types import int_ as int_
from pullback.numpy.scalar_types import isscalar as isscalar
from pullback.numpy.scalar_types import iterable as iterable
from pullback.numpy.scalar_types import nan as nan
from pullback.numpy.scalar_types import ndarray as ndarray
from pullback.numpy.scalar_types import ndim as ndim
from pullback.numpy.scalar_types import newaxis as newaxis
from pullback.numpy.scalar_types import pi as pi
from pullback.numpy.scalar_types import shape as shape
from pullback.numpy.scalar_types import single as single
from pullback.numpy.scalar_types import size as size
from pullback.numpy.scalar_types import uint as uint
from pullback.numpy.scalar_types import uint16 as uint16
from pullback.numpy.scalar_types import uint2 as uint2
from pullback.numpy.scalar_types import uint32 as uint32
from pullback.numpy.scalar_types import uint4 as uint4
from pullback.numpy.scalar_types import uint64 as uint64
from pullback.numpy.scalar_types import uint8 as uint8
from pullback.numpy.sorting import argpartition as argpartition
from pullback.numpy.sorting import argsort as argsort
from pullback.numpy.sorting import intersect1d as intersect1d
from pullback.numpy.sorting import isin as isin
from pullback.numpy.sorting import lexsort as lexsort
from pullback.numpy.sorting import partition as partition
from pullback.numpy.sorting import searchsorted as searchsorted
from pullback.numpy.sorting import setdiff1d as setdiff1d
from pullback.numpy.sorting import setxor1d as setxor1d
from pullback.numpy.sorting import sort as sort
from pullback.numpy.sorting import sort_complex as sort_complex
from pullback.numpy.sorting import top_k as top_k
from pullback.numpy.sorting import union1d as union1d
from pullback.numpy.sorting import unique as unique
from pullback.numpy.sorting import unique_all as unique_all
from pullback.numpy.sorting import unique_counts as unique_counts
from pullback.numpy.sorting import unique_inverse as unique_inverse
from pullback.numpy.sorting import unique_values as unique_values
from pullback.numpy.statistics import average as average
from pullback.numpy.statistics import corrcoef as corrcoef
from pullback.numpy.statistics import cov as cov
from pullback.numpy.statistics import diff as diff
from pullback.numpy.statistics import ediff1d as ediff1d
from pullback.numpy.statistics import gradient as gradient
from pullback.numpy.statistics import median as median
from pullback.numpy.statistics import nanmedian as nanmedian
from pullback.numpy.statistics import nanpercentile as nanpercentile
from pullback.numpy.statistics import nanquantile as nanquantile
from pullback.numpy.statistics import percentile as percentile
from pullback.numpy.statistics import quantile as quantile
from pullback.numpy.statistics import trapezoid as trapezoid
from pullback.numpy.ufunc_objects import frompyfunc as frompyfunc
from pullback.numpy.ufunc_objects import ufunc as ufunc
from pullback.numpy.ufuncs import abs as abs
from pullback.numpy.ufuncs import absolute as absolute
from pullback.numpy.ufuncs import acos as acos
from pullback.numpy.ufuncs import acosh as acosh
from pullback.numpy.ufuncs import add as add
from pullback.numpy.ufuncs import angle as angle
from pullback.numpy.ufuncs import arccos as arccos
from pullback.numpy.ufuncs import arccosh as arccosh
from pullback.numpy.ufuncs import arcsin as arcsin
from pullback.numpy.ufuncs import arcsinh as arcsinh
from pullback.numpy.ufuncs import arctan as arctan
from pullback.numpy.ufuncs import arctan2 as arctan2
from pullback.numpy.ufuncs import arctanh as arctanh
from pullback.numpy.ufuncs import around as around
from pullback.numpy.ufuncs import asin as asin
from pullback.numpy.ufuncs import asinh as asinh
from pullback.numpy.ufuncs import atan as atan
from pullback.numpy.ufuncs import atan2 as atan2
from pullback.numpy.ufuncs import atanh as atanh
from pullback.numpy.ufuncs import cbrt as cbrt
from pullback.numpy.ufuncs import ceil as ceil
from pullback.numpy.ufuncs import conj as conj
from pullback.numpy.ufuncs import conjugate as conjugate
from pullback.numpy.ufuncs import copysign as copysign
from pullback.numpy.ufuncs import cos as cos
from pullback.numpy.ufuncs import cosh as cosh
from pullback.numpy.ufuncs import deg2rad as deg2rad
from pullback.numpy.ufuncs import degrees as degrees
from pullback.numpy.ufuncs import divide as divide
from pullback.numpy.ufuncs import divmod as divmod
from pullback.numpy.ufuncs import exp as exp
from pullback.numpy.ufuncs import exp2 as exp2
from pullback.numpy.ufuncs import expm1 as expm1
from pullback.numpy.ufuncs import fabs as fabs
from pullback.numpy.ufuncs import fix as fix
from pullback.numpy.ufuncs import float_power as float_power
from pullback.numpy.ufuncs import floor as floor
from pullback.numpy.ufuncs import floor_divide as floor_divide
from pullback.numpy.ufuncs import fmod as fmod
from pullback.numpy.ufuncs import frexp as frexp
from pullback.numpy.ufuncs import heaviside as heaviside
from pullback.numpy.ufuncs import hypot as hypot
from pullback.numpy.ufuncs import imag as imag
from pullback.numpy.ufuncs import ldexp as ldexp
from pullback.numpy.ufuncs import log as log
from pullback.numpy.ufuncs import log10 as log10
from pullback.numpy.ufuncs import log1p as log1p
from pullback.numpy.ufuncs import log2 as log2
from pullback.numpy.ufuncs import logaddexp as logaddexp
from pullback.numpy.ufuncs import logaddexp2 as logaddexp2
from pullback.numpy.ufuncs import maximum as maximum
from pullback.numpy.ufuncs import minimum as minimum
from pullback.numpy.ufuncs import mod as mod
from pullback.numpy.ufuncs import modf as modf
from pullback.numpy.ufuncs import multiply as multiply
from pullback.numpy.ufuncs import negative as negative
from pullback.numpy.ufuncs import nextafter as nextafter
from pullback.numpy.ufuncs import positive as positive
from pullback.numpy.ufuncs import pow as pow
from pullback.numpy.ufuncs import power as power
from pullback.numpy.ufuncs import rad2deg as rad2deg
from pullback.numpy.ufuncs import radians as radians
from pullback.numpy.ufuncs import real as real
from pullback.numpy.ufuncs import reciprocal as reciprocal
from pullback.numpy.ufuncs import remainder as remainder
from pullback.numpy.ufuncs import rint as rint
from pullback.numpy.ufuncs import round as round
from pullback.numpy.ufuncs import sign as sign
from pullback.numpy.ufuncs import signbit as signbit
from pullback.numpy.ufuncs import sin as sin
from pullback.numpy.ufuncs import sinc as sinc
from pullback.numpy.ufuncs import sinh as sinh
from pullback.numpy.ufuncs import spacing as spacing
from pullback.numpy.ufuncs import sqrt as sqrt
from pullback.numpy.ufuncs import square as square
from pullback.numpy.ufuncs import subtract as subtract
from pullback.numpy.ufuncs import tan as tan
from pullback.numpy.ufuncs import tanh as tanh
from pullback.numpy.ufuncs import true_divide as true_divide
from pullback.numpy.ufuncs import trunc as trunc
from pullback.numpy.windows import bartlett as bartlett
from pullback.numpy.windows import blackman as blackman
from pullback.numpy.windows import hamming as hamming
from pullback.numpy.windows import hanning as hanning
from pullback.numpy.windows import i0 as i0
from pullback.numpy.windows import kaiser as kaiser

__all__ = [
    "ComplexWarning", "__array_api_version__", "__array_namespace_info__", "abs", "absolute", "acos", "acosh",
    "add", "all", "allclose", "amax", "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "argpartition", "argsort", "argwhere", "around", "array", "array_equal", "array_equiv", "array_repr",
    "array_split", "array_str", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman", "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "c_",
    "can_cast", "cbrt", "cdouble", "ceil", "character", "choose", "clip", "column_stack", "complex128",
    "complex64", "complex_", "complexfloating", "compress", "concat", "concatenate", "conj", "conjugate",
    "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross",
    "csingle", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete", "diag",
    "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot",
    "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like",
    "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract", "eye", "fabs", "fft",
    "fill_diagonal", "finfo", "fix", "flatnonzero", "flexible", "flip", "fliplr", "flipud", "float16", "float32",
    "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float_", "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack",
    "frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring", "full", "full_like", "gcd",
    "generic", "geomspace", "get_printoptions", "gradient", "greater", "greater_equal", "hamming", "hanning",
    "heaviside", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot",
    "i0", "identity", "iinfo", "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert", "int16",
    "int2", "int32", "int4", "int64", "int8", "int_", "integer", "interp", "intersect1d", "invert", "isclose",
    "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp",
    "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid",
    "mgrid", "min", "minimum", "minmax", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis", "nextafter",
    "nonzero", "not_equal", "number", "object_", "ogrid", "ones", "ones_like", "outer", "packbits", "pad",
    "partition", "percentile", "permute_dims", "pi", "piecewise", "place", "poly", "polyadd", "polyder",
    "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "positive", "pow", "power", "printoptions",
    "prod", "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians", "ravel",
    "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "resize", "result_type",
    "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "row_stack", "s_", "save", "savez",
    "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape", "sign", "signbit",
    "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort", "sort_complex", "spacing", "split", "sqrt",
    "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh",
    "tensordot", "tile", "top_k", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc",
    "ufunc", "uint", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unpackbits", "unravel_index", "unsignedinteger",
    "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where",
    "zeros", "zeros_like",
]
