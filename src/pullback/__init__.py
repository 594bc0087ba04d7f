"""Pullback: composable transformations of numerical functions.

``grad``, ``jvp``, ``vjp``, ``linearize``, ``vmap`` and ``make_jaxpr`` take a Python function of arrays and return
another. Functions run on NumPy; ``pullback.numpy`` has the operations.

>>> import pullback.numpy as jnp
>>> from pullback import grad
>>> print(f"{grad(lambda x: jnp.sin(x) * x)(2.0):.4f}")
0.0770

Numbers have 32 bits: ``config.update("enable_x64", True)``, or ``PULLBACK_ENABLE_X64=1`` in the environment, makes 64
bits the default, and ``config.update("explicit_x64_dtypes", "allow")`` keeps them where a dtype asks for them. A seed
returns the random numbers of JAX's documents: ``config.update("jax_threefry_partitionable", True)`` returns those of
JAX today.
"""

from __future__ import annotations

from pullback import numpy as numpy
from pullback import start as _start
from pullback.core.faces import face as _face
from pullback.primitives.special import compositions as _compositions  # registers lowering rules
from pullback.primitives.special import log_gamma as _log_gamma  # registers lowering rules
from pullback.primitives.special import normal as _normal  # registers lowering rules
from pullback.spmd.pmap import pmap as pmap
from pullback.spmd.shard_map import shard_map as shard_map
from pullback.transforms.autodiff.grad import grad as grad
from pullback.transforms.autodiff.grad import linear_transpose as linear_transpose
from pullback.transforms.autodiff.grad import linearize as linearize
from pullback.transforms.autodiff.grad import value_and_grad as value_and_grad
from pullback.transforms.autodiff.grad import vjp as vjp
from pullback.transforms.autodiff.jacobian import hessian as hessian
from pullback.transforms.autodiff.jacobian import jacfwd as jacfwd
from pullback.transforms.autodiff.jacobian import jacobian as jacobian
from pullback.transforms.autodiff.jacobian import jacrev as jacrev
from pullback.transforms.autodiff.jvp import jvp as jvp
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct as ShapeDtypeStruct
from pullback.transforms.autodiff.tracing import eval_shape as eval_shape
from pullback.transforms.autodiff.tracing import make_jaxpr as make_jaxpr
from pullback.transforms.autodiff.tracing import typeof as typeof
from pullback.transforms.autodiff.vmap import vmap as vmap
from pullback.transforms.checks import indices as _indices  # registers the watcher of check_indices
from pullback.transforms.debugging.named_scope import named_call as named_call
from pullback.transforms.debugging.named_scope import named_scope as named_scope
from pullback.transforms.jit.jit import clear_caches as clear_caches
from pullback.transforms.jit.jit import jit as jit
from pullback.transforms.programs.callbacks import effects_barrier as effects_barrier
from pullback.transforms.programs.callbacks import pure_callback as pure_callback
from pullback.transforms.traces.refs import Ref as Ref
from pullback.transforms.traces.refs import empty_ref as empty_ref
from pullback.transforms.traces.refs import free_ref as free_ref
from pullback.transforms.traces.refs import freeze as freeze
from pullback.transforms.traces.refs import new_ref as new_ref

__version__ = "0.2.0"


_face(
    globals(),
    {
        ".backends.devices.devices": (
            "Device default_backend device_count devices local_device_count local_devices process_count process_index "
            "process_indices"
        ),
        ".backends.devices.meshes": "get_abstract_mesh get_mesh make_mesh set_mesh use_abstract_mesh",
        ".backends.devices.shardings": "NamedSharding P=PartitionSpec",
        ".core.array": "Array",
        ".core.config": (
            "check_custom_rules check_indices check_static_indices check_tracer_leaks checking_leaks compile_progress "
            "config debug_infs debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl "
            "disable_jit disable_x64 enable_checks enable_custom_prng enable_x64 explain_cache_misses "
            "explicit_x64_dtypes log_compiles masked_zeros no_tracing numpy_dtype_promotion numpy_rank_promotion "
            "threefry_partitionable tiered transfer_guard transfer_guard_device_to_device "
            "transfer_guard_device_to_host transfer_guard_host_to_device"
        ),
        ".core.dtypes": "float0",
        ".transforms.programs.resharding": "reshard",
        ".transforms.programs.sharded_arrays": (
            "Shard make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays"
        ),
        ".transforms.programs.transfer": "block_until_ready copy_to_host_async device_get device_put",
        ".drawing": "visualize",
        ".environment": "array_garbage_collection_guard live_arrays print_environment_info",
        ".numpy.dynamic_slices": "ds",
        ".spmd.smap": "smap",
        ".transforms.checkpoint.checkpoint": "checkpoint remat=checkpoint",
        ".transforms.checkpoint.checkpoint_policies": "checkpoint_policies",
        ".transforms.custom.closure": "closure_convert custom_gradient",
        ".transforms.custom.custom_rules": "custom_jvp custom_vjp",
        ".transforms.debugging.compile_time": "ensure_compile_time_eval",
        ".transforms.jit.compiler_hints": "CompilerEffortLevel Inline",
        ".transforms.jit.fwd_and_bwd": "fwd_and_bwd",
    },
    # Modules are lazy too, for a short import time, except ``numpy``.
    modules="ad ad_checkpoint analysis api_util checkpointing custom_batching custom_derivatives debug derivatives "
    "distributed dlpack dtypes errors example_libraries experimental export extend ffi flatten_util image interpreters "
    "lax memory monitoring nn numpy ops profiler random ref scipy sharding stages test_util tree tree_util typing",
    otherwise=_start.not_there,
)
_start.set_up()
