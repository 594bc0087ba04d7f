"""The primitives under the names of ``jax.extend.core.primitives``, for users' own interpreters of jaxprs.

Parameters of equations have JAX's names. Primitives of JAX without a direct counterpart here, such as ``random_bits``
and ``reduce``, are missing.

>>> from pullback import lax, make_jaxpr
>>> from pullback.extend.core.primitives import sin_p
>>> [eqn.primitive is sin_p for eqn in make_jaxpr(lax.sin)(1.0).eqns]
[True]
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.control.conditional": "cond_p",
        "pullback.control.scan_primitive": "scan_p",
        "pullback.control.while_primitive": "while_p",
        "pullback.primitives.arrays.gather": "gather_p",
        "pullback.primitives.arrays.indexing": "dynamic_slice_p dynamic_update_slice_p",
        "pullback.primitives.arrays.scatter": "scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p",
        "pullback.primitives.arrays.shapes": "broadcast_in_dim_p reshape_p squeeze_p transpose_p",
        "pullback.primitives.arrays.slicing": "concatenate_p iota_p pad_p rev_p slice_p",
        "pullback.primitives.arrays.sorting": "sort_p top_k_p",
        "pullback.primitives.bits": "reduce_precision_p",
        "pullback.primitives.collectives": "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p",
        "pullback.primitives.discrete": (
            "and_p bitcast_convert_type_p ceil_p clz_p eq_p floor_p ge_p gt_p is_finite_p le_p lt_p ne_p nextafter_p "
            "not_p or_p population_count_p round_p shift_left_p shift_right_arithmetic_p shift_right_logical_p xor_p"
        ),
        "pullback.primitives.elementwise": (
            "abs_p acos_p acosh_p add_p asin_p asinh_p atan2_p atan_p atanh_p cbrt_p clamp_p complex_p conj_p "
            "convert_element_type_p copy_p cos_p cosh_p digamma_p div_p erf_inv_p erf_p erfc_p exp2_p exp_p expm1_p "
            "imag_p integer_pow_p lgamma_p log1p_p log_p logistic_p max_p min_p mul_p neg_p polygamma_p pow_p real_p "
            "rem_p rsqrt_p select_n_p sign_p sin_p sinh_p sqrt_p square_p stop_gradient_p sub_p tan_p tanh_p"
        ),
        "pullback.primitives.linalg.contraction": "dot_general_p",
        "pullback.primitives.linalg.eigen": "eig_p eigh_p",
        "pullback.primitives.linalg.householder": "householder_product_p",
        "pullback.primitives.linalg.lapack": "cholesky_p triangular_solve_p",
        "pullback.primitives.linalg.lu": "linear_solve_p lu_p",
        "pullback.primitives.linalg.qr": "qr_p",
        "pullback.primitives.linalg.schur": "hessenberg_p schur_p tridiagonal_p",
        "pullback.primitives.linalg.svd": "svd_p",
        "pullback.primitives.linalg.tridiagonal": "tridiagonal_solve_p",
        "pullback.primitives.random.bits": "threefry2x32_p",
        "pullback.primitives.random.generator": "rng_bit_generator_p",
        "pullback.primitives.random.rejection": "random_gamma_p",
        "pullback.primitives.reductions": (
            "argmax_p argmin_p cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p reduce_and_p reduce_max_p "
            "reduce_min_p reduce_or_p reduce_prod_p reduce_xor_p"
        ),
        "pullback.primitives.signals.convolution": "conv_general_dilated_p",
        "pullback.primitives.signals.fourier": "fft_p",
        "pullback.primitives.signals.window_reductions": "reduce_window_max_p reduce_window_min_p reduce_window_sum_p",
        "pullback.primitives.special.bessel": "bessel_i0e_p bessel_i1e_p",
        "pullback.primitives.special.incomplete": "igamma_p igammac_p regularized_incomplete_beta_p=betainc_p",
        "pullback.primitives.special.others": "zeta_p",
        "pullback.primitives.sums": "add_jaxvals_p=add_any_p reduce_sum_p",
        "pullback.transforms.checkpoint.checkpoint_policies": "name_p",
        "pullback.transforms.checkpoint.checkpoint_primitive": "remat_p=checkpoint_p",
        "pullback.transforms.custom.custom_rules": "custom_jvp_call_p custom_vjp_call_p",
        "pullback.transforms.programs.closed_calls": "call_p closed_call_p",
        "pullback.transforms.programs.jit_primitive": "jit_p",
        "pullback.transforms.programs.placement": "device_put_p sharding_constraint_p",
    },
)
