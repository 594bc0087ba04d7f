"""How each library compiles: the same few methods for those that have ``jit`` and for PyTorch.

Each method makes everything ready and returns the call to time. Layers that PyTorch has as operations of its own are
those operations there, so that every peer is at its best.
"""

import functools
import importlib
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Protocol

_NETWORK = """
def loss(parameters, x):
    for weight, bias in parameters:
        x = np.tanh(x @ weight + bias)
    return np.sum(x ** 2)

def numbers(*shape):
    return array(numpy.sin(numpy.arange(1.0, 1 + numpy.prod(shape))).reshape(shape).astype("float32") / 3)

parameters = [(numbers(10, 10), numbers(10)) for _ in range(10)]
x = numbers(4, 10)
"""
_PRINT = "print(sum(float(abs(numpy.asarray(leaf)).sum()) for leaf in gradient))\n"


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays and floats of a result or of parameters, whatever containers they are in."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves(item)
    elif hasattr(tree, "__array__") or isinstance(tree, float):
        yield tree


def _as_torch_has_it(array: Any) -> Any:
    """Images (batch, features, height, width); kernels (features out, features in, height, width)."""
    is_kernel = array.shape[0] == array.shape[1] == 3
    return array.transpose((3, 2, 0, 1) if is_kernel else (0, 3, 1, 2)).copy()


class Compiler(Protocol):
    """What a compiled workload may use.

    ``nn`` has ``relu``, ``gelu`` (by tanh), ``log_softmax`` (over the last axis), ``layer_norm(x, scale, shift)``,
    ``attention(query, key, value)`` (over the last two axes), and the library's own ``attention_of_heads``, of arrays
    (batch, positions, heads, features); for images ``in_order(array)``, which puts the axes
    (batch, height, width, features) of an array of NumPy's, or (height, width, features in, features out), in the
    library's own order, ``convolve(x, kernel)`` (of the same size), ``max_pool(x)`` (two by two), ``add_bias(x, bias)``
    and ``mean_over_space(x)``. ``cold_start`` is a program that prints the sum of the magnitudes of a compiled
    gradient.
    """

    cold_start: str

    @property
    def nn(self) -> Any: ...

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled function."""

    def gradient(self, loss: Callable[..., Any], parameters: Any, *batch: Any) -> Callable[[], Any]:
        """The compiled gradient with respect to the parameters."""

    def hessian(self, function: Callable[[Any], Any], point: Any) -> Callable[[], Any]:
        """The compiled Hessian."""

    def training_step(self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any) -> Callable[[], Any]:
        """A step of gradient descent, whose parameters take the memory of the last ones; it returns the loss."""

    def eager_training_step(
        self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any
    ) -> Callable[[], Any]:
        """The same step, not compiled."""


class JaxLike:
    """Pullback or JAX: transformations of pure functions."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._library = importlib.import_module(package)
        self.cold_start = (
            f"import numpy, {package} as library, {package}.numpy as np\narray = np.asarray\n{_NETWORK}"
            "gradient = [leaf for pair in library.jit(library.grad(loss))(parameters, x) for leaf in pair]\n"
            f"{_PRINT}"
        )

    @functools.cached_property
    def nn(self) -> Any:
        np = importlib.import_module(f"{self._package}.numpy")
        nn = importlib.import_module(f"{self._package}.nn")
        lax, pairs = self._library.lax, (1, 2, 2, 1)

        def convolve(x: Any, kernel: Any) -> Any:
            return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
            centred = x - np.mean(x, axis=-1, keepdims=True)
            variance = np.mean(centred**2, axis=-1, keepdims=True)
            return centred / np.sqrt(variance + 1e-5) * scale + shift

        def attention(query: Any, key: Any, value: Any) -> Any:
            scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
            return nn.softmax(scores, axis=-1) @ value

        return SimpleNamespace(
            relu=nn.relu,
            gelu=nn.gelu,
            log_softmax=nn.log_softmax,
            layer_norm=layer_norm,
            attention=attention,
            attention_of_heads=nn.dot_product_attention,
            in_order=lambda array: array,
            convolve=convolve,
            max_pool=lambda x: lax.reduce_window(x, -math.inf, lax.max, pairs, pairs, "VALID"),
            add_bias=lambda x, bias: x + bias,
            mean_over_space=lambda x: np.mean(x, axis=(1, 2)),
        )

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._library.jit(function)
        return compiled

    def gradient(self, loss: Callable[..., Any], parameters: Any, *batch: Any) -> Callable[[], Any]:
        compiled = self.compile(self._library.grad(loss))
        return lambda: compiled(parameters, *batch)

    def hessian(self, function: Callable[[Any], Any], point: Any) -> Callable[[], Any]:
        compiled = self.compile(self._library.hessian(function))
        return lambda: compiled(point)

    def training_step(self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any) -> Callable[[], Any]:
        return self._steps(self._library.jit(self._step(loss, rate), donate_argnums=0), parameters, *batch)

    def eager_training_step(
        self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any
    ) -> Callable[[], Any]:
        return self._steps(self._step(loss, rate), parameters, *batch)

    def _step(self, loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
        library = self._library

        def step(parameters: Any, *batch: Any) -> Any:
            value, gradient = library.value_and_grad(loss)(parameters, *batch)
            return library.tree.map(lambda p, g: p - rate * g, parameters, gradient), value

        return step

    def _steps(self, step: Callable[..., Any], parameters: Any, *batch: Any) -> Callable[[], Any]:
        def call() -> Any:
            nonlocal parameters
            parameters, value = step(parameters, *batch)
            return value

        return call


class Torch:
    """PyTorch with parameters that record their gradients, and an optimiser that changes them in place.

    Functions are compiled by ``torch.compile``, or, the imperative way, not at all.
    """

    def __init__(self, compiles: bool) -> None:
        import torch

        self._torch = torch
        self._compiles = compiles
        loss = "torch.compile(loss)" if compiles else "loss"
        self.cold_start = (
            f"import numpy, torch, torch as np\narray = torch.from_numpy\n{_NETWORK}"
            "leaves = [leaf.requires_grad_() for pair in parameters for leaf in pair]\n"
            f"gradient = torch.autograd.grad({loss}(parameters, x), leaves)\n{_PRINT}"
        )

    @functools.cached_property
    def nn(self) -> Any:
        functional = self._torch.nn.functional

        def attention_of_heads(*operands: Any) -> Any:
            return functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in operands)).transpose(1, 2)

        return SimpleNamespace(
            relu=functional.relu,
            gelu=functools.partial(functional.gelu, approximate="tanh"),
            log_softmax=functools.partial(functional.log_softmax, dim=-1),
            layer_norm=lambda x, scale, shift: functional.layer_norm(x, x.shape[-1:], scale, shift),
            attention=functional.scaled_dot_product_attention,
            attention_of_heads=attention_of_heads,
            in_order=_as_torch_has_it,
            convolve=functools.partial(functional.conv2d, padding="same"),
            max_pool=functools.partial(functional.max_pool2d, kernel_size=2),
            add_bias=lambda x, bias: x + bias[:, None, None],
            mean_over_space=lambda x: x.mean((2, 3)),
        )

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not self._compiles:
            return function
        compiled: Callable[..., Any] = self._torch.compile(function)
        return compiled

    def gradient(self, loss: Callable[..., Any], parameters: Any, *batch: Any) -> Callable[[], Any]:
        variables = [leaf.requires_grad_() for leaf in leaves(parameters)]
        compiled, grad = self.compile(loss), self._torch.autograd.grad
        return lambda: grad(compiled(parameters, *batch), variables)

    def hessian(self, function: Callable[[Any], Any], point: Any) -> Callable[[], Any]:
        if self._compiles:
            compiled = self.compile(self._torch.func.hessian(function))
            return lambda: compiled(point)
        hessian = self._torch.autograd.functional.hessian
        return lambda: hessian(function, point, vectorize=True)

    def eager_training_step(
        self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any
    ) -> Callable[[], Any]:
        assert not self._compiles
        return self.training_step(loss, rate, parameters, *batch)

    def training_step(self, loss: Callable[..., Any], rate: float, parameters: Any, *batch: Any) -> Callable[[], Any]:
        variables = [leaf.requires_grad_() for leaf in leaves(parameters)]
        optimiser = self._torch.optim.SGD(variables, lr=rate)
        compiled = self.compile(loss)

        def call() -> Any:
            optimiser.zero_grad()
            value = compiled(parameters, *batch)
            value.backward()
            optimiser.step()
            return value.detach()

        return call
