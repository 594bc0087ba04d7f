# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.array import Array
from pullback.core.array import ArrayLike
from pullback.core.annotations import DTypeLike
from pullback.core.trace import Primitive
from pullback.control.associative import associative_scan as associative_scan
from pullback.control.conditional import cond as cond
from pullback.control.conditional import cond_p as cond_p
from pullback.control.conditional import switch as switch
from pullback.control.fori_loop import fori_loop as fori_loop
from pullback.control.loops import while_loop as while_loop
from pullback.control.platforms import composite as composite
from pullback.control.platforms import platform_dependent as platform_dependent
from pullback.control.scan import map as map
from pullback.control.scan import scan as scan
from pullback.control.scan_primitive import scan_p as scan_p
from pullback.control.solves import custom_linear_solve as custom_linear_solve
from pullback.control.solves import custom_root as custom_root
from pullback.control.while_primitive import while_p as while_p
from pullback.core.annotations import PrecisionLike as PrecisionLike
from pullback.lax import linalg as linalg
from pullback.lax.bit_generator import rng_bit_generator as rng_bit_generator
from pullback.lax.collectives import all_gather as all_gather
from pullback.lax.collectives import all_to_all as all_to_all
from pullback.lax.collectives import axis_index as axis_index
from pullback.lax.collectives import axis_size as axis_size
from pullback.lax.collectives import pbroadcast as pbroadcast
from pullback.lax.collectives import pcast as pcast
from pullback.lax.collectives import pmax as pmax
from pullback.lax.collectives import pmean as pmean
from pullback.lax.collectives import pmin as pmin
from pullback.lax.collectives import ppermute as ppermute
from pullback.lax.collectives import pshuffle as pshuffle
from pullback.lax.collectives import psum as psum
from pullback.lax.collectives import psum_scatter as psum_scatter
from pullback.lax.collectives import pswapaxes as pswapaxes
from pullback.lax.collectives import pvary as pvary
from pullback.lax.contraction import DotDimensionNumbers as DotDimensionNumbers
from pullback.lax.contraction import batch_matmul as batch_matmul
from pullback.lax.contraction import dot as dot
from pullback.lax.contraction import dot_general as dot_general
from pullback.lax.contraction import scaled_dot as scaled_dot
from pullback.lax.convolution import ConvDimensionNumbersLike as ConvGeneralDilatedDimensionNumbers
from pullback.lax.convolution import conv as conv
from pullback.lax.convolution import conv_dimension_numbers as conv_dimension_numbers
from pullback.lax.convolution import conv_general_dilated as conv_general_dilated
from pullback.lax.convolution import conv_general_dilated_local as conv_general_dilated_local
from pullback.lax.convolution import conv_general_dilated_patches as conv_general_dilated_patches
from pullback.lax.convolution import conv_transpose as conv_transpose
from pullback.lax.convolution import conv_with_general_padding as conv_with_general_padding
from pullback.lax.dtype import dtype as dtype
from pullback.lax.elementwise import AccuracyMode as AccuracyMode
from pullback.lax.elementwise import RoundingMethod as RoundingMethod
from pullback.lax.elementwise import Tolerance as Tolerance
from pullback.lax.elementwise import bitcast_convert_type as bitcast_convert_type
from pullback.lax.elementwise import clamp as clamp
from pullback.lax.elementwise import conj as conj
from pullback.lax.elementwise import convert_element_type as convert_element_type
from pullback.lax.elementwise import integer_pow as integer_pow
from pullback.lax.elementwise import log2 as log2
from pullback.lax.elementwise import polynomial as polynomial
from pullback.lax.elementwise import pow as pow
from pullback.lax.elementwise import reciprocal as reciprocal
from pullback.lax.elementwise import reduce_precision as reduce_precision
from pullback.lax.elementwise import round as round
from pullback.lax.elementwise import select as select
from pullback.lax.elementwise import select_n as select_n
from pullback.lax.fourier import fft as fft
from pullback.lax.indexing import dynamic_index_in_dim as dynamic_index_in_dim
from pullback.lax.indexing import dynamic_slice as dynamic_slice
from pullback.lax.indexing import dynamic_slice_in_dim as dynamic_slice_in_dim
from pullback.lax.indexing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from pullback.lax.indexing import dynamic_update_slice as dynamic_update_slice
from pullback.lax.indexing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from pullback.lax.indexing import gather as gather
from pullback.lax.indexing import index_take as index_take
from pullback.lax.indexing import scatter as scatter
from pullback.lax.indexing import scatter_add as scatter_add
from pullback.lax.indexing import scatter_apply as scatter_apply
from pullback.lax.indexing import scatter_max as scatter_max
from pullback.lax.indexing import scatter_min as scatter_min
from pullback.lax.indexing import scatter_mul as scatter_mul
from pullback.lax.indexing import scatter_sub as scatter_sub
from pullback.lax.precision import DotAlgorithm as DotAlgorithm
from pullback.lax.precision import DotAlgorithmPreset as DotAlgorithmPreset
from pullback.lax.precision import Precision as Precision
from pullback.lax.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from pullback.lax.ragged import ragged_dot as ragged_dot
from pullback.lax.ragged import ragged_dot_general as ragged_dot_general
from pullback.lax.ragged_exchange import ragged_all_to_all as ragged_all_to_all
from pullback.lax.reductions import approx_max_k as approx_max_k
from pullback.lax.reductions import approx_min_k as approx_min_k
from pullback.lax.reductions import argmax as argmax
from pullback.lax.reductions import argmin as argmin
from pullback.lax.reductions import cumlogsumexp as cumlogsumexp
from pullback.lax.reductions import cummax as cummax
from pullback.lax.reductions import cummin as cummin
from pullback.lax.reductions import cumprod as cumprod
from pullback.lax.reductions import cumsum as cumsum
from pullback.lax.reductions import reduce_and as reduce_and
from pullback.lax.reductions import reduce_max as reduce_max
from pullback.lax.reductions import reduce_min as reduce_min
from pullback.lax.reductions import reduce_or as reduce_or
from pullback.lax.reductions import reduce_prod as reduce_prod
from pullback.lax.reductions import reduce_sum as reduce_sum
from pullback.lax.reductions import reduce_xor as reduce_xor
from pullback.lax.reductions import sort as sort
from pullback.lax.reductions import sort_key_val as sort_key_val
from pullback.lax.reductions import top_k as top_k
from pullback.lax.shapes import broadcast as broadcast
from pullback.lax.shapes import broadcast_in_dim as broadcast_in_dim
from pullback.lax.shapes import broadcast_like as broadcast_like
from pullback.lax.shapes import broadcast_shapes as broadcast_shapes
from pullback.lax.shapes import broadcast_to_rank as broadcast_to_rank
from pullback.lax.shapes import broadcasted_iota as broadcasted_iota
from pullback.lax.shapes import collapse as collapse
from pullback.lax.shapes import concatenate as concatenate
from pullback.lax.shapes import empty as empty
from pullback.lax.shapes import expand_dims as expand_dims
from pullback.lax.shapes import full as full
from pullback.lax.shapes import full_like as full_like
from pullback.lax.shapes import index_in_dim as index_in_dim
from pullback.lax.shapes import iota as iota
from pullback.lax.shapes import pad as pad
from pullback.lax.shapes import reshape as reshape
from pullback.lax.shapes import rev as rev
from pullback.lax.shapes import slice as slice
from pullback.lax.shapes import slice_in_dim as slice_in_dim
from pullback.lax.shapes import split as split
from pullback.lax.shapes import squeeze as squeeze
from pullback.lax.shapes import stack as stack
from pullback.lax.shapes import stage as stage
from pullback.lax.shapes import tile as tile
from pullback.lax.shapes import transpose as transpose
from pullback.lax.shapes import unstack as unstack
from pullback.lax.shapes import zeros_like_array as zeros_like_array
from pullback.lax.special import betainc as betainc
from pullback.lax.special import igamma as igamma
from pullback.lax.special import igamma_grad_a as igamma_grad_a
from pullback.lax.special import igammac as igammac
from pullback.lax.special import random_gamma_grad as random_gamma_grad
from pullback.lax.special import zeta as zeta
from pullback.lax.stateful_numbers import rng_uniform as rng_uniform
from pullback.lax.tokens import after_all as after_all
from pullback.lax.tokens import create_token as create_token
from pullback.lax.tokens import precv as precv
from pullback.lax.tokens import psend as psend
from pullback.lax.windows import reduce as reduce
from pullback.lax.windows import reduce_window as reduce_window
from pullback.primitives.arrays.indexing import dynamic_slice_p as dynamic_slice_p
from pullback.primitives.arrays.indexing import dynamic_update_slice_p as dynamic_update_slice_p
from pullback.primitives.arrays.indexing import gather_p as gather_p
from pullback.primitives.arrays.scatter import scatter_add_p as scatter_add_p
from pullback.primitives.arrays.scatter import scatter_max_p as scatter_max_p
from pullback.primitives.arrays.scatter import scatter_min_p as scatter_min_p
from pullback.primitives.arrays.scatter import scatter_mul_p as scatter_mul_p
from pullback.primitives.arrays.scatter import scatter_p as scatter_p
from pullback.primitives.arrays.shapes import broadcast_in_dim_p as broadcast_in_dim_p
from pullback.primitives.arrays.shapes import reshape_p as reshape_p
from pullback.primitives.arrays.shapes import squeeze_p as squeeze_p
from pullback.primitives.arrays.shapes import transpose_p as transpose_p
from pullback.primitives.arrays.slicing import concatenate_p as concatenate_p
from pullback.primitives.arrays.slicing import iota_p as iota_p
from pullback.primitives.arrays.slicing import pad_p as pad_p
from pullback.primitives.arrays.slicing import rev_p as rev_p
from pullback.primitives.arrays.slicing import slice_p as slice_p
from pullback.primitives.arrays.sorting import sort_p as sort_p
from pullback.primitives.arrays.sorting import top_k_p as top_k_p
from pullback.primitives.arrays.windows import GatherDimensionNumbers as GatherDimensionNumbers
from pullback.primitives.arrays.windows import GatherScatterMode as GatherScatterMode
from pullback.primitives.arrays.windows import ScatterDimensionNumbers as ScatterDimensionNumbers
from pullback.primitives.bits import reduce_precision_p as reduce_precision_p
from pullback.primitives.collectives import all_gather_p as all_gather_p
from pullback.primitives.collectives import all_to_all_p as all_to_all_p
from pullback.primitives.collectives import axis_index_p as axis_index_p
from pullback.primitives.collectives import pmax_p as pmax_p
from pullback.primitives.collectives import pmin_p as pmin_p
from pullback.primitives.collectives import ppermute_p as ppermute_p
from pullback.primitives.collectives import psum_p as psum_p
from pullback.primitives.collectives import reduce_scatter_p as reduce_scatter_p
from pullback.primitives.elementwise import clamp_p as clamp_p
from pullback.primitives.elementwise import conj_p as conj_p
from pullback.primitives.elementwise import convert_element_type_p as convert_element_type_p
from pullback.primitives.elementwise import copy_p as copy_p
from pullback.primitives.elementwise import integer_pow_p as integer_pow_p
from pullback.primitives.elementwise import pow_p as pow_p
from pullback.primitives.elementwise import round_p as round_p
from pullback.primitives.elementwise import select_n_p as select_n_p
from pullback.primitives.elementwise import stop_gradient_p as stop_gradient_p
from pullback.primitives.linalg.contraction import dot_general_p as dot_general_p
from pullback.primitives.operands import stop_gradient as stop_gradient
from pullback.primitives.random.generator import RandomAlgorithm as RandomAlgorithm
from pullback.primitives.random.generator import rng_bit_generator_p as rng_bit_generator_p
from pullback.primitives.reductions import argmax_p as argmax_p
from pullback.primitives.reductions import argmin_p as argmin_p
from pullback.primitives.reductions import cumlogsumexp_p as cumlogsumexp_p
from pullback.primitives.reductions import cummax_p as cummax_p
from pullback.primitives.reductions import cummin_p as cummin_p
from pullback.primitives.reductions import cumprod_p as cumprod_p
from pullback.primitives.reductions import cumsum_p as cumsum_p
from pullback.primitives.reductions import reduce_and_p as reduce_and_p
from pullback.primitives.reductions import reduce_max_p as reduce_max_p
from pullback.primitives.reductions import reduce_min_p as reduce_min_p
from pullback.primitives.reductions import reduce_or_p as reduce_or_p
from pullback.primitives.reductions import reduce_prod_p as reduce_prod_p
from pullback.primitives.reductions import reduce_sum_p as reduce_sum_p
from pullback.primitives.reductions import reduce_xor_p as reduce_xor_p
from pullback.primitives.signals.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from pullback.primitives.signals.convolution import conv_general_dilated_p as conv_general_dilated_p
from pullback.primitives.signals.convolution import padtype_to_pads as padtype_to_pads
from pullback.primitives.signals.fourier import FftType as FftType
from pullback.primitives.signals.fourier import fft_p as fft_p
from pullback.primitives.signals.window_reductions import reduce_window_max_p as reduce_window_max_p
from pullback.primitives.signals.window_reductions import reduce_window_min_p as reduce_window_min_p
from pullback.primitives.signals.window_reductions import reduce_window_sum_p as reduce_window_sum_p
from pullback.primitives.special.incomplete import betainc_p as betainc_p
from pullback.primitives.special.incomplete import igamma_p as igamma_p
from pullback.primitives.special.incomplete import igammac_p as igammac_p
from pullback.primitives.special.others import zeta_p as zeta_p
from pullback.transforms.checkpoint.barriers import optimization_barrier as optimization_barrier
from pullback.transforms.programs.placement import with_sharding_constraint as with_sharding_constraint

def abs(x: ArrayLike) -> Array: ...
abs_p: Primitive
def acos(x: ArrayLike) -> Array: ...
acos_p: Primitive
def acosh(x: ArrayLike) -> Array: ...
acosh_p: Primitive
def add(x: ArrayLike, y: ArrayLike) -> Array: ...
add_p: Primitive
and_p: Primitive
def asin(x: ArrayLike) -> Array: ...
asin_p: Primitive
def asinh(x: ArrayLike) -> Array: ...
asinh_p: Primitive
def atan(x: ArrayLike) -> Array: ...
def atan2(x: ArrayLike, y: ArrayLike) -> Array: ...
atan2_p: Primitive
atan_p: Primitive
def atanh(x: ArrayLike) -> Array: ...
atanh_p: Primitive
def bessel_i0e(x: ArrayLike) -> Array: ...
bessel_i0e_p: Primitive
def bessel_i1e(x: ArrayLike) -> Array: ...
bessel_i1e_p: Primitive
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_not(x: ArrayLike) -> Array: ...
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array: ...
def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
cbrt_p: Primitive
def ceil(x: ArrayLike) -> Array: ...
ceil_p: Primitive
def clz(x: ArrayLike) -> Array: ...
clz_p: Primitive
def complex(x: ArrayLike, y: ArrayLike) -> Array: ...
complex_p: Primitive
def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
cos_p: Primitive
def cosh(x: ArrayLike) -> Array: ...
cosh_p: Primitive
def digamma(x: ArrayLike) -> Array: ...
digamma_p: Primitive
def div(x: ArrayLike, y: ArrayLike) -> Array: ...
div_p: Primitive
def eq(x: ArrayLike, y: ArrayLike) -> Array: ...
eq_p: Primitive
def erf(x: ArrayLike) -> Array: ...
def erf_inv(x: ArrayLike) -> Array: ...
erf_inv_p: Primitive
erf_p: Primitive
def erfc(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
erfc_p: Primitive
def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
exp2_p: Primitive
exp_p: Primitive
def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
expm1_p: Primitive
def exprel(x: ArrayLike) -> Array: ...
exprel_p: Primitive
def floor(x: ArrayLike) -> Array: ...
floor_p: Primitive
def ge(x: ArrayLike, y: ArrayLike) -> Array: ...
ge_p: Primitive
def gt(x: ArrayLike, y: ArrayLike) -> Array: ...
gt_p: Primitive
def imag(x: ArrayLike) -> Array: ...
imag_p: Primitive
def is_finite(x: ArrayLike) -> Array: ...
is_finite_p: Primitive
def le(x: ArrayLike, y: ArrayLike) -> Array: ...
le_p: Primitive
def lgamma(x: ArrayLike) -> Array: ...
lgamma_p: Primitive
def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
log1p_p: Primitive
log_p: Primitive
def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
logistic_p: Primitive
def lt(x: ArrayLike, y: ArrayLike) -> Array: ...
lt_p: Primitive
def max(x: ArrayLike, y: ArrayLike) -> Array: ...
max_p: Primitive
def min(x: ArrayLike, y: ArrayLike) -> Array: ...
min_p: Primitive
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike = None) -> Array: ...
mul_p: Primitive
def mulhi(x: ArrayLike, y: ArrayLike) -> Array: ...
mulhi_p: Primitive
def ne(x: ArrayLike, y: ArrayLike) -> Array: ...
ne_p: Primitive
def neg(x: ArrayLike) -> Array: ...
neg_p: Primitive
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array: ...
nextafter_p: Primitive
not_p: Primitive
def one_minus_square(x: ArrayLike) -> Array: ...
one_minus_square_p: Primitive
or_p: Primitive
def polygamma(m: ArrayLike, x: ArrayLike) -> Array: ...
polygamma_p: Primitive
def population_count(x: ArrayLike) -> Array: ...
population_count_p: Primitive
def real(x: ArrayLike) -> Array: ...
real_p: Primitive
def rem(x: ArrayLike, y: ArrayLike) -> Array: ...
rem_p: Primitive
def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
rsqrt_p: Primitive
def shift_left(x: ArrayLike, y: ArrayLike) -> Array: ...
shift_left_p: Primitive
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array: ...
shift_right_arithmetic_p: Primitive
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array: ...
shift_right_logical_p: Primitive
def sign(x: ArrayLike) -> Array: ...
sign_p: Primitive
def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
sin_p: Primitive
def sinh(x: ArrayLike) -> Array: ...
sinh_p: Primitive
def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
sqrt_p: Primitive
def square(x: ArrayLike) -> Array: ...
square_p: Primitive
def sub(x: ArrayLike, y: ArrayLike) -> Array: ...
sub_p: Primitive
def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
tan_p: Primitive
def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...
tanh_p: Primitive
xor_p: Primitive

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm",
    "DotAlgorithmPreset", "DotDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode",
    "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod",
    "ScatterDimensionNumbers", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p", "add", "add_p",
    "after_all", "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "and_p", "approx_max_k",
    "approx_min_k", "argmax", "argmax_p", "argmin", "argmin_p", "asin", "asin_p", "asinh", "asinh_p",
    "associative_scan", "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "axis_index", "axis_index_p",
    "axis_size", "batch_matmul", "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc",
    "betainc_p", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast",
    "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p", "clz", "clz_p", "collapse",
    "complex", "complex_p", "composite", "concatenate", "concatenate_p", "cond", "cond_p", "conj", "conj_p",
    "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_p", "conv_general_dilated_patches", "conv_transpose", "conv_with_general_padding",
    "convert_element_type", "convert_element_type_p", "copy_p", "cos", "cos_p", "cosh", "cosh_p", "create_token",
    "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p",
    "cumsum", "cumsum_p", "custom_linear_solve", "custom_root", "digamma", "digamma_p", "div", "div_p", "dot",
    "dot_general", "dot_general_p", "dtype", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_slice_p", "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p", "empty", "eq", "eq_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p",
    "exp", "exp2", "exp2_p", "exp_p", "expand_dims", "expm1", "expm1_p", "exprel", "exprel_p", "fft", "fft_p",
    "floor", "floor_p", "fori_loop", "full", "full_like", "gather", "gather_p", "ge", "ge_p", "gt", "gt_p",
    "igamma", "igamma_grad_a", "igamma_p", "igammac", "igammac_p", "imag", "imag_p", "index_in_dim", "index_take",
    "integer_pow", "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p", "le", "le_p", "lgamma",
    "lgamma_p", "linalg", "log", "log1p", "log1p_p", "log2", "log_p", "logistic", "logistic_p", "lt", "lt_p",
    "map", "max", "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p",
    "nextafter", "nextafter_p", "not_p", "one_minus_square", "one_minus_square_p", "optimization_barrier", "or_p",
    "pad", "pad_p", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent", "pmax", "pmax_p", "pmean",
    "pmin", "pmin_p", "polygamma", "polygamma_p", "polynomial", "population_count", "population_count_p", "pow",
    "pow_p", "ppermute", "ppermute_p", "precv", "psend", "pshuffle", "psum", "psum_p", "psum_scatter",
    "pswapaxes", "pvary", "ragged_all_to_all", "ragged_dot", "ragged_dot_general", "random_gamma_grad", "real",
    "real_p", "reciprocal", "reduce", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min",
    "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_precision", "reduce_precision_p", "reduce_prod",
    "reduce_prod_p", "reduce_scatter_p", "reduce_sum", "reduce_sum_p", "reduce_window", "reduce_window_max_p",
    "reduce_window_min_p", "reduce_window_sum_p", "reduce_xor", "reduce_xor_p", "rem", "rem_p", "reshape",
    "reshape_p", "rev", "rev_p", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "round", "round_p",
    "rsqrt", "rsqrt_p", "scaled_dot", "scan", "scan_p", "scatter", "scatter_add", "scatter_add_p",
    "scatter_apply", "scatter_max", "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul",
    "scatter_mul_p", "scatter_p", "scatter_sub", "select", "select_n", "select_n_p", "shift_left", "shift_left_p",
    "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical", "shift_right_logical_p", "sign",
    "sign_p", "sin", "sin_p", "sinh", "sinh_p", "slice", "slice_in_dim", "slice_p", "sort", "sort_key_val",
    "sort_p", "split", "sqrt", "sqrt_p", "square", "square_p", "squeeze", "squeeze_p", "stack", "stage",
    "stop_gradient", "stop_gradient_p", "sub", "sub_p", "switch", "tan", "tan_p", "tanh", "tanh_p", "tile",
    "top_k", "top_k_p", "transpose", "transpose_p", "unstack", "while_loop", "while_p",
    "with_sharding_constraint", "xor_p", "zeros_like_array", "zeta", "zeta_p",
]
