"""``stax`` and ``optimizers``, against figures of JAX 0.10.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, lax, random, threefry_partitionable, tree, vmap
from pullback.example_libraries import optimizers, stax

X = jnp.sin(jnp.arange(2 * 8 * 8 * 3) * 0.37).reshape(2, 8, 8, 3)
PARTS = (stax.Identity, stax.Dense(3), stax.serial(stax.Dense(3), stax.Sigmoid))
NETS: dict[str, tuple[Any, Any, tuple[int, ...], list[float], float]] = {
    "mlp": (
        stax.serial(stax.Flatten, stax.Dense(5), stax.Relu, stax.Dense(4), stax.Tanh, stax.LogSoftmax),
        X,
        (-1, 4),
        [-1.14061034, 0.02877608, -1.48777115, -0.00950737],
        -1.6136688,
    ),
    "conv": (
        stax.serial(
            stax.Conv(4, (3, 3), padding="SAME"),
            stax.BatchNorm(),
            stax.Relu,
            stax.MaxPool((2, 2), strides=(2, 2)),
            stax.Conv(3, (2, 2), (2, 1)),
            stax.AvgPool((2, 2)),
            stax.SumPool((1, 2)),
            stax.Flatten,
            stax.Dense(2),
        ),
        X,
        (-1, 2),
        [-0.47087705, -6.6406892e-07, 0.0, 0.1341629, 1.17077196, -4.436648e-07, 0.994892, -0.01353976],
        -1.3841157,
    ),
    "transpose": (
        stax.serial(stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"), stax.Gelu, stax.ConvTranspose(2, (2, 2))),
        X,
        (-1, 17, 17, 2),
        [-0.47087705, -6.6406892e-07, -0.27992272, -1.2587592e-06],
        0.0663045,
    ),
    "sequences": (
        stax.serial(stax.Conv1DTranspose(4, (3,), strides=(2,)), stax.Elu),
        X[..., 0],
        (-1, 17, 4),
        [-0.91544336, -6.6406892e-07],
        -0.96824491,
    ),
    "other axes": (
        stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 2, (3, 3), padding="SAME"),
        X.transpose(0, 3, 1, 2),
        (-1, 2, 8, 8),
        [-0.39613491, -3.5423386e-06],
        -0.68418646,
    ),
    "side by side": (
        stax.serial(stax.FanOut(3), stax.parallel(*PARTS), stax.FanInSum, stax.Softplus),
        X,
        (-1, 8, 8, 3),
        [-0.85538262, -8.58133e-05, 0.68373263, -0.00619098],
        0.27148,
    ),
    "concatenated": (
        stax.serial(
            stax.FanOut(2),
            stax.parallel(stax.Exp, stax.Dense(2)),
            stax.FanInConcat(-1),
            stax.Selu,
            stax.Softmax,
            stax.LeakyRelu,
        ),
        X,
        (-1, 8, 8, 5),
        [-0.50318331, 0.00174715],
        -1.1070933,
    ),
    "by shape": (
        stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])),
        X,
        (-1, 8, 8, 6),
        [1.8693527, -0.03114114],
        0.512172,
    ),
}


def weighted(x: Any) -> Any:
    return jnp.sum(x * jnp.cos(jnp.arange(x.size)).reshape(x.shape))


@pytest.mark.parametrize("name", NETS)
def test_layers(name: str) -> None:
    (init_fun, apply_fun), x, shape, of_params, of_result = NETS[name]
    with threefry_partitionable():
        found, params = init_fun(random.key(0), (-1, *x.shape[1:]))
    assert tuple(found) == shape
    np.testing.assert_allclose([weighted(p) for p in tree.leaves(params)], of_params, rtol=1e-5, atol=2e-6)
    for way in (apply_fun, jit(apply_fun)):
        out = way(params, x)
        assert out.shape == (2, *shape[1:])
        np.testing.assert_allclose(weighted(out), of_result, rtol=2e-5, atol=1e-5)
    if name != "conv":  # whose normalisation is over the batch
        one_by_one = vmap(lambda x: apply_fun(params, x[None])[0])(x)
        np.testing.assert_allclose(one_by_one, out, atol=1e-5)


def test_a_pool_whose_axes_are_named_and_padded() -> None:
    x = jnp.arange(18.0).reshape(1, 2, 3, 3)
    shape, _ = stax.AvgPool((2, 2), padding="SAME", spec="NCHW")[0](random.key(0), (-1, 2, 3, 3))
    assert shape == (-1, 2, 3, 3)
    out = stax.AvgPool((2, 2), padding="SAME", spec="NCHW")[1]((), x)
    np.testing.assert_allclose(out[0, 0], [[2, 3, 3.5], [5, 6, 6.5], [6.5, 7.5, 8]])  # what is padded does not count


def test_dropout() -> None:
    _, apply_fun = stax.Dropout(0.6)
    x = jnp.arange(1.0, 9.0)
    with threefry_partitionable():
        out = apply_fun((), x, rng=random.key(0))
        np.testing.assert_allclose(out, [0, 0, 5, 6.6666665, 8.333333, 10, 11.666666, 0], rtol=1e-6)
        init_fun, net = stax.serial(stax.Dropout(0.5), stax.Dense(2), stax.Dropout(0.5))
        _, params = init_fun(random.key(0), (2, 3))
        for way in (net, jit(net)):
            out = way(params, jnp.ones((2, 3)), rng=random.key(0))
            np.testing.assert_allclose(out, [[0, 0], [-6.049875, -2.0431218]], rtol=1e-5)
    assert stax.Dropout(0.6, mode="test")[1]((), x, rng=random.key(0)) is x
    with pytest.raises(ValueError, match="needs a random key"):
        apply_fun((), x)


# Optimizers ----------------------------------------------------------------------------------------------------------

START = {"w": jnp.array([[1.0, -2.0], [3.0, 0.5]]), "b": [jnp.array(2.0), jnp.array([1.0, -1.0, 0.5])]}
AFTER_FOUR: dict[str, tuple[optimizers.Optimizer, list[float]]] = {
    "sgd": (
        optimizers.sgd(0.1),
        [0.81919992, 0.42062375, -0.42062375, 0.36238647, 1.3050438, -1.759688, 2.8527648, 0.87375116],
    ),
    "momentum": (
        optimizers.momentum(0.1, 0.9),
        [-0.61720002, -0.60627723, 0.60627723, 0.18288623, 1.668707, -1.4710361, 2.6696787, 1.3190075],
    ),
    "nesterov": (
        optimizers.nesterov(0.1, 0.9),
        [-0.64964604, -0.61107838, 0.61107838, 0.16074713, 1.7158253, -1.4478923, 2.4592483, 1.558038],
    ),
    "adagrad": (
        optimizers.adagrad(0.1),
        [1.9306685, 0.93162668, -0.93162668, 0.43279713, 1.0691452, -1.9311754, 2.9281549, 0.569974],
    ),
    "rmsprop": (
        optimizers.rmsprop(0.1),
        [1.1698397, 0.47097406, -0.47097406, 0.14330719, 1.5602444, -1.570941, 1.94685, 1.3701022],
    ),
    "rmsprop_momentum": (
        optimizers.rmsprop_momentum(0.1),
        [0.00449312, -0.37787497, 0.37787497, -0.47578332, 2.089056, -1.2170933, 0.772851, 2.3075104],
    ),
    "adam": (
        optimizers.adam(0.1),
        [1.6015089, 0.61782157, -0.61782157, 0.14993626, 1.3935508, -1.6146373, 2.6053247, 0.90096408],
    ),
    "adamax": (
        optimizers.adamax(0.1),
        [1.6153839, 0.67554438, -0.67554438, 0.22329307, 1.3611486, -1.6622068, 2.6678362, 0.88394094],
    ),
    "sm3": (
        optimizers.sm3(0.1),
        [1.9306685, 0.93162668, -0.93162668, 0.43279713, 1.0691452, -1.9335986, 2.9493253, 0.569974],
    ),
    "schedule": (
        optimizers.sgd(optimizers.exponential_decay(0.1, 2, 0.5)),
        [1.1489298, 0.48910764, -0.48910764, 0.39928389, 1.2107978, -1.830827, 2.9151723, 0.73217219],
    ),
}


def loss(p: Any) -> Any:
    return jnp.sum(jnp.cos(p["w"]) ** 2) + p["b"][0] ** 2 + jnp.sum(p["b"][1] ** 4)


@pytest.mark.parametrize("name", AFTER_FOUR)
def test_four_steps(name: str) -> None:
    opt, wanted = AFTER_FOUR[name]

    def step(i: Any, state: Any) -> Any:
        return opt.update_fn(i, grad(loss)(opt.params_fn(state)), state)

    state = opt.init_fn(START)
    for i in range(4):
        state = step(i, state)
    compiled = jit(lambda s: lax.fori_loop(0, 4, step, s))(opt.init_fn(START))
    for found in (state, compiled):
        params = opt.params_fn(found)
        flat = np.concatenate([np.ravel(x) for x in (*params["b"], params["w"])])
        np.testing.assert_allclose(flat, wanted, rtol=3e-5, atol=1e-6)
        assert tree.structure(params) == tree.structure(START)


STEPS = (0, 1, 2, 3, 5, 12)
SIZES: list[tuple[Any, list[float]]] = [
    (optimizers.constant(0.5), [0.5] * 6),
    (optimizers.make_schedule(0.5), [0.5] * 6),
    (optimizers.exponential_decay(0.5, 3, 0.9), [0.5, 0.48274469, 0.46608488, 0.45, 0.41947639, 0.32805]),
    (optimizers.inverse_time_decay(0.5, 3, 0.9), [0.5, 0.38461538, 0.3125, 0.26315789, 0.2, 0.10869565]),
    (optimizers.inverse_time_decay(0.5, 3, 0.9, True), [0.5, 0.5, 0.5, 0.2631579, 0.2631579, 0.10869566]),
    (optimizers.polynomial_decay(0.5, 10, 0.1, 2.0), [0.5, 0.42399997, 0.35600001, 0.296, 0.2, 0.1]),
    (optimizers.piecewise_constant([2, 5], [0.1, 0.2, 0.3]), [0.1, 0.1, 0.1, 0.2, 0.2, 0.3]),
]


@pytest.mark.parametrize(("schedule", "wanted"), SIZES)
def test_sizes_of_steps(schedule: Any, wanted: list[float]) -> None:
    np.testing.assert_allclose([schedule(i) for i in STEPS], wanted, rtol=1e-6)
    np.testing.assert_allclose([jit(schedule)(i) for i in STEPS], wanted, rtol=1e-6)


def test_gradients_are_clipped() -> None:
    np.testing.assert_allclose(optimizers.l2_norm(START), 4.527693, rtol=1e-6)
    clipped = jit(optimizers.clip_grads)(START, 1.0)
    np.testing.assert_allclose(optimizers.l2_norm(clipped), 1, rtol=1e-6)
    np.testing.assert_allclose(clipped["b"][0], 0.4417261, rtol=1e-6)
    for a, b in zip(tree.leaves(optimizers.clip_grads(START, 100.0)), tree.leaves(START)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("opt", [optimizers.adagrad(0.1), optimizers.sm3(0.1)])
def test_parameters_whose_gradients_have_all_been_zero_stay(opt: Any) -> None:
    state = opt.update_fn(0, jnp.array([0.0, 2.0]), opt.init_fn(jnp.ones(2)))
    state = opt.update_fn(1, jnp.array([0.0, 2.0]), state)
    params = opt.params_fn(state)
    assert params[0] == 1
    assert 0 < params[1] < 1


def test_states_as_trees_of_the_parameters() -> None:
    state = optimizers.adam(0.1).init_fn(START)
    marked = optimizers.unpack_optimizer_state(state)
    assert tree.structure(marked) == tree.structure(START)
    assert isinstance(marked["b"][0], optimizers.JoinPoint)
    again = optimizers.pack_optimizer_state(marked)
    assert tree.structure(again) == tree.structure(state)
    assert len(tree.leaves(state)) == 9
    with pytest.raises(TypeError, match="expected a tree of JoinPoint"):
        optimizers.pack_optimizer_state([1.0])


def test_what_is_refused() -> None:
    opt = optimizers.adam(0.1)
    with pytest.raises(TypeError, match="adam: the gradients must have the tree of the parameters"):
        opt.update_fn(0, {"w": 1.0}, opt.init_fn(START))
    for size in ("a", jnp.ones(2)):
        with pytest.raises(TypeError, match="step_size must be a number or a function"):
            optimizers.sgd(size)
    with pytest.raises(ValueError, match=r"n boundaries and n \+ 1 values, got shapes \(1,\) and \(1,\)"):
        optimizers.piecewise_constant([2], [1.0])

    @optimizers.optimizer
    def growing() -> Any:
        return (lambda x: (x,)), (lambda i, g, s: (*s, g)), (lambda s: s[0])

    with pytest.raises(TypeError, match="an update must return a state of the tree"):
        growing().update_fn(0, 1.0, growing().init_fn(1.0))
