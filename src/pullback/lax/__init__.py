"""The primitives under JAX's names, as functions that check their operands: ``pullback.lax``.

The functions of operations on elements, and these primitives, come from the table ``PUBLIC`` of their declarations.
"""

from pullback.core.faces import face as _face
from pullback.lax.dtype import dtype as dtype  # which is the name of the module too
from pullback.lax.elementwise import FUNCTIONS
from pullback.primitives.declare import PUBLIC

globals().update(FUNCTIONS)
globals().update({f"{primitive.name}_p": primitive for primitive in PUBLIC})
del FUNCTIONS, PUBLIC

_face(
    globals(),
    {
        "pullback.control.associative": "associative_scan",
        "pullback.control.conditional": "cond cond_p switch",
        "pullback.control.fori_loop": "fori_loop",
        "pullback.control.loops": "while_loop",
        "pullback.control.platforms": "composite platform_dependent",
        "pullback.control.scan": "map scan",
        "pullback.control.scan_primitive": "scan_p",
        "pullback.control.solves": "custom_linear_solve custom_root",
        "pullback.control.while_primitive": "while_p",
        ".bit_generator": "rng_bit_generator",
        ".collectives": (
            "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute pshuffle psum "
            "psum_scatter pswapaxes pvary"
        ),
        ".contraction": "DotDimensionNumbers batch_matmul dot dot_general scaled_dot",
        ".convolution": (
            "ConvGeneralDilatedDimensionNumbers=ConvDimensionNumbersLike conv conv_dimension_numbers "
            "conv_general_dilated conv_general_dilated_local conv_general_dilated_patches "
            "conv_transpose conv_with_general_padding"
        ),
        ".elementwise": (
            "AccuracyMode RoundingMethod Tolerance bitcast_convert_type clamp conj convert_element_type integer_pow "
            "log2 polynomial pow reciprocal reduce_precision round select select_n"
        ),
        ".fourier": "fft",
        ".indexing": (
            "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice "
            "dynamic_update_slice_in_dim gather index_take scatter scatter_add scatter_apply scatter_max scatter_min "
            "scatter_mul scatter_sub"
        ),
        ".precision": "DotAlgorithm DotAlgorithmPreset Precision",
        ".ragged_exchange": "ragged_all_to_all",
        ".stateful_numbers": "rng_uniform",
        ".tokens": "after_all create_token precv psend",
        ".ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
        ".reductions": (
            "approx_max_k approx_min_k argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce_and reduce_max "
            "reduce_min reduce_or reduce_prod reduce_sum reduce_xor sort sort_key_val top_k"
        ),
        ".shapes": (
            "broadcast broadcast_in_dim broadcast_like broadcast_shapes broadcast_to_rank broadcasted_iota collapse "
            "concatenate empty expand_dims full full_like index_in_dim iota pad reshape rev slice slice_in_dim split "
            "squeeze stack stage tile transpose unstack zeros_like_array"
        ),
        ".special": "betainc igamma igamma_grad_a igammac random_gamma_grad zeta",
        ".windows": "reduce reduce_window",
        "pullback.core.annotations": "PrecisionLike",
        "pullback.primitives.arrays.indexing": "dynamic_slice_p dynamic_update_slice_p gather_p",
        "pullback.primitives.arrays.scatter": "scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p",
        "pullback.primitives.arrays.shapes": "broadcast_in_dim_p reshape_p squeeze_p transpose_p",
        "pullback.primitives.arrays.slicing": "concatenate_p iota_p pad_p rev_p slice_p",
        "pullback.primitives.arrays.sorting": "sort_p top_k_p",
        "pullback.primitives.arrays.windows": "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers",
        "pullback.primitives.bits": "reduce_precision_p",
        "pullback.primitives.collectives": (
            "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p reduce_scatter_p"
        ),
        "pullback.primitives.elementwise": (
            "clamp_p conj_p convert_element_type_p copy_p integer_pow_p pow_p round_p select_n_p stop_gradient_p"
        ),
        "pullback.primitives.linalg.contraction": "dot_general_p",
        "pullback.primitives.operands": "stop_gradient",
        "pullback.primitives.random.generator": "RandomAlgorithm rng_bit_generator_p",
        "pullback.primitives.reductions": (
            "argmax_p argmin_p cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p reduce_and_p reduce_max_p "
            "reduce_min_p reduce_or_p reduce_prod_p reduce_sum_p reduce_xor_p"
        ),
        "pullback.primitives.signals.convolution": "ConvDimensionNumbers conv_general_dilated_p padtype_to_pads",
        "pullback.primitives.signals.fourier": "FftType fft_p",
        "pullback.primitives.signals.window_reductions": "reduce_window_max_p reduce_window_min_p reduce_window_sum_p",
        "pullback.primitives.special.incomplete": "betainc_p igamma_p igammac_p",
        "pullback.primitives.special.others": "zeta_p",
        "pullback.transforms.checkpoint.barriers": "optimization_barrier",
        "pullback.transforms.programs.placement": "with_sharding_constraint",
    },
    modules="linalg",
)
