"""Layers of neural networks as pairs of functions.

A layer is a pair ``(init_fun, apply_fun)``:

* ``init_fun(rng, input_shape)`` returns the shape of the result and the initial parameters;
* ``apply_fun(params, inputs, rng=None)`` returns the result.

Axes of batches may have the size -1 in ``input_shape``. Functions such as :func:`serial` make layers of layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as pnp
from pullback import lax, nn, random
from pullback.core.annotations import PyTree
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.types import ShapedArray
from pullback.nn.initializers import Initializer, glorot_normal, normal, ones, zeros
from pullback.transforms.autodiff.tracing import eval_shape

Layer = tuple[Callable[..., tuple[PyTree, PyTree]], Callable[..., PyTree]]
"""``init_fun(rng, input_shape) -> (output_shape, params)`` and ``apply_fun(params, inputs, rng=None) -> outputs``."""
Padding = str | Sequence[tuple[int, int]]
randn = normal
glorot = glorot_normal

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp", "FanInConcat",
    "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity", "LeakyRelu",
    "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise",
    "glorot", "glorot_normal", "normal", "ones", "parallel", "randn", "serial", "shape_dependent", "zeros",
]  # fmt: skip
face(globals())


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:  # noqa: B008
    """Make a layer that multiplies by a matrix and adds a vector.

    Args:
      out_dim: the size of the last axis of the result.
      W_init, b_init: initializers of the matrix and of the vector.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    Raises:
      OperandError: from ``init_fun``: there is no random key; from ``apply_fun``: the input is no array (a TypeError).
      ShapeError: from ``apply_fun``: the input does not fit the parameters (a TypeError and a ValueError).

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.Dense(3)
    >>> shape, (W, b) = init_fun(random.key(0), (-1, 2))
    >>> shape, W.shape, b.shape
    ((-1, 3), (2, 3), (3,))
    """

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        for_W, for_b = random.split(rng)
        params = W_init(for_W, (input_shape[-1], out_dim)), b_init(for_b, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return pnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _shape_of(apply_fun: Callable[..., Any], params: Any, input_shape: Sequence[int], batch: int) -> tuple[int, ...]:
    """Return the shape of a layer's output for inputs of shape ``input_shape``.

    Args:
      apply_fun: the function of the layer, which takes ``params`` and the inputs.
      params: the parameters of the layer.
      input_shape: the shape of the inputs.
      batch: the batch axis. Its size is the same in both shapes, and may be -1 for unknown.
    """
    known = [1 if i == batch else n for i, n in enumerate(input_shape)]
    out = list(eval_shape(apply_fun, params, ShapedArray(tuple(known), pnp.dtype("float32"))).shape)
    out[batch] = input_shape[batch]
    return tuple(out)


def _convolution(
    apply: Callable[..., Any],
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any,
    padding: Padding,
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    init_W = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    bias_shape = tuple(out_chan if c == "C" else 1 for c in out_spec)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        special = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel_shape = tuple(special[c] if c in special else next(sizes) for c in rhs_spec)
        for_W, for_b = random.split(rng)
        params = init_W(for_W, kernel_shape), b_init(for_b, bias_shape)
        return _shape_of(apply_fun, params, input_shape, lhs_spec.index("N")), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return apply(inputs, W, steps, padding, dimension_numbers=dimension_numbers) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """Make a layer that convolves and adds a vector.

    Args:
      dimension_numbers: the axes of the inputs, the kernel and the results, such as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: the number of features of the result.
      filter_shape: the size of the kernel along each axis of space, a sequence of integers.
      strides: the steps along each axis of space; 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or for each axis of space a pair of numbers.
      W_init, b_init: initializers of the kernel and of the vector; Glorot's and normal numbers by default.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    Raises:
      OperandError: from ``init_fun``: there is no random key; from ``apply_fun``: the input is no array (a TypeError).
      ShapeError: from ``apply_fun``: the input does not fit the parameters (a TypeError and a ValueError).
      ArgumentError: from both: ``padding`` is another text (a TypeError and a ValueError).

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 3))
    >>> shape, params = init_fun(random.key(0), (-1, 1, 8, 8))
    >>> shape
    (-1, 4, 6, 6)
    """
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:
    """Make a layer that applies the transpose of a convolution, and adds a vector.

    Args:
      dimension_numbers: the axes of the inputs, the kernel and the results, such as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: the number of features of the result.
      filter_shape: the size of the kernel along each axis of space, a sequence of integers.
      strides: the steps along each axis of space; 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or for each axis of space a pair of numbers.
      W_init, b_init: initializers of the kernel and of the vector; Glorot's and normal numbers by default.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    Raises:
      OperandError: from ``init_fun``: there is no random key; from ``apply_fun``: the input is no array (a TypeError).
      ShapeError: from ``apply_fun``: the input does not fit the parameters (a TypeError and a ValueError).
      ArgumentError: from both: ``padding`` is another text (a TypeError and a ValueError).

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 4, (2, 2), (2, 2))
    >>> shape, params = init_fun(random.key(0), (-1, 8, 8, 1))
    >>> shape
    (-1, 16, 16, 4)
    """
    return _convolution(lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
    W_init: Initializer | None = None, b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:  # fmt: skip
    """Make a layer that convolves images with the features last; see :func:`GeneralConv`.

    Args:
      out_chan: the number of features of the result.
      filter_shape: the size of the kernel along each axis of space, a sequence of integers.
      strides: the steps along each axis of space; 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or for each axis of space a pair of numbers.
      W_init, b_init: initializers of the kernel and of the vector; Glorot's and normal numbers by default.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> shape, params = stax.Conv(4, (3, 3))[0](random.key(0), (-1, 8, 8, 1))
    >>> shape
    (-1, 6, 6, 4)
    """
    return GeneralConv(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
    W_init: Initializer | None = None, b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:  # fmt: skip
    """Make a layer that applies the transpose of a convolution of images with the features last.

    Args:
      out_chan: the number of features of the result.
      filter_shape: the size of the kernel along each axis of space, a sequence of integers.
      strides: the steps along each axis of space; 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or for each axis of space a pair of numbers.
      W_init, b_init: initializers of the kernel and of the vector; Glorot's and normal numbers by default.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.ConvTranspose(4, (2, 2), (2, 2))
    >>> shape, params = init_fun(random.key(0), (-1, 8, 8, 1))
    >>> shape
    (-1, 16, 16, 4)
    """
    return GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID",
    W_init: Initializer | None = None, b_init: Initializer = normal(1e-6),  # noqa: B008
) -> Layer:  # fmt: skip
    """Make a layer that applies the transpose of a convolution of sequences with the features last.

    Args:
      out_chan: the number of features of the result.
      filter_shape: the size of the kernel along each axis of space, a sequence of integers.
      strides: the steps along each axis of space; 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or for each axis of space a pair of numbers.
      W_init, b_init: initializers of the kernel and of the vector; Glorot's and normal numbers by default.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.Conv1DTranspose(4, (2,), (2,))
    >>> shape, params = init_fun(random.key(0), (-1, 8, 1))
    >>> shape
    (-1, 16, 4)
    """
    return GeneralConvTranspose(("NHC", "HIO", "NHC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Initializer = zeros, gamma_init: Initializer = ones,
) -> Layer:  # fmt: skip
    """Make a layer that subtracts the mean over some axes, divides by the standard deviation, scales and shifts.

    Args:
      axis: the axes, an integer or a sequence of integers.
      epsilon: is added to the variance.
      center, scale: whether the parameters include a shift and a factor.
      beta_init, gamma_init: the initializers of the shift and the factor.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    Raises:
      OperandError: from ``init_fun``: there is no random key; from ``apply_fun``: the input is no array (a TypeError).
      ShapeError: from ``apply_fun``: the input does not fit the parameters (a TypeError and a ValueError).

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.BatchNorm()
    >>> shape, params = init_fun(random.key(0), (-1, 8, 8, 3))
    >>> shape
    (-1, 8, 8, 3)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        for_beta, for_gamma = random.split(rng)
        return tuple(input_shape), (
            beta_init(for_beta, shape) if center else (),
            gamma_init(for_gamma, shape) if scale else (),
        )

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        out = nn.standardize(x, axes, epsilon=epsilon)
        rest = tuple(None if i in axes else slice(None) for i in range(pnp.ndim(x)))
        if scale:
            out = out * gamma[rest]
        return out + beta[rest] if center else out

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: PyTree) -> Layer:
    """Make a layer without parameters that applies a function.

    Args:
      fun: takes and returns an array of one shape.
      fun_kwargs: further arguments of ``fun``.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> import pullback.numpy as jnp
    >>> from pullback.example_libraries import stax
    >>> print(stax.elementwise(jnp.clip, max=1.0)[1]((), jnp.arange(3.0)))
    [0. 1. 1.]
    """
    return (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(pnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(pnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def _pooling(
    reducer: Any,
    initial: float,
    window_shape: Sequence[int],
    strides: Any,
    padding: Padding,
    spec: str | None,
    mean: bool,
) -> Layer:
    def geometry(ndim: int) -> tuple[list[int], list[int], int]:
        batch, features = (0, ndim - 1) if spec is None else (spec.index("N"), spec.index("C"))
        sizes, steps = list(window_shape), list(strides or (1,) * len(window_shape))
        for i in sorted((batch, features)):
            sizes.insert(i, 1)
            steps.insert(i, 1)
        return sizes, steps, batch

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        return _shape_of(apply_fun, (), input_shape, geometry(len(input_shape))[2]), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        sizes, steps, _ = geometry(inputs.ndim)
        out = lax.reduce_window(inputs, initial, reducer, sizes, steps, padding)
        if not mean:
            return out
        # The padding does not count.
        return out / lax.reduce_window(pnp.ones_like(inputs), 0.0, lax.add, sizes, steps, padding)

    return init_fun, apply_fun


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that takes the maximum of each window.

    Args:
      window_shape: the sizes of windows along the axes of space, a sequence of integers.
      strides: the steps between windows, a sequence of integers; 1 by default.
      padding: ``"VALID"`` or ``"SAME"``.
      spec: the names of the axes, such as ``"NHWC"``; by default the first is the batch, and the last the features.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> stax.MaxPool((2, 2), (2, 2))[0](random.key(0), (-1, 8, 8, 3))
    ((-1, 4, 4, 3), ())
    """
    return _pooling(lax.max, -math.inf, window_shape, strides, padding, spec, mean=False)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that takes the sum of each window.

    Args:
      window_shape: the sizes of windows along the axes of space, a sequence of integers.
      strides: the steps between windows, a sequence of integers; 1 by default.
      padding: ``"VALID"`` or ``"SAME"``.
      spec: the names of the axes, such as ``"NHWC"``; by default the first is the batch, and the last the features.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.SumPool((2, 2), (2, 2))
    >>> shape, params = init_fun(random.key(0), (-1, 8, 8, 3))
    >>> shape
    (-1, 4, 4, 3)
    """
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec, mean=False)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that takes the mean of each window; padding does not count.

    Args:
      window_shape: the sizes of windows along the axes of space, a sequence of integers.
      strides: the steps between windows, a sequence of integers; 1 by default.
      padding: ``"VALID"`` or ``"SAME"``.
      spec: the names of the axes, such as ``"NHWC"``; by default the first is the batch, and the last the features.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.AvgPool((2, 2), (2, 2))
    >>> shape, params = init_fun(random.key(0), (-1, 8, 8, 3))
    >>> shape
    (-1, 4, 4, 3)
    """
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec, mean=True)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    return init_fun, lambda params, inputs, **kwargs: pnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()


def FanOut(num: int) -> Layer:
    """Make a layer that returns its input several times.

    Args:
      num: the number of copies.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.FanOut(2)
    >>> shape, params = init_fun(random.key(0), (-1, 3))
    >>> shape
    [(-1, 3), (-1, 3)]
    """
    return (lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num)


FanInSum: Layer = (lambda rng, input_shapes: (input_shapes[0], ()), lambda params, inputs, **kwargs: sum(inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """Make a layer that concatenates its inputs.

    Args:
      axis: the axis along which they are concatenated, an integer.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.FanInConcat()
    >>> shape, params = init_fun(random.key(0), [(-1, 3), (-1, 4)])
    >>> shape
    (-1, 7)
    """

    def init_fun(rng: Any, input_shapes: Sequence[Sequence[int]]) -> Any:
        shape = list(input_shapes[0])
        shape[axis] = sum(s[axis] for s in input_shapes)
        return tuple(shape), ()

    return init_fun, lambda params, inputs, **kwargs: pnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Make a layer that keeps each element with probability ``rate``, divided by ``rate``, and zeroes the others.

    Args:
      rate: the probability that an element is kept.
      mode: ``"train"``, or another word for a layer that returns its input.

    Returns:
      A layer, which takes a random key: ``apply_fun(params, inputs, rng=key)``.

    Raises:
      ArgumentError: from ``apply_fun``: there is no key (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.Dropout(0.5)
    >>> out = apply_fun((), jnp.ones(1000), rng=random.key(0))
    >>> sorted(set(out.tolist())), bool(abs(out.mean() - 1) < 0.1)
    ([0.0, 2.0], True)
    """

    def apply_fun(params: Any, inputs: Any, rng: Any = None, **kwargs: Any) -> Any:
        if rng is None:
            raise ArgumentError("stax.Dropout needs a random key: apply_fun(params, inputs, rng=random.key(0))")
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return pnp.where(keep, inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply_fun


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Make a layer of layers, one after the other.

    Args:
      layers: the layers, each of which takes the result of the one before it.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> shape, params = init_fun(random.key(0), (-1, 3))
    >>> shape, apply_fun(params, jnp.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init, _ in layers:
            rng, own = random.split(rng)
            input_shape, found = init(own, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), own, key in zip(layers, params, keys, strict=True):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Make a layer of layers side by side, which takes a list of inputs, one for each, and returns a list of results.

    Args:
      layers: the layers.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> branches = stax.parallel(stax.Dense(3), stax.Identity)
    >>> init_fun, apply_fun = stax.serial(stax.FanOut(2), branches, stax.FanInConcat())
    >>> shape, params = init_fun(random.key(0), (-1, 2))
    >>> shape
    (-1, 5)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        both = [init(key, shape) for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return [shape for shape, _ in both], [params for _, params in both]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        branches = zip(layers, params, inputs, keys, strict=True)
        return [apply(own, x, rng=key, **kwargs) for (_, apply), own, x, key in branches]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Make a layer that depends on the shape of its input.

    Args:
      make_layer: takes the shape, a tuple of integers, and returns the layer.

    Returns:
      A layer: a pair ``(init_fun, apply_fun)``.

    >>> from pullback import random
    >>> from pullback.example_libraries import stax
    >>> init_fun, apply_fun = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    >>> shape, params = init_fun(random.key(0), (-1, 3))
    >>> shape
    (-1, 6)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
