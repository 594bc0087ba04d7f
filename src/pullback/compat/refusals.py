"""Private names of JAX that Pullback refuses on purpose, each with what a library should use instead."""

from __future__ import annotations

_REFUSED = {
    "the functions of jax.nn, such as dot_product_attention, which choose the kernel": "jax._src.cudnn",
    "jax.distributed.initialize(), which finds its place in jobs of Slurm and others": "jax._src.clusters",
    "jax.lax.dot_general and jax.lax.conv_general_dilated with jax.custom_jvp or jax.custom_vjp around them: an "
    "operation's rules are not separate functions": (
        "jax._src.lax.convolution._conv_general_dilated_batch_rule "
        "jax._src.lax.convolution._conv_general_dilated_lower "
        "jax._src.lax.convolution._conv_general_dilated_dtype_rule "
        "jax._src.lax.convolution._conv_general_dilated_shape_rule "
        "jax._src.lax.convolution._conv_general_dilated_transpose_lhs "
        "jax._src.lax.convolution._conv_general_dilated_transpose_rhs jax._src.lax.lax.standard_primitive "
        "jax._src.lax.lax._dot_general_batch_rule jax._src.lax.lax._dot_general_dtype_rule "
        "jax._src.lax.lax._dot_general_lower jax._src.lax.lax._dot_general_shape_rule "
        "jax._src.lax.lax._dot_general_transpose_lhs jax._src.lax.lax._dot_general_transpose_rhs"
    ),
    "jax.ffi.ffi_call, for custom kernels": "jax._src.lib.gpu_triton",
    "jax.jit(f).lower(*args).compiler_ir()": "jax._src.interpreters.pxla._cached_lowering_to_hlo",
    "jax.numpy.einsum, or jax.numpy.einsum_path and jax.lax.dot_general for each step": (
        "jax._src.numpy.einsum jax._src.numpy.lax_numpy._default_poly_einsum_handler "
        "jax._src.numpy.lax_numpy._einsum jax._src.numpy.lax_numpy._poly_einsum_handlers"
    ),
    "jax.random.wrap_key_data, and typed keys as arguments": ("jax._src.random.core jax._src.random._check_prng_key"),
    "wadler_lindig, as Equinox does": "jax._src.pretty_printer",
    "the parameters num_consts and num_carry of scan_p": "jax._src.flattree",
    "jax.make_jaxpr and jax.extend.core.jaxpr_as_fun: a program has no sizes of arrays among its values": (
        "jax._src.interpreters.partial_eval.DynamicJaxprTrace jax._src.interpreters.partial_eval.TracingEqn "
        "jax._src.interpreters.partial_eval.custom_staging_rules jax._src.pjit.pjit_staging_rule "
        "jax._src.pjit.debug_info jax._src.pjit.mesh_lib jax.interpreters.partial_eval.DynamicJaxprTrace "
        "jax.interpreters.partial_eval.custom_staging_rules"
    ),
    "jax.export.max_dim and symbolic sizes, which are numbers too": "jax._src.core.dimension_as_value",
    "jax.custom_jvp or jax.custom_vjp, or jax.jvp, jax.vmap and jax.make_jaxpr in a rule": (
        "jax.interpreters.ad.jvp jax.interpreters.ad.call_transpose jax.interpreters.batching.batch_subtrace "
        "jax.interpreters.mlir._call_lowering jax.interpreters.mlir.core_call_lowering "
        "jax.interpreters.partial_eval.abstract_eval_fun"
    ),
    "jax.make_array_from_single_device_arrays": (
        "jax._src.interpreters.pxla.global_result_handlers jax.interpreters.pxla.global_avals_to_results_handler"
    ),
}
"""For each advice the names that it is for, with spaces between them; a module stands for all of its names."""

_ADVICE = {name: advice for advice, names in _REFUSED.items() for name in names.split()}


def advice(name: str) -> str:
    """Return what to use instead of a name of JAX; an empty string if the name is not refused.

    Args:
      name: the full name of a module or of an attribute of one.

    >>> from pullback.compat.refusals import advice
    >>> advice("jax._src.clusters.SlurmCluster")
    'jax.distributed.initialize(), which finds its place in jobs of Slurm and others'
    >>> advice("jax.jit")
    ''
    """
    while name:
        if name in _ADVICE:
            return _ADVICE[name]
        name = name.rpartition(".")[0]
    return ""
