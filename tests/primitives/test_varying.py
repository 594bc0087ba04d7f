"""States of values along the axes of ``shard_map``: types, over a mesh without devices, so that no program runs.

Values are in ``tests/spmd/cases_states.py``.
"""

import re
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, ShapeDtypeStruct, eval_shape, grad, jit, lax, make_jaxpr, shard_map, typeof, vmap
from pullback.errors import ArgumentError, ShardingTypeError, ShardMapError, UnsupportedArgumentError
from pullback.sharding import AbstractMesh, AxisType

MESH = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)


def of(*entries: Any, mesh: Any = MESH, **axes: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(mesh, P(*entries, **axes)))


V, I = of("x"), of(None)
U, R = of(None, unreduced={"x"}), of(None, reduced={"x"})
CAST = {to: lambda x, to=to: lax.pcast(x, "x", to=to) for to in ("varying", "unreduced", "reduced")}


def shown(f: Any, *operands: Any, wrap: Any = lambda f: f, **options: Any) -> str:
    """The type of the value of ``f`` within ``shard_map``."""
    seen: list[str] = []

    def body(*shards: Any) -> Any:
        seen.append(str(typeof(wrap(f)(*shards))))
        return jnp.zeros(())

    eval_shape(shard_map(body, mesh=MESH, out_specs=P(), **options), *operands)
    return re.sub(r"^float32\[.*?\]", "", seen[0])


@pytest.mark.parametrize(
    ("f", "operands", "expected"),
    [
        (lambda v: v, [V], "{V:x}"),
        (lambda i: i, [I], ""),
        (lambda u: u, [U], "{U:x}"),
        (lambda r: r, [R], "{R:x}"),
        (CAST["unreduced"], [V], "{U:x}"),
        (CAST["varying"], [R], "{V:x}"),
        (CAST["reduced"], [I], "{R:x}"),
        (lambda u: lax.psum(u, "x"), [U], ""),
        (lambda u: lax.pmean(u, "x"), [U], ""),
        (lambda u: lax.psum_scatter(u, "x", tiled=True), [U], "{V:x}"),
        (lambda v: lax.all_gather(v, "x", to="reduced"), [V], "{R:x}"),
        (lambda i: lax.all_gather(i, "x", to="reduced"), [I], "{R:x}"),
        (lambda v, r: v[0] * r, [V, R], "{V:x}"),
        (lambda i, r: i * r + 2, [I, R], "{R:x}"),
        (lambda u, r: u * r, [U, R], "{U:x}"),
        (lambda u, i: 2 * u / i - u, [U, I], "{U:x}"),
        (lambda r: jnp.sin(r).reshape(2, 4).T @ jnp.ones(2), [R], "{R:x}"),
        (lambda u: jnp.where(jnp.arange(8) < 3, u, 2 * u)[::2].sum(), [U], "{U:x}"),
        (lambda v: CAST["unreduced"](lax.pcast(v, "y", to="reduced")), [V], "{U:x, R:y}"),
        (lambda u: lax.psum(u, ("x", "y")), [of(unreduced={"x", "y"})], ""),
        (lambda u: lax.psum(u, "x"), [of(unreduced={"x", "y"})], "{U:y}"),
        (lambda v: lax.psum(v, ("x", "y")), [of("x", unreduced={"y"})], ""),
        (lambda r: lax.scan(lambda c, x: (c * x, c + x), r[0], r)[1], [R], "{R:x}"),
        (lambda u: lax.scan(lambda c, x: (c + x, 2 * x), u[0], u)[1], [U], "{U:x}"),
        (lambda v, r: lax.fori_loop(0, 3, lambda i, c: c * v[0], r[0]), [V, R], "{V:x}"),
    ],
)
def test_states_of_results(f: Any, operands: Any, expected: str) -> None:
    for wrap in (lambda f: f, jit):
        assert shown(f, *operands, wrap=wrap) == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shown(lambda u: jnp.sin(u), U), ShardingTypeError, "unreduced rule for sin is not implemented"),
        (lambda: shown(lambda u, v: u * v[0], U, V), ShardingTypeError, "one operand is unreduced.*and another varies"),
        (lambda: shown(lambda u: u + 1, U), ShardingTypeError, "must be unreduced along the same mesh axes"),
        (lambda: shown(lambda r: lax.psum(r, "x"), R), ShardingTypeError, r"psum of f32\[8\]\{R:x\}.*to='varying'"),
        (lambda: shown(lambda u: lax.all_gather(u, "x"), U), ShardingTypeError, "all_gather .* take varying ones"),
        (lambda: shown(lambda u: lax.ppermute(u, "x", [(0, 1)]), U), ShardingTypeError, "ppermute of"),
        (lambda: shown(lambda u: CAST["varying"](u), U), ShardingTypeError, "pvary of"),
        (lambda: shown(CAST["unreduced"], I), ArgumentError, "takes values that are varying, .* is invarying"),
        (lambda: shown(CAST["unreduced"], R), ArgumentError, "takes values that are varying, .* is reduced"),
        (lambda: shown(CAST["reduced"], V), ArgumentError, "takes values that are invarying, .* is varying"),
        (lambda: shown(CAST["reduced"], U), ArgumentError, "takes values that are invarying, .* is unreduced"),
        (lambda: shown(lambda v: lax.pcast(v, "x", to="whole"), V), ArgumentError, "to must be 'varying', 'unreduced'"),
        (
            lambda: shown(lambda u: lax.psum(u, "x", axis_index_groups=[[0], [1]]), U),
            UnsupportedArgumentError, "leave axis_index_groups out",
        ),
        (
            lambda: vmap(lambda x: lax.pcast(x, "i", to="unreduced"), axis_name="i")(jnp.ones(2)),
            UnsupportedArgumentError, "is for the axes of shard_map, and vmap maps 'i'",
        ),
        (
            lambda: shown(CAST["unreduced"], V, axis_names={"x"}),
            UnsupportedArgumentError, "needs a shard_map in full manual mode",
        ),
        (
            lambda: shown(lambda u: u, U, axis_names={"x"}),
            UnsupportedArgumentError, "can only be passed to in_specs when shard_map is in full manual mode",
        ),
        (lambda: shown(lambda u: u, U, in_specs=P()), ShardMapError, "does not match the specs of the input"),
        (lambda: shown(lambda u: u, I, in_specs=P(reduced={"x"})), ShardMapError, "does not match the specs of the"),
    ],
)  # fmt: skip
def test_refused(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("operand", "out_specs", "message"),
    [
        (I, P(unreduced={"x"}), "is not unreduced. lax.pcast"),
        (U, P(), "is unreduced. Sum it with lax.psum"),
        (U, P("x"), "is unreduced. Sum it with lax.psum"),
        (I, P(reduced={"x"}), "is not reduced. lax.pcast"),
        (R, P(), r"is reduced. Write P\(reduced=...\)"),
    ],
)
def test_results_that_their_specifications_do_not_fit(operand: Any, out_specs: P, message: str) -> None:
    with pytest.raises(ShardMapError, match=f"out_specs passed to shard_map.*{message}"):
        eval_shape(shard_map(lambda x: x, mesh=MESH, out_specs=out_specs), operand)


def test_specifications_of_results_cast() -> None:
    through = lambda x, spec: eval_shape(shard_map(lambda x: x, mesh=MESH, out_specs=spec), x).sharding.spec
    assert through(V, P(unreduced={"x"})) == P(None, unreduced={"x"})
    assert through(R, P("x")) == P("x")
    assert through(R, P(reduced={"x"})) == P(None, reduced={"x"})


def test_axes_that_are_not_explicit() -> None:
    mesh = AbstractMesh((2,), ("x",), (AxisType.Auto,))
    with pytest.raises(ShardMapError, match="contains axis names all of type `Explicit`"):
        eval_shape(shard_map(lambda x: x, mesh=mesh, in_specs=P(unreduced={"x"}), out_specs=P()), of(mesh=mesh))
    total = lambda x: lax.psum(lax.pcast(x, "x", to="unreduced"), "x")  # within the function they can be so
    assert eval_shape(shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P()), of(mesh=mesh)).shape == (4,)


PAIRS = [
    (CAST["reduced"], I, "preduced", "unreduced_psum"),
    (CAST["unreduced"], V, "vary_unreduced_cast", "reduced_vary_cast"),
    (CAST["varying"], R, "reduced_vary_cast", "vary_unreduced_cast"),
    (lambda u: lax.psum(u, "x"), U, "unreduced_psum", "preduced"),
    (lambda u: lax.psum_scatter(u, "x", tiled=True), U, "unreduced_reduce_scatter", "all_gather_reduced"),
    (lambda v: lax.all_gather(v, "x", to="reduced", tiled=True), V, "all_gather_reduced", "unreduced_reduce_scatter"),
]


@pytest.mark.parametrize(("f", "operand", "forward", "backward"), PAIRS, ids=[pair[2] for pair in PAIRS])
def test_transposes(f: Any, operand: Any, forward: str, backward: str) -> None:
    def pulled(x: Any) -> Any:
        out, pull = pullback.vjp(f, x)
        (ct,) = pull(pull_seed(out))
        assert typeof(ct).mat == typeof(x).to_ct_aval().mat
        return jnp.zeros(())

    def pull_seed(out: Any) -> Any:
        return jnp.zeros(out.shape) if typeof(out).mat.unreduced else out

    def names(f: Any) -> list[str]:
        mapped = shard_map(lambda x: (f(x), jnp.zeros(()))[1], mesh=MESH, out_specs=P())
        return re.findall(r"= (\w+(?:psum|cast|reduced|scatter|gather\w*))\b", str(make_jaxpr(mapped)(operand)))

    assert names(f) == [forward]
    found = names(pulled)
    assert found[0] == forward
    assert found[-1] == backward


def test_cotangents_of_reduced_values_are_unreduced_without_communication() -> None:
    def loss(r: Any, v: Any) -> Any:
        return (jnp.tanh(r * v) + r * r).sum()

    seen: list[Any] = []

    def body(r: Any, v: Any) -> Any:
        cts = grad(loss, (0, 1))(r, jnp.concatenate([v, v]))
        seen[:] = [str(typeof(ct)) for ct in cts]
        return cts

    mapped = shard_map(body, mesh=MESH, out_specs=(P(unreduced={"x"}), P("x")))
    text = str(make_jaxpr(mapped)(R, V))
    assert seen == ["float32[8]{U:x}", "float32[8]{V:x}"]
    assert "psum" not in text


def test_batches_keep_states() -> None:
    batch = lambda x: ShapeDtypeStruct((3, 8), "float32", sharding=x.sharding.with_axis(0, None))
    for operand, spec in (U, P(unreduced={"x"})), (R, P(reduced={"x"})):
        mapped = shard_map(lambda x: 2 * x, mesh=MESH, in_specs=spec, out_specs=spec)
        wanted = spec.update((None, None))
        assert eval_shape(vmap(mapped), batch(operand)).sharding.spec == wanted
    assert shown(vmap(lambda u: lax.psum_scatter(u, "x", tiled=True)), batch(U)) == "{V:x}"
