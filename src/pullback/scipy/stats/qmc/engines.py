"""SciPy's engines of quasi-random points, which count the points that they have drawn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, KeyArray, as_array
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import operand, size_of
from pullback.primitives import elementwise as ops
from pullback.random import keys
from pullback.random.arguments import float_dtype
from pullback.scipy.arguments import known
from pullback.scipy.stats.qmc import sequences
from pullback.scipy.stats.qmc.measures import scale

__all__ = ["Halton", "LatinHypercube", "PoissonDisk", "QMCEngine", "Sobol"]


def key_of(name: str, rng: Any, seed: Any) -> Any:
    """Return the key that ``rng`` (or ``seed``, SciPy's older name of it) is or seeds, or None if both are None."""
    if rng is not None and seed is not None:
        raise ArgumentError(f"{name}: pass rng or seed, not both")
    given = seed if rng is None else rng
    if given is None:
        return None
    if isinstance(given, (int, np.integer)):
        return keys.key(int(given))
    if isinstance(given, (np.random.Generator, np.random.RandomState)):
        raise UnsupportedArgumentError(
            f"{name}: rng must be a key or an int, got NumPy's {type(given).__name__}; pass random.key(seed)"
        )
    return given


class QMCEngine:
    """A source of quasi-random points in the unit cube, which counts the points that it has drawn.

    :class:`Sobol`, :class:`Halton`, :class:`LatinHypercube` and :class:`PoissonDisk` are engines. A new one is a
    subclass with the method ``_random(n)``.

    Args:
      d: the dimension, positive.
      optimization: None; SciPy's optimisations of points are refused.
      rng: a key, or an int from which one is made.
      seed: another name of ``rng``.

    Attributes:
      d: the dimension.
      num_generated: how many points were drawn.

    Raises:
      ArgumentError: a dimension that is not positive (a ValueError).
      UnsupportedArgumentError: an optimisation, or a generator of NumPy (a NotImplementedError).

    As ``scipy.stats.qmc.QMCEngine``.

    >>> from pullback.scipy.stats import qmc
    >>> isinstance(qmc.Halton(2, rng=0), qmc.QMCEngine)
    True
    """

    def __init__(
        self, d: int, *, optimization: str | None = None, rng: KeyArray | int | None = None,
        seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.d = size_of(name, "d", d)
        if self.d < 1:
            raise ArgumentError(f"{name}: d must be positive, got {d}")
        if optimization is not None:
            raise UnsupportedArgumentError(f"{name}: optimization={optimization!r} is not supported; pass None")
        self._key = key_of(name, rng, seed)
        self.num_generated = 0

    def _wanted_key(self, why: str) -> Any:
        if self._key is None:
            raise ArgumentError(
                f"{type(self).__name__}: {why} needs a key, and draws the same points for the same one: pass "
                "rng=random.key(0), or an int"
            )
        return self._key

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, num_generated={self.num_generated})"

    def _random(self, n: int) -> Array:
        raise UnsupportedArgumentError(f"{type(self).__name__} has no method _random, which draws points")

    def random(self, n: int = 1, *, workers: int = 1) -> Array:
        """Draw the next points.

        Args:
          n: the number of points.
          workers: SciPy's number of threads, which has no effect.

        Returns:
          An array of shape (n, d) of the default float dtype, of numbers in [0, 1).

        Raises:
          ArgumentError: a number of points outside its range (a ValueError).
        """
        del workers
        count = size_of(type(self).__name__, "n", n)
        points = self._random(count)
        self.num_generated += count
        return points

    def integers(
        self, l_bounds: ArrayLike, *, u_bounds: ArrayLike | None = None, n: int = 1, endpoint: bool = False,
        workers: int = 1,
    ) -> Array:  # fmt: skip
        """Draw the next points as integers between bounds.

        Args:
          l_bounds: the least integers; or if ``u_bounds`` is None, the upper bounds, and the least are zero.
          u_bounds: the upper bounds.
          n: the number of points.
          endpoint: whether the upper bounds are included.
          workers: SciPy's number of threads, which has no effect.

        Returns:
          An array of shape (n, d) of integers.

        Raises:
          ArgumentError: bounds that are not integers (a ValueError).
        """
        name = type(self).__name__
        low, high = (0, l_bounds) if u_bounds is None else (l_bounds, u_bounds)
        ends = [
            operand(f"{name}.integers: {what}", pnp.asarray(x) if isinstance(x, (list, tuple)) else x)
            for what, x in (("l_bounds", low), ("u_bounds", high))
        ]
        if not all(dtypes.is_integer(x.dtype) for x in ends):
            raise ArgumentError(f"{name}.integers: l_bounds and u_bounds must be integers, got {low!r} and {high!r}")
        upper = ops.add(ends[1], 1) if endpoint else ends[1]
        points = scale(self.random(n, workers=workers), pnp.atleast_1d(ends[0]), pnp.atleast_1d(upper))
        whole = ops.convert_element_type(ops.floor_p.bind(points), dtypes.default_int())
        return pnp.minimum(whole, ops.convert_element_type(ops.sub(upper, 1), whole.dtype))

    def reset(self) -> QMCEngine:
        """Begin again with the first point.

        Returns:
          The engine.
        """
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> QMCEngine:
        """Skip points.

        Args:
          n: how many points to skip.

        Returns:
          The engine.

        Raises:
          ArgumentError: ``n`` is no integer that is not negative (a ValueError).
        """
        self.num_generated += size_of(type(self).__name__, "n", n)
        return self


class Sobol(QMCEngine):
    """Points of Sobol's sequence; :func:`sobol` is the function of a key.

    Args:
      d: the dimension, from 1 to 21,201.
      scramble: whether points are scrambled, which needs ``rng``.
      bits: the number of binary digits of a coordinate, from 1 to 64; 30 by default.
      rng: a key, or an int from which one is made.
      optimization: None; SciPy's optimisations of points are refused.
      seed: another name of ``rng``.

    Raises:
      ArgumentError: an argument outside its range, or no key to scramble by (a ValueError).
      UnsupportedArgumentError: an optimisation, or a generator of NumPy (a NotImplementedError).

    As ``scipy.stats.qmc.Sobol``: bit for bit if ``scramble`` is false.

    >>> from pullback.scipy.stats import qmc
    >>> engine = qmc.Sobol(1, scramble=False)
    >>> print(engine.random_base2(1)[:, 0], engine.random(2)[:, 0])
    [0.  0.5] [0.75 0.25]
    """

    def __init__(
        self, d: int, *, scramble: bool = True, bits: int | None = None, rng: KeyArray | int | None = None,
        optimization: str | None = None, seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        self.scramble, self.bits = bool(scramble), 30 if bits is None else bits
        sequences.check_sobol("Sobol", self.d, self.bits)
        self.maxn = 2**self.bits
        if self.scramble:
            self._scrambled = sequences.scrambled(self._wanted_key("scramble=True"), self.d, self.bits)

    def _random(self, n: int) -> Array:
        if self.num_generated + n > self.maxn:
            raise ArgumentError(
                f"Sobol: a sequence of {self.bits} bits has 2**{self.bits} points; {self.num_generated} were drawn, "
                f"and {n} more were asked for; pass more bits"
            )
        if self.num_generated == 0 and n & (n - 1):
            warnings.warn(f"Sobol: {n} points are not balanced: the first ones should be a power of two", stacklevel=3)
        if not self.scramble:
            return sequences.sobol(None, n, self.d, start=self.num_generated, bits=self.bits)
        dtype = dtypes.default_float()
        return sequences.drawn(*self._scrambled, self.num_generated, n, self.bits, dtype)

    def random_base2(self, m: int) -> Array:
        """Draw the next ``2**m`` points.

        Args:
          m: the exponent.

        Returns:
          An array of shape ``(2**m, d)``.

        Raises:
          ArgumentError: the number of all points would not be a power of two (a ValueError).
        """
        n = 2 ** size_of("Sobol", "m", m)
        total = self.num_generated + n
        if total & (total - 1):
            raise ArgumentError(
                f"Sobol: {self.num_generated} points were drawn, and with 2**{m} more their number is {total}, not a "
                "power of two; call random instead"
            )
        return self.random(n)


class Halton(QMCEngine):
    """Points of Halton's sequence; :func:`halton` is the function of a key.

    Args:
      d: the dimension, positive.
      scramble: whether digits are permuted, which needs ``rng``.
      optimization: None; SciPy's optimisations of points are refused.
      rng: a key, or an int from which one is made.
      seed: another name of ``rng``.

    Raises:
      ArgumentError: an argument outside its range, or no key to scramble by (a ValueError).
      UnsupportedArgumentError: an optimisation, or a generator of NumPy (a NotImplementedError).

    As ``scipy.stats.qmc.Halton``: bit for bit if ``scramble`` is false.

    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.Halton(2, scramble=False).fast_forward(1).random(1))
    [[0.5        0.33333334]]
    """

    def __init__(
        self, d: int, *, scramble: bool = True, optimization: str | None = None, rng: KeyArray | int | None = None,
        seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        self.scramble = bool(scramble)
        self._by = self._wanted_key("scramble=True") if self.scramble else None

    def _random(self, n: int) -> Array:
        return sequences.halton(self._by, n, self.d, start=self.num_generated)


class LatinHypercube(QMCEngine):
    """Points of random Latin hypercubes, one for each call; :func:`latin_hypercube` is the function of a key.

    Args:
      d: the dimension, positive.
      scramble: whether a point is anywhere in its interval; otherwise it is in the middle.
      strength: 1; or 2, for which the number of points is the square of a prime.
      optimization: None; SciPy's optimisations of points are refused.
      rng: a key, or an int from which one is made; it is needed.
      seed: another name of ``rng``.

    Raises:
      ArgumentError: an argument outside its range, or no key (a ValueError).
      UnsupportedArgumentError: an optimisation, or a generator of NumPy (a NotImplementedError).

    As ``scipy.stats.qmc.LatinHypercube``.

    >>> from pullback.scipy.stats import qmc
    >>> print((qmc.LatinHypercube(1, rng=0).random(4).sort(0)[:, 0] * 4).astype(int))
    [0 1 2 3]
    """

    def __init__(
        self, d: int, *, scramble: bool = True, strength: int = 1, optimization: str | None = None,
        rng: KeyArray | int | None = None, seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        if strength not in (1, 2):
            raise ArgumentError(f"LatinHypercube: strength must be 1 or 2, got {strength!r}")
        self.scramble, self.strength, self._by = bool(scramble), strength, self._wanted_key("a random order")

    def _random(self, n: int) -> Array:
        key = keys.fold_in(self._by, self.num_generated)
        return sequences.latin_hypercube(key, n, self.d, scramble=self.scramble, strength=self.strength)


class PoissonDisk(QMCEngine):
    """Random points that keep a distance from one another, from SciPy on the host.

    Args:
      d: the dimension, positive.
      radius: the least distance of points.
      hypersphere: where candidates are, ``"volume"`` or ``"surface"`` of a sphere around a point.
      ncandidates: how many candidates are tried for each point.
      optimization: None; SciPy's optimisations of points are refused.
      rng: a key, or an int from which one is made; it is needed, and may not be traced.
      l_bounds, u_bounds: the ends of the coordinates; 0 and 1 by default.
      seed: another name of ``rng``.

    Raises:
      ArgumentError: an argument outside its range, or no key (a ValueError).
      UnsupportedArgumentError: a traced key, an optimisation, or a generator of NumPy (a NotImplementedError).

    Source: R. Bridson, *Fast Poisson disk sampling in arbitrary dimensions* (2007). As
    ``scipy.stats.qmc.PoissonDisk``, which draws the points from a generator that the key seeds.

    >>> from pullback.scipy.stats import qmc
    >>> engine = qmc.PoissonDisk(2, radius=0.2, rng=0)
    >>> float(qmc.geometric_discrepancy(engine.random(8))) >= 0.2
    True
    """

    def __init__(
        self, d: int, *, radius: float = 0.05, hypersphere: str = "volume", ncandidates: int = 30,
        optimization: str | None = None, rng: KeyArray | int | None = None, l_bounds: ArrayLike | None = None,
        u_bounds: ArrayLike | None = None, seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        words = known(keys.key_data(self._wanted_key("a random order")))
        if words is None:
            raise UnsupportedArgumentError("PoissonDisk: the key must be concrete, but it is traced")
        if not is_listed(hypersphere, ("volume", "surface")):
            raise ArgumentError(f"PoissonDisk: hypersphere must be 'volume' or 'surface', got {hypersphere!r}")
        if not radius > 0:
            raise ArgumentError(f"PoissonDisk: radius must be positive, got {radius!r}")
        bounds = {name: np.asarray(x) for name, x in (("l_bounds", l_bounds), ("u_bounds", u_bounds)) if x is not None}
        self._seed = [int(w) for w in words.ravel()]
        self._options: dict[str, Any] = {
            "d": self.d, "radius": radius, "hypersphere": hypersphere, "ncandidates": ncandidates, **bounds,
        }  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        theirs = imported("scipy.stats").qmc.PoissonDisk
        self._engine = theirs(rng=np.random.default_rng(self._seed), **self._options)

    def _random(self, n: int) -> Array:
        return as_array(np.asarray(self._engine.random(n)).astype(float_dtype("PoissonDisk", None)))

    def fill_space(self) -> Array:
        """Draw points until there is room for no other.

        Returns:
          An array of shape (n, d), where n is how many there are.
        """
        points = self._engine.fill_space()
        self.num_generated += len(points)
        return as_array(np.asarray(points).astype(float_dtype("PoissonDisk", None)))

    def reset(self) -> QMCEngine:
        """Begin again with the first point.

        Returns:
          The engine.
        """
        self._begin()
        return super().reset()

    def fast_forward(self, n: int) -> QMCEngine:
        """Skip points.

        Args:
          n: how many points to skip.

        Returns:
          The engine.

        Raises:
          ArgumentError: ``n`` is no integer that is not negative (a ValueError).
        """
        self.random(n)
        return self
