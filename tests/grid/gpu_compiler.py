"""Compiles the rows of the table of operations for an H100, on a machine without a GPU.

``python -m tests.grid.gpu_compiler`` needs the packages ``jax-cuda13-plugin`` and ``jax-cuda13-pjrt`` of the release of
``jaxlib``, ``nvidia-cuda-nvcc`` and ``nvidia-nvvm``, and ``ptxas`` on the path. It prints for each operation what its
compiled programs call, or the compiler's error. The arguments are operations, if not all.

The compiler knows the GPU by its description only. It refuses calls of functions that the plug-in does not register,
and programs that it cannot compile; it says nothing of values and times.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from pullback import make_jaxpr
from pullback.backends.compiler import client, plugins, portable
from pullback.core import tree
from pullback.core.errors import BackendError, MissingRuleError
from tests.grid.all_specs import ALL
from tests.grid.platforms import programs
from tests.grid.specs import Spec

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 cuda_compute_capability { major: 9 minor: 0 }
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 12 patch: 0 } device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""The description of the GPU, as the compiler reads it. Nothing is measured: autotuning needs a GPU."""
ROWS = 4
"""How many rows of an operation are compiled."""


def compiler() -> Callable[[str], str]:
    """Return a function that compiles StableHLO text for the GPU, and returns the text of the compiled program."""
    lib, path = client.library(), plugins.library_of("cuda")
    if path is None:
        raise BackendError("install jax-cuda13-plugin and jax-cuda13-pjrt of the release of jaxlib, without a GPU")
    c_api = lib.xla_client.load_pjrt_plugin_dynamically("cuda", path)
    client._register_calls("cuda", c_api)
    lib.xla_client.initialize_pjrt_plugin("cuda")
    topology = lib.xla_client.make_c_api_device_topology(c_api, "cuda", topology="1x1x1", target_config=H100)
    (device,) = topology._make_compile_only_devices()
    options = client.compile_options([("xla_gpu_autotune_level", 0)])

    def compiled(text: str) -> str:
        program = device.client.compile(client._parsed(text), lib.jax.DeviceList((device,)), options)
        return str(program.hlo_modules()[0].to_string())

    return compiled


def called(compiled: Callable[[str], str], rows: Sequence[Spec]) -> str:
    """Compile the programs of rows as one, and describe what it calls, or why there is none."""
    found = [program for spec in rows for program in programs(spec)]

    def every(*operands: Any) -> list[Any]:
        given = iter(operands)
        return [tree.leaves(f(*[next(given) for _ in args])) for _, f, args in found]

    try:
        jaxpr = make_jaxpr(every)(*[x for *_, args in found for x in args])
        text = compiled(portable.portable(jaxpr, "f", ["cuda"]).text)
    except MissingRuleError as error:
        return f"refused: {str(error).partition(':')[0]}"
    except RuntimeError as error:
        return f"FAILED: {error}"
    return ", ".join(sorted(set(re.findall(r'custom_call_target="([^"]+)"', text)))) or "nothing"


def main(operations: Sequence[str]) -> None:
    compiled, rows = compiler(), defaultdict[str, list[Spec]](list)
    for spec in ALL:
        rows[spec.operation].append(spec)
    if unknown := set(operations) - set(rows):
        raise SystemExit(f"the table has no operations {', '.join(sorted(unknown))}")
    for operation in operations or rows:
        print(f"{operation}: {called(compiled, rows[operation][:ROWS])}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
