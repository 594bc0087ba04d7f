"""A training step of a transformer's layers, divided over a mesh in six ways; and what each moves by the literature.

The functions take the library, JAX or Pullback, as their first argument. The programs are compiled and not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

LAYERS, SEQUENCE, WIDTH, HEADS, HIDDEN = 4, 128, 512, 8, 2048
GROUP = 8
"""The devices that share the work of one sequence: by tensor, pipeline, sequence and expert parallel training."""
BYTES = 4
"""Of an element: all is in single precision."""
_HEAD = (WIDTH, HEADS, WIDTH // HEADS)
SHAPES = {
    "query": _HEAD, "key": _HEAD, "value": _HEAD, "out": (HEADS, WIDTH // HEADS, WIDTH),
    "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH), "first": (WIDTH,), "second": (WIDTH,),
}  # fmt: skip
PARAMETERS = sum(map(math.prod, SHAPES.values()))
"""The number of parameters of a layer."""


class Program(NamedTuple):
    """A training step, with its arguments.

    Attributes:
      step: a compiled function.
      arguments: types with shardings.
      mesh: the sizes of the mesh by their names.
    """

    step: Any
    arguments: tuple[Any, ...]
    mesh: dict[str, int]


def _normalised(library: Any, x: Any, scale: Any) -> Any:
    numpy = library.numpy
    return scale * x / numpy.sqrt(numpy.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _attention(library: Any, layer: Mapping[str, Any], x: Any) -> Any:
    numpy = library.numpy
    query, key, value = (numpy.einsum("bsw,whd->bshd", x, layer[name]) for name in ("query", "key", "value"))
    scores = numpy.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(WIDTH // HEADS)
    mixed = numpy.einsum("bhqk,bkhd->bqhd", library.nn.softmax(scores), value)
    return numpy.einsum("bshd,hdw->bsw", mixed, layer["out"])


def _network(library: Any, layer: Mapping[str, Any], x: Any) -> Any:
    return library.nn.gelu(x @ layer["up"]) @ layer["down"]


def _layer(library: Any, layer: Mapping[str, Any], x: Any, keep: Callable[[Any], Any]) -> Any:
    """One layer; ``keep`` says how the sums of the residual connections are divided."""
    x = keep(x + _attention(library, layer, _normalised(library, x, layer["first"])))
    return keep(x + _network(library, layer, _normalised(library, x, layer["second"])))


def _step(library: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(parameters: Any, x: Any, y: Any) -> Any:
        gradient = library.grad(loss)(parameters, x, y)
        return library.tree.map(lambda p, g: p - 1e-3 * g, parameters, gradient)

    return step


def _mesh(library: Any, sizes: Mapping[str, int]) -> Any:
    kinds = (library.sharding.AxisType.Auto,) * len(sizes)
    return library.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=kinds)


def _by_sharding(
    library: Any,
    sizes: Mapping[str, int],
    specs: Mapping[str, tuple[Any, ...]],
    residual: tuple[Any, ...] | None = None,
    rows: tuple[str, ...] = ("data",),
) -> Program:
    """The step whose parameters and batch have shardings, which the compiler's partitioner follows."""
    mesh = _mesh(library, sizes)
    P, Sharding = library.sharding.PartitionSpec, library.sharding.NamedSharding
    batch = Sharding(mesh, P(rows))

    def keep(x: Any) -> Any:
        return x if residual is None else library.lax.with_sharding_constraint(x, Sharding(mesh, P(*residual)))

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        x = keep(x)
        for layer in parameters:
            x = _layer(library, layer, x, keep)
        return library.numpy.mean((x - y) ** 2)

    layer = {name: Sharding(mesh, P(*specs.get(name, ()))) for name in SHAPES}
    shardings = [layer] * LAYERS
    step = library.jit(
        _step(library, loss), in_shardings=(shardings, batch, batch), out_shardings=shardings, donate_argnums=0
    )
    kind = library.ShapeDtypeStruct
    parameters = [{name: kind(shape, "float32") for name, shape in SHAPES.items()}] * LAYERS
    x = kind((_sequences(sizes, rows), SEQUENCE, WIDTH), "float32")
    return Program(step, (parameters, x, x), dict(sizes))


def _sequences(sizes: Mapping[str, int], rows: Sequence[str] = ("data",)) -> int:
    """The sequences in a batch: a row of the mesh has eight."""
    return 8 * math.prod(sizes[name] for name in rows)


def data(library: Any, devices: int) -> Program:
    """Each device has all parameters, and a part of the batch."""
    return _by_sharding(library, {"data": devices}, {})


_FULLY = {
    **dict.fromkeys(("query", "key", "value", "up"), ("data",)),
    "out": (None, None, "data"), "down": (None, "data"),
}  # fmt: skip
_TENSOR = {**dict.fromkeys(("query", "key", "value", "up"), (None, "group")), "out": ("group",), "down": ("group",)}


def fully_sharded(library: Any, devices: int) -> Program:
    """Each device has a shard of each matrix, and a part of the batch.

    A matrix has no more shards than rows; with more devices there are several copies of it.
    """
    if devices <= WIDTH:
        return _by_sharding(library, {"data": devices}, _FULLY)
    return _by_sharding(library, {"copies": devices // WIDTH, "data": WIDTH}, _FULLY, rows=("copies", "data"))


def tensor(library: Any, devices: int) -> Program:
    """The devices of a group have some heads, and some of the hidden units."""
    return _by_sharding(library, {"data": devices // GROUP, "group": GROUP}, _TENSOR, ("data",))


def sequence(library: Any, devices: int) -> Program:
    """Between the products, which are divided as by ``tensor``, the devices of a group have parts of the sequences."""
    return _by_sharding(library, {"data": devices // GROUP, "group": GROUP}, _TENSOR, ("data", "group"))


def _mapped(
    library: Any, sizes: Mapping[str, int], local_loss: Callable[..., Any], stacked: int, more: Any = None
) -> Program:
    """The step within ``shard_map``: the leading axis of the stacked parameters is divided over the group."""
    mesh = _mesh(library, sizes)
    P = library.sharding.PartitionSpec

    def mapped(parameters: Any, x: Any, y: Any) -> Any:
        of_group, shared = parameters
        specs = (library.tree.map(lambda _: P("group"), of_group), library.tree.map(lambda _: P(), shared))
        loss = library.shard_map(
            lambda p, x, y: library.lax.pmean(local_loss(p, x, y), ("data", "group")),
            mesh=mesh, in_specs=(specs, P("data"), P("data")), out_specs=P(), check_vma=True,
        )  # fmt: skip
        return loss(parameters, x, y)

    Sharding, kind = library.sharding.NamedSharding, library.ShapeDtypeStruct
    of_group, shared = more if more is not None else (SHAPES, {})
    parameters = (
        {name: kind((stacked, *shape), "float32") for name, shape in of_group.items()},
        {name: kind(shape, "float32") for name, shape in shared.items()},
    )
    shardings = (
        {name: Sharding(mesh, P("group")) for name in of_group}, {name: Sharding(mesh, P()) for name in shared}
    )  # fmt: skip
    batch = Sharding(mesh, P("data"))
    step = library.jit(
        _step(library, mapped), in_shardings=(shardings, batch, batch), out_shardings=shardings, donate_argnums=0
    )
    x = kind((_sequences(sizes), SEQUENCE, WIDTH), "float32")
    return Program(step, (parameters, x, x), dict(sizes))


def pipeline(library: Any, devices: int) -> Program:
    """The devices of a group have a layer each, and pass on eight parts of their batch, one after the other."""
    sizes = {"data": devices // GROUP, "group": GROUP}
    numpy, lax = library.numpy, library.lax
    onward = [(i, i + 1) for i in range(GROUP - 1)]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        stage = lax.axis_index("group")
        # Before the loop: so the gradients are summed over the rows of the mesh once, not in each tick.
        layer = {name: lax.pcast(value[0], "data", to="varying") for name, value in parameters[0].items()}
        parts = x[:, None]

        def tick(held: Any, i: Any) -> Any:
            first = lax.dynamic_index_in_dim(parts, numpy.clip(i, 0, len(parts) - 1), keepdims=False)
            done = _layer(library, layer, numpy.where(stage == 0, first, held), lambda x: x)
            return lax.ppermute(done, "group", onward), done

        start = lax.pcast(numpy.zeros_like(parts[0]), "group", to="varying")
        _, outputs = lax.scan(tick, start, numpy.arange(len(parts) + GROUP - 1))
        errors = numpy.mean((outputs[GROUP - 1 :, 0] - y) ** 2)
        return numpy.where(stage == GROUP - 1, errors, 0.0)

    return _mapped(library, sizes, loss, GROUP)


def expert(library: Any, devices: int) -> Program:
    """Each device of a group has a network, to which the tokens go that choose it, with a capacity of one."""
    sizes = {"data": devices // GROUP, "group": GROUP}
    numpy, lax = library.numpy, library.lax

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        experts, shared = parameters
        own = {name: value[0] for name, value in experts.items()}
        rows = len(x) // GROUP
        part = [lax.dynamic_slice_in_dim(each, lax.axis_index("group") * rows, rows) for each in (x, y)]
        tokens = part[0].reshape(-1, WIDTH)
        chosen = library.nn.softmax(tokens @ shared["router"])
        expert = numpy.argmax(chosen, axis=-1)
        capacity = len(tokens) // GROUP
        mask = library.nn.one_hot(expert, GROUP)
        order = (numpy.cumsum(mask, axis=0) * mask).astype(int)
        send = library.nn.one_hot(order - 1, capacity) * mask[..., None]
        sent = numpy.einsum("tec,tw->ecw", send, tokens)
        received = lax.all_to_all(sent, "group", 0, 0, tiled=True)
        answered = lax.all_to_all(_network(library, own, received), "group", 0, 0, tiled=True)
        weights = numpy.max(chosen, axis=-1)
        mixed = numpy.einsum("tec,ecw,t->tw", send, answered, weights).reshape(part[0].shape)
        return numpy.mean((part[0] + mixed - part[1]) ** 2)

    of_group = {name: SHAPES[name] for name in ("up", "down")}
    return _mapped(library, sizes, loss, GROUP, (of_group, {"router": (WIDTH, GROUP)}))


WAYS: dict[str, Callable[[Any, int], Program]] = {
    "data": data, "fully sharded": fully_sharded, "tensor": tensor, "sequence": sequence, "pipeline": pipeline,
    "expert": expert,
}  # fmt: skip


def by_the_literature(way: str, devices: int) -> float:
    """The bytes that a device sends in one step, by the formula of the paper that describes the way.

    Data: the gradients are summed (Rajbhandari et al. 2020, section 7). Fully sharded: parameters are gathered twice,
    and the sums of gradients are scattered (ibid.). Tensor: four sums of activations a layer (Shoeybi et al. 2019,
    section 3). Sequence: the same bytes, as gatherings and scattered sums (Korthikanti et al. 2022, section 4.2.2).
    Pipeline: activations and their cotangents between neighbours. Expert: tokens are exchanged twice, and the
    cotangents of the answers once (Fedus et al. 2021); those of the tokens are not needed. In the last four, each shard
    of the gradients is also summed over the rows of the mesh; the gradient of the router over all devices.
    """
    rows = devices if way in ("data", "fully sharded") else devices // GROUP
    activations = 8 * SEQUENCE * WIDTH * BYTES
    scattered, summed = (rows - 1) / rows, 2 * (rows - 1) / rows
    norms = 2 * WIDTH
    if way == "data":
        return summed * LAYERS * PARAMETERS * BYTES
    if way == "fully sharded":
        return (3 * scattered * (PARAMETERS - norms) + summed * norms) * LAYERS * BYTES
    within = 2 * (GROUP - 1) / GROUP
    if way in ("tensor", "sequence"):
        gradients = summed * LAYERS * ((PARAMETERS - norms) / GROUP + norms) * BYTES
        return gradients + LAYERS * 4 * within * activations
    if way == "pipeline":
        ticks = 8 + GROUP - 1
        return summed * PARAMETERS * BYTES + 2 * ticks * activations / 8
    gradients = summed * 2 * WIDTH * HIDDEN * BYTES + 2 * (devices - 1) / devices * WIDTH * GROUP * BYTES
    return gradients + 3 * (GROUP - 1) / GROUP * activations / GROUP
