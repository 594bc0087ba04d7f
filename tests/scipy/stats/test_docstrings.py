"""What docstrings of distributions say is true: their formulas are the functions, and every argument is described."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.special

from pullback.core.config import enable_x64
from pullback.scipy import stats
from pullback.scipy.stats.distributions import QUANTILES, Distribution
from tests.public.test_docs import described

DISTRIBUTIONS: dict[str, Distribution] = {
    name: getattr(stats, name).DISTRIBUTION
    for name in stats.__all__
    if inspect.ismodule(getattr(stats, name)) and hasattr(getattr(stats, name), "DISTRIBUTION")
}
NAMESPACE = {
    **{name: getattr(scipy.special, name) for name in scipy.special.__all__},
    **{
        name: getattr(np, name)
        for name in [
            "exp",
            "sqrt",
            "arctan",
            "arctan2",
            "sign",
            "cos",
            "sin",
            "abs",
            "pi",
            "log",
            "arcsin",
            "arcsinh",
            "where",
            "maximum",
        ]
    },
}


def values(distribution: Distribution) -> tuple[float, float, list[float], dict[str, float]]:
    """The variable, the probability and the parameters of the example, and the names in formulas."""
    x, q, *rest = map(float, distribution.example.split("; "))
    named = dict(zip((*distribution.parameters, "loc", "scale"), rest, strict=False))
    loc, scale = named.setdefault("loc", 0.0), named.setdefault("scale", 1.0)
    return x, q, rest, {**named, "i": x - loc, "z": (x - loc) / scale}


def evaluated(text: str, names: dict[str, float]) -> float:
    return float(eval(text, NAMESPACE, names))


def test_all_distributions_but_those_of_vectors_are_declared() -> None:
    modules = {name for name in stats.__all__ if inspect.ismodule(getattr(stats, name))}
    assert modules - DISTRIBUTIONS.keys() == {
        "clayton_copula", "dirichlet", "frank_copula", "gaussian_copula", "gumbel_copula", "invwishart",
        "matrix_normal", "multinomial", "multivariate_normal", "multivariate_t", "qmc", "t_copula", "vonmises_fisher",
        "wishart",
    }  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_formulas_are_the_functions(name: str) -> None:
    distribution, module = DISTRIBUTIONS[name], getattr(stats, name)
    x, _, rest, names = values(distribution)
    kinds = distribution.kinds()
    formulas = dict(zip((kinds[0], "cdf", "sf"), distribution.formulas, strict=True))
    with enable_x64():
        for kind, text in formulas.items():
            if text.startswith("the "):
                assert (name, kind) in {(n, k) for n in ("vonmises", "betabinom") for k in ("cdf", "sf")}
                continue
            divisor = names["scale"] if kind == "pdf" else 1.0
            assert float(getattr(module, kind)(x, *rest)) == pytest.approx(evaluated(text, names) / divisor, rel=1e-12)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_support_is_that_of_the_function(name: str) -> None:
    distribution, module = DISTRIBUTIONS[name], getattr(stats, name)
    *_, rest, names = values(distribution)
    words = distribution.support.replace("integers ", "").replace("``", "")
    variable = "i" if "k" in distribution.variable else "z"
    points = np.array([-3.0, -1.0, 0.0, 1.0, 2.0, 5.0, 7.0, 12.0])
    here = {**names, variable: points}
    known = {"all real z": True, "i = 0 and i = 1": np.isin(points, (0, 1))}
    inside = known[words] if words in known else np.all(conditions(words, here), 0)
    log_density = getattr(module, distribution.kinds()[1])(names["loc"] + names["scale"] * points, *rest)
    wrong = (np.asarray(log_density) > -math.inf) != inside
    assert not np.any(wrong & ~np.isin(points, ends(distribution, names)))


def conditions(words: str, names: dict[str, Any]) -> list[Any]:
    """The inequalities of ``a <= z <= b``."""
    sides = [eval(side, NAMESPACE, names) for side in re.split("[<>]=", words)]
    compare = np.greater_equal if ">=" in words else np.less_equal
    return [compare(a, b) for a, b in itertools.pairwise(sides)]


def ends(distribution: Distribution, names: dict[str, float]) -> list[float]:
    """The ends of the support of a density, where it may be zero."""
    return (
        []
        if distribution.variable == "k"
        else [float(end) for end in distribution.ends(*map(names.get, distribution.parameters))]
    )


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_arguments_are_described_and_typed(name: str) -> None:
    distribution, module = DISTRIBUTIONS[name], getattr(stats, name)
    for kind in distribution.kinds():
        function = getattr(module, kind)
        signature = inspect.signature(function)
        assert described(function.__doc__) == set(signature.parameters)
        assert {p.annotation for p in signature.parameters.values()} == {"ArrayLike"}
        assert signature.return_annotation == "Array"
        assert ("quantile" in function.__doc__ or "inverse" in function.__doc__) == (kind in QUANTILES)


def test_quantiles_of_integers_say_what_they_return_at_zero_and_one() -> None:
    """One below the least count, and the largest count, as docstrings say."""
    at_ends = np.array([0.0, 1.0, 1.5])
    np.testing.assert_array_equal(stats.binom.ppf(at_ends, 10, 0.3), [-1, 10, math.nan])
    np.testing.assert_array_equal(stats.binom.isf(at_ends, 10, 0.3), [10, -1, math.nan])
