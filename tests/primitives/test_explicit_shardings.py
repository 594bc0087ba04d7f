"""Shardings in types, over a mesh without devices: no program runs. Values are in ``tests/spmd/cases_explicit.py``."""

from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, ShapeDtypeStruct, errors, eval_shape, grad, lax, vmap
from pullback.backends.devices.shardings import between
from pullback.backends.hlo.module import Module
from pullback.sharding import AbstractMesh, AxisType, auto_axes, reshard

MESH = AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)


def of(shape: tuple[int, ...], *entries: Any, **axes: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(MESH, P(*entries, **axes)))


def entries(f: Any, *operands: Any) -> tuple[Any, ...]:
    """The entries of the sharding of the result of ``f``."""
    return eval_shape(f, *operands).sharding.spec.partitions  # type: ignore[no-any-return]


X = of((8, 2), "x", "y")
ROWS = of((8, 2), "x")


def test_types_as_text() -> None:
    seen = []
    eval_shape(lambda x: seen.append((str(x.aval), x.aval.str_short())), X)
    assert seen == [("float32[8@x,2@y]", "float32[8@x,2@y]")]
    assert str(pullback.typeof(of((8,), ("x", "y")))) == "float32[8@(x,y)]"


def test_the_sharding_of_a_type_is_over_the_mesh_that_is_set() -> None:
    with pullback.sharding.use_mesh(MESH):
        assert pullback.typeof(jnp.ones((3, 2))).sharding == NamedSharding(MESH, P(None, None))


def test_words_of_keys_are_sharded_as_the_keys() -> None:
    words = lambda x: pullback.random.key_data(pullback.random.wrap_key_data(x))
    found = eval_shape(words, ShapeDtypeStruct((8, 2), "uint32", sharding=NamedSharding(MESH, P("x"))))
    assert found.sharding.spec.partitions == ("x", None)


@pytest.mark.parametrize(
    ("f", "operands", "expected"),
    [
        (lambda x: x * 2 + x, [X], ("x", "y")),
        (lambda x, y: x * y, [ROWS, of((2,), "y")], ("x", "y")),
        (lambda x: x.sum(0), [X], ("y",)),
        (lambda x: x.T, [X], ("y", "x")),
        (lambda x: x[None, :, :], [X], (None, "x", "y")),
        (lambda x: x[:4], [X], ("x", "y")),
        (lambda x: jnp.concatenate([x, x]), [X], ("x", "y")),
        (lambda x: jnp.stack([x, x], 1), [X], ("x", None, "y")),
        (lambda x: x.astype(int), [X], ("x", "y")),
        (lambda x, y: x @ y, [ROWS, of((2, 4), None, "y")], ("x", "y")),
        (lambda x, y: x @ y, [of((8, 2), None, "y"), of((2, 4))], (None, None)),
        (lambda x: x.reshape(2, 4, 2), [X], ("x", None, "y")),
        (lambda x: x.reshape(4, 4), [of((16,), ("x", "y"))], (("x", "y"), None)),
        (lambda x: x.reshape(2, 8), [of((16,), ("x", "y"))], ("x", "y")),
        (lambda x: x.reshape(16), [of((2, 8), "x", "y")], (("x", "y"),)),
        (lambda x: x.reshape(16, 1), [of((4, 4), "x")], ("x", None)),
        (vmap(jnp.sin), [X], ("x", "y")),
        (vmap(lambda a, b: a * b, (0, None)), [X, of((2,))], ("x", "y")),
        (lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, 3)[1], [X], (None, "x", "y")),
        (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), [X], ("x", "y")),
        (pullback.jit(lambda x: jnp.exp(x)), [X], ("x", "y")),
        (lambda x: reshard(x, NamedSharding(MESH, P("y", "x"))), [X], ("y", "x")),
        (auto_axes(lambda x: jnp.sort(x, 0), out_sharding=NamedSharding(MESH, P("y"))), [X], ("y", None)),
    ],
)
def test_shardings_of_results(f: Any, operands: Any, expected: Any) -> None:
    assert entries(f, *operands) == expected


@pytest.mark.parametrize(
    ("f", "operands", "message"),
    [
        (lambda x, y: x * y, [X, of((8, 2), "y", "x")], "mul got incompatible shardings"),
        (lambda x, y: x @ y, [ROWS, of((2, 8), None, "x")], "dot_general operation with inputs.*illegally sharded"),
        (lambda x, y: x @ y, [X, of((2, 4), "y")], "Contracting dimensions are sharded"),
        (lambda x: x.reshape(4, 4), [of((2, 8), None, "x")], "This reshape is not supported"),
        (lambda x: jnp.sort(x, 0), [ROWS], "sort of f32.8@x,2.: axis 0 of operand 0 is sharded over 'x'"),
        (lambda x: x[:3], [ROWS], "slice on sharded dims where out dim is not divisible by mesh axes"),
    ],
)
def test_what_the_shardings_do_not_say_is_refused(f: Any, operands: Any, message: str) -> None:
    with pytest.raises(errors.ShardingTypeError, match=message):
        eval_shape(f, *operands)


def test_cotangents_have_the_shardings_of_their_primals() -> None:
    def f(x: Any, y: Any) -> Any:
        return (jnp.sin(x) @ y).sum()

    found = eval_shape(grad(f, (0, 1)), ROWS, of((2, 4), None, "y"))
    assert [a.sharding.spec for a in found] == [P("x", None), P(None, "y")]


def test_specifications_with_sums() -> None:
    spec = P("x", unreduced={"y"})
    assert repr(spec) == "P('x', unreduced={'y'}, unreduced_kind=sum)"
    assert spec.update(["x", None]) == P("x", None, unreduced={"y"}) != P("x", None)
    assert NamedSharding(MESH, spec).of_cotangents().spec == P("x", reduced={"y"})
    for wrong in (lambda: P("x", unreduced={"x"}), lambda: P(unreduced={"x"}, reduced={"x"}), lambda: P(unreduced="x")):
        with pytest.raises(errors.ShardingError, match="PartitionSpec"):
            wrong()


def test_reshard_names_explicit_axes_only() -> None:
    mixed = NamedSharding(MESH.update_axis_types({"y": AxisType.Auto}), P("y"))
    with pytest.raises(errors.ShardingError, match="cannot contain axis names that are of type Auto or Manual"):
        eval_shape(lambda x: reshard(x, mixed), ROWS)


# Unreduced and reduced axes ------------------------------------------------------------------------------------------

U, V, R = (of((4, 4), **axes) for axes in ({"unreduced": {"x"}}, {"unreduced": {"y"}}, {"reduced": {"x"}}))
WHOLE, INDICES = of((4, 4)), ShapeDtypeStruct((2,), "int32")
TO_SUM = NamedSharding(MESH, P(unreduced={"x"}))


def spec(f: Any, *operands: Any) -> P:
    return eval_shape(f, *operands).sharding.spec  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("f", "operands", "unreduced", "reduced"),
    [
        (lambda z: 2 * z + z.T, [U], {"x"}, set()),
        (lambda z, r: z * r, [U, R], {"x"}, set()),
        (lambda z, w: z / w, [U, WHOLE], {"x"}, set()),
        (lambda z, i: z.at[i].get(mode="fill"), [U, INDICES], {"x"}, set()),
        (lambda r: jnp.sin(r) * r, [R], set(), {"x"}),
        (lambda r: r.sum(), [R], set(), {"x"}),
        (lambda r, x: x @ r, [R, of((8, 4), "x")], set(), set()),
        (auto_axes(jnp.sin, out_sharding=TO_SUM), [WHOLE], {"x"}, set()),
    ],
)
def test_axes_over_which_results_are_unreduced(f: Any, operands: Any, unreduced: Any, reduced: Any) -> None:
    found = spec(f, *operands)
    assert (found.unreduced, found.reduced) == (unreduced, reduced)


@pytest.mark.parametrize(
    ("f", "operands", "message"),
    [
        (jnp.sin, [U], "unreduced rule for sin is not implemented"),
        (lambda z: z * z, [U], "unreduced rule for mul is not implemented"),
        (lambda z, i: z.at[i].get(mode="fill", fill_value=1), [U, INDICES], "unreduced rule for gather"),
        (lambda z, v: z + v, [U, V], "must be unreduced along the same mesh axes"),
        (lambda z, w: z + w, [U, WHOLE], "must be unreduced along the same mesh axes"),
        (lambda r, w: r * w, [R, WHOLE], "cannot be replicated on the same axes that another input is reduced on"),
        (lambda r, x: r * x, [R, of((4, 4), "x")], "cannot be sharded/varying on the same axes"),
    ],
)
def test_what_is_no_sum_of_terms_is_refused(f: Any, operands: Any, message: str) -> None:
    with pytest.raises(errors.ShardingTypeError, match=message):
        eval_shape(f, *operands)


def product(x: Any, y: Any) -> Any:
    return jnp.einsum("ij,ik->jk", x, y, out_sharding=TO_SUM)


def test_products_stay_unreduced_within_a_program() -> None:
    x, y = of((8, 4), "x"), of((8, 4), "x")
    assert spec(product, x, y).unreduced == {"x"}
    assert "sums_of_terms" in str(pullback.make_jaxpr(product)(x, y))
    assert "sums_of_terms" not in str(pullback.make_jaxpr(product)(x, of((8, 4))))
    total = lambda x, y: jnp.sin(reshard(product(x, y), NamedSharding(MESH, P()))).sum()
    for f in (grad(total), grad(pullback.jit(total))):
        assert spec(f, x, y) == P("x", None)
    many = [of((3, 8, 4), None, "x")] * 2
    assert spec(vmap(grad(total)), *many) == P(None, "x", None)


def test_cotangents_of_reduced_arrays_are_unreduced() -> None:
    f = lambda w, x: jnp.sin(x @ w).sum()
    jaxpr = pullback.make_jaxpr(grad(f))(R, of((8, 4), "x"))
    assert jaxpr.out_avals[0].sharding.spec == P(None, None, unreduced={"x"})
    assert "sums_of_terms" in str(jaxpr)


def test_values_without_a_sharding_are_summed_before() -> None:
    text = str(pullback.make_jaxpr(auto_axes(jnp.sin, out_sharding=NamedSharding(MESH, P())))(U))
    assert text.index("reshard") < text.index("mesh_cast") < text.index("sin")
    to = lambda *entries, **axes: NamedSharding(MESH, P(*entries, **axes))
    both = to(unreduced={"x", "y"})
    assert [between(source, both) for source in (to(), to("x", "y"), both)] == [None] * 3
    wholes = [between(source, both) for source in (None, to(("x", "y")), to(unreduced={"x"}))]
    assert wholes == [to()] * 3


def test_a_program_says_which_values_are_unreduced() -> None:
    module = Module("f", "cpu", lambda *args: [])
    assert module.sharding(TO_SUM, 2) == '<@mesh, [{}, {}], unreduced={"x"}>'
    assert module.sharding(NamedSharding(MESH, P("y", reduced={"x"})), 2) == '<@mesh, [{"y"}, {}]>'


def test_axes_of_make_mesh_are_explicit() -> None:
    assert pullback.make_mesh((1,), ("x",)).axis_types == (AxisType.Explicit,)
    assert pullback.make_mesh((1,), ("x",), AxisType.Auto).axis_types == (AxisType.Auto,)
