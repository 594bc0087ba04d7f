"""PyTorch's ``activation_memory_budget``: the programs that consist of products of matrices, in its compiler.

PyTorch counts no temporaries on CPUs. What is measured is less: the bytes that the forward pass saves for the backward
pass, beside its arguments.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.memory.measuring import cpu_seconds

NAMES = ("mlp", "transformer6", "transformer24")
BUDGETS = (1.0, 0.7, 0.4, 0.1)


def library() -> Any:
    """Return the functions of PyTorch that the programs use, by the names that JAX gives them."""
    import torch

    jnp = SimpleNamespace(
        mean=lambda x, axes=None, keepdims=False: x.mean() if axes is None else x.mean(axes, keepdim=keepdims),
        tril=torch.tril,
        ones=lambda shape, dtype: torch.ones(shape, dtype=torch.bool if dtype is bool else torch.float32),
        einsum=torch.einsum,
        where=torch.where,
    )
    gelu = lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    nn = SimpleNamespace(gelu=gelu, softmax=lambda x: torch.softmax(x, -1))
    return SimpleNamespace(numpy=jnp, nn=nn, lax=SimpleNamespace(rsqrt=torch.rsqrt), block_until_ready=lambda x: x)


def of_torch(name: str) -> dict[str, dict[str, float]]:
    """Measure the gradient of a program under each budget: saved bytes, and CPU seconds."""
    import torch
    import torch._functorch.config as options
    from torch.utils import _pytree as pytree

    from benchmarks.memory.programs import programs

    lib = library()
    program = next(p for p in programs(lib) if p.name == name)
    leaves, spec = pytree.tree_flatten(program.args)
    tensors = [torch.from_numpy(np.ascontiguousarray(x)).requires_grad_() for x in leaves]

    def compiled() -> Any:
        loss = torch.compile(lambda *xs: program.loss(*pytree.tree_unflatten(list(xs), spec)), fullgraph=True)

        def step(*args: Any) -> Any:
            value = loss(*tensors)
            return value.detach(), torch.autograd.grad(value, tensors, allow_unused=True)

        return step

    steps: dict[str, Any] = {}
    row: dict[str, dict[str, float]] = {}
    for budget in BUDGETS:
        torch._dynamo.reset()
        options.activation_memory_budget = budget
        step = steps[str(budget)] = compiled()
        row[str(budget)] = {"saved": _saved_bytes(step, tensors)}
    for key, seconds in cpu_seconds(lib, steps, ()).items():
        row[key]["seconds"] = seconds
    return row


def _saved_bytes(step: Any, arguments: list[Any]) -> int:
    """Return the bytes that the forward pass of a step saves, beside its arguments."""
    import torch

    own = {x.untyped_storage().data_ptr() for x in arguments}
    found: dict[int, int] = {}

    def pack(x: Any) -> Any:
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return x

    step()  # compiles
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        step()
    return sum(found.values())
