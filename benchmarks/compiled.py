"""What is measured of compiled functions: each function takes a ``Library`` and returns the task to time.

Nothing that would spare a repetition its work is left in a cache: where tracing, lowering or compiling is timed,
every repetition is a new function with a constant of its own, and the persistent caches are off.
"""

import itertools
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy

from benchmarks.compilers import Compiler
from benchmarks.libraries import Library
from benchmarks.problems import Call, derivatives_along_a_curve, sparse_matrix
from benchmarks.shared import network as _mlp
from benchmarks.shared import normal as _normal


@dataclass(frozen=True)
class Task:
    """What is timed, where it takes more to say than a call.

    Attributes:
      call: what is timed; it is given what ``prepare`` returns, if there is a ``prepare``.
      check: returns the result in which the libraries must agree, instead of the first call's.
      prepare: runs before each call, and is not timed.
      waits_once: whether results are waited for at the end of a block, and not at the end of each call.
      cold: whether every call starts afresh, so that there is nothing to warm up.
    """

    call: Callable[..., Any]
    check: Call | None = None
    prepare: Call | None = None
    waits_once: bool = False
    cold: bool = False


def _compiler(library: Library) -> Compiler:
    assert library.compiler is not None
    return library.compiler


# Getting there: tracing, lowering, compiling -------------------------------------------------------------------------


def _fresh_gradients(library: Library, layers: int) -> tuple[Callable[[], Any], tuple[Any, Any]]:
    """What traces the compiled gradient of a new function at each call, and the arguments."""
    loss, parameters, x = _mlp(library, width=10, batch=4, layers=layers)
    transforms, numbers = library.transforms, itertools.count()
    transforms.config.update("jax_enable_compilation_cache", False)

    def traced() -> Any:
        factor = 1 + 1e-6 * next(numbers)
        return transforms.jit(transforms.grad(lambda p, x: factor * loss(p, x))).trace(parameters, x)

    return traced, (parameters, x)


def trace_and_lower(library: Library, layers: int) -> Task:
    """Tracing and lowering of the network's gradient."""
    traced, arguments = _fresh_gradients(library, layers)
    return Task(lambda: traced().lower(), check=lambda: traced().lower().compile()(*arguments))


def lower_and_compile(library: Library, layers: int) -> Task:
    """Lowering and compiling of the network's gradient, which was traced before."""
    traced, arguments = _fresh_gradients(library, layers)
    return Task(
        lambda program: program.lower().compile(),
        check=lambda: traced().lower().compile()(*arguments),
        prepare=traced,
    )


# Where the libraries keep compiled programs on disk.
_DISK_CACHES = ("PULLBACK_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
# JAX writes only what took a second to compile, unless it is told to write everything.
_JAX_WRITES_ALL = {
    "JAX_ENABLE_COMPILATION_CACHE": "true",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def _process(program: str, directory: str, jax_writes: bool) -> float:
    """What a process prints that has its compiled programs in a directory."""
    environment = {**os.environ, **dict.fromkeys(_DISK_CACHES, directory), **_JAX_WRITES_ALL}
    if not jax_writes:
        del environment["JAX_COMPILATION_CACHE_DIR"]
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(finished.stdout)


def process_with_cold_cache(library: Library) -> Task:
    """A whole process that compiles one gradient, with nothing on disk.

    JAX is left as it is by default, without a persistent cache, and so need not write one.
    """
    program = _compiler(library).cold_start

    return Task(lambda directory: _process(program, directory, jax_writes=False), prepare=tempfile.mkdtemp, cold=True)


def process_with_warm_cache(library: Library) -> Task:
    """The same process, when another one has compiled the gradient before; JAX with its persistent cache."""
    program, directory = _compiler(library).cold_start, tempfile.mkdtemp()
    return Task(lambda: _process(program, directory, jax_writes=True))


# Dispatch: what a call costs beyond its work -------------------------------------------------------------------------


def dispatch_one(library: Library) -> Task:
    """A compiled ``x + 1`` of 3 floats."""
    compiler = _compiler(library)
    (x,) = _on_device(compiler, [_normal(library, 3)])
    add_one = compiler.compile(lambda x: x + 1)
    return Task(lambda: add_one(x), waits_once=True)


def _on_device(compiler: Compiler, arrays: list[Any]) -> list[Any]:
    """The arrays as results of a compiled function, which is where most arguments come from."""
    doubled: list[Any] = compiler.compile(lambda arrays: [2 * x for x in arrays])(arrays)
    return doubled


def _parameters(library: Library, count: int) -> Any:
    """``count`` arrays of 3 floats, nested as the parameters of a network are."""
    arrays = _on_device(_compiler(library), [_normal(library, 3, seed=i) for i in range(count)])
    pairs = zip(arrays[0::2], arrays[1::2], strict=False)
    layers = [{"weight": weight, "bias": bias} for weight, bias in pairs]
    return {"layers": layers, "rest": arrays[2 * len(layers) :]}


def dispatch_in(library: Library, count: int) -> Task:
    """A compiled function of ``count`` arrays in a nested tree, with one result."""

    def total(tree: Any) -> Any:
        return sum([layer["weight"] + layer["bias"] for layer in tree["layers"]] + tree["rest"])

    tree, compiled = _parameters(library, count), _compiler(library).compile(total)
    return Task(lambda: compiled(tree), waits_once=True)


def dispatch_in_and_out(library: Library, count: int) -> Task:
    """A compiled function of ``count`` arrays in a nested tree, with as many results in a like tree."""

    def add_one(tree: Any) -> Any:
        layers = [{name: x + 1 for name, x in layer.items()} for layer in tree["layers"]]
        return {"layers": layers, "rest": [x + 1 for x in tree["rest"]]}

    tree, compiled = _parameters(library, count), _compiler(library).compile(add_one)
    return Task(lambda: compiled(tree), waits_once=True)


# Steady state --------------------------------------------------------------------------------------------------------


def network(library: Library) -> Task:
    """Ten layers of 512 and a sum, batch 128."""
    loss, parameters, x = _wide_network(library)
    compiled = _compiler(library).compile(loss)
    return Task(lambda: compiled(parameters, x))


def network_gradient(library: Library) -> Task:
    """The gradient of the same network with respect to its parameters."""
    return Task(_compiler(library).gradient(*_wide_network(library)))


def _wide_network(library: Library) -> tuple[Callable[..., Any], Any, Any]:
    _, parameters, x = _mlp(library, width=512, batch=128, layers=10)
    np = library.np

    def loss(parameters: Any, x: Any) -> Any:
        for weight, bias in parameters:
            x = np.tanh(x @ weight + bias)
        return np.sum(x)

    return loss, parameters, x


def rosenbrock_hessian(library: Library) -> Task:
    """The Hessian of Rosenbrock's function of 100 variables."""
    np = library.np

    def f(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return Task(_compiler(library).hessian(f, _normal(library, 100)))


def contracted_hessian(library: Library) -> Task:
    """The product of a Hessian of 1,200 variables, forward over reverse, with a direction, by ``tensordot``."""
    np, transforms = library.np, library.transforms

    def f(x: Any) -> Any:
        return np.sum(np.tanh(x) ** 2)

    hessian = transforms.jacfwd(transforms.jacrev(f))
    compiled = _compiler(library).compile(lambda x, v: np.tensordot(hessian(x), v, 2))
    x, v = (_normal(library, 30, 40, seed=seed) for seed in range(2))
    return Task(lambda: compiled(x, v))


def laplacian(library: Library, width: int, walkers: int) -> Task:
    """The Laplacian of a network of 4 layers and 30 inputs, at some points at once."""
    np = library.np
    sizes = (30, width, width, width, 1)
    weights = [
        _normal(library, a, b, scale=1 / math.sqrt(a), seed=i) for i, (a, b) in enumerate(itertools.pairwise(sizes))
    ]

    def network(x: Any) -> Any:
        for weight in weights[:-1]:
            x = np.tanh(x @ weight)
        return (x @ weights[-1])[0]

    assert library.laplacian is not None
    compiled = _compiler(library).compile(library.transforms.vmap(library.laplacian(network)))
    points = _normal(library, walkers, 30)
    return Task(lambda: compiled(points))


def jet_of_network(library: Library, order: int) -> Task:
    """The derivatives of a small network along a curve."""
    along, x, terms = derivatives_along_a_curve(library, order)
    compiled = _compiler(library).compile(along)
    return Task(lambda: compiled(x, terms))


# Steps before the one whose loss is compared, so that it shows whether the gradients are right.
_STEPS_BEFORE = 5


def _training(
    library: Library, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any, eager: bool = False
) -> Task:
    """Training steps at a rate at which a few change the loss visibly and thousands leave it finite."""
    compiler = _compiler(library)
    step = (compiler.eager_training_step if eager else compiler.training_step)(loss, rate, parameters, *batch)

    def after_some_steps() -> Any:
        for _ in range(_STEPS_BEFORE):
            step()
        return step()

    return Task(step, check=after_some_steps)


def _dense(library: Library, rows: int, columns: int, seed: int) -> Any:
    """A weight, and a bias of zeros."""
    weight = _normal(library, rows, columns, scale=1 / math.sqrt(rows), seed=seed)
    return {"weight": weight, "bias": library.array(numpy.zeros(columns, numpy.float32))}


def _norm(library: Library, width: int) -> Any:
    """The parameters of a layer norm."""
    ones = numpy.ones(width, numpy.float32)
    return {"scale": library.array(ones), "shift": library.array(0 * ones)}


def mlp_training(library: Library, eager: bool = False) -> Task:
    """A training step of a classifier 784-512-512-10 at batch 128: relu, softmax, cross-entropy."""
    nn, np, sizes = _compiler(library).nn, library.np, (784, 512, 512, 10)
    parameters = [_dense(library, *shape, seed=i) for i, shape in enumerate(itertools.pairwise(sizes))]
    labels = numpy.random.default_rng(10).integers(10, size=128)

    def loss(parameters: Any, images: Any, targets: Any) -> Any:
        *hidden, last = parameters
        x = images
        for layer in hidden:
            x = nn.relu(x @ layer["weight"] + layer["bias"])
        logits = nn.log_softmax(x @ last["weight"] + last["bias"])
        return -np.sum(targets * logits) / len(targets)

    one_hot = library.array(numpy.eye(10, dtype=numpy.float32)[labels])
    return _training(library, loss, 0.05, parameters, _normal(library, 128, 784, seed=11), one_hot, eager=eager)


def masked(library: Library, build: Callable[[Library], Callable[[], Any] | Task]) -> Task:
    """Work within the library's ``masked_zeros``."""

    def within(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with library.masked_zeros():
                return function(*args)

        return call

    with library.masked_zeros():
        task = build(library)
    if not isinstance(task, Task):
        return Task(within(task))
    return replace(task, call=within(task.call), check=task.check and within(task.check))


def _attend(library: Library, parameters: Any, x: Any, heads: int) -> Any:
    """Attention among the positions of each sequence."""
    nn, np = _compiler(library).nn, library.np
    batch, positions, width = x.shape
    query, key, value = (
        np.swapaxes(_apply(parameters[name], x).reshape(batch, positions, heads, width // heads), 1, 2)
        for name in ("query", "key", "value")
    )
    mixed = np.swapaxes(nn.attention(query, key, value), 1, 2).reshape(batch, positions, width)
    return _apply(parameters["out"], mixed)


def _apply(layer: Any, x: Any) -> Any:
    return x @ layer["weight"] + layer["bias"]


def _attention_parameters(library: Library, width: int) -> Any:
    return {name: _dense(library, width, width, seed=i) for i, name in enumerate(("query", "key", "value", "out"))}


def attention_training(library: Library) -> Task:
    """A training step of an attention block: width 256, 8 heads, 128 positions, batch 4."""
    np, width = library.np, 256
    parameters = _attention_parameters(library, width)

    def loss(parameters: Any, x: Any, targets: Any) -> Any:
        return np.mean((x + _attend(library, parameters, x, heads=8) - targets) ** 2)

    x, targets = (_normal(library, 4, 128, width, seed=seed) for seed in (6, 7))
    return _training(library, loss, 1.0, parameters, x, targets)


def attention_gradient(library: Library) -> Task:
    """The gradient of dot-product attention by its three operands: batch 8, 512 positions, 8 heads of 64."""
    compiler, np = _compiler(library), library.np
    operands = [_normal(library, 8, 512, 8, 64, seed=seed) for seed in range(3)]

    def loss(operands: Any) -> Any:
        return np.sum(compiler.nn.attention_of_heads(*operands) ** 2)

    return Task(compiler.gradient(loss, operands))


def sparse_product(library: Library) -> Task:
    """The product of a sparse matrix with a vector, both of which are operands."""
    matrix, vector = sparse_matrix(library)
    product = _compiler(library).compile(lambda matrix, vector: matrix @ vector)
    return Task(lambda: product(matrix, vector))


def transformer_training(library: Library, eager: bool = False) -> Task:
    """A training step of a transformer block: width 256, 8 heads, 128 positions, batch 8."""
    nn, np, width = _compiler(library).nn, library.np, 256
    parameters = {
        **_attention_parameters(library, width),
        "up": _dense(library, width, 4 * width, seed=4),
        "down": _dense(library, 4 * width, width, seed=5),
        "before": _norm(library, width),
        "between": _norm(library, width),
    }

    def block(parameters: Any, x: Any) -> Any:
        x = x + _attend(library, parameters, nn.layer_norm(x, **parameters["before"]), heads=8)
        hidden = nn.gelu(_apply(parameters["up"], nn.layer_norm(x, **parameters["between"])))
        return x + _apply(parameters["down"], hidden)

    def loss(parameters: Any, x: Any, targets: Any) -> Any:
        return np.mean((block(parameters, x) - targets) ** 2)

    x, targets = (_normal(library, 8, 128, width, seed=seed) for seed in (6, 7))
    return _training(library, loss, 1.0, parameters, x, targets, eager=eager)


def convolutional_training(library: Library, eager: bool = False) -> Task:
    """A training step of a classifier of 32 images of 28 x 28 by convolutions with 32 and 64 kernels of 3 x 3."""
    nn, np = _compiler(library).nn, library.np
    rng = numpy.random.default_rng(0)

    def in_order(*shape: int, scale: float = 1.0) -> Any:
        return library.array(nn.in_order(rng.normal(size=shape, scale=scale).astype(numpy.float32)))

    widths = (1, 32, 64)
    parameters = {
        "kernels": [in_order(3, 3, m, n, scale=math.sqrt(2 / (9 * m))) for m, n in itertools.pairwise(widths)],
        "biases": [library.array(numpy.zeros(n, numpy.float32)) for n in widths[1:]],
        "last": _dense(library, widths[-1], 10, seed=1),
    }
    labels = rng.integers(10, size=32)

    def loss(parameters: Any, x: Any, targets: Any) -> Any:
        for kernel, bias in zip(parameters["kernels"], parameters["biases"], strict=True):
            x = nn.max_pool(nn.relu(nn.add_bias(nn.convolve(x, kernel), bias)))
        logits = nn.log_softmax(_apply(parameters["last"], nn.mean_over_space(x)))
        return -np.sum(targets * logits) / len(targets)

    one_hot = library.array(numpy.eye(10, dtype=numpy.float32)[labels])
    return _training(library, loss, 0.05, parameters, in_order(32, 28, 28, 1), one_hot, eager=eager)
