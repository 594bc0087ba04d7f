# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.control.conditional import cond_p as cond_p
from pullback.control.scan_primitive import scan_p as scan_p
from pullback.control.while_primitive import while_p as while_p
from pullback.primitives.arrays.gather import gather_p as gather_p
from pullback.primitives.arrays.indexing import dynamic_slice_p as dynamic_slice_p
from pullback.primitives.arrays.indexing import dynamic_update_slice_p as dynamic_update_slice_p
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
from pullback.primitives.bits import reduce_precision_p as reduce_precision_p
from pullback.primitives.collectives import all_gather_p as all_gather_p
from pullback.primitives.collectives import all_to_all_p as all_to_all_p
from pullback.primitives.collectives import axis_index_p as axis_index_p
from pullback.primitives.collectives import pmax_p as pmax_p
from pullback.primitives.collectives import pmin_p as pmin_p
from pullback.primitives.collectives import ppermute_p as ppermute_p
from pullback.primitives.collectives import psum_p as psum_p
from pullback.primitives.discrete import and_p as and_p
from pullback.primitives.discrete import bitcast_convert_type_p as bitcast_convert_type_p
from pullback.primitives.discrete import ceil_p as ceil_p
from pullback.primitives.discrete import clz_p as clz_p
from pullback.primitives.discrete import eq_p as eq_p
from pullback.primitives.discrete import floor_p as floor_p
from pullback.primitives.discrete import ge_p as ge_p
from pullback.primitives.discrete import gt_p as gt_p
from pullback.primitives.discrete import is_finite_p as is_finite_p
from pullback.primitives.discrete import le_p as le_p
from pullback.primitives.discrete import lt_p as lt_p
from pullback.primitives.discrete import ne_p as ne_p
from pullback.primitives.discrete import nextafter_p as nextafter_p
from pullback.primitives.discrete import not_p as not_p
from pullback.primitives.discrete import or_p as or_p
from pullback.primitives.discrete import population_count_p as population_count_p
from pullback.primitives.discrete import round_p as round_p
from pullback.primitives.discrete import shift_left_p as shift_left_p
from pullback.primitives.discrete import shift_right_arithmetic_p as shift_right_arithmetic_p
from pullback.primitives.discrete import shift_right_logical_p as shift_right_logical_p
from pullback.primitives.discrete import xor_p as xor_p
from pullback.primitives.elementwise import abs_p as abs_p
from pullback.primitives.elementwise import acos_p as acos_p
from pullback.primitives.elementwise import acosh_p as acosh_p
from pullback.primitives.elementwise import add_p as add_p
from pullback.primitives.elementwise import asin_p as asin_p
from pullback.primitives.elementwise import asinh_p as asinh_p
from pullback.primitives.elementwise import atan2_p as atan2_p
from pullback.primitives.elementwise import atan_p as atan_p
from pullback.primitives.elementwise import atanh_p as atanh_p
from pullback.primitives.elementwise import cbrt_p as cbrt_p
from pullback.primitives.elementwise import clamp_p as clamp_p
from pullback.primitives.elementwise import complex_p as complex_p
from pullback.primitives.elementwise import conj_p as conj_p
from pullback.primitives.elementwise import convert_element_type_p as convert_element_type_p
from pullback.primitives.elementwise import copy_p as copy_p
from pullback.primitives.elementwise import cos_p as cos_p
from pullback.primitives.elementwise import cosh_p as cosh_p
from pullback.primitives.elementwise import digamma_p as digamma_p
from pullback.primitives.elementwise import div_p as div_p
from pullback.primitives.elementwise import erf_inv_p as erf_inv_p
from pullback.primitives.elementwise import erf_p as erf_p
from pullback.primitives.elementwise import erfc_p as erfc_p
from pullback.primitives.elementwise import exp2_p as exp2_p
from pullback.primitives.elementwise import exp_p as exp_p
from pullback.primitives.elementwise import expm1_p as expm1_p
from pullback.primitives.elementwise import imag_p as imag_p
from pullback.primitives.elementwise import integer_pow_p as integer_pow_p
from pullback.primitives.elementwise import lgamma_p as lgamma_p
from pullback.primitives.elementwise import log1p_p as log1p_p
from pullback.primitives.elementwise import log_p as log_p
from pullback.primitives.elementwise import logistic_p as logistic_p
from pullback.primitives.elementwise import max_p as max_p
from pullback.primitives.elementwise import min_p as min_p
from pullback.primitives.elementwise import mul_p as mul_p
from pullback.primitives.elementwise import neg_p as neg_p
from pullback.primitives.elementwise import polygamma_p as polygamma_p
from pullback.primitives.elementwise import pow_p as pow_p
from pullback.primitives.elementwise import real_p as real_p
from pullback.primitives.elementwise import rem_p as rem_p
from pullback.primitives.elementwise import rsqrt_p as rsqrt_p
from pullback.primitives.elementwise import select_n_p as select_n_p
from pullback.primitives.elementwise import sign_p as sign_p
from pullback.primitives.elementwise import sin_p as sin_p
from pullback.primitives.elementwise import sinh_p as sinh_p
from pullback.primitives.elementwise import sqrt_p as sqrt_p
from pullback.primitives.elementwise import square_p as square_p
from pullback.primitives.elementwise import stop_gradient_p as stop_gradient_p
from pullback.primitives.elementwise import sub_p as sub_p
from pullback.primitives.elementwise import tan_p as tan_p
from pullback.primitives.elementwise import tanh_p as tanh_p
from pullback.primitives.linalg.contraction import dot_general_p as dot_general_p
from pullback.primitives.linalg.eigen import eig_p as eig_p
from pullback.primitives.linalg.eigen import eigh_p as eigh_p
from pullback.primitives.linalg.householder import householder_product_p as householder_product_p
from pullback.primitives.linalg.lapack import cholesky_p as cholesky_p
from pullback.primitives.linalg.lapack import triangular_solve_p as triangular_solve_p
from pullback.primitives.linalg.lu import linear_solve_p as linear_solve_p
from pullback.primitives.linalg.lu import lu_p as lu_p
from pullback.primitives.linalg.qr import qr_p as qr_p
from pullback.primitives.linalg.schur import hessenberg_p as hessenberg_p
from pullback.primitives.linalg.schur import schur_p as schur_p
from pullback.primitives.linalg.schur import tridiagonal_p as tridiagonal_p
from pullback.primitives.linalg.svd import svd_p as svd_p
from pullback.primitives.linalg.tridiagonal import tridiagonal_solve_p as tridiagonal_solve_p
from pullback.primitives.random.bits import threefry2x32_p as threefry2x32_p
from pullback.primitives.random.generator import rng_bit_generator_p as rng_bit_generator_p
from pullback.primitives.random.rejection import random_gamma_p as random_gamma_p
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
from pullback.primitives.reductions import reduce_xor_p as reduce_xor_p
from pullback.primitives.signals.convolution import conv_general_dilated_p as conv_general_dilated_p
from pullback.primitives.signals.fourier import fft_p as fft_p
from pullback.primitives.signals.window_reductions import reduce_window_max_p as reduce_window_max_p
from pullback.primitives.signals.window_reductions import reduce_window_min_p as reduce_window_min_p
from pullback.primitives.signals.window_reductions import reduce_window_sum_p as reduce_window_sum_p
from pullback.primitives.special.bessel import bessel_i0e_p as bessel_i0e_p
from pullback.primitives.special.bessel import bessel_i1e_p as bessel_i1e_p
from pullback.primitives.special.incomplete import betainc_p as regularized_incomplete_beta_p
from pullback.primitives.special.incomplete import igamma_p as igamma_p
from pullback.primitives.special.incomplete import igammac_p as igammac_p
from pullback.primitives.special.others import zeta_p as zeta_p
from pullback.primitives.sums import add_any_p as add_jaxvals_p
from pullback.primitives.sums import reduce_sum_p as reduce_sum_p
from pullback.transforms.checkpoint.checkpoint_policies import name_p as name_p
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p as remat_p
from pullback.transforms.custom.custom_rules import custom_jvp_call_p as custom_jvp_call_p
from pullback.transforms.custom.custom_rules import custom_vjp_call_p as custom_vjp_call_p
from pullback.transforms.programs.closed_calls import call_p as call_p
from pullback.transforms.programs.closed_calls import closed_call_p as closed_call_p
from pullback.transforms.programs.jit_primitive import jit_p as jit_p
from pullback.transforms.programs.placement import device_put_p as device_put_p
from pullback.transforms.programs.placement import sharding_constraint_p as sharding_constraint_p

__all__ = [
    "abs_p", "acos_p", "acosh_p", "add_jaxvals_p", "add_p", "all_gather_p", "all_to_all_p", "and_p", "argmax_p",
    "argmin_p", "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p", "axis_index_p", "bessel_i0e_p",
    "bessel_i1e_p", "bitcast_convert_type_p", "broadcast_in_dim_p", "call_p", "cbrt_p", "ceil_p", "cholesky_p",
    "clamp_p", "closed_call_p", "clz_p", "complex_p", "concatenate_p", "cond_p", "conj_p",
    "conv_general_dilated_p", "convert_element_type_p", "copy_p", "cos_p", "cosh_p", "cumlogsumexp_p", "cummax_p",
    "cummin_p", "cumprod_p", "cumsum_p", "custom_jvp_call_p", "custom_vjp_call_p", "device_put_p", "digamma_p",
    "div_p", "dot_general_p", "dynamic_slice_p", "dynamic_update_slice_p", "eig_p", "eigh_p", "eq_p", "erf_inv_p",
    "erf_p", "erfc_p", "exp2_p", "exp_p", "expm1_p", "fft_p", "floor_p", "gather_p", "ge_p", "gt_p",
    "hessenberg_p", "householder_product_p", "igamma_p", "igammac_p", "imag_p", "integer_pow_p", "iota_p",
    "is_finite_p", "jit_p", "le_p", "lgamma_p", "linear_solve_p", "log1p_p", "log_p", "logistic_p", "lt_p",
    "lu_p", "max_p", "min_p", "mul_p", "name_p", "ne_p", "neg_p", "nextafter_p", "not_p", "or_p", "pad_p",
    "pmax_p", "pmin_p", "polygamma_p", "population_count_p", "pow_p", "ppermute_p", "psum_p", "qr_p",
    "random_gamma_p", "real_p", "reduce_and_p", "reduce_max_p", "reduce_min_p", "reduce_or_p",
    "reduce_precision_p", "reduce_prod_p", "reduce_sum_p", "reduce_window_max_p", "reduce_window_min_p",
    "reduce_window_sum_p", "reduce_xor_p", "regularized_incomplete_beta_p", "rem_p", "remat_p", "reshape_p",
    "rev_p", "rng_bit_generator_p", "round_p", "rsqrt_p", "scan_p", "scatter_add_p", "scatter_max_p",
    "scatter_min_p", "scatter_mul_p", "scatter_p", "schur_p", "select_n_p", "sharding_constraint_p",
    "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p", "sign_p", "sin_p", "sinh_p", "slice_p",
    "sort_p", "sqrt_p", "square_p", "squeeze_p", "stop_gradient_p", "sub_p", "svd_p", "tan_p", "tanh_p",
    "threefry2x32_p", "top_k_p", "transpose_p", "triangular_solve_p", "tridiagonal_p", "tridiagonal_solve_p",
    "while_p", "xor_p", "zeta_p",
]
