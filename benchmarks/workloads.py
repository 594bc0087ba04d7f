"""The table of what is measured. A new workload is one entry here, and a function in ``problems``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks import problems
from benchmarks.libraries import Library


@dataclass(frozen=True)
class Workload:
    """A piece of work, and the greatest ratio of our time to a peer's that is accepted.

    ``peers`` lists the libraries that can do it; where the bound is ``None`` the ratio is only reported.
    """

    name: str
    title: str
    build: Callable[[Library], problems.Call]
    peers: Mapping[str, float | None]


def _peers(jax: float | None, torch: float | None = 0.8, autograd: float | None = 1.0) -> dict[str, float | None]:
    """The bounds for work that every peer can do."""
    return {"jax": jax, "torch": torch, "autograd": autograd}


_REPORTED: Mapping[str, float | None] = {"jax": None, "torch": None, "autograd": None}

WORKLOADS = (
    Workload("add", "x + x, 3 floats", problems.add, _peers(0.35)),
    Workload("grad-1", "grad(tanh)(2.)", partial(problems.tanh_derivative, order=1), _peers(0.035)),
    Workload("grad-2", "second derivative", partial(problems.tanh_derivative, order=2), _REPORTED),
    Workload("grad-3", "third derivative", partial(problems.tanh_derivative, order=3), _peers(0.03)),
    Workload(
        "mlp-small",
        "grad(MLP), 10 layers of 10, batch 4",
        partial(problems.mlp_gradient, width=10, batch=4),
        _peers(0.1),
    ),
    Workload(
        "mlp-large",
        "grad(MLP), 10 layers of 512, batch 128",
        partial(problems.mlp_gradient, width=512, batch=128),
        _peers(1.0, torch=None),  # PyTorch spends it in its own matrix products, in C++
    ),
    Workload("hvp-fr", "HVP, forward over reverse", problems.hvp_forward_over_reverse, _peers(0.08)),
    Workload("hvp-rf", "HVP, reverse over forward", problems.hvp_reverse_over_forward, _REPORTED),
    Workload("hvp-rr", "HVP, reverse over reverse", problems.hvp_reverse_over_reverse, _REPORTED),
    Workload("hvp-dense", "HVP, dense Hessian", problems.hvp_dense, _REPORTED),
    Workload("mjp-loop", "128 matrix-Jacobian rows, loop", problems.matrix_jacobian_loop, _peers(0.1)),
    Workload(
        "mjp-vmap",
        "128 matrix-Jacobian rows, vmap",
        problems.matrix_jacobian_vectorised,
        {"jax": 0.1, "torch": 0.8},
    ),
    Workload("jmp-loop", "128 Jacobian-matrix columns, loop", problems.jacobian_matrix_loop, _peers(0.1)),
    Workload(
        "jmp-vmap",
        "128 Jacobian-matrix columns, vmap",
        problems.jacobian_matrix_vectorised,
        {"jax": 0.1, "torch": 0.8},
    ),
    Workload(
        "rosenbrock-jacrev",
        "Rosenbrock-100, jacrev",
        partial(problems.rosenbrock, derivative="jacrev"),
        _peers(0.05),
    ),
    Workload(
        "rosenbrock-hessian",
        "Rosenbrock-100, hessian",
        partial(problems.rosenbrock, derivative="hessian"),
        _peers(0.15),
    ),
    Workload(
        "jaxpr-10",
        "make_jaxpr(grad(MLP)), 10 layers",
        partial(problems.mlp_gradient_staged, layers=10),
        {"jax": 0.15},
    ),
    Workload(
        "jaxpr-50",
        "make_jaxpr(grad(MLP)), 50 layers",
        partial(problems.mlp_gradient_staged, layers=50),
        {"jax": 0.15},
    ),
    Workload(
        "cold",
        "cold process: import, grad(tanh)(2.)",
        problems.cold_process,
        _peers(0.27, autograd=1.6),
    ),
)

# Ways to the same Hessian-vector product, from the cheapest to the dearest.
ORDER_OF_COST = ("hvp-fr", "hvp-rr", "hvp-dense")
