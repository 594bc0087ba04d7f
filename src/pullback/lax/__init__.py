"""The primitives under JAX's names, as functions that check their operands: ``pullback.lax``.

The functions of operations on elements, and these primitives, come from the table ``PUBLIC`` of their declarations.
"""

import typing as _typing

from pullback.control.associative import associative_scan as associative_scan
from pullback.control.conditional import cond as cond
from pullback.control.conditional import cond_p as cond_p
from pullback.control.conditional import switch as switch
from pullback.control.fori_loop import fori_loop as fori_loop
from pullback.control.loops import while_loop as while_loop
from pullback.control.loops import while_p as while_p
from pullback.control.platforms import composite as composite
from pullback.control.platforms import platform_dependent as platform_dependent
from pullback.control.scan import map as map
from pullback.control.scan import scan as scan
from pullback.control.scan_primitive import scan_p as scan_p
from pullback.control.solves import custom_linear_solve as custom_linear_solve
from pullback.control.solves import custom_root as custom_root
from pullback.core.faces import face as _face
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
from pullback.lax.convolution import conv as conv
from pullback.lax.convolution import conv_dimension_numbers as conv_dimension_numbers
from pullback.lax.convolution import conv_general_dilated as conv_general_dilated
from pullback.lax.convolution import conv_general_dilated_local as conv_general_dilated_local
from pullback.lax.convolution import conv_general_dilated_patches as conv_general_dilated_patches
from pullback.lax.convolution import conv_transpose as conv_transpose
from pullback.lax.convolution import conv_with_general_padding as conv_with_general_padding
from pullback.lax.dtype import dtype as dtype
from pullback.lax.elementwise import FUNCTIONS
from pullback.lax.elementwise import AccuracyMode as AccuracyMode
from pullback.lax.elementwise import RoundingMethod as RoundingMethod
from pullback.lax.elementwise import Tolerance as Tolerance
from pullback.lax.elementwise import bitcast_convert_type as bitcast_convert_type
from pullback.lax.elementwise import clamp as clamp
from pullback.lax.elementwise import conj as conj
from pullback.lax.elementwise import convert_element_type as convert_element_type
from pullback.lax.elementwise import integer_pow as integer_pow
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
from pullback.lax.windows import reduce as reduce
from pullback.lax.windows import reduce_window as reduce_window
from pullback.primitives.bit_generator import RandomAlgorithm as RandomAlgorithm
from pullback.primitives.bit_generator import rng_bit_generator_p as rng_bit_generator_p
from pullback.primitives.bits import reduce_precision_p as reduce_precision_p
from pullback.primitives.collectives import all_gather_p as all_gather_p
from pullback.primitives.collectives import all_to_all_p as all_to_all_p
from pullback.primitives.collectives import axis_index_p as axis_index_p
from pullback.primitives.collectives import pmax_p as pmax_p
from pullback.primitives.collectives import pmin_p as pmin_p
from pullback.primitives.collectives import ppermute_p as ppermute_p
from pullback.primitives.collectives import psum_p as psum_p
from pullback.primitives.collectives import reduce_scatter_p as reduce_scatter_p
from pullback.primitives.contraction import dot_general_p as dot_general_p
from pullback.primitives.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from pullback.primitives.convolution import conv_general_dilated_p as conv_general_dilated_p
from pullback.primitives.convolution import padtype_to_pads as padtype_to_pads
from pullback.primitives.declare import PUBLIC
from pullback.primitives.elementwise import clamp_p as clamp_p
from pullback.primitives.elementwise import conj_p as conj_p
from pullback.primitives.elementwise import convert_element_type_p as convert_element_type_p
from pullback.primitives.elementwise import copy_p as copy_p
from pullback.primitives.elementwise import integer_pow_p as integer_pow_p
from pullback.primitives.elementwise import pow_p as pow_p
from pullback.primitives.elementwise import round_p as round_p
from pullback.primitives.elementwise import select_n_p as select_n_p
from pullback.primitives.elementwise import stop_gradient_p as stop_gradient_p
from pullback.primitives.fourier import FftType as FftType
from pullback.primitives.fourier import fft_p as fft_p
from pullback.primitives.incomplete import betainc_p as betainc_p
from pullback.primitives.incomplete import igamma_p as igamma_p
from pullback.primitives.incomplete import igammac_p as igammac_p
from pullback.primitives.indexing import dynamic_slice_p as dynamic_slice_p
from pullback.primitives.indexing import dynamic_update_slice_p as dynamic_update_slice_p
from pullback.primitives.indexing import gather_p as gather_p
from pullback.primitives.operands import stop_gradient as stop_gradient
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
from pullback.primitives.scatter import scatter_add_p as scatter_add_p
from pullback.primitives.scatter import scatter_max_p as scatter_max_p
from pullback.primitives.scatter import scatter_min_p as scatter_min_p
from pullback.primitives.scatter import scatter_mul_p as scatter_mul_p
from pullback.primitives.scatter import scatter_p as scatter_p
from pullback.primitives.shapes import broadcast_in_dim_p as broadcast_in_dim_p
from pullback.primitives.shapes import reshape_p as reshape_p
from pullback.primitives.shapes import squeeze_p as squeeze_p
from pullback.primitives.shapes import transpose_p as transpose_p
from pullback.primitives.slicing import concatenate_p as concatenate_p
from pullback.primitives.slicing import iota_p as iota_p
from pullback.primitives.slicing import pad_p as pad_p
from pullback.primitives.slicing import rev_p as rev_p
from pullback.primitives.slicing import slice_p as slice_p
from pullback.primitives.sorting import sort_p as sort_p
from pullback.primitives.sorting import top_k_p as top_k_p
from pullback.primitives.special import zeta_p as zeta_p
from pullback.primitives.window_reductions import reduce_window_max_p as reduce_window_max_p
from pullback.primitives.window_reductions import reduce_window_min_p as reduce_window_min_p
from pullback.primitives.window_reductions import reduce_window_sum_p as reduce_window_sum_p
from pullback.primitives.windows import GatherDimensionNumbers as GatherDimensionNumbers
from pullback.primitives.windows import GatherScatterMode as GatherScatterMode
from pullback.primitives.windows import ScatterDimensionNumbers as ScatterDimensionNumbers
from pullback.transforms.checkpoint.checkpoint_primitive import optimization_barrier as optimization_barrier
from pullback.transforms.programs.placement import with_sharding_constraint as with_sharding_constraint

globals().update(FUNCTIONS)
globals().update({f"{primitive.name}_p": primitive for primitive in PUBLIC})
del FUNCTIONS, PUBLIC

if _typing.TYPE_CHECKING:  # what the declarations of the primitives make
    from pullback.core.annotations import DTypeLike as _DTypeLike
    from pullback.core.array import Array as _Array
    from pullback.core.array import ArrayLike as _ArrayLike
    from pullback.core.trace import Primitive as _Primitive

    def _unary(x: _ArrayLike) -> _Array: ...
    def _binary(x: _ArrayLike, y: _ArrayLike) -> _Array: ...
    def _with_accuracy(x: _ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> _Array: ...

    _primitive = _typing.cast("_Primitive", None)

    def mul(x: _ArrayLike, y: _ArrayLike, *, out_dtype: _DTypeLike = None) -> _Array: ...
    def nextafter(x1: _ArrayLike, x2: _ArrayLike) -> _Array: ...
    def polygamma(m: _ArrayLike, x: _ArrayLike) -> _Array: ...

    abs = acos = acosh = asin = asinh = atan = atanh = bessel_i0e = bessel_i1e = bitwise_not = ceil = _unary
    clz = cosh = digamma = erf = erf_inv = erfc = exprel = floor = imag = is_finite = lgamma = neg = _unary
    population_count = real = sign = sinh = square = _unary
    cbrt = cos = exp = exp2 = expm1 = log = log1p = logistic = rsqrt = sin = sqrt = tan = tanh = _with_accuracy
    add = atan2 = bitwise_and = bitwise_or = bitwise_xor = complex = div = eq = ge = gt = le = lt = _binary
    max = min = mulhi = ne = rem = shift_left = shift_right_arithmetic = _binary
    shift_right_logical = sub = _binary
    abs_p = acos_p = acosh_p = add_p = and_p = asin_p = asinh_p = atan2_p = atan_p = atanh_p = _primitive
    bessel_i0e_p = bessel_i1e_p = cbrt_p = ceil_p = clz_p = complex_p = cos_p = cosh_p = digamma_p = _primitive
    div_p = eq_p = erf_inv_p = erf_p = erfc_p = exp2_p = exp_p = expm1_p = exprel_p = floor_p = _primitive
    ge_p = gt_p = imag_p = is_finite_p = le_p = lgamma_p = log1p_p = log_p = logistic_p = lt_p = _primitive
    max_p = min_p = mul_p = mulhi_p = ne_p = neg_p = nextafter_p = not_p = or_p = polygamma_p = _primitive
    population_count_p = real_p = rem_p = rsqrt_p = shift_left_p = shift_right_arithmetic_p = _primitive
    shift_right_logical_p = sign_p = sin_p = sinh_p = sqrt_p = square_p = sub_p = tan_p = tanh_p = _primitive
    xor_p = _primitive

_face(globals(), modules="linalg")
