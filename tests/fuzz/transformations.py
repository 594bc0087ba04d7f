"""Operations that take functions: transformations, control flow, rules of the user's own, references, named axes.

Each entry is an expression and a plain one that it has to be equal to. In these texts ``f0(x, c)`` is a body, ``_0`` the operand
that it is differentiated by or carries, and ``_1`` another value.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Entry(NamedTuple):
    """A transformation.

    Attributes:
      kind: what is counted.
      text: the expression.
      plain: what it has to be equal to.
      bodies: what each body is given: "x", "c" for the operands, "0" and "1" for their first rows, "l" for the first row
        along the last axis, "k" for a number, "b" for what the body before returns.
      active: whether ``_0`` has to be a small array of real inexact numbers, which is differentiated.
      cost: how often the plain expression runs a body of one operation, by the number n of elements of ``_0``: "1", "n", "nn", "nnn".
      forward: whether the body needs forward mode.
      reverse: whether the body needs reverse mode.
      no_reverse: that the result has no reverse mode.
      no_forward: that the result has no forward mode.
    """

    kind: str
    text: str
    plain: str
    bodies: tuple[str, ...] = ("xc",)
    active: bool = False
    cost: str = "1"
    forward: bool = False
    reverse: bool = False
    no_reverse: bool = False
    no_forward: bool = False
    rows: tuple[int, ...] = ()
    """Of which operands the first axis is that of rows."""


TOTAL = "lambda x: total(f0(x, _1))"
WHOLE = "lambda x: f0(x, _1)"
REAL = "lambda x: real(f0(x, _1))"

CALLS = [
    Entry("checkpoint", "checkpoint(f0)(_0, _1)", "f0(_0, _1)"),
    Entry("custom_jvp", "with_jvp(f0)(_0, _1)", "f0(_0, _1)", forward=True),
    Entry("custom_vjp", "with_vjp(f0)(_0, _1)", "f0(_0, _1)", reverse=True, no_forward=True),
    Entry("custom_vmap", "with_vmap(f0)(_0, _1)", "f0(_0, _1)"),
    Entry("preaccumulate", "preaccumulate(f0)(_0, _1)", "f0(_0, _1)", forward=True),
    Entry("vjp_from_jvp", "vjp_from_jvp(f0)(_0, _1)", "f0(_0, _1)", forward=True, no_forward=False),
    Entry("jvp_from_vjp", "jvp_from_vjp(f0)(_0, _1)", "f0(_0, _1)", reverse=True),
    Entry(
        "reference", "by_reference(f0, _0, _1)", "repeated(lambda k, x: like(f0(x, _1), x), strong(_0), 2)", cost="3"
    ),
]
JIT = Entry("jit", "jit(f0)(_0, _1)", "f0(_0, _1)")

CONTROL = [
    Entry(
        "cond", "lax.cond(truth(_1), lambda x, c: like(f0(x, c), x), lambda x, c: like(f1(x, c), x), strong(_0), _1)",
        "like(f0(_0, _1) if truth(_1) else f1(_0, _1), strong(_0))", bodies=("xc", "xc"),
    ),
    Entry(
        "switch", "lax.switch(choice(_1, 3), [lambda x: like(f0(x, _1), x), lambda x: like(f1(x, _1), x), lambda x: x], strong(_0))",
        "[lambda x: like(f0(x, _1), x), lambda x: like(f1(x, _1), x), lambda x: x][int(choice(_1, 3))](strong(_0))", bodies=("xc", "xc"),
    ),
    Entry(
        "fori_loop", "lax.fori_loop(0, 3, lambda k, x: like(f0(x, _1), x), strong(_0))",
        "repeated(lambda k, x: like(f0(x, _1), x), strong(_0), 3)", cost="3",
    ),
    Entry(
        "while_loop", "lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, like(f0(s[1], _1), s[1])), (0, strong(_0)))[1]",
        "repeated(lambda k, x: like(f0(x, _1), x), strong(_0), 2)", cost="3", no_reverse=True,
    ),
    Entry(
        "fori_loop of any length", "lax.fori_loop(0, choice(_1, 3), lambda k, x: like(f0(x, k), x), strong(_0))",
        "repeated(lambda k, x: like(f0(x, jnp.int32(k)), x), strong(_0), int(choice(_1, 3)))", bodies=("xk",), cost="3", no_reverse=True,
    ),
    *(
        Entry(
            "scan", f"lax.scan(lambda c, x: (like(f0(c, x), c), f1(c, x)), strong(_0), _1{options})[{which}]",
            f"scanned(lambda c, x: (like(f0(c, x), c), f1(c, x)), strong(_0), _1, {'reverse' in options}, {which})",
            bodies=("x1", "x1"), cost="3", rows=(1,),
        )
        for which, options in ((0, ""), (1, ""), (1, ", reverse=True"), (0, ", unroll=2"))
    ),
    Entry("map", "lax.map(lambda x: f0(x, _1), _0)", "mapped(lambda x: f0(x, _1), (0,), 0, _0)", bodies=("0c",), cost="3", rows=(0,)),
    Entry(
        "map", "lax.map(lambda x: f0(x, _1), _0, batch_size=2)", "mapped(lambda x: f0(x, _1), (0,), 0, _0)",
        bodies=("0c",), cost="3", rows=(0,),
    ),
    Entry(
        "custom_linear_solve", "solved(spread(_0, (3, 3), -1, 1, float32) / 4 + jnp.eye(3, dtype=float32), spread(_1, (3,), -1, 1, float32))",
        "jnp.linalg.solve(spread(_0, (3, 3), -1, 1, float32) / 4 + jnp.eye(3, dtype=float32), spread(_1, (3,), -1, 1, float32))", bodies=(),
    ),
    *(
        Entry(
            "associative_scan", f"lax.associative_scan({f}, spread(_0, {shape}, 0.2, 1.2, float32), reverse={reverse}, axis={axis})",
            f"accumulated({f}, spread(_0, {shape}, 0.2, 1.2, float32), {axis}, {reverse})", bodies=(),
        )
        for f, shape, axis, reverse in (
            ("jnp.multiply", (5,), 0, False), ("jnp.add", (2, 3), 1, True), ("jnp.maximum", (4, 2), 0, False),
            ("jnp.matmul", (3, 2, 2), 0, True), ("jnp.matmul", (5, 2, 2), 0, False), ("jnp.logaddexp", (3,), 0, True),
        )
    ),
]  # fmt: skip

MAPS = [
    Entry("vmap", "vmap(f0)(_0, like(_1, _0))", "mapped(f0, (0, 0), 0, _0, like(_1, _0))", bodies=("00",), cost="3", rows=(0,)),
    Entry("vmap", "vmap(f0, in_axes=(0, None))(_0, _1)", "mapped(f0, (0, None), 0, _0, _1)", bodies=("0c",), cost="3", rows=(0,)),
    Entry("vmap", "vmap(f0, in_axes=(None, 0))(_0, _1)", "mapped(f0, (None, 0), 0, _0, _1)", bodies=("x1",), cost="3", rows=(1,)),
    Entry(
        "vmap", "vmap(f0, in_axes=(None, 0), out_axes=-1)(_0, _1)", "mapped(f0, (None, 0), -1, _0, _1)", bodies=("x1",), cost="3", rows=(1,)
    ),
    Entry(
        "vmap", "vmap(f0, in_axes=(_0.ndim - 1, None), out_axes=-1)(_0, _1)", "mapped(f0, (_0.ndim - 1, None), -1, _0, _1)",
        bodies=("lc",), cost="3", rows=(0,),
    ),
]  # fmt: skip

FIRST = [
    Entry("grad", f"grad({TOTAL})(_0)", f"gradient({TOTAL}, _0)", active=True, cost="n", reverse=True),
    Entry("value_and_grad", f"value_and_grad({TOTAL})(_0)[1]", f"gradient({TOTAL}, _0)", active=True, cost="n", reverse=True),
    Entry(
        "grad", "grad(lambda x, c: total(f0(x, c)), argnums=(1, 0))(_0, _1 * 1.0)[1]", "gradient(lambda x: total(f0(x, _1 * 1.0)), _0)", active=True, cost="n",
        reverse=True,
    ),
    Entry("jvp", f"jvp({REAL}, (_0,), (like(_1, _0),))[1]", f"product_by_rows({REAL}, _0, like(_1, _0))", active=True, cost="n", forward=True),
    Entry("linearize", f"linearize({WHOLE}, _0)[1](like(_1, _0))", f"jvp({WHOLE}, (_0,), (like(_1, _0),))[1]", active=True, forward=True),
    Entry(
        "linearize", f"vmap(linearize({WHOLE}, _0)[1])(jnp.stack(basis(_0)))", f"jnp.stack([jvp({WHOLE}, (_0,), (e,))[1] for e in basis(_0)])",
        active=True, cost="n", forward=True,
    ),
    Entry(
        "vjp", f"vjp({REAL}, _0)[1](like(_1, real(f0(_0, _1))))[0]", f"product_by_columns({REAL}, _0, like(_1, real(f0(_0, _1))))", active=True,
        cost="n", reverse=True,
    ),
    Entry("jacfwd", f"jacfwd({REAL})(_0)", f"jacobian_rows({REAL}, _0)", active=True, cost="n", forward=True),
    Entry("jacrev", f"jacrev({REAL})(_0)", f"jacobian_columns({REAL}, _0)", active=True, cost="n", reverse=True),
    Entry(
        "linear_transpose", f"linear_transpose(linearize({REAL}, _0)[1], _0)(like(_1, real(f0(_0, _1))))[0]",
        f"product_by_columns({REAL}, _0, like(_1, real(f0(_0, _1))))", active=True, cost="n", reverse=True, forward=True,
    ),
    Entry("masked_zeros", f"masked_gradient({TOTAL}, _0)", f"gradient({TOTAL}, _0)", active=True, cost="n", reverse=True),
    Entry(
        "sparse_jacobian", f"sparse_jacobian({REAL})(_0).todense().ravel()", f"jacobian_columns({REAL}, _0).ravel()", active=True, cost="n",
        forward=True, reverse=True,
    ),
]  # fmt: skip

SECOND = [
    Entry("hessian", f"hessian({TOTAL})(_0)", f"second_derivatives({TOTAL}, _0)", active=True, cost="nn", reverse=True, forward=True),
    Entry("jacrev of grad", f"jacrev(grad({TOTAL}))(_0)", f"second_derivatives({TOTAL}, _0)", active=True, cost="nn", reverse=True),
    Entry("jacfwd twice", f"jacfwd(jacfwd({REAL}))(_0)", f"jacobian_columns(lambda x: jacobian_rows({REAL}, x), _0)", active=True, cost="nn", forward=True),
    Entry(
        "hvp", f"hvp({TOTAL}, (_0,), (like(_1, _0),))", f"jvp(lambda x: gradient({TOTAL}, x), (_0,), (like(_1, _0),))[1]", active=True,
        cost="nn", reverse=True, forward=True,
    ),
    Entry("laplacian", f"laplacian({TOTAL})(_0)", f"diagonal_sum(second_derivatives({TOTAL}, _0), _0.size)", active=True, cost="nn", forward=True),
    Entry(
        "forward_laplacian", f"forward_laplacian({WHOLE})(_0).laplacian",
        f"jnp.trace(jacobian_columns(lambda x: jacobian_columns({WHOLE}, x), _0).reshape(*f0(_0, _1).shape, _0.size, _0.size), axis1=-2, axis2=-1)",
        active=True, cost="nn", forward=True,
    ),
    Entry(
        "sparse_hessian", f"sparse_hessian({TOTAL})(_0).todense().ravel()", f"second_derivatives({TOTAL}, _0).ravel()", active=True, cost="nn",
        forward=True, reverse=True,
    ),
    *(
        Entry(
            "taylor", f"taylor({WHOLE}, _0, {n}, like(_1, _0))[{n}]", f"derivative_along({WHOLE}, _0, like(_1, _0), {n}) / {math.factorial(n)}",
            active=True, cost="nn", forward=True,
        )
        for n in (1, 2, 3)
    ),
    Entry(
        "jet", f"jet({WHOLE}, (_0,), ((like(_1, _0), jnp.cos(_0)),))[1][1]",
        f"derivative_along({WHOLE}, _0, like(_1, _0), 2) + jvp({WHOLE}, (_0,), (jnp.cos(_0),))[1]", active=True, cost="nn", forward=True,
    ),
    Entry("derivative_tensor", f"derivative_tensor({TOTAL}, _0, 2)", f"second_derivatives({TOTAL}, _0)", active=True, cost="nn", forward=True),
    Entry(
        "derivative_tensor", f"derivative_tensor({WHOLE}, _0, 3)",
        f"jacobian_columns(lambda x: jacobian_columns(lambda x: jacobian_columns({WHOLE}, x), x), _0)", active=True, cost="nnn", forward=True,
    ),
]  # fmt: skip


def _named(collective: str, stacked: str) -> Entry:
    return Entry(
        "named axis", f"vmap(lambda x: f1({collective.replace('X', 'f0(x, _1)')}, x), axis_name='i')(_0)",
        f"together(lambda x: f0(x, _1), lambda y: {stacked}, f1, _0)", bodies=("0c", "b0"), cost="3", rows=(0,),
    )  # fmt: skip


ALL = "jnp.broadcast_to({}, y.shape)"
COLLECTIVES = [
    ("lax.psum(X, 'i')", ALL.format("added(y)")),
    ("lax.pmean(X * 1.0, 'i')", ALL.format("jnp.mean(y * 1.0, 0)")),
    ("lax.pmax(real(X), 'i')", ALL.format("jnp.max(real(y), 0)")),
    ("lax.pmin(real(X), 'i')", ALL.format("jnp.min(real(y), 0)")),
    ("lax.all_gather(X, 'i')[-1]", ALL.format("y[-1]")),
    ("lax.ppermute(X, 'i', [(k, (k + 1) % len(_0)) for k in range(len(_0))])", "jnp.roll(y, 1, 0)"),
    ("X * lax.axis_index('i')", "y * jnp.arange(len(y)).reshape(-1, *[1] * (y.ndim - 1))"),
    ("lax.psum(X * X, 'i') * (lax.axis_index('i') - 1)", ALL.format("added(y * y)") + " * (jnp.arange(len(y), dtype=np.int32) - 1).reshape(-1, *[1] * (y.ndim - 1))"),
]  # fmt: skip
NAMED = [_named(*pair) for pair in COLLECTIVES]


def _sharded(collective: str, stacked: str) -> Entry:
    body = f"lambda x: f1({collective.replace('X', 'f0(x[0], _1)').replace('len(_0)', '8')}, x[0])[None]"
    return Entry(
        "shard_map", f"shard_map({body}, mesh=make_mesh((8,), ('i',)), in_specs=P('i'), out_specs=P('i'))(_0)",
        f"together(lambda x: f0(x, _1), lambda y: {stacked}, f1, _0)", bodies=("0c", "b0"), cost="8", rows=(0,),
    )  # fmt: skip


SHARDED = [_sharded(*pair) for pair in COLLECTIVES]
"""Over eight devices: ``_0`` has eight rows."""

FAMILIES: list[list[Entry]] = [CALLS, CONTROL, CONTROL, MAPS, MAPS, FIRST, FIRST, SECOND, SECOND, NAMED]
