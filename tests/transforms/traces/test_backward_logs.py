"""What backward rules log, out of programs of every kind."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ad, config, custom_gradient, custom_vjp, grad, jit, lax, make_jaxpr, tree, typeof, vjp, vmap
from pullback.core.errors import CustomRuleError
from pullback.experimental.hijax import VJPHiPrimitive
from pullback.transforms.traces.backward_logs import CondSum

XS = jnp.arange(1.0, 4.0)


def by_custom_vjp(tag: str) -> Callable[[Any], Any]:
    f = custom_vjp(lambda x: x**2)
    f.defvjp_with_logs(lambda x: (x**2, x), lambda x, ct: ((2 * x * ct,), {tag: {"x": x, "ct": ct}}))
    return f


def by_custom_gradient(tag: str) -> Callable[[Any], Any]:
    return custom_gradient(with_logs=True)(
        lambda x: (x**2, lambda ct: (2 * x * ct, {tag: {"x": x, "ct": ct}})),
    )


class Square(VJPHiPrimitive):
    def __init__(self, aval: Any, tag: str) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, {"tag": tag}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x**2

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), (), True, {"x": x}

    def vjp_bwd(self, res: Any, more: Any, ct: Any, x: Any) -> Any:  # type: ignore[override]
        x.accum(2 * more["x"] * ct)
        return {self.tag: {"x": more["x"], "ct": ct}}  # type: ignore[attr-defined]

    def batch_dim_rule(self, axis: Any, dims: Any) -> Any:
        return dims[0]


def by_hijax(tag: str) -> Callable[[Any], Any]:
    return lambda x: Square(typeof(x), tag)(x)


MAKERS = {"custom_vjp": by_custom_vjp, "custom_gradient": by_custom_gradient, "hijax": by_hijax}


def same(a: Any, b: Any) -> None:
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def in_shard_map(f: Any) -> Any:
    mesh = pullback.make_mesh((1,), ("i",))
    return pullback.shard_map(f, mesh=mesh, in_specs=pullback.P("i"), out_specs=pullback.P("i"))


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda f: f,
    "jit": jit,
    "nested jit": lambda f: jit(lambda x: jit(f)(x)),
    "checkpoint": lambda f: pullback.checkpoint(f),
    "jit of checkpoint": lambda f: jit(pullback.checkpoint(f)),
    "scan": lambda f: lambda xs: lax.scan(lambda c, x: (c, f(x)), 0.0, xs)[1],
    "reversed scan in jit": lambda f: jit(lambda xs: lax.scan(lambda c, x: (c, f(x)), 0.0, xs, reverse=True)[1]),
    "vmap": vmap,
    "jit of vmap": lambda f: jit(vmap(f)),
    "map": lambda f: lambda xs: lax.map(f, xs),
    "shard_map": in_shard_map,
}


@pytest.mark.parametrize("how", WRAPPERS)
@pytest.mark.parametrize("maker", MAKERS)
def test_logs_leave_every_kind_of_program(maker: str, how: str) -> None:
    f = WRAPPERS[how](MAKERS[maker]("sq"))
    weights = jnp.asarray([1.0, 10.0, 100.0])
    expected = ((2 * XS * weights,), {"sq": {"ct": weights, "x": XS}})
    _, pull = vjp(f, XS)
    same(pull.with_logs(weights), expected)
    same(pull(weights), expected[0])
    same(jit(lambda x, ct: vjp(f, x)[1].with_logs(ct))(XS, weights), expected)
    same(pickle.loads(pickle.dumps(vjp(jnp.sin, XS)[1].with_logs))(weights)[1], {})
    program = str(make_jaxpr(lambda x, ct: vjp(f, x)[1](ct))(XS, weights))
    assert "backward_log" not in program


@pytest.mark.parametrize("maker", MAKERS)
def test_pullbacks_with_logs_are_mapped(maker: str) -> None:
    f = jit(MAKERS[maker]("sq"))
    found = vmap(lambda x, ct: vjp(f, x)[1].with_logs(ct))(XS, XS)
    same(found, ((2 * XS * XS,), {"sq": {"ct": XS, "x": XS}}))


def test_the_rule_that_runs_last_counts() -> None:
    f, g = by_custom_vjp("f"), by_hijax("g")
    same(vjp(lambda x: g(f(x)), 2.0)[1].with_logs(1.0)[1], {"f": {"ct": 8.0, "x": 2.0}, "g": {"ct": 1.0, "x": 4.0}})
    same(vjp(jit(lambda x: f(f(x))), 2.0)[1].with_logs(1.0)[1], {"f": {"ct": 8.0, "x": 2.0}})


def test_branches_have_slots() -> None:
    f, g = by_custom_vjp("f"), by_custom_vjp("g")

    def of_cond(x: Any) -> Any:
        inner = lambda x: lax.cond(x > 10, lambda x: g(x) * 2.0, lambda x: x, x)
        return lax.cond(x > 0, f, lambda x: jnp.sum(f(jnp.stack([x, x]))) + inner(x), x)

    _, pull = vjp(jit(of_cond), 3.0)
    logs = pull.with_logs(1.0)[1]
    assert logs.keys() == {"f", "g"}
    assert isinstance(logs["f"], CondSum)
    assert int(logs["f"].index) == 1
    same(logs["f"].branches, ({"ct": np.zeros(2), "x": np.zeros(2)}, {"ct": 1.0, "x": 3.0}))
    assert logs["g"].branches[1] is None
    inner = logs["g"].branches[0]
    assert inner.branches[0] is None
    assert "CondSum(index=Array(" in repr(logs)
    logs = vjp(jit(of_cond), -3.0)[1].with_logs(1.0)[1]
    same(logs["f"].branches, ({"ct": np.ones(2), "x": np.full(2, -3.0)}, {"ct": 0.0, "x": 0.0}))
    same(logs["g"].branches[0].branches, (None, {"ct": 0.0, "x": 0.0}))


def test_destinations_and_logs() -> None:
    f = by_hijax("sq")
    _, pull = vjp(lambda x, y: f(x) * y, 3.0, 2.0)
    (x, y), logs = pull.with_logs.with_refs(ad.GradValue(), ad.DontWant())(1.0)
    same(x, 12.0)
    assert isinstance(y, ad.DidntWant)
    same(logs, {"sq": {"x": 3.0, "ct": 2.0}})
    total = pullback.new_ref(0.0)
    assert pull.with_refs(total, ad.DontWant()).with_logs(1.0)[1].keys() == {"sq"}
    same(total[...], 12.0)


def test_pullbacks_within_rules_log_for_nobody() -> None:
    inner, seen = by_custom_vjp("inner"), []
    f = custom_vjp(inner)

    def bwd(x: Any, ct: Any) -> Any:
        seen.append(config.backward_logs)
        return (grad(inner)(x) * ct + 0 * vjp(jit(inner), x)[1](ct)[0],), {"outer": ct}

    f.defvjp_with_logs(lambda x: (inner(x), x), bwd)
    same(vjp(f, 3.0)[1].with_logs(1.0), ((6.0,), {"outer": 1.0}))
    same(vjp(f, 3.0)[1](1.0), (6.0,))
    assert seen == [True, False]
    assert not config.backward_logs


def test_a_rule_that_is_set_again_logs_nothing() -> None:
    f = by_custom_vjp("f")
    f.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * ct,))  # type: ignore[attr-defined]
    same(vjp(f, 3.0)[1].with_logs(1.0), ((6.0,), {}))
    g = custom_vjp(lambda x: x)
    g.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), None))
    same(vjp(g, 3.0)[1].with_logs(1.0), ((1.0,), {}))


class Wrong(Square):
    def vjp_bwd(self, res: Any, more: Any, ct: Any, x: Any) -> Any:
        return [ct]


class Mixed(Square):
    vjp_bwd = VJPHiPrimitive.vjp_bwd  # type: ignore[assignment]

    def vjp_bwd_retval(self, res: Any, ct: Any) -> Any:
        return (ct,)


def _with_bwd(bwd: Callable[..., Any]) -> Any:
    f = custom_vjp(lambda x: x)
    f.defvjp_with_logs(lambda x: (x, None), bwd)
    return f


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (_with_bwd(lambda _, ct: (ct,)), r"must produce a pair \(cotangents, logs\)"),
        (_with_bwd(lambda _, ct: ((ct,), [1.0])), "must be None or a dict"),
        (custom_gradient(with_logs=True)(lambda x: (x, lambda ct: ct)), "must produce a pair"),
        (lambda x: Wrong(typeof(x), "w")(x), r"backward-pass log of vjp_bwd of Wrong.* must be None or a dict"),
        (lambda x: Mixed(typeof(x), "m")(x), "structured residuals"),
    ],
)
def test_rules_that_return_something_else(f: Any, message: str) -> None:
    with pytest.raises(CustomRuleError, match=message):
        grad(f)(1.0)
