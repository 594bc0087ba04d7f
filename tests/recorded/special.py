"""Cases of special functions: each element of the operands is one."""

from importlib import import_module
from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

COUNT = 10


def case(name: str, *operands: Any, what: str = "", elementwise: bool = True, **options: Any) -> Case:
    """A call with arrays of double precision: JAX's own errors in single precision are a thousand roundings."""

    def run(lib: Any, *xs: Any) -> Any:
        return getattr(import_module(f"{lib.__name__}.scipy.special"), name)(*xs, **options)

    wide = tuple(x.astype(np.float64) if x.dtype == np.float32 else x for x in operands)
    return Case(f"{name}{' ' + what if what else ''}", run, wide, x64=True, elementwise=elementwise)


def between(lo: float, hi: float, seed: int = 0) -> Any:
    return real(COUNT, lo=lo, hi=hi, seed=seed)


def plane(scale: float) -> Any:
    return (between(-scale, scale) + 1j * between(0.2, scale, 1)).astype(np.complex128)


WHOLE = np.arange(COUNT) % 5
ONE = {
    "dawsn": (-3, 9), "erfcx": (-2, 9), "exp1": (0.1, 9), "expi": (0.5, 9), "factorial": (0, 9), "fresnel": (-4, 4),
    "gamma": (0.2, 9), "gammasgn": (-3.9, 3), "i0": (-5, 5), "i0e": (-5, 5), "i1": (-5, 5), "i1e": (-5, 5),
    "loggamma": (0.2, 9), "ndtri": (0.01, 0.99), "sici": (-9, 9), "spence": (0.05, 6), "wofz": (-3, 3),
}  # fmt: skip
TWO = {
    "beta": ((0.3, 4), (0.4, 5)), "betaln": ((0.3, 9), (0.4, 20)), "boxcox": ((0.3, 3), (0.2, 2)),
    "boxcox1p": ((-0.5, 3), (0.2, 2)), "comb": ((5, 9), (1, 4)), "gammainc": ((0.3, 4), (0.2, 5)),
    "gammaincc": ((0.3, 4), (0.2, 5)), "kl_div": ((0.1, 2), (0.3, 3)), "owens_t": ((-2, 2), (-3, 3)),
    "poch": ((0.5, 4), (0.4, 2)), "rel_entr": ((0.1, 2), (0.3, 3)), "zeta": ((1.5, 6), (0.5, 4)),
}  # fmt: skip


def bernoulli(n: int) -> Case:
    def run(lib: Any, x: Any) -> Any:
        return import_module(f"{lib.__name__}.scipy.special").bernoulli(n) + x

    return Case(f"bernoulli {n}", run, (np.float32(0),))  # the sums of JAX are right to 6 digits in both precisions


CASES = [
    *(case(name, between(*bounds)) for name, bounds in ONE.items()),
    *(case(name, plane(2), what="complex") for name in ("wofz", "erfcx", "gamma", "loggamma")),
    *(case(name, between(*first), between(*second, 1)) for name, (first, second) in TWO.items()),
    case("comb", between(5, 9), between(1, 4, 1), what="with repetition", repetition=True),
    case("betainc", between(0.5, 3), between(0.5, 3, 1), between(0.1, 0.9, 2)),
    case("expn", WHOLE, between(0.3, 6)),
    case("hyp1f1", between(0.5, 2), between(1, 3, 1), between(-4, 4, 2)),
    case("hyp2f1", between(0.5, 2), between(0.5, 2, 1), between(2.5, 4, 2), between(-0.8, 0.8, 3)),
    case("sph_harm_y", WHOLE, np.minimum(WHOLE, np.arange(COUNT) % 3) * (-1) ** np.arange(COUNT), between(0.3, 2),
         between(0, 3, 1), n_max=5),
    *(case("multigammaln", np.float32(d + 0.5 * k), what=f"{d} {k}", elementwise=False, d=d)
      for d in (1, 2, 3, 5) for k in (1, 2, 3)),
    *(bernoulli(n) for n in (0, 1, 2, 3, 4, 5, 8, 13, 20, 30)),
]  # fmt: skip
