"""Twelve programs whose gradients need memory, in the names that JAX and Pullback share.

``programs(lib)`` returns them for one of the two libraries. They fit a small machine: the temporaries of a gradient are
between 5 and 200 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Part = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is applied to the function of each layer, block or step."""


class Program(NamedTuple):
    """A program: its name, a function of parameters and data that returns a scalar, and its arguments."""

    name: str
    loss: Callable[..., Any]
    args: tuple[Any, ...]


def _normal(seed: int, *shape: int, scale: float = 1.0) -> Any:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def _mlp(lib: Any, part: Part) -> Program:
    width, depth, batch = 128, 16, 1024
    weights = [(_normal(i, width, width, scale=0.12), np.zeros(width, np.float32)) for i in range(depth)]

    layer = part(lambda w, b, x: lib.nn.gelu(x @ w + b))

    def loss(weights: Any, x: Any) -> Any:
        for w, b in weights:
            x = layer(w, b, x)
        return lib.numpy.mean(x**2)

    return Program("mlp", loss, (weights, _normal(99, batch, width)))


def _conv(lib: Any, x: Any, w: Any, stride: int = 1) -> Any:
    return lib.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _normed(lib: Any, x: Any, axes: tuple[int, ...]) -> Any:
    jnp = lib.numpy
    mean = jnp.mean(x, axes, keepdims=True)
    return (x - mean) * lib.lax.rsqrt(jnp.mean((x - mean) ** 2, axes, keepdims=True) + 1e-5)


def _kernel(seed: int, size: int, cin: int, cout: int) -> Any:
    return _normal(seed, size, size, cin, cout, scale=(size * size * cin) ** -0.5)


def _resnet(lib: Any, part: Part) -> Program:
    base, stages, batch, pixels = 8, (3, 4, 6, 3), 4, 32
    params: list[Any] = [_kernel(0, 3, 3, base)]
    cin, seed = base, 1
    for s, count in enumerate(stages):
        mid = base * 2**s
        for _ in range(count):
            shapes = [(1, cin, mid), (3, mid, mid), (1, mid, 4 * mid)]
            params.append([_kernel(seed + j, *shape) for j, shape in enumerate(shapes)])
            if cin != 4 * mid:
                params[-1].append(_kernel(seed + 3, 1, cin, 4 * mid))
            cin, seed = 4 * mid, seed + 4
    head = _normal(1000, cin, 10, scale=0.1)

    def block(ws: Any, x: Any, stride: int) -> Any:
        y = lib.nn.relu(_normed(lib, _conv(lib, x, ws[0]), (1, 2)))
        y = lib.nn.relu(_normed(lib, _conv(lib, y, ws[1], stride), (1, 2)))
        y = _normed(lib, _conv(lib, y, ws[2]), (1, 2))
        return lib.nn.relu(y + (_conv(lib, x, ws[3], stride) if len(ws) > 3 else x))

    blocks = {stride: part(partial(block, stride=stride)) for stride in (1, 2)}

    def loss(params: Any, head: Any, x: Any) -> Any:
        x = lib.nn.relu(_normed(lib, _conv(lib, x, params[0]), (1, 2)))
        k = 1
        for s, count in enumerate(stages):
            for i in range(count):
                x = blocks[2 if i == 0 and s > 0 else 1](params[k], x)
                k += 1
        return -lib.numpy.mean(lib.nn.log_softmax(lib.numpy.mean(x, (1, 2)) @ head)[:, 0])

    return Program("resnet50", loss, (params, head, _normal(7, batch, pixels, pixels, 3)))


def _attention(lib: Any, x: Any, layer: Any, heads: int) -> Any:
    jnp = lib.numpy
    batch, length, width = x.shape
    q, k, v = ((x @ layer[name]).reshape(batch, length, heads, width // heads) for name in "qkv")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / (width // heads) ** 0.5
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = lib.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhts,bshd->bthd", weights, v).reshape(batch, length, width) @ layer["o"]


def _layer(seed: int, width: int, factor: int = 4) -> Any:
    layer = {name: _normal(seed + i, width, width, scale=width**-0.5) for i, name in enumerate("qkvo")}
    layer["up"] = _normal(seed + 5, width, factor * width, scale=width**-0.5)
    layer["down"] = _normal(seed + 6, factor * width, width, scale=(factor * width) ** -0.5)
    return layer


def _transformer(lib: Any, part: Part, depth: int) -> Program:
    width, heads, batch, length = 64, 4, 4, 64
    layers = [_layer(10 * i, width) for i in range(depth)]

    @part
    def block(layer: Any, x: Any) -> Any:
        x = x + _attention(lib, _normed(lib, x, (-1,)), layer, heads)
        return x + lib.nn.gelu(_normed(lib, x, (-1,)) @ layer["up"]) @ layer["down"]

    def loss(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = block(layer, x)
        return lib.numpy.mean(x**2)

    return Program(f"transformer{depth}", loss, (layers, _normal(5, batch, length, width)))


def _unet(lib: Any, part: Part) -> Program:
    base, depth, batch, pixels = 8, 3, 2, 64
    down = [
        [
            _kernel(3 * i, 3, 3 if i == 0 else base * 2 ** (i - 1), base * 2**i),
            _kernel(3 * i + 1, 3, base * 2**i, base * 2**i),
        ]
        for i in range(depth + 1)
    ]
    up = [
        [_kernel(50 + 3 * i, 3, base * 2**i * 3, base * 2**i), _kernel(51 + 3 * i, 3, base * 2**i, base * 2**i)]
        for i in range(depth)
    ]
    last = _kernel(99, 1, base, 1)

    @part
    def layers(ws: Any, x: Any) -> Any:
        for w in ws:
            x = lib.nn.relu(_normed(lib, _conv(lib, x, w), (1, 2)))
        return x

    def loss(down: Any, up: Any, last: Any, x: Any) -> Any:
        jnp, skips = lib.numpy, []
        for i, ws in enumerate(down):
            x = layers(ws, x)
            if i < depth:
                skips.append(x)
                b, h, w_, c = x.shape
                x = jnp.max(x.reshape(b, h // 2, 2, w_ // 2, 2, c), (2, 4))
        for i in reversed(range(depth)):
            x = jnp.concatenate([jnp.repeat(jnp.repeat(x, 2, 1), 2, 2), skips[i]], -1)
            x = layers(up[i], x)
        return jnp.mean(_conv(lib, x, last) ** 2)

    return Program("unet", loss, (down, up, last, _normal(7, batch, pixels, pixels, 3)))


def _rnn(lib: Any, part: Part) -> Program:
    width, batch, steps = 32, 16, 1000
    names = ("z", "r", "h")
    params = {
        n: (_normal(i, width, width, scale=0.15), _normal(9 + i, width, width, scale=0.15)) for i, n in enumerate(names)
    }

    def loss(params: Any, xs: Any) -> Any:
        jnp = lib.numpy

        def step(h: Any, x: Any) -> Any:
            z = lib.nn.sigmoid(x @ params["z"][0] + h @ params["z"][1])
            r = lib.nn.sigmoid(x @ params["r"][0] + h @ params["r"][1])
            new = jnp.tanh(x @ params["h"][0] + (r * h) @ params["h"][1])
            h = (1 - z) * h + z * new
            return h, jnp.mean(h**2)

        _, each = lib.lax.scan(part(step), jnp.zeros((batch, width), np.float32), xs)
        return jnp.mean(each)

    return Program("rnn", loss, (params, _normal(77, steps, batch, width)))


def _ode(lib: Any, part: Part) -> Program:
    width, hidden, batch, steps = 16, 64, 128, 60
    params = (
        _normal(0, width, hidden, scale=0.3),
        _normal(1, hidden, hidden, scale=0.12),
        _normal(2, hidden, width, scale=0.1),
    )

    def loss(params: Any, y: Any) -> Any:
        jnp, dt = lib.numpy, 1.0 / steps

        def field(y: Any) -> Any:
            return jnp.tanh(jnp.tanh(y @ params[0]) @ params[1]) @ params[2]

        def step(y: Any, _: Any) -> Any:
            k1 = field(y)
            k2 = field(y + dt / 2 * k1)
            k3 = field(y + dt / 2 * k2)
            k4 = field(y + dt * k3)
            return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        y, _ = lib.lax.scan(part(step), y, None, length=steps)
        return jnp.mean(y**2)

    return Program("ode", loss, (params, _normal(3, batch, width)))


def _hmc(lib: Any, part: Part) -> Program:
    rows, columns, chains, steps = 400, 16, 16, 30

    def loss(scale: Any, x: Any, labels: Any, w: Any, p: Any) -> Any:
        jnp = lib.numpy

        def energy(w: Any) -> Any:
            logits = w @ x.T
            return jnp.sum(lib.nn.softplus(logits) - labels * logits) + 0.5 * jnp.sum((w * scale) ** 2)

        force = lib.grad(energy)

        def leap(state: Any, _: Any) -> Any:
            w, p = state
            p = p - 0.005 * force(w)
            w = w + 0.01 * p
            return (w, p - 0.005 * force(w)), None

        (w, p), _ = lib.lax.scan(part(leap), (w, p), None, length=steps)
        return (energy(w) + 0.5 * jnp.sum(p**2)) / chains

    x = _normal(0, rows, columns)
    labels = (x[:, 0] > 0).astype(np.float32)
    return Program(
        "hmc", loss, (np.ones(columns, np.float32), x, labels, _normal(2, chains, columns), _normal(3, chains, columns))
    )


def _gp(lib: Any, part: Part) -> Program:
    count, parts = 300, 6

    @part
    def term(length: Any, height: Any, period: Any, x: Any) -> Any:
        jnp = lib.numpy
        gap = jnp.sum((x[:, None, :] - x[None, :, :]) ** 2, -1)
        return height**2 * jnp.exp(-0.5 * gap / length**2) * (1 + jnp.cos(jnp.sqrt(gap + 1e-3) / period))

    def loss(params: Any, x: Any, y: Any) -> Any:
        jnp = lib.numpy
        kernel = 0.1 * jnp.eye(count, dtype=np.float32)
        for each in params:
            kernel = kernel + term(*each, x)
        root = jnp.linalg.cholesky(kernel)
        half = lib.scipy.linalg.solve_triangular(root, y, lower=True)
        return 0.5 * jnp.sum(half**2) + jnp.sum(jnp.log(jnp.diagonal(root)))

    params = [tuple(np.float32(v) for v in (0.7 + 0.2 * i, 0.5 + 0.1 * i, 1.0 + 0.3 * i)) for i in range(parts)]
    return Program("gp", loss, (params, _normal(0, count, 3), _normal(1, count)))


def _pde(lib: Any, part: Part) -> Program:
    cells, steps = 64, 150

    def loss(log_nu: Any, u: Any) -> Any:
        jnp = lib.numpy

        def step(u: Any, _: Any) -> Any:
            gx = (jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0)) * (cells / 2)
            gy = (jnp.roll(u, -1, 1) - jnp.roll(u, 1, 1)) * (cells / 2)
            laplacian = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u
            flux = u * gx + jnp.sin(u) * gy
            return u + 1e-4 * (jnp.exp(log_nu) * laplacian * cells**2 - flux), None

        u, _ = lib.lax.scan(part(step), u, None, length=steps)
        return jnp.mean(u**2)

    return Program("pde", loss, (_normal(0, cells, cells, scale=0.1) - 3.0, _normal(1, cells, cells)))


def _graph(lib: Any, part: Part) -> Program:
    nodes, edges, width, rounds = 400, 1600, 32, 6
    params = [
        (_normal(i, 2 * width, width, scale=0.12), _normal(50 + i, 2 * width, width, scale=0.12)) for i in range(rounds)
    ]
    rng = np.random.default_rng(5)
    ends = rng.integers(0, nodes, (2, edges)).astype(np.int32)

    @part
    def layer(edge: Any, node: Any, x: Any, senders: Any, receivers: Any) -> Any:
        jnp = lib.numpy
        message = lib.nn.silu(jnp.concatenate([x[senders], x[receivers]], -1) @ edge)
        total = jnp.zeros((nodes, width), np.float32).at[receivers].add(message)
        return x + lib.nn.silu(jnp.concatenate([x, total], -1) @ node)

    def loss(params: Any, x: Any, senders: Any, receivers: Any) -> Any:
        for edge, node in params:
            x = layer(edge, node, x, senders, receivers)
        return lib.numpy.mean(x**2)

    return Program("graph", loss, (params, _normal(3, nodes, width), ends[0], ends[1]))


def _moe(lib: Any, part: Part) -> Program:
    width, experts, tokens, depth, capacity = 64, 4, 256, 6, 96
    layers = [
        (
            _normal(9 * i, width, experts, scale=0.1),
            _normal(9 * i + 1, experts, width, 2 * width, scale=width**-0.5),
            _normal(9 * i + 2, experts, 2 * width, width, scale=(2 * width) ** -0.5),
        )
        for i in range(depth)
    ]

    @part
    def layer(gate: Any, up: Any, down: Any, x: Any) -> Any:
        jnp = lib.numpy
        h = _normed(lib, x, (-1,))
        probabilities = lib.nn.softmax(h @ gate)
        chosen = lib.nn.one_hot(jnp.argmax(probabilities, -1), experts, dtype=np.float32)
        rank = (jnp.cumsum(chosen, 0) * chosen).astype(np.int32) - 1
        dispatch = lib.nn.one_hot(rank, capacity, dtype=np.float32) * chosen[..., None]
        inside = jnp.einsum("tec,td->ecd", dispatch, h)
        outside = jnp.einsum("ech,ehd->ecd", lib.nn.gelu(jnp.einsum("ecd,edh->ech", inside, up)), down)
        weight = jnp.sum(probabilities * chosen, -1, keepdims=True)
        return x + weight * jnp.einsum("tec,ecd->td", dispatch, outside)

    def loss(layers: Any, x: Any) -> Any:
        for gate, up, down in layers:
            x = layer(gate, up, down, x)
        return lib.numpy.mean(x**2)

    return Program("moe", loss, (layers, _normal(3, tokens, width)))


def _whole(fun: Any) -> Any:
    return fun


def programs(lib: Any, part: Part = _whole) -> list[Program]:
    """Return the twelve programs.

    Args:
      lib: the library, which is ``jax`` or ``pullback``.
      part: is applied to the function of each layer, block or step, as users apply ``jax.checkpoint``.
    """
    transformers = [partial(_transformer, depth=depth) for depth in (6, 24)]
    makers: list[Callable[..., Program]] = [
        _mlp,
        _resnet,
        *transformers,
        _unet,
        _rnn,
        _ode,
        _hmc,
        _gp,
        _pde,
        _graph,
        _moe,
    ]
    return [make(lib, part) for make in makers]
