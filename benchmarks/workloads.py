"""The table of what is measured. A new workload is one entry here, and a function in ``problems`` or ``compiled``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks import compiled, devices, loops, numerics, problems
from benchmarks.libraries import Library


@dataclass(frozen=True)
class Workload:
    """A piece of work, and the greatest ratio of our time to a peer's that is accepted.

    ``peers`` lists the libraries that can do it; where the bound is ``None`` the ratio is only reported. ``group``
    is the part of the report in which it stands. ``devices`` is into how many the processor is divided.
    """

    name: str
    title: str
    build: Callable[[Library], problems.Call | compiled.Task]
    peers: Mapping[str, float | None]
    group: str = "eager"
    devices: int = 1


def _peers(jax: float | None, torch: float | None = 0.8, autograd: float | None = 1.0) -> dict[str, float | None]:
    """The bounds for work that every peer can do."""
    return {"jax": jax, "torch": torch, "autograd": autograd}


def _compiled(
    name: str, title: str, build: Callable[[Library], compiled.Task], jax: float, torch: bool = True
) -> Workload:
    """Work for compiled functions, beside which PyTorch is reported where it has anything like it."""
    peers: dict[str, float | None] = {"jax": jax}
    if torch:
        peers |= {"torch-compile": None, "torch-imperative": None}
    return Workload(name, title, build, peers, group="compiled")


_REPORTED: Mapping[str, float | None] = {"jax": None, "torch": None, "autograd": None}

_IMPERATIVE: Mapping[str, float | None] = {"jax": None, "torch-imperative": 1.0}

_NUMPY: Mapping[str, float | None] = {"jax": 0.5}

_EAGER = (
    Workload("add", "x + x, 3 floats", problems.add, _peers(0.35)),
    *(
        Workload(
            f"{name}-{'x'.join(map(str, shape))}",
            f"{name}, {' by '.join(map(str, shape))}",
            partial(problems.decomposition, name=name, shape=shape),
            {"jax": 0.7},
        )
        for name in ("svd", "eigh", "qr")
        for shape in ((64, 64), (100, 8, 8))
    ),
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
        "mlp-small-masked",
        "grad(MLP), 10 layers of 10, masked zeros",
        partial(compiled.masked, build=partial(problems.mlp_gradient, width=10, batch=4)),
        _REPORTED,
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
    *(
        Workload(
            f"{kind}-grad",
            f"grad of a {kind} function",
            partial(problems.custom_rule_gradient, kind=kind),
            {"jax": 0.1},
        )
        for kind in ("custom_jvp", "custom_vjp")
    ),
    *(
        Workload(
            f"{kind}-vmap",
            f"vmap(grad) of a {kind} function, 8 points",
            partial(problems.custom_rule_gradient, kind=kind, mapped=True),
            {"jax": 0.15},
        )
        for kind in ("custom_jvp", "custom_vjp")
    ),
    *(
        Workload(
            f"{kind}-trace",
            f"make_jaxpr, 100 calls of a {kind} function",
            partial(problems.custom_rules_staged, kind=kind),
            {"jax": 0.2},
        )
        for kind in ("custom_jvp", "custom_vjp")
    ),
    *(
        Workload(
            f"jet-{order}",
            f"derivatives of an MLP to order {order} (jet)",
            partial(problems.jet_of_network, order=order),
            {"jax": 0.2},
        )
        for order in (3, 10)
    ),
    Workload("conv-grad", "grad of a convolution, 8 images", problems.convolution_gradient, {"jax": 0.5}),
    Workload("gamma", "random.gamma, 10,000", partial(problems.gamma_samples, count=10_000), {"jax": 1.0}),
    Workload(
        "polyfit", "polyfit of 10,000, degree 3", lambda library: problems.fitted_polynomial(library, 10_000), _NUMPY
    ),
    Workload("gradient", "numpy.gradient of 10,000", lambda library: problems.differences(library, 10_000), _NUMPY),
    Workload(
        "histogram2d", "histogram2d of 10,000", lambda library: problems.histogram_of_two(library, 10_000), _NUMPY
    ),
    Workload("segment-sum", "segment_sum of 100,000", partial(problems.sums_by_segment, count=100_000), {"jax": 0.7}),
    Workload("resize", "image.resize, 256 x 256 x 3 to 512", problems.resized_image, {"jax": 1.0}),
    Workload("sparse", "BCOO (10,000 x 10,000, 0.1 %) @ vector", problems.sparse_product, {"jax": None, "scipy": 1.5}),
    *(
        Workload(
            f"special-{name}",
            f"special.{name} of 10,000",
            partial(problems.special_values, name=name),
            {"jax": 1.0, "scipy": 1.3},
        )
        for name in problems.SPECIAL
    ),
    Workload("fft-4096", "fft of 4,096", lambda library: problems.fourier(library, 4096), {"jax": 1.0}),
    Workload("fft-512", "fft of (512, 512)", lambda library: problems.fourier(library, 512, 512), {"jax": 1.0}),
    Workload("scan", "grad of a scan of 100 small steps, new body", loops.scan_eager, {"jax": 0.3}),
    *(
        Workload(f"{name}-eager", f"training step, {title}", partial(build, eager=True), _IMPERATIVE)
        for name, title, build in (
            ("mlp", "MLP 784-512-512-10", compiled.mlp_training),
            ("conv", "convolutional network", compiled.convolutional_training),
            ("transformer", "transformer block", compiled.transformer_training),
        )
    ),
    Workload(
        "cold",
        "cold process: import, grad(tanh)(2.)",
        problems.cold_process,
        _peers(0.27, autograd=1.6),
    ),
)

_COMPILED = (
    *(
        _compiled(
            f"trace-lower-{layers}",
            f"jit(grad(MLP)): trace, lower, {layers} layers",
            partial(compiled.trace_and_lower, layers=layers),
            jax=0.15,
            torch=False,
        )
        for layers in (10, 50)
    ),
    *(
        _compiled(
            f"lower-compile-{layers}",
            f"jit(grad(MLP)): lower, compile, {layers} layers",
            partial(compiled.lower_and_compile, layers=layers),
            jax=0.9,
            torch=False,
        )
        for layers in (10, 50)
    ),
    _compiled("cold-jit", "cold process: jit(grad(MLP))", compiled.process_with_cold_cache, jax=0.6),
    _compiled("cold-jit-warm", "same, programs on disk", compiled.process_with_warm_cache, jax=0.45),
    _compiled("dispatch-1", "dispatch: x + 1, 3 floats", compiled.dispatch_one, jax=1.5),
    _compiled("dispatch-21-in", "dispatch: 21 arrays in", partial(compiled.dispatch_in, count=21), jax=1.4),
    _compiled("dispatch-21-io", "dispatch: 21 in and out", partial(compiled.dispatch_in_and_out, count=21), jax=1.0),
    _compiled("dispatch-200-in", "dispatch: 200 arrays in", partial(compiled.dispatch_in, count=200), jax=1.4),
    _compiled("dispatch-200-io", "dispatch: 200 in and out", partial(compiled.dispatch_in_and_out, count=200), jax=0.8),
    _compiled("mlp-train", "training step, MLP 784-512-512-10", compiled.mlp_training, jax=0.9),
    Workload(
        "mlp-train-masked",
        "training step, MLP, masked zeros",
        partial(compiled.masked, build=compiled.mlp_training),
        {"jax": None},
        group="compiled",
    ),
    _compiled("attention-train", "training step, attention block", compiled.attention_training, jax=0.95),
    _compiled("transformer-train", "training step, transformer block", compiled.transformer_training, jax=0.6),
    Workload(
        "attention-grad",
        "grad of attention, 8 x 512, 8 heads of 64",
        compiled.attention_gradient,
        {"jax": 0.9, "torch-compile": 1.0, "torch-imperative": 1.0},
        group="compiled",
    ),
    _compiled("sparse-jit", "BCOO (10,000 x 10,000, 0.1 %) @ vector", compiled.sparse_product, jax=1.0, torch=False),
    Workload(
        "conv-train",
        "training step, convolutional network",
        compiled.convolutional_training,
        {"jax": 0.85, "torch-compile": None, "torch-imperative": 1.0},
        group="compiled",
    ),
    _compiled("rosenbrock-hessian-jit", "Rosenbrock-100, hessian", compiled.rosenbrock_hessian, jax=1.03),
    _compiled(
        "contracted-hessian-jit",
        "Hessian of 1,200 variables times a direction",
        compiled.contracted_hessian,
        jax=1.0,
        torch=False,
    ),
    *(
        Workload(
            f"laplacian-{width}x{walkers}",
            f"Laplacian, 4 layers of {width}, 30 inputs, {walkers} points",
            partial(compiled.laplacian, width=width, walkers=walkers),
            {"jax": 0.5, "folx": 1.0},
            group="compiled",
        )
        for width, walkers in ((64, 64), (256, 16))
    ),
    *(
        _compiled(
            f"jet-{order}-jit",
            f"derivatives of an MLP to order {order} (jet)",
            partial(compiled.jet_of_network, order=order),
            jax=1.0,
            torch=False,
        )
        for order in (3, 10)
    ),
    _compiled("mlp-512-jit", "MLP, 10 layers of 512, batch 128", compiled.network, jax=0.75),
    _compiled("mlp-512-grad-jit", "grad(MLP), 10 layers of 512, batch 128", compiled.network_gradient, jax=1.0),
)

_SCIPY = (
    *(
        _compiled(
            f"special-{name}-jit",
            f"special.{name} of 10,000",
            partial(numerics.special_values, name=name),
            jax=1.0,
            torch=False,
        )
        for name in ("gammainc", "betainc", "i0e", "zeta", "ndtri")
    ),
    _compiled("gammainc-a-jit", "derivative of gammainc in a, 10,000", numerics.derivative_in_a, jax=1.0, torch=False),
    _compiled("expm-jit", "expm, 64 by 64", numerics.exponential, jax=1.0, torch=False),
    _compiled("cg-jit", "cg of 1,000 unknowns", numerics.conjugate_gradients, jax=1.0, torch=False),
    _compiled("minimize-jit", "minimize, Rosenbrock-100, BFGS", numerics.minimum, jax=1.0, torch=False),
)

_LOOPS = (
    _compiled("rnn", "RNN, 1,000 steps of 128", loops.recurrent_forward, jax=1.03, torch=False),
    _compiled("rnn-grad", "grad(RNN), 1,000 steps of 128", loops.recurrent_gradient, jax=1.03, torch=False),
    _compiled("rnn-trace", "grad(RNN): trace, lower", loops.recurrent_trace_and_lower, jax=0.2, torch=False),
    _compiled("odeint-grad", "grad(pendulum) by odeint", loops.pendulum_gradient, jax=1.0, torch=False),
    _compiled("odeint-compile", "grad(pendulum): trace, compile", loops.pendulum_compile, jax=0.7, torch=False),
    _compiled("solver-grad", "grad of 12 Newton steps, 100,000 points", loops.solver_gradient, jax=0.6, torch=False),
    *(
        Workload(
            f"while-{width}",
            f"grad of a while_loop, 5,000 steps of {width}, 64 kept",
            partial(loops.checkpointed_loop, width=width),
            {"equinox": 1.0},
            group="compiled",
        )
        for width in (10, 1000)
    ),
)

_OVER_DEVICES = (
    Workload("vmap-psum", "vmap with psum, 8 rows of 4", devices.named_sum, {"jax": 0.15}, group="named axes"),
    Workload(
        "shard-map-trace",
        "shard_map training step, 2 devices: trace, lower",
        devices.trace_and_lower_mapped_step,
        {"jax": 0.3},
        group="named axes",
        devices=devices.DEVICES,
    ),
    Workload(
        "sharded-21-io",
        "dispatch: 21 in and out, 2 devices",
        partial(devices.dispatch_over_devices, count=21),
        {"jax": 1.2},
        group="named axes",
        devices=devices.DEVICES,
    ),
)

WORKLOADS = _EAGER + _COMPILED + _SCIPY + _LOOPS + _OVER_DEVICES

# Ways to the same Hessian-vector product, from the cheapest to the dearest.
ORDER_OF_COST = ("hvp-fr", "hvp-rr", "hvp-dense")
