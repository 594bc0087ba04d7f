"""A mixed load: models train, shapes change, functions are mapped, differentiated, compiled anew, and fail.

A step draws one of the parts below by a seed and runs it. Parts compile by ``load.jit``, which does nothing in the mode
``eager``. Shapes and widths are of a bounded set, so that caches of compiled programs fill up early.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, debug, flatten_util, grad, lax, nn, pure_callback, random, tree, vmap
from pullback.experimental import io_callback

MODES = ("eager", "compiled", "tiered", "devices")
SHAPES = ((4,), (17,), (3, 5), (8, 8), (2, 3, 4), (33, 2), (1, 9), (64,), (5, 1, 6), (12, 12))
WIDTHS = (4, 8, 16)
BATCHES = (4, 8, 16, 32)

Part = Callable[["Load", Random], None]


class Load:
    """A mixed load, step by step.

    Args:
      mode: one of ``MODES``.
      seed: what the drawn programs and numbers depend on.

    Attributes:
      jit: compiles a function as the mode says.
      counts: how often each part ran.
      models: the state of models that are trained, by width; whoever trains one takes it out.
    """

    def __init__(self, mode: str, seed: int = 0) -> None:
        self.mode = mode
        self.rng = Random(f"{mode} {seed}")
        self.counts: Counter[str] = Counter()
        self.models: dict[int, Any] = {}
        self._functions: dict[Any, Callable[..., Any]] = {}
        if mode == "devices":
            from tests.soak.devices import PARTS as ON_DEVICES

            pullback.config.update("num_cpu_devices", 8)
            self.parts = {**ON_DEVICES, **{name: PARTS[name] for name in ("exchange", "keys", "trees")}}
        else:
            self.parts = PARTS
        pullback.config.update("tiered", "on" if mode == "tiered" else "off")
        self.weights = [RARE.get(name, 1.0) for name in self.parts]

    def jit(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return fun if self.mode == "eager" else pullback.jit(fun, **options)

    def kept(self, key: Any, make: Callable[[], Callable[..., Any]], **options: Any) -> Callable[..., Any]:
        """Return a function of this load that is compiled once; ``make`` makes it."""
        found = self._functions.get(key)
        return found if found is not None else self._functions.setdefault(key, self.jit(make(), **options))

    def step(self) -> None:
        """Run one part."""
        name = self.rng.choices(list(self.parts), self.weights)[0]
        self.counts[name] += 1
        self.parts[name](self, self.rng)


def numbers(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(rng.getrandbits(32)).normal(size=shape).astype(np.float32)


def check(x: Any) -> None:
    """Fail if an array has no finite elements, which nothing here should return."""
    if not np.isfinite(np.asarray(x)).all():
        raise AssertionError(f"not finite: {x}")


# Models ---------------------------------------------------------------------------------------------------------------


def initial(rng: Random, width: int) -> Any:
    """Return parameters of a network, and the moments of Adam."""
    shapes = {"in": (2, width), "hidden": (width, width), "out": (width, 1)}
    parameters = {
        name: {"w": jnp.asarray(numbers(rng, s) / np.sqrt(s[0])), "b": jnp.zeros(s[1])} for name, s in shapes.items()
    }
    zeros = tree.map(jnp.zeros_like, parameters)
    return parameters, zeros, zeros


def loss(parameters: Any, x: Any, y: Any) -> Any:
    h = jnp.tanh(x @ parameters["in"]["w"] + parameters["in"]["b"])
    h = nn.relu(h @ parameters["hidden"]["w"] + parameters["hidden"]["b"])
    return jnp.mean((h @ parameters["out"]["w"] + parameters["out"]["b"] - y) ** 2)


def adam(state: Any, x: Any, y: Any) -> Any:
    """Return the state after one step of Adam, and the loss."""
    parameters, first, second = state
    value, g = pullback.value_and_grad(loss)(parameters, x, y)
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
    second = tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, g)
    parameters = tree.map(lambda p, m, v: p - 0.003 * m / (jnp.sqrt(v) + 1e-6), parameters, first, second)
    return (parameters, first, second), value


def training(load: Load, rng: Random) -> None:
    """Train a network for some steps."""
    width = rng.choice(WIDTHS)
    step = load.kept("adam", lambda: adam)
    state = load.models.pop(width, None) or initial(rng, width)
    for _ in range(3):
        x = numbers(rng, (rng.choice(BATCHES), 2))
        state, value = step(state, x, np.sin(3 * x[:, :1]) * x[:, 1:])
        check(value)
    load.models[width] = state


def donated(load: Load, rng: Random) -> None:
    """Update an array in place."""
    update = load.kept("update", lambda: lambda x, y: x.at[1:].add(y[:-1]) * 0.5, donate_argnums=0)
    shape = rng.choice(((8,), (9,), (33,), (1000,)))
    x = jnp.asarray(numbers(rng, shape))
    for _ in range(4):
        x = update(x, numbers(rng, shape))
    check(x)


# Functions of changing shapes -----------------------------------------------------------------------------------------


def _pieces(x: Any) -> Any:
    y = jnp.sort(x, axis=-1) + jnp.cumsum(x, axis=0)
    y = nn.softmax(y) * jnp.where(x > 0, x, 0.1 * x)
    y = jnp.concatenate([y, y[..., ::-1]], axis=-1)[..., ::2]
    return y.at[0].set(1.0), jnp.linalg.norm(y), jnp.einsum("...i,...i->...", y, y), jnp.argmax(x, axis=-1)


def shapes(load: Load, rng: Random) -> None:
    """Call a function with arrays of one of many shapes and types."""
    x = numbers(rng, rng.choice(SHAPES))
    for y in load.kept("pieces", lambda: _pieces)(x.astype(rng.choice(("float32", "float32", "float16")))):
        check(y)


def linear_algebra(load: Load, rng: Random) -> None:
    def solved(a: Any, b: Any) -> Any:
        spd = a @ a.T + 10 * jnp.eye(len(b))
        return jnp.linalg.solve(spd, b), jnp.linalg.cholesky(spd), jnp.linalg.eigh(spd)[0], jnp.linalg.qr(a)[1]

    n = rng.choice((3, 5, 8))
    for y in load.kept("solved", lambda: solved)(numbers(rng, (n, n)), numbers(rng, (n,))):
        check(y)


# Transformations ------------------------------------------------------------------------------------------------------


@pullback.custom_jvp
def _softened(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


_softened.defjvp(lambda primals, tangents: (_softened(*primals), tangents[0] * nn.sigmoid(primals[0])))


@pullback.custom_vjp
def _damped(x: Any) -> Any:
    return jnp.sin(x)


_damped.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (0.9 * ct * jnp.cos(x),))


def _energy(x: Any) -> Any:
    return jnp.sum(_softened(x) * _damped(x) + jnp.tanh(x) ** 3)


DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": grad(_energy),
    "jvp": lambda x: pullback.jvp(_energy, (x,), (x,))[1],
    "vjp": lambda x: pullback.vjp(_energy, x)[1](1.0)[0],
    "linearize": lambda x: pullback.linearize(_energy, x)[1](x),
    "jacrev": pullback.jacrev(lambda x: jnp.sin(x) * x.sum()),
    "jacfwd": pullback.jacfwd(lambda x: jnp.sin(x) * x.sum()),
    "hessian": pullback.hessian(lambda x: jnp.sum(jnp.sin(x) * x) ** 2),
    "checkpoint": grad(checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x)) ** 2))),
    "second": lambda x: pullback.jvp(grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), (x,), (x,))[1],
}


def derivatives(load: Load, rng: Random) -> None:
    name = rng.choice(list(DERIVATIVES))
    check(load.kept(name, lambda: DERIVATIVES[name])(numbers(rng, rng.choice(((3,), (4, 2), (6,))))))


MAPPED: dict[str, Callable[[Any], Any]] = {
    "vmap": vmap(lambda x: jnp.dot(x, x) / (1 + jnp.max(x) ** 2)),
    "of grad": vmap(grad(lambda x: jnp.sum(jnp.sin(x) * x))),
    "twice": vmap(vmap(lambda x: jnp.exp(-x * x))),
    "axes": lambda x: vmap(lambda a, b: a @ b, in_axes=(0, None), out_axes=1)(x, x.T),
    "named": vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i"),
}


def mapped(load: Load, rng: Random) -> None:
    name = rng.choice(list(MAPPED))
    check(load.kept(name, lambda: MAPPED[name])(numbers(rng, (rng.choice(BATCHES), rng.choice((3, 7))))))


def _scanned(w: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return lax.scan(cell, jnp.zeros(w.shape[0]), xs)[1].sum()


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": grad(_scanned),
    "fori": lambda w, xs: lax.fori_loop(
        0, 5, lambda i, h: jnp.tanh(w @ h + jnp.asarray(xs)[i % len(xs)]), jnp.zeros(len(w))
    ),
    "while": lambda w, xs: lax.while_loop(lambda h: jnp.sum(h) < 10, lambda h: h + 1 + w[0] ** 2, jnp.zeros(len(w))),
    "cond": lambda w, xs: lax.cond(w[0, 0] > 0, lambda x: jnp.sin(x), lambda x: x * x, xs),
    "switch": lambda w, xs: lax.switch(len(xs) % 3, [jnp.sin, jnp.cos, jnp.tanh], xs),
    "map": lambda w, xs: lax.map(lambda x: w @ x, xs),
    "associative": lambda w, xs: lax.associative_scan(jnp.add, xs),
}


def loops(load: Load, rng: Random) -> None:
    name, width = rng.choice(list(LOOPS)), rng.choice((2, 4))
    run = load.kept(name, lambda: LOOPS[name])
    check(run(numbers(rng, (width, width)) / 4, numbers(rng, (rng.choice((3, 6)), width))))


# Effects --------------------------------------------------------------------------------------------------------------

_seen: list[Any] = []


def _called_back(x: Any) -> Any:
    y = pure_callback(np.sin, pullback.ShapeDtypeStruct(x.shape, x.dtype), x)
    z = io_callback(lambda v: np.float32(v.sum()), pullback.ShapeDtypeStruct((), "float32"), x)
    debug.callback(_seen.append, z)
    return y + z


def callbacks(load: Load, rng: Random) -> None:
    check(load.kept("called back", lambda: _called_back)(numbers(rng, rng.choice(((3,), (2, 4))))))
    pullback.effects_barrier()
    if not _seen:
        raise AssertionError("the callback was not called")
    _seen.clear()


def references(load: Load, rng: Random) -> None:
    def count(ref: Any, x: Any) -> Any:
        ref[...] += x
        return ref[...].sum()

    ref = pullback.new_ref(jnp.zeros(3))
    step = load.kept("count", lambda: count)
    for _ in range(3):
        check(step(ref, numbers(rng, (3,))))
    check(pullback.freeze(ref))


def keys(load: Load, rng: Random) -> None:
    def draw(key: Any) -> Any:
        a, b, c, d = random.split(key, 4)
        x = random.normal(a, (5, 3)) + random.uniform(b, (3,))
        return x, random.permutation(c, 8), random.bernoulli(d, 0.3, (4,)), random.categorical(random.fold_in(d, 3), x)

    for x in load.kept("draw", lambda: draw)(random.key(rng.randrange(1000))):
        check(x)


def switches(load: Load, rng: Random) -> None:
    """Run with a switch that is set for a block only."""
    square = load.kept("square", lambda: lambda x: jnp.sum(x * x + 1))
    x = numbers(rng, (rng.choice((2, 5)),))
    block = rng.choice((pullback.enable_x64, pullback.debug_nans, pullback.disable_jit))
    with block(True):
        check(square(x))
    with pullback.default_matmul_precision("highest"):
        check(square(x))


# Python ---------------------------------------------------------------------------------------------------------------


def trees(load: Load, rng: Random) -> None:
    data: Any = {
        "a": numbers(rng, (2,)),
        "b": [jnp.ones(3), (None, 1.5)],
        "c": {str(i): jnp.zeros(i) for i in range(4)},
    }
    doubled = load.kept("doubled", lambda: lambda data: tree.map(lambda x: 2 * x, data))(data)
    leaves, structure = tree.flatten(doubled)
    again = tree.unflatten(structure, leaves)
    flat, unravel = flatten_util.ravel_pytree(again)
    check(flat)
    check(unravel(flat)["a"])
    tree.map_with_path(lambda path, x: (path, x), again)


def exchange(load: Load, rng: Random) -> None:
    """Hand arrays to NumPy and back."""
    x = numbers(rng, rng.choice((*SHAPES, (100, 100))))
    y = jnp.asarray(x) + 1
    z = rng.choice((np.asarray, np.array, pullback.device_get, np.from_dlpack, copy.deepcopy, pullback.device_put))(y)
    check(jnp.asarray(z))
    check(pickle.loads(pickle.dumps(y)))
    np.save(file := io.BytesIO(), y)
    file.seek(0)
    check(jnp.asarray(np.load(file)))
    float(y.sum()), y.tolist(), repr(y)


def closures(load: Load, rng: Random) -> None:
    """Compile functions that are new, whose programs are sometimes known and sometimes new."""
    scale = rng.random() if rng.random() < 0.2 else rng.randrange(20) / 20
    table = numbers(rng, (3,)) if rng.random() < 0.1 else np.arange(3, dtype="float32")

    def fresh(x: Any) -> Any:
        return jnp.sum(jnp.sin(scale * x) * table)

    x = numbers(rng, (3,))
    check(load.jit(fresh)(x))
    check(load.jit(grad(fresh))(x))
    check(vmap(fresh)(x.reshape(1, 3)))
    if load.mode == "tiered":  # calls before and after the compiler has finished
        again = load.jit(lambda x: fresh(x) * 2)
        for _ in range(20):
            check(again(x))


_leaked: list[Any] = []


def _fails_back(x: Any) -> Any:
    def fail(x: Any) -> Any:
        raise RuntimeError("on purpose")

    return pure_callback(fail, pullback.ShapeDtypeStruct((), "float32"), x)


def _uses_leaked(load: Load) -> Any:
    grad(lambda x: _leaked.append(x) or x * x)(1.0)
    return _leaked.pop() + 1


def _not_finite() -> Any:
    with pullback.debug_nans(True):
        return jnp.log(-1.0)


MISTAKES: tuple[Callable[[Load], Any], ...] = (
    lambda load: load.jit(lambda x: x @ jnp.ones((4, 4)))(jnp.ones(3)),
    lambda load: grad(lambda x: x * jnp.ones(2))(1.0),
    lambda load: load.jit(_fails_back)(1.0).block_until_ready(),
    lambda load: pullback.jit(lambda x: 1 if x > 0 else 2)(1.0),
    lambda load: vmap(lambda x, y: x + y)(jnp.ones(2), jnp.ones(3)),
    lambda load: lax.scan(lambda c, x: (c.astype("int32"), x), jnp.ones(()), jnp.ones(3)),
    lambda load: tree.map(lambda x, y: x, [1, 2], [1, 2, 3]),
    lambda load: load.jit(lambda x: {}["missing"])(1.0),
    lambda load: jnp.ones(3)["a"],
    lambda load: jnp.asarray([object()]),
    _uses_leaked,
    lambda load: _not_finite(),
)


def mistakes(load: Load, rng: Random) -> None:
    """Raise an error, and catch it."""
    mistake = rng.choice(MISTAKES)
    try:
        mistake(load)
    except Exception:
        return
    finally:
        _leaked.clear()
    raise AssertionError("no error")


def programs(load: Load, rng: Random) -> None:
    """Look at programs instead of running them."""
    x = numbers(rng, rng.choice(SHAPES))
    str(pullback.make_jaxpr(grad(_energy))(x))
    pullback.eval_shape(_pieces, x)
    if load.mode != "eager":
        pullback.jit(_energy).lower(x).as_text()


def together(load: Load, rng: Random) -> None:
    """Run some parts in several threads."""
    failed: list[BaseException] = []

    def run(seed: int) -> None:
        own = Random(seed)
        try:
            for _ in range(3):
                own.choice((training, shapes, derivatives, mapped, loops, keys, trees, exchange))(load, own)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(rng.getrandbits(32),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


PARTS: dict[str, Part] = {
    part.__name__: part
    for part in (
        training, donated, shapes, linear_algebra, derivatives, mapped, loops, callbacks, references, keys, switches,
        trees, exchange, closures, mistakes, programs, together,
    )
}  # fmt: skip
RARE = {"together": 0.1, "closures": 0.5, "programs": 0.3}
"""How often parts are drawn that are drawn less often than others."""
