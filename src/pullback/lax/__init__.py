"""The primitives under JAX's names, as functions that check their operands: ``pullback.lax``.

The functions of operations on elements, and these primitives, come from the table ``PUBLIC`` of their declarations.
"""

import typing as _typing

from pullback.control.associative import associative_scan
from pullback.control.conditional import cond, cond_p, switch
from pullback.control.fori_loop import fori_loop
from pullback.control.loops import while_loop, while_p
from pullback.control.platforms import composite, platform_dependent
from pullback.control.scan import map, scan
from pullback.control.scan_primitive import scan_p
from pullback.control.solves import custom_linear_solve, custom_root
from pullback.lax import linalg
from pullback.lax.bit_generator import rng_bit_generator
from pullback.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    pvary,
)
from pullback.lax.contraction import DotDimensionNumbers, batch_matmul, dot, dot_general, scaled_dot
from pullback.lax.convolution import (
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_transpose,
    conv_with_general_padding,
)
from pullback.lax.dtype import dtype
from pullback.lax.elementwise import (
    FUNCTIONS,
    AccuracyMode,
    RoundingMethod,
    Tolerance,
    bitcast_convert_type,
    clamp,
    conj,
    convert_element_type,
    integer_pow,
    pow,
    reciprocal,
    reduce_precision,
    round,
    select,
    select_n,
)
from pullback.lax.fourier import fft
from pullback.lax.indexing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from pullback.lax.precision import DotAlgorithm, DotAlgorithmPreset, Precision
from pullback.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from pullback.lax.reductions import (
    approx_max_k,
    approx_min_k,
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
    sort,
    sort_key_val,
    top_k,
)
from pullback.lax.shapes import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    broadcasted_iota,
    collapse,
    concatenate,
    empty,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    pad,
    reshape,
    rev,
    slice,
    slice_in_dim,
    split,
    squeeze,
    stack,
    stage,
    tile,
    transpose,
    unstack,
    zeros_like_array,
)
from pullback.lax.special import betainc, igamma, igamma_grad_a, igammac, random_gamma_grad, zeta
from pullback.lax.windows import reduce, reduce_window
from pullback.primitives.bit_generator import RandomAlgorithm, rng_bit_generator_p
from pullback.primitives.bits import reduce_precision_p
from pullback.primitives.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from pullback.primitives.contraction import dot_general_p
from pullback.primitives.convolution import ConvDimensionNumbers, conv_general_dilated_p, padtype_to_pads
from pullback.primitives.declare import PUBLIC
from pullback.primitives.elementwise import (
    clamp_p,
    conj_p,
    convert_element_type_p,
    copy_p,
    integer_pow_p,
    pow_p,
    round_p,
    select_n_p,
    stop_gradient_p,
)
from pullback.primitives.fourier import FftType, fft_p
from pullback.primitives.incomplete import betainc_p, igamma_p, igammac_p
from pullback.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p, gather_p
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import (
    argmax_p,
    argmin_p,
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum_p,
    reduce_xor_p,
)  # fmt: skip
from pullback.primitives.scatter import scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p
from pullback.primitives.shapes import broadcast_in_dim_p, reshape_p, squeeze_p, transpose_p
from pullback.primitives.slicing import concatenate_p, iota_p, pad_p, rev_p, slice_p
from pullback.primitives.sorting import sort_p, top_k_p
from pullback.primitives.special import zeta_p
from pullback.primitives.window_reductions import reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p
from pullback.primitives.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from pullback.transforms.checkpoint.checkpoint_primitive import optimization_barrier
from pullback.transforms.programs.placement import with_sharding_constraint

globals().update(FUNCTIONS)
globals().update({f"{primitive.name}_p": primitive for primitive in PUBLIC})
del FUNCTIONS, PUBLIC

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any: ...
