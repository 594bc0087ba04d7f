"""The switches of JAX's configuration that have no effect here, with their defaults and the reasons.

Programs that set them run; ``docs/switches.md`` lists them. Those of ``REFUSED`` would change a program's results, and
accept only their defaults.
"""

from __future__ import annotations

from typing import Any

_COMPILER = "tunes XLA's passes and caches; use `compiler_options` of `jit` instead"
_DUMPS = "controls the program texts that JAX writes to files; `jit(f).lower(...).as_text()` returns the text"
_GPU = "chooses among kernels for GPUs or TPUs"
_HOSTS = "controls how JAX starts and connects processes; see `docs/processes.md`"
_INTERNAL = "chooses between two implementations in JAX that return the same results"
_EXPORT = "controls how JAX exports programs"
_DEBUG = "controls messages and checks inside JAX"
_GUARD = "looks for mistakes that cannot occur in Pullback, or that always raise an error"

WITHOUT_EFFECT: dict[str, tuple[Any, str]] = {
    "accurate_erf_inv": (False, "the inverse of the error function is always accurate"),
    "allow_f16_reductions": (True, _GUARD),
    "array_garbage_collection_guard": (None, _GUARD),
    "auto_pcast": (True, "values with different varying axes are always combined"),
    "backend_target": ("", _HOSTS),
    "bcoo_cusparse_lowering": (False, _GPU),
    "captured_constants_report_frames": (0, _DEBUG),
    "captured_constants_warn_bytes": (2_000_000_000, _DEBUG),
    "check_proxy_envs": (True, _HOSTS),
    "check_vma": (False, _INTERNAL),
    "compilation_cache_check_contents": (False, _COMPILER),
    "compilation_cache_expect_pgle": (False, _GPU),
    "compilation_cache_include_metadata_in_key": (False, _COMPILER),
    "compiler_detailed_logging_min_ops": (10, _DEBUG),
    "compiler_enable_remat_pass": (True, _COMPILER),
    "cpu_collectives_implementation": ("gloo", _HOSTS),
    "cpu_enable_async_dispatch": (True, "programs always run asynchronously if they can"),
    "cpu_get_global_topology_timeout_minutes": (5, _HOSTS),
    "cpu_get_local_topology_timeout_minutes": (2, _HOSTS),
    "cross_host_transfer_socket_address": ("", _HOSTS),
    "cross_host_transfer_timeout_seconds": (None, _HOSTS),
    "cross_host_transfer_transfer_size": (None, _HOSTS),
    "cross_host_transport_addresses": ("", _HOSTS),
    "custom_jvp3": (False, _INTERNAL),
    "custom_vjp3": (False, _INTERNAL),
    "debug_leaked_clients_on_clear_backends": (False, _DEBUG),
    "debug_log_modules": ("", _DEBUG),
    "disable_most_optimizations": (False, _COMPILER),
    "disable_vmap_shmap_error": (False, _INTERNAL),
    "disallow_mesh_context_manager": (False, _GUARD),
    "distributed_debug": (False, _DEBUG),
    "dump_ir_modes": ("stablehlo", _DUMPS),
    "dump_ir_to": ("", _DUMPS),
    "eager_constant_folding": (False, _INTERNAL),
    "embedded_constants_max_bytes": (32, _INTERNAL),
    "enable_pgle": (False, _GPU),
    "enable_preemption_service": (True, _HOSTS),
    "enable_recoverability": (False, _HOSTS),
    "exec_time_optimization_effort": (0.0, _COMPILER),
    "experimental_unsafe_xla_runtime_errors": (False, _DEBUG),
    "export_calling_convention_version": (10, _EXPORT),
    "export_deserialize_expired_versions": (False, _EXPORT),
    "export_ignore_forward_compatibility": (False, _EXPORT),
    "force_dcn_cross_host_transfers": (False, _HOSTS),
    "hlo_source_file_canonicalization_regex": (None, _DUMPS),
    "include_debug_info_in_dumps": (True, _DUMPS),
    "include_full_tracebacks_in_locations": (True, _DUMPS),
    "jax2tf_associative_scan_reductions": (False, _EXPORT),
    "jax2tf_default_native_serialization": (True, _EXPORT),
    "legacy_prng_key": ("allow", _GUARD),
    "log_checkpoint_residuals": (False, "use `ad_checkpoint.print_saved_residuals`"),
    "memory_fitting_effort": (0.0, _COMPILER),
    "memory_fitting_level": ("O2", _COMPILER),
    "mosaic_allow_hlo": (False, _GPU),
    "mosaic_unzip_debug_locations": (True, _GPU),
    "mutable_array_checks": (True, _GUARD),
    "oneapi_visible_devices": ("all", _GPU),
    "optimization_level": ("UNKNOWN", _COMPILER),
    "pallas_auto_assign_collective_ids": ("no", _GPU),
    "pallas_auto_assign_collective_ids_limit": (25, _GPU),
    "pallas_enable_debug_checks": (False, _GPU),
    "pallas_poison_buffers": (False, _GPU),
    "pallas_use_mosaic_gpu": (True, _GPU),
    "pallas_verbose_errors": (False, _GPU),
    "persistent_cache_enable_xla_caches": ("xla_gpu_per_fusion_autotune_cache_dir", _COMPILER),
    "pgle_aggregation_percentile": (90, _GPU),
    "pgle_profiling_runs": (3, _GPU),
    "pprint_use_color": (True, "programs are always printed without colours"),
    "ragged_dot_use_gpu_pallas_triton_lowering": (False, _GPU),
    "ragged_dot_use_ragged_dot_instruction": (True, _GPU),
    "raise_on_ppermute_sort_diff": (True, _GUARD),
    "raise_persistent_cache_errors": (
        False,
        "problems with the cache are warnings; a warning filter turns them into errors",
    ),
    "refs_to_pins": (False, _INTERNAL),
    "remat3": (False, _INTERNAL),
    "remat_barrier_no_cotangents": (False, _INTERNAL),
    "remove_custom_partitioning_ptr_from_cache_key": (False, _COMPILER),
    "remove_size_one_mesh_axis_from_type": (False, _INTERNAL),
    "rocm_visible_devices": ("all", _GPU),
    "scan3": (False, _INTERNAL),
    "send_traceback_to_runtime": ("off", _DEBUG),
    "serialization_version": (0, _EXPORT),
    "share_binary_between_hosts": (False, _HOSTS),
    "share_binary_between_hosts_timeout_ms": (1_200_000, _HOSTS),
    "softmax_custom_jvp": (False, _INTERNAL),
    "sort_devices_by_process_index": (True, _HOSTS),
    "source_url_schema": (None, _DEBUG),
    "thread_guard": (False, _HOSTS),
    "threefry_gpu_kernel_lowering": (False, _GPU),
    "traceback_in_locations_limit": (100, _DUMPS),
    "tracer_error_num_traceback_frames": (5, _DEBUG),
    "use_cpp_shard_args": (False, _INTERNAL),
    "use_direct_linearize": (True, "derivatives are always linearised directly"),
    "use_emit_pipeline_primitive": (False, _GPU),
    "use_hlo_logistic_lowering": (None, _GPU),
    "use_magma": ("auto", _GPU),
    "use_rgv3": (True, _INTERNAL),
    "use_shardy_partitioner": (True, "Shardy always partitions programs over meshes"),
    "use_simplified_jaxpr_constants": (False, _INTERNAL),
    "xla_backend": ("", _HOSTS),
    "xla_profile_version": (0, _COMPILER),
}
"""The default of each switch, and the reason why it has no effect."""

_CHECKS = "would add checks to compiled programs; use `debug_nans` instead"
_TLS = "would encrypt the connections between processes; connect them in a network that you trust"
REFUSED: dict[str, tuple[Any, str]] = {
    "distributed_verify_secure_credentials": (False, _TLS),
    "error_checking_behavior_divide": ("ignore", _CHECKS),
    "error_checking_behavior_nan": ("ignore", _CHECKS),
    "high_dynamic_range_gumbel": (False, "would change the numbers of `random.gumbel`; use its argument `mode`"),
    "mtls_ca_file": (None, _TLS),
    "mtls_cert_file": (None, _TLS),
    "mtls_key_file": (None, _TLS),
    "mtls_peer_uri_prefix": (None, _TLS),
    "no_execution": (False, "would forbid running programs"),
}
"""Switches that accept only their defaults, each with the effect that another value would have."""
