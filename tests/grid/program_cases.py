"""Operations that hold programs, or go along named axes, as rows for the laws of derivatives.

Each is a function of several arrays of different sizes, in all of which it has derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, custom_jvp, custom_vjp, jit, lax, make_jaxpr, vmap
from pullback.ad_checkpoint import checkpoint_name
from pullback.core.array import as_array
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import custom_transpose, linear_call
from pullback.derivatives import preaccumulate
from pullback.transforms.programs.closed_calls import call_p, closed_call_p
from tests.grid.derivative_cases import Case, case, moving
from tests.helpers import random


class Program(NamedTuple):
    """A row.

    Attributes:
      name: what it is.
      operations: the primitives that it has a row for.
      function: takes as many arrays as there are shapes, in none of which it is constant.
      shapes: of the operands.
    """

    name: str
    operations: tuple[str, ...]
    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]

    def cases(self) -> Iterator[Case]:
        point = [as_array(random(*shape)) for shape in self.shapes]
        for own in moving(range(len(point))):
            yield case(f"{self.name} in {own}", self.function, point, own, True)


def scanned(start: Any, xs: Any, c: Any, **options: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        carry = jnp.sin(carry) * c + x
        return carry.at[0].set(c[1]), carry[1] * x

    return lax.scan(step, start, xs, **options)


def stepped(x: Any, c: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, x: x.at[i].mul(c[i % 2] + x[0]), x)


def added(x: Any, y: Any) -> Any:
    return jnp.sin(x * y).at[0].add(x)


def called(x: Any, y: Any, closed: bool = False) -> Any:
    jaxpr = make_jaxpr(lambda x, y: jnp.sin(x * y) * x)(*(jnp.zeros(v.shape, v.dtype) for v in (x, y)))
    return closed_call_p.bind(x, y, call_jaxpr=jaxpr) if closed else call_p.bind(x, y, call_jaxpr=jaxpr.jaxpr)


def repeated(start: Any, c: Any) -> Any:
    def step(state: Any) -> Any:
        i, x, y = state
        return i + 1, jnp.sin(x) * c[:, None] + y, y

    return lax.while_loop(lambda state: state[0] < 3, step, (0, start, c[:, None] * jnp.ones((1, 3))))[1]


def chosen_branch(flag: bool, x: Any, y: Any) -> Any:
    one = lambda x, y: (x.at[1].set(y[0, 0]), y * y)
    other = lambda x, y: (jnp.concatenate([y[0, :2], x[:1]]), y)
    return lax.cond(jnp.asarray(flag), one, other, x, y)


def mapped_branch(x: Any, y: Any) -> Any:
    return vmap(lambda flag, a: lax.cond(flag, lambda a: a * y, lambda a: a.at[0].set(2.0), a))(
        jnp.array([True, False, True]), x
    )


def with_jvp_rule() -> Callable[..., Any]:
    f = custom_jvp(lambda x, y: jnp.sin(x) * y.sum())

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), jnp.cos(x) * tx * y.sum() + jnp.sin(x) * ty.sum()

    return f


def with_vjp_rule() -> Callable[..., Any]:
    f = custom_vjp(lambda x, y: jnp.sin(x) * y.sum())
    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda kept, ct: (
            ct * jnp.cos(kept[0]) * kept[1].sum(),
            jnp.sum(ct * jnp.sin(kept[0])) * jnp.ones_like(kept[1]),
        ),
    )
    return f


def with_vmap_rule() -> Callable[..., Any]:
    f = custom_vmap(lambda x, y: jnp.sin(x) * y.sum())

    @f.def_vmap
    def rule(size: int, mapped: Any, x: Any, y: Any) -> Any:
        x, y = (v if m else jnp.broadcast_to(v, (size, *v.shape)) for v, m in zip((x, y), mapped, strict=True))
        return jnp.sin(x) * y.sum((1, 2))[:, None], True

    return f


SCALED = (lambda y, x: x * y, lambda y, ct: (ct * y).sum(0))
"""A function that is linear in its second argument, and its transpose."""


def with_transpose() -> Callable[..., Any]:
    f = custom_transpose(SCALED[0])
    f.def_transpose(SCALED[1])
    return lambda x, y: f(jnp.zeros((2, 3)), y, x)


def solved(a: Any, b: Any) -> Any:
    matrix = a @ a.T + 4 * jnp.eye(3)
    solve = lambda product, b: jnp.linalg.solve(pullback.jacfwd(product)(b), b)
    return lax.custom_linear_solve(lambda x: matrix @ x, b, solve, symmetric=True)


def root(c: Any) -> Any:
    solve = lambda f, x: lax.fori_loop(0, 30, lambda _, x: x - f(x) / pullback.grad(f)(x), x)
    return lax.custom_root(lambda x: x**3 + c[0] * c[0] * x - c[1], jnp.ones(()), solve, lambda g, y: y / g(1.0))


def along_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one index of a named axis, for all of them."""
    return lambda x, c: vmap(lambda x: function(x, c), axis_name="i")(x)


AROUND = [(0, 1), (1, 2), (2, 0)]
VECTORS = ((3,), (2, 3))
STEPS = ((2,), (4, 2), (2,))
ALONG = ((3, 2), (2,))
EACH_TO_EACH = ((3, 3, 2), (2,))

PROGRAMS = [
    Program("scan", ("scan",), scanned, STEPS),
    Program("reverse scan", (), partial(scanned, reverse=True), STEPS),
    Program("scan with two states kept", ("checkpointed_scan",), partial(scanned, checkpoints=2), STEPS),
    Program("while_loop", ("while", "while_transpose", "while_transpose_derivative"), repeated, ((2, 3), (2,))),
    Program("fori_loop", (), stepped, ((3,), (2,))),
    Program("cond", ("cond",), partial(chosen_branch, True), VECTORS),
    Program("cond, the other branch", (), partial(chosen_branch, False), VECTORS),
    Program("mapped cond", ("guard",), mapped_branch, ((3, 2), (2,))),
    Program("map", (), lambda x, c: lax.map(lambda x: x * c + 1, x, batch_size=2), ((3, 2), (2,))),
    Program("associative_scan", (), lambda x, c: lax.associative_scan(lambda a, b: a * b + c, x), ((5, 2), (2,))),
    Program("jit", ("jit",), jit(added), VECTORS),
    Program("call", ("call",), called, VECTORS),
    Program("closed_call", ("closed_call",), partial(called, closed=True), VECTORS),
    Program("checkpoint", ("checkpoint", "checkpoint_linear"), checkpoint(added), VECTORS),
    Program("preaccumulate", ("preaccumulate",), preaccumulate(added), VECTORS),
    Program("custom_jvp", ("custom_jvp_call",), with_jvp_rule(), VECTORS),
    Program("custom_vjp", ("custom_vjp_call", "custom_vjp_linear"), with_vjp_rule(), VECTORS),
    Program("custom_vmap", ("custom_vmap_call", "custom_vmap_linear"), with_vmap_rule(), VECTORS),
    Program("linear_call", ("linear_call",), lambda x, y: linear_call(*SCALED, y, x), VECTORS),
    Program("custom_transpose", ("custom_transpose_call",), with_transpose(), VECTORS),
    Program("custom_linear_solve", (), solved, ((3, 2), (3,))),
    Program("custom_root", (), root, ((2,),)),
    Program("barrier", ("optimization_barrier",), lambda x, y: lax.optimization_barrier((x, x * y)), VECTORS),
    Program("name", ("name",), lambda x, y: checkpoint_name(x * y, "kept"), VECTORS),
    Program("device_put", ("device_put",), lambda x, y: pullback.device_put(x) * y, VECTORS),
    Program("psum", ("psum", "pvary"), along_axis(lambda x, c: lax.psum(x * c, "i") * x), ALONG),
    Program("psum of a constant", (), along_axis(lambda x, c: lax.psum(c, "i") * x), ALONG),
    Program("pmean", (), along_axis(lambda x, c: lax.pmean(x, "i") * c), ALONG),
    Program("pmax", ("pmax",), along_axis(lambda x, c: lax.pmax(x, "i") * c), ALONG),
    Program("pmin", ("pmin",), along_axis(lambda x, c: lax.pmin(x, "i") * c), ALONG),
    Program("all_gather", ("all_gather",), along_axis(lambda x, c: lax.all_gather(x * c, "i", axis=1)), ALONG),
    Program("all_to_all", ("all_to_all",), along_axis(lambda x, c: lax.all_to_all(x, "i", 0, 1).T * c), EACH_TO_EACH),
    Program("psum_scatter", ("reduce_scatter",), along_axis(lambda x, c: lax.psum_scatter(x, "i") * c), EACH_TO_EACH),
    Program("ppermute", ("ppermute",), along_axis(lambda x, c: lax.ppermute(x * c, "i", AROUND) + x), ALONG),
    Program("ppermute in part", (), along_axis(lambda x, c: lax.ppermute(x * c, "i", AROUND[:2])), ALONG),
    Program("axis_index", ("axis_index",), along_axis(lambda x, c: x * c * (1 + lax.axis_index("i"))), ALONG),
    Program("contraction", ("psum_dot_general",), along_axis(lambda x, c: lax.psum(x @ c, "i")), ((3, 2), (2, 4))),
]
