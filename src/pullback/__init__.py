"""Pullback: composable transformations of numerical functions.

``grad``, ``jvp``, ``vjp``, ``linearize``, ``vmap`` and ``make_jaxpr`` take a Python function of arrays and give
another. Functions run on NumPy; ``pullback.numpy`` has the operations.

>>> import pullback.numpy as pnp
>>> from pullback import grad
>>> print(f"{grad(lambda x: pnp.sin(x) * x)(2.0):.4f}")
0.0770

Numbers have 32 bits: ``config.update("enable_x64", True)``, or ``PULLBACK_ENABLE_X64=1`` in the environment, makes 64
bits the default, and ``config.update("explicit_x64_dtypes", "allow")`` keeps them where a dtype asks for them. A seed
returns the random numbers of JAX's documents: ``config.update("jax_threefry_partitionable", True)`` returns those of
JAX today.
"""

from __future__ import annotations

from pullback import numpy as numpy
from pullback import start as _start
from pullback.backends.devices.devices import Device as Device
from pullback.backends.devices.devices import default_backend as default_backend
from pullback.backends.devices.devices import device_count as device_count
from pullback.backends.devices.devices import devices as devices
from pullback.backends.devices.devices import local_device_count as local_device_count
from pullback.backends.devices.devices import local_devices as local_devices
from pullback.backends.devices.devices import process_count as process_count
from pullback.backends.devices.devices import process_index as process_index
from pullback.backends.devices.devices import process_indices as process_indices
from pullback.backends.devices.meshes import make_mesh as make_mesh
from pullback.backends.devices.meshes import set_mesh as set_mesh
from pullback.backends.devices.shardings import NamedSharding as NamedSharding
from pullback.backends.devices.shardings import PartitionSpec as P
from pullback.core.array import Array as Array
from pullback.core.config import check_custom_rules as check_custom_rules
from pullback.core.config import check_indices as check_indices
from pullback.core.config import check_static_indices as check_static_indices
from pullback.core.config import check_tracer_leaks as check_tracer_leaks
from pullback.core.config import checking_leaks as checking_leaks
from pullback.core.config import compile_progress as compile_progress
from pullback.core.config import config as config
from pullback.core.config import debug_infs as debug_infs
from pullback.core.config import debug_key_reuse as debug_key_reuse
from pullback.core.config import debug_nans as debug_nans
from pullback.core.config import default_device as default_device
from pullback.core.config import default_matmul_precision as default_matmul_precision
from pullback.core.config import default_prng_impl as default_prng_impl
from pullback.core.config import disable_jit as disable_jit
from pullback.core.config import disable_x64 as disable_x64
from pullback.core.config import enable_checks as enable_checks
from pullback.core.config import enable_custom_prng as enable_custom_prng
from pullback.core.config import enable_x64 as enable_x64
from pullback.core.config import explain_cache_misses as explain_cache_misses
from pullback.core.config import explicit_x64_dtypes as explicit_x64_dtypes
from pullback.core.config import log_compiles as log_compiles
from pullback.core.config import masked_zeros as masked_zeros
from pullback.core.config import no_tracing as no_tracing
from pullback.core.config import numpy_dtype_promotion as numpy_dtype_promotion
from pullback.core.config import numpy_rank_promotion as numpy_rank_promotion
from pullback.core.config import threefry_partitionable as threefry_partitionable
from pullback.core.config import tiered as tiered
from pullback.core.config import transfer_guard as transfer_guard
from pullback.core.config import transfer_guard_device_to_device as transfer_guard_device_to_device
from pullback.core.config import transfer_guard_device_to_host as transfer_guard_device_to_host
from pullback.core.config import transfer_guard_host_to_device as transfer_guard_host_to_device
from pullback.core.dtypes import float0 as float0
from pullback.core.faces import face as _face
from pullback.primitives.special import compositions as _compositions  # which has lowering rules
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
from pullback.transforms.checks import indices as _indices  # which looks for those out of range, where a switch asks
from pullback.transforms.debugging.named_scope import named_call as named_call
from pullback.transforms.debugging.named_scope import named_scope as named_scope
from pullback.transforms.jit.jit import clear_caches as clear_caches
from pullback.transforms.jit.jit import jit as jit
from pullback.transforms.programs.callbacks import effects_barrier as effects_barrier
from pullback.transforms.programs.callbacks import pure_callback as pure_callback
from pullback.transforms.programs.placement import with_sharding_constraint as reshard
from pullback.transforms.programs.sharded_arrays import Shard as Shard
from pullback.transforms.programs.sharded_arrays import make_array_from_callback as make_array_from_callback
from pullback.transforms.programs.sharded_arrays import (
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from pullback.transforms.programs.sharded_arrays import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from pullback.transforms.programs.transfer import block_until_ready as block_until_ready
from pullback.transforms.programs.transfer import copy_to_host_async as copy_to_host_async
from pullback.transforms.programs.transfer import device_get as device_get
from pullback.transforms.programs.transfer import device_put as device_put
from pullback.transforms.traces.refs import Ref as Ref
from pullback.transforms.traces.refs import empty_ref as empty_ref
from pullback.transforms.traces.refs import free_ref as free_ref
from pullback.transforms.traces.refs import freeze as freeze
from pullback.transforms.traces.refs import new_ref as new_ref

__version__ = "0.1.0"


_face(
    globals(),
    {
        ".drawing": "visualize",
        ".environment": "live_arrays print_environment_info",
        ".spmd.smap": "smap",
        ".transforms.checkpoint.checkpoint": "checkpoint remat=checkpoint",
        ".transforms.checkpoint.checkpoint_policies": "checkpoint_policies",
        ".transforms.custom.closure": "closure_convert custom_gradient",
        ".transforms.custom.custom_rules": "custom_jvp custom_vjp",
        ".transforms.debugging.compile_time": "ensure_compile_time_eval",
        ".transforms.jit.fwd_and_bwd": "fwd_and_bwd",
    },
    # The modules too, for a short start, but for ``numpy``.
    modules="ad ad_checkpoint api_util custom_batching custom_derivatives debug derivatives distributed dlpack dtypes "
    "errors example_libraries experimental export extend ffi flatten_util image interpreters lax monitoring nn numpy "
    "ops profiler random ref scipy sharding stages test_util tree tree_util typing",
    otherwise=_start.not_there,
)
_start.set_up()
