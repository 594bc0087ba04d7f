"""The derivative rules of a function at a point, as maps of vectors of real coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.types import ZERO
from pullback.testing.differences import Point, Space, Vector, random_vector
from pullback.transforms.custom.custom_rules import CustomFunction
from pullback.transforms.custom.rule_adapter import RuleAdapter
from pullback.transforms.functions.arguments import argument_name, flatten_one, name_of, to_arrays


class Subject:
    """A function with rules, and the arguments of a call.

    Attributes:
      owner: the function.
      nondiff: the positions and values of the arguments that are not differentiated.
      args: the differentiated arguments, as arrays.
      leaves, in_tree: the leaves and the tree of ``args``.
      labels: the names of ``args``.
    """

    def __init__(self, owner: CustomFunction, args: tuple[Any, ...]) -> None:
        self.owner = owner
        count = len(args)
        excluded = {i % count for i in owner.nondiff_argnums if -count <= i < count}
        self.nondiff = tuple((i, args[i]) for i in sorted(excluded))
        positions = [i for i in range(count) if i not in excluded]
        leaves, self.in_tree = tree.flatten(tuple(args[i] for i in positions))
        self.leaves = to_arrays(leaves, "check_rule", owner.fun, args, positions)
        self.args = tree.unflatten(self.in_tree, self.leaves)
        self.labels = [argument_name(0, owner.fun, [None] * i + [0], [i]) for i in positions]

    def plain(self, *args: Any) -> Any:
        """Call the function for these values of the differentiated arguments, without its rules."""
        return self.owner.fun(*self._all(args))

    def with_rules(self, *args: Any) -> Any:
        """Call the function for these values of the differentiated arguments, with its rules."""
        return self.owner(*self._all(args))

    def _all(self, args: Sequence[Any]) -> list[Any]:
        every = list(args)
        for i, x in self.nondiff:
            every.insert(i, x)
        return every


class Rule:
    """A rule at a point, as a map from vectors of coordinates to vectors of coordinates.

    Args:
      subject: the function.
      point: the point.
      leaves: the arguments with their weak types; by default the arguments of ``point``, which have none.
    """

    forward: bool

    def __init__(self, subject: Subject, point: Point, leaves: Sequence[Any] | None = None) -> None:
        self.point = point
        self.leaves = tree.leaves(point.inputs.displaced(np.zeros(point.inputs.size))) if leaves is None else leaves
        self.application = RuleAdapter(subject.owner, subject.nondiff, subject.in_tree)
        self.application.out_tree = flatten_one(point.out)[1]
        self.from_space, self.to_space = (point.inputs, point.outputs)[:: 1 if self.forward else -1]

    @staticmethod
    def name_in(owner: CustomFunction, value: bool = False) -> str:
        """Return the name and line of this kind of rule of the function ``owner``, for messages.

        With ``value``, name the rule that computes the results instead: of a ``custom_vjp`` function, the forward rule.
        """
        raise NotImplementedError

    def results(self) -> list[Any]:
        """Run the whole rule, and return the results of the function that it computed."""
        raise NotImplementedError

    def __call__(self, vector: Vector, nonzero: Sequence[bool] | None = None) -> Vector:
        """Apply the rule to a vector; leaves that are not ``nonzero`` are passed as symbolic zeros."""
        raise NotImplementedError

    def zero_cases(self) -> Iterator[tuple[str, Callable[[], Vector], Vector]]:
        """Yield calls of the rule in which all tangents or cotangents except one leaf's are symbolic zeros.

        Each is a tuple of a description, the call, and its expected result.
        """
        vector = random_vector(self.from_space.size, 7)
        kind = "tangent" if self.forward else "cotangent"
        for i, name in _inexact_leaves(self.from_space, "argument" if self.forward else "out"):
            only = [j == i for j in range(len(self.from_space.leaves))]
            expected = self(vector * self.from_space.indicator(i))
            yield f"where only {name} has a {kind} that is not a symbolic zero", partial(self, vector, only), expected

    def _linear(self, vector: Vector, nonzero: Sequence[bool] | None) -> list[Any]:
        """Convert a vector of coordinates to a flat list of tangents or, if the rule is a backward rule, of cotangents.

        Symbolic zeros stand for integer leaves, and for leaves whose entry in ``nonzero`` is False.
        """
        leaves = tree.leaves(self.from_space.tangents(vector, dual=not self.forward))
        mask = nonzero or [True] * len(leaves)
        return [t if dtypes.is_inexact(t.dtype) and n else ZERO for t, n in zip(leaves, mask, strict=True)]

    def _vector(self, values: Sequence[Any]) -> Vector:
        """Return the coordinates of a flat list of tangents or, if the rule is a backward rule, of cotangents."""
        pairs = zip(self.to_space.leaves, values, strict=True)
        return self.to_space.vector([np.zeros(x.shape) if t is ZERO else t for x, t in pairs], dual=not self.forward)


class JVPRule(Rule):
    """The rule of forward mode: from tangents of the arguments to tangents of the results."""

    forward = True

    @staticmethod
    def name_in(owner: CustomFunction, value: bool = False) -> str:
        by_argument = "defjvps" in getattr(owner.jvp, "__qualname__", "")
        return "jvp rule given by defjvps" if by_argument else f"jvp rule {name_of(owner.jvp)}"

    def results(self) -> list[Any]:
        return self._run(random_vector(self.from_space.size, 5), None)[0]

    def __call__(self, vector: Vector, nonzero: Sequence[bool] | None = None) -> Vector:
        return self._vector(self._run(vector, nonzero)[1])

    def _run(self, vector: Vector, nonzero: Sequence[bool] | None) -> tuple[list[Any], list[Any]]:
        return self.application.jvp(self.leaves, self._linear(vector, nonzero))


class VJPRule(Rule):
    """The rule of reverse mode: from cotangents of the results to cotangents of the arguments."""

    forward = False

    @staticmethod
    def name_in(owner: CustomFunction, value: bool = False) -> str:
        return f"forward rule {name_of(owner.fwd)}" if value else f"backward rule {name_of(owner.bwd)}"

    def results(self) -> list[Any]:
        self(random_vector(self.from_space.size, 5))
        perturbed = [dtypes.is_inexact(x.dtype) for x in self.leaves]
        return self.application.forward(self.leaves, perturbed)[0]

    def __call__(self, vector: Vector, nonzero: Sequence[bool] | None = None) -> Vector:
        return self._pull(vector, nonzero, [True] * len(self.leaves))

    def zero_cases(self) -> Iterator[tuple[str, Callable[[], Vector], Vector]]:
        yield from super().zero_cases()
        vector = random_vector(self.from_space.size, 7)
        full = self(vector)
        for i, name in _inexact_leaves(self.to_space, "argument"):
            only = [j == i for j in range(len(self.leaves))]
            call = partial(self._pull, vector, None, only)
            yield f"where derivatives are wanted by {name} only", call, full * self.to_space.indicator(i)

    def _pull(self, vector: Vector, nonzero: Sequence[bool] | None, wanted: Sequence[bool]) -> Vector:
        perturbed = [dtypes.is_inexact(x.dtype) and w for x, w in zip(self.leaves, wanted, strict=True)]
        _, residuals, backward = self.application.forward(self.leaves, perturbed)
        cts = zip(self.from_space.leaves, self._linear(vector, nonzero), strict=True)
        cotangents = [ct for x, ct in cts if dtypes.is_inexact(x.dtype)]
        results = iter(backward.transpose(residuals, cotangents))
        return self._vector([next(results) if p else ZERO for p in perturbed])


def _inexact_leaves(space: Space, root: str) -> list[tuple[int, str]]:
    return [(i, space.leaf_name(i, root)) for i, x in enumerate(space.leaves) if dtypes.is_inexact(x.dtype)]
