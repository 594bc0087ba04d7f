# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback import ad as ad
from pullback import ad_checkpoint as ad_checkpoint
from pullback import analysis as analysis
from pullback import api_util as api_util
from pullback import checkpointing as checkpointing
from pullback import core as core
from pullback import custom_batching as custom_batching
from pullback import custom_derivatives as custom_derivatives
from pullback import debug as debug
from pullback import derivatives as derivatives
from pullback import distributed as distributed
from pullback import dlpack as dlpack
from pullback import dtypes as dtypes
from pullback import errors as errors
from pullback import example_libraries as example_libraries
from pullback import experimental as experimental
from pullback import export as export
from pullback import extend as extend
from pullback import ffi as ffi
from pullback import flatten_util as flatten_util
from pullback import image as image
from pullback import interpreters as interpreters
from pullback import lax as lax
from pullback import memory as memory
from pullback import monitoring as monitoring
from pullback import nn as nn
from pullback import numpy as numpy
from pullback import ops as ops
from pullback import profiler as profiler
from pullback import random as random
from pullback import ref as ref
from pullback import scipy as scipy
from pullback import sharding as sharding
from pullback import stages as stages
from pullback import test_util as test_util
from pullback import tree as tree
from pullback import tree_util as tree_util
from pullback import typing as typing
from pullback.backends.devices.devices import Device as Device
from pullback.backends.devices.devices import default_backend as default_backend
from pullback.backends.devices.devices import device_count as device_count
from pullback.backends.devices.devices import devices as devices
from pullback.backends.devices.devices import local_device_count as local_device_count
from pullback.backends.devices.devices import local_devices as local_devices
from pullback.backends.devices.devices import process_count as process_count
from pullback.backends.devices.devices import process_index as process_index
from pullback.backends.devices.devices import process_indices as process_indices
from pullback.backends.devices.meshes import get_abstract_mesh as get_abstract_mesh
from pullback.backends.devices.meshes import get_mesh as get_mesh
from pullback.backends.devices.meshes import make_mesh as make_mesh
from pullback.backends.devices.meshes import set_mesh as set_mesh
from pullback.backends.devices.meshes import use_abstract_mesh as use_abstract_mesh
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
from pullback.drawing import visualize as visualize
from pullback.environment import array_garbage_collection_guard as array_garbage_collection_guard
from pullback.environment import live_arrays as live_arrays
from pullback.environment import print_environment_info as print_environment_info
from pullback.numpy.dynamic_slices import ds as ds
from pullback.spmd.pmap import pmap as pmap
from pullback.spmd.shard_map import shard_map as shard_map
from pullback.spmd.smap import smap as smap
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
from pullback.transforms.checkpoint.checkpoint import checkpoint as checkpoint
from pullback.transforms.checkpoint.checkpoint import checkpoint as remat
from pullback.transforms.checkpoint.checkpoint_policies import checkpoint_policies as checkpoint_policies
from pullback.transforms.custom.closure import closure_convert as closure_convert
from pullback.transforms.custom.closure import custom_gradient as custom_gradient
from pullback.transforms.custom.custom_rules import custom_jvp as custom_jvp
from pullback.transforms.custom.custom_rules import custom_vjp as custom_vjp
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from pullback.transforms.debugging.named_scope import named_call as named_call
from pullback.transforms.debugging.named_scope import named_scope as named_scope
from pullback.transforms.jit.compiler_hints import CompilerEffortLevel as CompilerEffortLevel
from pullback.transforms.jit.compiler_hints import Inline as Inline
from pullback.transforms.jit.fwd_and_bwd import fwd_and_bwd as fwd_and_bwd
from pullback.transforms.jit.jit import clear_caches as clear_caches
from pullback.transforms.jit.jit import jit as jit
from pullback.transforms.programs.callbacks import effects_barrier as effects_barrier
from pullback.transforms.programs.callbacks import pure_callback as pure_callback
from pullback.transforms.programs.resharding import reshard as reshard
from pullback.transforms.programs.sharded_arrays import Shard as Shard
from pullback.transforms.programs.sharded_arrays import make_array_from_callback as make_array_from_callback
from pullback.transforms.programs.sharded_arrays import make_array_from_process_local_data as make_array_from_process_local_data
from pullback.transforms.programs.sharded_arrays import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from pullback.transforms.programs.transfer import block_until_ready as block_until_ready
from pullback.transforms.programs.transfer import copy_to_host_async as copy_to_host_async
from pullback.transforms.programs.transfer import device_get as device_get
from pullback.transforms.programs.transfer import device_put as device_put
from pullback.transforms.traces.refs import Ref as Ref
from pullback.transforms.traces.refs import empty_ref as empty_ref
from pullback.transforms.traces.refs import free_ref as free_ref
from pullback.transforms.traces.refs import freeze as freeze
from pullback.transforms.traces.refs import new_ref as new_ref

__version__: str

__all__ = [
    "Array", "CompilerEffortLevel", "Device", "Inline", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard",
    "ad", "ad_checkpoint", "analysis", "api_util", "array_garbage_collection_guard", "block_until_ready",
    "check_custom_rules", "check_indices", "check_static_indices", "check_tracer_leaks", "checking_leaks",
    "checkpoint", "checkpoint_policies", "checkpointing", "clear_caches", "closure_convert", "compile_progress",
    "config", "copy_to_host_async", "custom_batching", "custom_derivatives", "custom_gradient", "custom_jvp",
    "custom_vjp", "debug", "debug_infs", "debug_key_reuse", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "default_prng_impl", "derivatives", "device_count", "device_get", "device_put",
    "devices", "disable_jit", "disable_x64", "distributed", "dlpack", "ds", "dtypes", "effects_barrier",
    "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors",
    "eval_shape", "example_libraries", "experimental", "explain_cache_misses", "explicit_x64_dtypes", "export",
    "extend", "ffi", "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "get_abstract_mesh",
    "get_mesh", "grad", "hessian", "image", "interpreters", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax",
    "linear_transpose", "linearize", "live_arrays", "local_device_count", "local_devices", "log_compiles",
    "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays",
    "make_jaxpr", "make_mesh", "masked_zeros", "memory", "monitoring", "named_call", "named_scope", "new_ref",
    "nn", "no_tracing", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "pmap",
    "print_environment_info", "process_count", "process_index", "process_indices", "profiler", "pure_callback",
    "random", "ref", "remat", "reshard", "scipy", "set_mesh", "shard_map", "sharding", "smap", "stages",
    "test_util", "threefry_partitionable", "tiered", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof", "typing",
    "use_abstract_mesh", "value_and_grad", "visualize", "vjp", "vmap",
]
