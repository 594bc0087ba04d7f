"""Optimizers as triples of functions.

An :class:`Optimizer` is a triple ``(init_fn, update_fn, params_fn)``:

* ``init_fn(params)`` returns the initial state;
* ``update_fn(step, gradients, state)`` returns the next state, given the number of the step;
* ``params_fn(state)`` returns the parameters.

>>> from pullback import grad
>>> from pullback.example_libraries import optimizers
>>> opt_init, opt_update, get_params = optimizers.sgd(0.1)
>>> state = opt_init({"w": 1.0})
>>> for i in range(3):
...     state = opt_update(i, grad(lambda p: p["w"] ** 2)(get_params(state)), state)
>>> print(round(float(get_params(state)["w"]), 3))
0.512
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.faces import face

Schedule = Callable[[ArrayLike], ArrayLike]
"""A function from the number of a step to its size."""
Rules = tuple[Callable[[Any], PyTree], Callable[[Any, Any, Any], PyTree], Callable[[Any], PyTree]]
"""The functions of an optimizer for one array: the initial state, the update, and the parameter in a state."""
P = ParamSpec("P")

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "Schedule", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state",
]  # fmt: skip
face(globals())


class OptimizerState(NamedTuple):
    """The state of an optimizer.

    Attributes:
      packed_state: for each parameter the leaves of its state.
      tree_def: the tree of the parameters.
      subtree_defs: for each parameter the tree of its state.

    >>> from pullback.example_libraries import optimizers
    >>> state = optimizers.sgd(0.5).init_fn({"w": 2.0})
    >>> print(type(state).__name__, state.packed_state)
    OptimizerState ([2.0],)
    """

    packed_state: PyTree
    tree_def: PyTree
    subtree_defs: PyTree


tree.register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda data, children: OptimizerState(children[0], data[0], data[1]),
)


class Optimizer(NamedTuple):
    """The functions of an optimizer, as those of this module return them.

    Attributes:
      init_fn: from parameters to a state.
      update_fn: from the number of a step, gradients and a state to the next state.
      params_fn: from a state to parameters.

    >>> from pullback.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.5)
    >>> print(params(update(0, {"w": 1.0}, init({"w": 2.0}))))
    {'w': 1.5}
    """

    init_fn: Callable[[PyTree], OptimizerState]
    update_fn: Callable[[ArrayLike, PyTree, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], PyTree]


def optimizer(opt_maker: Callable[P, Rules]) -> Callable[P, Optimizer]:
    """Turn a maker of optimizers for single arrays into one of optimizers for trees.

    Args:
      opt_maker: returns ``(init, update, get_params)`` for a single array.

    Returns:
      A function of the same arguments that returns an :class:`Optimizer`.

    Raises:
      ArgumentError: from ``update_fn``: the gradients, or their states, have another tree than the parameters (a
        TypeError and a ValueError).

    >>> from pullback.example_libraries import optimizers
    >>> @optimizers.optimizer
    ... def plain(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * g, lambda x: x
    >>> opt = plain(0.5)
    >>> print(opt.params_fn(opt.update_fn(0, [1.0], opt.init_fn([2.0]))))
    [1.5]
    """

    @functools.wraps(opt_maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def states_of(state: OptimizerState) -> list[Any]:
            packed, _, subtrees = state
            return [tree.unflatten(subtree, leaves) for subtree, leaves in zip(subtrees, packed, strict=True)]

        def init_fn(params: Any) -> OptimizerState:
            leaves, treedef = tree.flatten(params)
            return _packed([init(x) for x in leaves], treedef)

        def update_fn(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, treedef = tree.flatten(grads)
            if treedef != state.tree_def:
                raise ArgumentError(
                    f"{opt_maker.__name__}: the gradients must have the tree of the parameters, {state.tree_def}, but "
                    f"have {treedef}"
                )
            new = _packed([update(i, g, s) for g, s in zip(leaves, states_of(state), strict=True)], treedef)
            for was, now in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if was != now:
                    raise ArgumentError(
                        f"{opt_maker.__name__}: an update must return a state of the tree of the old one, {was}, "
                        f"but returned {now}"
                    )
            return new

        def params_fn(state: OptimizerState) -> Any:
            return tree.unflatten(state.tree_def, [get_params(s) for s in states_of(state)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _packed(states: Sequence[Any], treedef: Any) -> OptimizerState:
    flat = [tree.flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), treedef, tuple(t for _, t in flat))


class JoinPoint:
    """The state of one parameter, as a leaf in the tree of the parameters.

    Args:
      subtree: the state, a tree.

    >>> from pullback.example_libraries import optimizers
    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": 2.0})
    >>> print(optimizers.unpack_optimizer_state(state)["w"].subtree)
    (2.0, Array(0., dtype=float32, weak_type=True))
    """

    def __init__(self, subtree: PyTree) -> None:
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """Return the state of an optimizer as a tree like the parameters, to store in files.

    Args:
      opt_state: an :class:`OptimizerState`.

    Returns:
      A tree like the parameters, with a :class:`JoinPoint` for each of them.

    Raises:
      ArgumentError: the leaves of a parameter's state do not fit its tree (a TypeError and a ValueError).

    >>> from pullback.example_libraries import optimizers
    >>> state = optimizers.sgd(0.5).init_fn({"w": 2.0})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    2.0
    """
    packed, treedef, subtrees = opt_state
    return tree.unflatten(treedef, [JoinPoint(tree.unflatten(t, x)) for t, x in zip(subtrees, packed, strict=True)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """Make the state of an optimizer from the result of :func:`unpack_optimizer_state`.

    Args:
      marked_pytree: a tree whose leaves are of the class :class:`JoinPoint`.

    Returns:
      An :class:`OptimizerState`.

    Raises:
      ArgumentError: a leaf is of another class (a TypeError and a ValueError).

    >>> from pullback.example_libraries import optimizers
    >>> state = optimizers.adam(0.1).init_fn([1.0, 2.0])
    >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)).tree_def == state.tree_def
    True
    """
    leaves, treedef = tree.flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise ArgumentError(f"pack_optimizer_state: expected a tree of JoinPoint, got {leaf!r}")
    return _packed([leaf.subtree for leaf in leaves], treedef)


# Optimizers ----------------------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: float | Schedule) -> Rules:
    """Make the optimizer of gradient descent.

    Args:
      step_size: a number, or a function of the number of the step.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.sgd(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    0.6554
    """
    size = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - size(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Rules:
    """Make the optimizer of gradient descent with momentum.

    Args:
      step_size: a number, or a function of the number of the step.
      mass: how much of the velocity is kept at each step, a number from 0 to 1.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.momentum(0.1, 0.9)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    -1.1608
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return (lambda x: (x, pnp.zeros_like(x))), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Rules:
    """Make the optimizer of gradient descent with Nesterov's momentum.

    Args:
      step_size: a number, or a function of the number of the step.
      mass: how much of the velocity is kept at each step, a number from 0 to 1.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    Source: Nesterov, *A method for solving a convex programming problem with convergence rate 1/k²*, 1983.

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.nesterov(0.1, 0.9)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    -0.8314
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return (lambda x: (x, pnp.zeros_like(x))), update, _first


def _inverse_root(x: Any) -> Any:
    """Return ``1 / sqrt(x)`` elementwise, but 0 where ``x`` is 0."""
    positive = x > 0
    return pnp.where(positive, 1 / pnp.sqrt(pnp.where(positive, x, 1)), 0.0)


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """Make the optimizer Adagrad, with momentum.

    Args:
      step_size: a number, or a function of the number of the step.
      momentum: how much of the velocity is kept at each step, a number from 0 to 1.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    Source: Duchi, Hazan and Singer, *Adaptive subgradient methods for online learning*, JMLR 12 (2011).

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.adagrad(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    1.9055
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares + pnp.square(g)
        velocity = (1 - momentum) * (g * _inverse_root(squares)) + momentum * velocity
        return x - size(i) * velocity, squares, velocity

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Rules:
    """Make the optimizer RMSProp: gradients are divided by the root of a mean of their squares.

    Args:
      step_size: a number, or a function of the number of the step.
      gamma: how much of the mean is kept at each step, a number from 0 to 1.
      eps: is added below the root.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.rmsprop(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    1.0489
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + pnp.square(g) * (1 - gamma)
        return x - size(i) * g / pnp.sqrt(mean + eps), mean

    return (lambda x: (x, pnp.zeros_like(x))), update, _first


@optimizer
def rmsprop_momentum(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Rules:
    """Make the optimizer RMSProp with momentum.

    Args:
      step_size: a number, or a function of the number of the step.
      gamma: how much of the mean of squares is kept at each step, a number from 0 to 1.
      eps: is added below the root of this mean.
      momentum: how much of the velocity is kept at each step, a number from 0 to 1.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.rmsprop_momentum(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    -0.5357
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, velocity = state
        mean = mean * gamma + pnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + size(i) * g / pnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Make the optimizer Adam.

    Args:
      step_size: a number, or a function of the number of the step.
      b1, b2: how much of the means of gradients and of their squares is kept at each step, numbers from 0 to 1.
      eps: is added to the root of the mean of squares.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    Source: Kingma and Ba, *Adam: a method for stochastic optimization*, ICLR 2015.

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.adam(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    1.5030
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * pnp.square(g) + b2 * squares
        unbiased = mean / (1 - pnp.asarray(b1, mean.dtype) ** (i + 1))
        root = pnp.sqrt(squares / (1 - pnp.asarray(b2, mean.dtype) ** (i + 1)))
        return x - size(i) * unbiased / (root + eps), mean, squares

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, _first


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Make the optimizer AdaMax, which is Adam with the maximum norm.

    Args:
      step_size: a number, or a function of the number of the step.
      b1, b2: how much of the mean of gradients and of their largest size is kept at each step, numbers from 0 to 1.
      eps: is added to the largest size.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    Source: Kingma and Ba, as for :func:`adam`.

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.adamax(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    1.5258
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = pnp.maximum(b2 * largest, pnp.abs(g))
        return x - size(i) / (1 - pnp.asarray(b1, mean.dtype) ** (i + 1)) * mean / (largest + eps), mean, largest

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """Make the optimizer SM3: Adagrad with sums of squares for each axis instead of each element.

    Args:
      step_size: a number, or a function of the number of the step.
      momentum: how much of the velocity is kept at each step, a number from 0 to 1.

    Returns:
      An :class:`Optimizer`, whose functions take and return trees of arrays of floats.

    Raises:
      ArgumentError: ``step_size`` is neither a number nor a function (a TypeError and a ValueError).

    Source: Anil, Gupta, Koren and Singer, *Memory-efficient adaptive optimization*, NeurIPS 2019.

    >>> from pullback import grad
    >>> from pullback.example_libraries import optimizers
    >>> opt = optimizers.sm3(0.1)
    >>> state = opt.init_fn(2.0)
    >>> for i in range(5):
    ...     state = opt.update_fn(i, grad(lambda x: x**2)(opt.params_fn(state)), state)
    >>> print(f"{opt.params_fn(state):.4f}")
    1.9055
    """
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        x = pnp.asarray(x)
        return x, pnp.zeros_like(x), [pnp.zeros(n, x.dtype) for n in x.shape or (1,)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity, sums = state
        flat = pnp.atleast_1d(g)
        rows = [s.reshape([-1 if k == axis else 1 for k in range(flat.ndim)]) for axis, s in enumerate(sums)]
        squares = functools.reduce(pnp.minimum, rows) + pnp.square(flat)
        velocity = (1 - momentum) * (g * _inverse_root(squares).reshape(g.shape)) + momentum * velocity
        axes = range(flat.ndim)
        sums = [squares.max(tuple(k for k in axes if k != axis)) for axis in axes]
        return x - size(i) * velocity, velocity, sums

    return init, update, _first


def _first(state: Any) -> Any:
    return state[0]


# Sizes of steps ------------------------------------------------------------------------------------------------------


def constant(step_size: ArrayLike) -> Schedule:
    """Make a schedule of one step size.

    Args:
      step_size: the size.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    >>> from pullback.example_libraries import optimizers
    >>> optimizers.constant(0.5)(3)
    0.5
    """
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """Make a schedule of sizes that are multiplied by ``decay_rate`` in ``decay_steps`` steps, a little in each.

    Args:
      step_size: the first size.
      decay_steps: a number of steps.
      decay_rate: the factor.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    >>> from pullback.example_libraries import optimizers
    >>> optimizers.exponential_decay(1.0, 2, 0.25)(1)
    0.5
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> Schedule:
    """Make a schedule of sizes divided by ``1 + decay_rate * i / decay_steps``.

    Args:
      step_size: the first size.
      decay_steps, decay_rate: the numbers of the formula.
      staircase: whether ``i / decay_steps`` is rounded down.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    >>> from pullback.example_libraries import optimizers
    >>> optimizers.inverse_time_decay(1.0, 2, 0.5)(4)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * pnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0) -> Schedule:
    """Make a schedule of sizes that decay polynomially to a final one.

    Args:
      step_size: the first size.
      decay_steps: the number of steps to the final size.
      final_step_size: the final size.
      power: the degree.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    >>> from pullback.example_libraries import optimizers
    >>> print(optimizers.polynomial_decay(1.0, 4, 0.0)(3))
    0.25
    """

    def schedule(i: Any) -> Any:
        rest = (1 - pnp.minimum(i, decay_steps) / decay_steps) ** power
        return rest * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: ArrayLike | Sequence[float], values: ArrayLike | Sequence[float]) -> Schedule:
    """Make a schedule of sizes that are constant between boundaries.

    Args:
      boundaries: the numbers of steps after which they change, in order.
      values: the sizes, one more than boundaries.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    Raises:
      ArgumentError: there are not n boundaries and n + 1 values (a TypeError and a ValueError).

    >>> from pullback.example_libraries import optimizers
    >>> print(optimizers.piecewise_constant([2], [0.1, 0.5])(3))
    0.5
    """
    limits, sizes = pnp.asarray(boundaries), pnp.asarray(values)
    if limits.ndim != 1 or sizes.ndim != 1 or sizes.shape[0] != limits.shape[0] + 1:
        raise ArgumentError(
            f"piecewise_constant: expected n boundaries and n + 1 values, got shapes {limits.shape} and {sizes.shape}"
        )
    return lambda i: sizes[pnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """Make a function from the number of a step to its size.

    Args:
      scalar_or_schedule: a function of this kind, or a number.

    Returns:
      A function from the number of a step, an integer or a traced one, to its size.

    Raises:
      ArgumentError: the argument is neither a number nor a function (a TypeError and a ValueError).

    >>> from pullback.example_libraries import optimizers
    >>> optimizers.make_schedule(0.5)(3), optimizers.make_schedule(lambda i: 0.25 * i)(3)
    (0.5, 0.75)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule  # type: ignore[no-any-return]
    if not isinstance(scalar_or_schedule, str) and pnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(
        f"optimizers: step_size must be a number or a function of the step number, got {scalar_or_schedule!r}"
    )


# Gradients -----------------------------------------------------------------------------------------------------------


def l2_norm(tree: PyTree) -> Array:
    """Return the root of the sum of the squares of all elements of a tree.

    Args:
      tree: a tree of arrays of floats.

    Returns:
      A scalar.

    Raises:
      OperandError: a leaf is neither an array nor a number (a TypeError).

    >>> from pullback.example_libraries import optimizers
    >>> print(optimizers.l2_norm({"a": 3.0, "b": 4.0}))
    5.0
    """
    return pnp.sqrt(sum(pnp.vdot(x, x) for x in _leaves(tree)))


_leaves = tree.leaves


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Gradients, scaled down if their norm exceeds ``max_norm``.

    Args:
      grad_tree: a tree of arrays of floats.
      max_norm: the largest norm, a number.

    Returns:
      A tree of the same structure, shapes and dtypes.

    Raises:
      OperandError: a leaf is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.example_libraries import optimizers
    >>> print(optimizers.clip_grads(jnp.array([3.0, 4.0]), 1.0))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree.tree_map(lambda g: pnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
