"""PyTorch's ``activation_memory_budget``: the programs that consist of products of matrices, in its compiler.

PyTorch counts no temporaries on CPUs. What is measured is less: the bytes that the forward pass saves for the backward
pass, beside its arguments.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

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


def prepared(name: str) -> tuple[dict[str, dict[str, float]], Any, dict[str, Any], tuple[()]]:
    """Compile the gradient of a program under each budget.

    Return the bytes that each saves, and the arguments of ``cpu_seconds``.
    """
    import torch
    import torch._functorch.config as options
    from torch.utils import _pytree as pytree

    from benchmarks.memory.programs import programs

    lib = library()
    program = next(p for p in programs(lib) if p.name == name)
    leaves, spec = pytree.tree_flatten(program.args)
    tensors = [torch.from_numpy(np.ascontiguousarray(x)).requires_grad_() for x in leaves]

    def run(*xs: Any) -> Any:
        return program.loss(*pytree.tree_unflatten(list(xs), spec))

    def compiled(budget: float) -> Any:
        # PyTorch keeps what it compiled by code object: with one for all budgets, the calls would all run one program.
        code = run.__code__.replace(co_name=f"within_{budget}")
        own = FunctionType(code, run.__globals__, code.co_name, None, run.__closure__)
        loss = torch.compile(own, fullgraph=True)

        def step() -> Any:
            value = loss(*tensors)
            return value.detach(), torch.autograd.grad(value, tensors, allow_unused=True)

        return step

    steps: dict[str, Any] = {}
    row: dict[str, dict[str, float]] = {}
    for budget in BUDGETS:
        options.activation_memory_budget = budget
        step = steps[str(budget)] = compiled(budget)
        row[str(budget)] = {"saved": _saved_bytes(step, tensors)}
    saved = {key: _saved_bytes(step, tensors) for key, step in steps.items()}
    assert saved == {key: found["saved"] for key, found in row.items()}, "a program was compiled again"
    return row, lib, steps, ()


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
