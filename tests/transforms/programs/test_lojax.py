"""Values of users' types through the transformations, and programs of the arrays of which they consist."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import checkpoint, errors, grad, jit, jvp, lax, make_jaxpr, new_ref, vjp, vmap
from pullback.experimental.hijax import (
    GradAccum,
    HiPspec,
    HiType,
    MappingSpec,
    ShapedArray,
    VJPHiPrimitive,
    instantiate_zeros,
    register_hitype,
    vjp_from_jvp,
)
from pullback.sharding import PartitionSpec as P

typeof: Any = pb.typeof
FLOAT, BYTE = np.dtype("float32"), np.dtype("int8")


@dataclass(frozen=True)
class Rounded:
    """An array rounded to bytes, with a scale for each row."""

    bytes: Any
    scale: Any


@dataclass(frozen=True)
class Leading(MappingSpec):
    pass


@dataclass(frozen=True)
class RoundedType(HiType):
    """Tangents are arrays of floats."""

    shape: tuple[int, ...]

    def lo_ty(self) -> list[ShapedArray]:
        return [ShapedArray(self.shape, BYTE), ShapedArray(self.shape[:-1], FLOAT)]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [hi_val.bytes, hi_val.scale]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Rounded(*lo_vals)

    def to_tangent_aval(self) -> ShapedArray:
        return ShapedArray(self.shape, FLOAT)

    def dec_rank(self, size: int | None, spec: Any) -> RoundedType:
        return RoundedType(self.shape[1:])

    def inc_rank(self, size: int | None, spec: Any) -> RoundedType:
        assert size is not None
        return RoundedType((size, *self.shape))

    def leading_axis_spec(self) -> Leading:
        return Leading()

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> RoundedType:
        return RoundedType(self.lo_ty()[0].shard(mesh, manual_axes, check_vma, spec.spec).shape)

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> RoundedType:
        return RoundedType(self.lo_ty()[0].unshard(mesh, check_vma, spec.spec).shape)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return f"r8[{','.join(map(str, self.shape))}]"


register_hitype(Rounded, lambda x: RoundedType(x.bytes.shape))


class Round(VJPHiPrimitive):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), RoundedType(aval.shape), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        scale = jnp.max(jnp.abs(x), axis=-1) / 127
        return Rounded(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        return (g,)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return rounded(jnp.moveaxis(args[0], dims[0], 0)), Leading()


class Widen(VJPHiPrimitive):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), ShapedArray(aval.shape, FLOAT), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x.bytes.astype(jnp.float32) * x.scale[..., None]

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        return (g,)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return wide(args[0]), None if dims[0] is None else 0


def rounded(x: Any) -> Any:
    return Round(typeof(x))(x)


def wide(x: Any) -> Any:
    return Widen(typeof(x))(x)


X = jnp.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])


def both(f: Any) -> list[Any]:
    return [f, jit(f)]


def test_values_are_arguments_results_and_constants_of_compiled_functions() -> None:
    value = rounded(X)
    assert isinstance(value, Rounded) and typeof(value) == RoundedType((2, 3))  # noqa: PT018
    program = make_jaxpr(lambda x: wide(rounded(x)))(X)
    assert [str(v.aval) for eqn in program.eqns for v in eqn.outvars] == ["r8[2,3]", "float32[2,3]"]
    for f in both(lambda x: wide(rounded(x))):
        np.testing.assert_allclose(f(X), X, atol=0.05)
    assert isinstance(jit(rounded)(X), Rounded)
    np.testing.assert_array_equal(jit(wide)(value), wide(value))
    np.testing.assert_array_equal(jit(lambda: wide(value))(), wide(value))
    compiled = jit(lambda x, y: (rounded(wide(x) + y), y)).lower(value, 1.0).compile()
    assert typeof(compiled(value, 1.0)[0]) == RoundedType((2, 3))
    assert compiled.in_avals[0] == (RoundedType((2, 3)), typeof(1.0))
    with pytest.raises(errors.ArgumentError, match="takes arguments of the types"):
        compiled(rounded(X[:1]), 1.0)
    assert jit(rounded).trace(X).lojax.jaxpr.out_avals == RoundedType((2, 3)).lo_ty()
    assert pb.eval_shape(rounded, X) == RoundedType((2, 3))
    with pytest.raises(NotImplementedError, match="in_shardings and out_shardings are for arrays"):
        jit(wide, in_shardings=pb.devices()[0])(value)
    with pytest.raises(AttributeError, match="bytes"):
        jit(lambda x: x.bytes)(value)
    with pytest.raises(TypeError):  # a value of traced arrays, made without an operation
        jit(lambda x: Rounded(x.astype(jnp.int8), x[:, 0]))(X)


def test_derivatives_have_the_tangent_type() -> None:
    value = rounded(X)
    for f in both(lambda x: wide(rounded(x)).sum()):
        np.testing.assert_array_equal(grad(f)(X), jnp.ones((2, 3)))
    for f in both(lambda x, y: ((wide(x) * y) ** 2).sum()):
        np.testing.assert_allclose(grad(f)(value, 1.0), 2 * wide(value), rtol=1e-6)
        np.testing.assert_allclose(jit(grad(f, (0, 1)))(value, 1.0)[0], 2 * wide(value), rtol=1e-6)
    out, pull = vjp(rounded, X)
    assert isinstance(out, Rounded)
    np.testing.assert_array_equal(pull(X)[0], X)
    with pytest.raises(errors.TangentMismatchError, match=r"must be of type f32\[2,3\], but it is f32\[2\]"):
        pull(jnp.ones(2))
    np.testing.assert_array_equal(
        grad(lambda x: pb.checkpoint(lambda x: wide(rounded(x)).sum())(x))(X), jnp.ones((2, 3))
    )
    np.testing.assert_array_equal(grad(lambda x: 2.0 * wide(value).sum() * x)(1.0), 2 * wide(value).sum())
    assert grad(lambda v: 1.0)(value).shape == (2, 3)


def test_vmap_maps_values_as_their_specs_say() -> None:
    xs = jnp.arange(24.0).reshape(4, 2, 3) + 1
    values = vmap(rounded, out_axes=Leading())(xs)
    assert typeof(values) == RoundedType((4, 2, 3))
    assert typeof(vmap(jit(rounded), out_axes=Leading())(xs)) == RoundedType((4, 2, 3))
    for f in (wide, jit(wide)):
        np.testing.assert_allclose(vmap(f, in_axes=Leading(), axis_size=4)(values), xs, atol=0.2)
    np.testing.assert_array_equal(vmap(grad(lambda x: wide(rounded(x)).sum()))(xs), jnp.ones((4, 2, 3)))
    np.testing.assert_allclose(vmap(lambda v, y: wide(v) + y, (None, 0))(values, xs)[0, 0], wide(values)[0] + xs[0])
    for call, message in (
        (lambda: vmap(wide)(values), "in_axes for a value of type r8.*must be a MappingSpec, got 0"),
        (lambda: vmap(rounded, in_axes=Leading(), axis_size=4)(xs), "must be an int or None, got Leading"),
        (lambda: vmap(rounded)(xs), "out_axes for a value of type r8.*must be a MappingSpec, got 0"),
    ):
        with pytest.raises(errors.BatchAxisError, match=message):
            call()
    with pytest.raises(errors.BatchSizeError, match="only values of users' types are"):
        vmap(wide, in_axes=Leading())(values)


def test_loops_and_branches() -> None:
    xs = jnp.arange(24.0).reshape(4, 2, 3) + 1
    values = vmap(rounded, out_axes=Leading())(xs)
    start = rounded(jnp.ones((2, 3)))

    def total(values: Any) -> Any:
        return lax.scan(lambda c, v: (c + wide(v).sum(), None), 0.0, values, length=4)[0]

    def sums(start: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (rounded(wide(c) + x), rounded(2 * x)), start, xs)

    for f in both(total):
        np.testing.assert_allclose(f(values), xs.sum(), rtol=0.01)
    for f in both(sums):
        last, stacked = f(start, xs)
        assert (typeof(last), typeof(stacked)) == (RoundedType((2, 3)), RoundedType((4, 2, 3)))
        np.testing.assert_allclose(wide(last), 1 + xs.sum(0), rtol=0.05)
        np.testing.assert_array_equal(grad(lambda xs: wide(f(start, xs)[0]).sum())(xs), jnp.ones_like(xs))  # noqa: B023
    with pb.disable_jit():
        np.testing.assert_allclose(wide(sums(start, xs)[1]), 2 * xs, rtol=0.05)
        np.testing.assert_allclose(total(values), xs.sum(), rtol=0.01)
    for i in (0, 1):
        for g in both(lambda i, v: lax.cond(i, lambda v: v, lambda v: rounded(2 * wide(v)), v)):
            np.testing.assert_allclose(wide(g(i, start)), 2 - i, rtol=0.01)
    assert typeof(
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, rounded(wide(c[1]))), (0, start))[1]
    ).shape == (2, 3)
    with pytest.raises(errors.BatchAxisError, match="slices or stacks values of type"):
        vmap(lambda x: lax.scan(lambda c, x: (c, rounded(x)), 0, xs * x)[1], out_axes=Leading())(jnp.ones(2))
    with pytest.raises(errors.ControlFlowError, match="pass the number of steps as length"):
        lax.scan(lambda c, v: (c, None), 0.0, values)
    with pytest.raises(errors.BatchAxisError, match="which is mapped as None, would have to be mapped as Leading"):
        vmap(lambda x: sums(start, xs * x)[1], out_axes=Leading())(jnp.ones(2))


def test_operations_on_arrays_refuse_values() -> None:
    value = rounded(X)
    with pytest.raises(errors.OperandError, match="expected an array or a number, got Rounded"):
        jnp.sin(value)
    for call in (lambda: make_jaxpr(jnp.sin)(value), lambda: jit(jnp.add)(value, 1.0)):
        with pytest.raises(TypeError, match="array"):
            call()


@dataclass(frozen=True)
class RowSpec(HiPspec):
    spec: Any

    def to_lo(self) -> tuple[Any, ...]:
        return self.spec, self.spec


def test_shard_map_takes_and_returns_values() -> None:
    with pb.set_mesh(pb.make_mesh((1,), ("i",))):
        wraps: list[Any] = [lambda f: f, jit]
        for wrap in wraps:
            value = wrap(pb.shard_map(rounded, in_specs=P("i"), out_specs=RowSpec(P("i"))))(X)
            assert typeof(value) == RoundedType((2, 3))
            out = wrap(pb.shard_map(lambda v, y: wide(v) + y, in_specs=(RowSpec(P("i")), P()), out_specs=P("i")))(
                value, 1.0
            )
            np.testing.assert_allclose(out, X + 1, atol=0.05)
        with pytest.raises(NotImplementedError, match="cannot be differentiated"):
            grad(lambda x: wide(pb.shard_map(rounded, in_specs=P("i"), out_specs=RowSpec(P("i")))(x)).sum())(X)
        with pytest.raises(errors.ShardMapError, match="in_specs for a value of type f32"):
            pb.shard_map(wide, in_specs=RowSpec(P("i")), out_specs=P("i"))(X)


# A type whose tangents are values, too -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuple:
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Parts(MappingSpec):
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class TupleType(HiType):
    types: tuple[Any, ...]

    def lo_ty(self) -> list[ShapedArray]:
        return [lo for t in self.types for lo in t.lo_ty()]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [lo for t, x in zip(self.types, hi_val.parts, strict=True) for lo in t.lower_val(x)]

    def raise_val(self, *lo_vals: Any) -> Any:
        rest = iter(lo_vals)
        return Tuple(tuple(t.raise_val(*itertools.islice(rest, len(t.lo_ty()))) for t in self.types))

    def to_tangent_aval(self) -> TupleType:
        return TupleType(tuple(t.to_tangent_aval() for t in self.types))

    def vspace_zero(self) -> Any:
        return Tuple(tuple(t.vspace_zero() for t in self.types))

    def vspace_add(self, x: Any, y: Any) -> Any:
        return make(*[t.vspace_add(part(x, i), part(y, i)) for i, t in enumerate(self.types)])

    def dec_rank(self, size: int | None, spec: Any) -> TupleType:
        return TupleType(tuple(t.dec_rank(size, s) for t, s in zip(self.types, spec.parts, strict=True)))

    def inc_rank(self, size: int | None, spec: Any) -> TupleType:
        return TupleType(tuple(t.inc_rank(size, s) for t, s in zip(self.types, spec.parts, strict=True)))

    def leading_axis_spec(self) -> Parts:
        return Parts(tuple(t.leading_axis_spec() for t in self.types))


register_hitype(Tuple, lambda x: TupleType(tuple(map(typeof, x.parts))))


class Make(VJPHiPrimitive):
    def __init__(self, *avals: Any) -> None:
        self.in_avals, self.out_aval, self.params = avals, TupleType(avals), {}
        super().__init__()

    def expand(self, *args: Any) -> Any:
        return Tuple(args)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return make(*primals), make(*map(instantiate_zeros, tangents))

    vjp_fwd, vjp_bwd_retval = vjp_from_jvp

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        for i, accum in enumerate(maybe_accums):
            if isinstance(accum, GradAccum):
                accum.accum(part(out_ct, i))

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return make(*args), Parts(tuple(dims))


class Part(VJPHiPrimitive):
    def __init__(self, aval: Any, index: int) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval.types[index], {"index": index}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x.parts[self.params["index"]]

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return part(primals[0], self.params["index"]), part(tangents[0], self.params["index"])

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        return (self._with(g),)

    def _with(self, g: Any) -> Any:
        parts = [t.vspace_zero() for t in self.in_avals[0].types]
        parts[self.params["index"]] = g
        return make(*parts)

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        maybe_accums[0].accum(self._with(out_ct))

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        return part(args[0], self.params["index"]), dims[0].parts[self.params["index"]]


def make(*parts: Any) -> Any:
    return Make(*map(typeof, parts))(*parts)


def part(x: Any, index: int) -> Any:
    return Part(typeof(x), index)(x)


def swapped(x: Any) -> Any:
    return make(part(x, 1), part(x, 0))


def test_values_within_values() -> None:
    nested = make(make(1.0, 2.0), rounded(X))
    assert [a.shape for a in typeof(nested).lo_ty()] == [(), (), (2, 3), (2,)]
    for f in both(lambda x: part(part(x, 0), 1) + wide(part(x, 1))):
        np.testing.assert_allclose(f(nested), 2 + X, atol=0.05)
    pair = make(jnp.arange(3.0), 5.0)
    out = vmap(swapped, in_axes=Parts((0, None)), out_axes=Parts((None, 0)), axis_size=3)(pair)
    assert typeof(out) == swapped(typeof(pair).raise_val(5.0, jnp.arange(3.0))) or typeof(out).types[1].shape == (3,)


def test_tangents_that_are_values_are_added_and_carried() -> None:
    def f(x: Any, y: Any) -> Any:
        x = swapped(make(x, y))
        return part(x, 0) * jnp.sin(part(x, 1))

    def loop(x: Any, y: Any) -> Any:
        step = lambda c, a: (make(part(c, 1) * a, part(c, 0)), part(c, 0))
        c, ys = lax.scan(step, make(x, y), jnp.arange(1.0, 4.0))
        return part(c, 0) + ys.sum()

    def plain(x: Any, y: Any) -> Any:
        (x, y), ys = lax.scan(lambda c, a: ((c[1] * a, c[0]), c[0]), (x, y), jnp.arange(1.0, 4.0))
        return x + ys.sum()

    for ours, theirs in ((f, lambda x, y: y * jnp.sin(x)), (loop, plain)):
        wanted = grad(theirs, (0, 1))(2.0, 3.0)
        for g in (grad(ours, (0, 1)), jit(grad(ours, (0, 1))), grad(jit(ours), (0, 1))):
            np.testing.assert_allclose(g(2.0, 3.0), wanted, rtol=1e-6)
        for g in both(ours):
            np.testing.assert_allclose(jvp(g, (2.0, 3.0), (1.0, 0.5)), jvp(theirs, (2.0, 3.0), (1.0, 0.5)), rtol=1e-6)
    ct = grad(lambda x: part(x, 0) * part(x, 1))(make(2.0, 3.0))
    assert ct == Tuple((3.0, 2.0))
    assert vjp(swapped, make(2.0, 3.0))[1](make(10.0, 20.0)) == (Tuple((20.0, 10.0)),)
    assert jvp(swapped, (make(2.0, 3.0),), (make(10.0, 20.0),))[1] == Tuple((20.0, 10.0))


def test_a_type_lacks_methods() -> None:
    class Bare(HiType):
        def __repr__(self) -> str:
            return "bare"

    class Value:
        pass

    register_hitype(Value, lambda x: Bare())
    calls: list[Any] = [
        (lambda: jit(lambda x: x)(Value()), "lo_ty"),
        (lambda: grad(lambda x: 1.0)(Value()), "to_tangent_aval"),
        (lambda: vmap(lambda x: 1.0, in_axes=Leading(), axis_size=2)(Value()), None),
        (lambda: lax.scan(lambda c, x: (c, None), 0, Value(), length=2), "leading_axis_spec"),
        (lambda: Bare().vspace_add(1, 2), "vspace_add"), (lambda: Bare().shard(None, frozenset(), True, None), "shard"),
    ]  # fmt: skip
    for call, method in calls:
        if method is None:
            assert call().shape == (2,)
        else:
            with pytest.raises(NotImplementedError, match=f"needs the method {method} of Bare"):
                call()
    with pytest.raises(errors.ArgumentError, match="takes a class and a function"):
        register_hitype(Value, None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="'Bare' object has no attribute 'nothing'"):
        Bare().nothing  # noqa: B018


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings"])
def test_shardings_are_for_arrays(option: str) -> None:
    mesh = pb.make_mesh((1,), ("i",))
    value = Rounded(jnp.ones((4, 2), BYTE), jnp.ones(4))
    with pytest.raises(errors.UnsupportedArgumentError, match="in_shardings and out_shardings are for arrays, but"):
        jit(lambda x: x, **{option: pb.NamedSharding(mesh, P("i"))})(value)


# References -----------------------------------------------------------------------------------------------------------


def test_references_hold_values() -> None:
    first, second = (Rounded(jnp.full((2, 3), n, BYTE), jnp.ones(2)) for n in (1, 2))

    def f(x: Any, y: Any) -> Any:
        ref = new_ref(x)
        before = ref[...]
        ref[...] = y
        after = ref.swap(before)
        return after, ref.get()

    for g in (f, jit(f), jit(jit(f)), checkpoint(f)):
        for value, expected in zip(g(first, second), (second, first), strict=True):
            np.testing.assert_array_equal(value.bytes, expected.bytes)
    ref = new_ref(first)
    assert str(typeof(ref)) == f"Ref{{{typeof(first)}}}"
    total = jit(lambda: lax.fori_loop(0, 3, lambda i, c: _exchange(ref, second, c), 0))()
    assert int(total) == 3
    np.testing.assert_array_equal(ref[...].bytes, second.bytes)
    with pytest.raises(errors.RefError, match="must be of the type"):
        ref[...] = jnp.ones((2, 3))
    with pytest.raises(errors.RefIndexError, match="as a whole"):
        ref[0]


def _exchange(ref: Any, value: Any, count: Any) -> Any:
    ref[...] = value
    return count + 1
