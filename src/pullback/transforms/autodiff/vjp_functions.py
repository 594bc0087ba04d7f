"""Derivatives as values: what ``vjp`` and ``linearize`` return, functions that are pytrees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.core import tree
from pullback.core.array import Array, ArrayImpl, typeof
from pullback.core.axes import reducing
from pullback.core.config import config
from pullback.core.errors import TangentMismatchError
from pullback.core.linear import LinearProgram
from pullback.core.linear_data import join, split
from pullback.core.lists import scatter_where, select
from pullback.core.refs import AbstractRef
from pullback.core.runtime import runtime
from pullback.core.trace import Tracer, state
from pullback.core.types import ZERO, AbstractValue, ShapedArray
from pullback.primitives.elementwise import add_any
from pullback.primitives.explicit_shardings import like
from pullback.primitives.varying import vary
from pullback.transforms.autodiff.gradient_refs import DontWant, GradValue, delivered, destinations
from pullback.transforms.autodiff.kept_arguments import (
    Origins,
    kept_arguments,
    origins_of,
    with_arguments,
    without_arguments,
)
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import (
    dense,
    to_tangent,
    unflatten_one,
)
from pullback.transforms.traces.backward_logs import logging, with_logs


def transposed(
    program: LinearProgram, cts: Sequence[Any], outs: Sequence[Any], names: Sequence[Any] = (), consume: bool = False
) -> list[Any]:
    """Transpose the linear program of a derivative; return the cotangents of its inputs.

    Args:
      program: the linear program.
      cts: the cotangents of the results.
      outs: the results of the function, or their types.
      names: the names of mapped axes over which to sum the cotangents of values that do not vary along them.
      consume: whether the transposition may destroy the program, to free each residual after its last use.
    """
    if config.backward_logs:  # a rule that logs differentiates in its turn
        with logging(False):
            return transposed(program, cts, outs, names, consume)
    return _transposed(program, cts, outs, names, consume)


def _transposed(
    program: LinearProgram, cts: Sequence[Any], outs: Sequence[Any], names: Sequence[Any], consume: bool = False
) -> list[Any]:
    """Transpose a linear program, see :func:`transposed`; rules log what they return if this thread asks for that."""
    if runtime.has_explicit_types:
        cts = [ct if ct is ZERO or type(x) is ArrayImpl else like(ct, _type_of(x)) for ct, x in zip(cts, outs)]
    if not (names or state.axes):
        return program.transpose(cts, add_any, consume)
    with reducing(names):
        keys = frozenset([axis.key for axis in state.axes.values() if axis.reduced])
        avals = list(map(_type_of, outs))
        cts = [ct if ct is ZERO else vary(ct, a.varying & keys) for ct, a in zip(cts, avals, strict=False)]
        return program.transpose(cts, add_any, consume)


def _type_of(x: Any) -> Any:
    """Return ``x`` if it is a type, and the type of another value."""
    return x if isinstance(x, AbstractValue) else typeof(x)


class LinearFunction:
    """The derivative of a function at a point, as ``linearize`` returns it: a pytree whose leaves are its residuals."""

    __slots__ = ("in_avals", "in_tree", "name", "out_avals", "out_tree", "program", "reduce_axes")

    def __init__(
        self,
        program: LinearProgram,
        in_tree: Any,
        out_tree: Any,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        name: str,
        reduce_axes: tuple[Any, ...] = (),
    ) -> None:
        self.program = program
        self.reduce_axes = reduce_axes
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.name = name

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        leaves, treedef = tree.flatten(tangents)
        ts = _checked(leaves, treedef, self.in_tree, self.in_avals, "tangent", self.name)
        outs = self.program.run(ts)
        return tree.unflatten(self.out_tree, [dense(t, a) for t, a in zip(outs, self.out_avals, strict=True)])

    def __reduce__(self) -> Any:
        # As data with indices of operations: pickling the objects would recurse as deep as the tape is long.
        residuals, aux = _linear_function_flatten(self)
        return _linear_function_unflatten, (type(self), aux, residuals)

    def __repr__(self) -> str:
        return f"<derivative of {self.name}: {_types(self.in_avals)} -> {_types(self.out_avals)}>"


class VJPFunction(LinearFunction):
    """The pullback of a function at a point, as ``vjp`` returns it: a pytree whose leaves are its residuals.

    Attributes:
      wants: for each leaf of the arguments, the destination of its cotangent; None to return all cotangents.
      arguments: weak references to the leaves of the arguments; empty where they are not known.
      origins: which residuals are leaves of the arguments; None if ``arguments`` are to say.
      logs: whether a call returns what backward rules log, too.
      kept: the list ``args_res``, once it has been looked at. The program is then without these residuals.
    """

    __slots__ = ("arguments", "kept", "logs", "origins", "wants")

    def __init__(
        self, *fields: Any, wants: Sequence[Any] | None = None, arguments: Sequence[Any] = (),
        origins: Origins | None = None, logs: bool = False, kept: list[Any] | None = None,
    ) -> None:  # fmt: skip
        LinearFunction.__init__(self, *fields)
        self.arguments, self.origins, self.logs, self.kept = arguments, origins, logs, kept
        if wants is None and AbstractRef in map(type, self.in_avals):
            wants = [GradValue()] * len(self.in_avals)
        self.wants = None if wants is None else tuple(wants)

    def with_refs(self, *wants: Any) -> VJPFunction:
        """Return the same function with other destinations for the cotangents of the arguments.

        Args:
          wants: an entry for each argument: a tree like the argument, or a prefix of it. A leaf of the entry is a
            reference, to add the cotangent to it; ``ad.GradValue()``, to return the cotangent as an array; or
            ``ad.DontWant()``, not to compute the cotangent. For an argument that is a reference, the leaf must not be
            ``ad.GradValue()``.

        Returns:
          A function of the same cotangents. It returns ``ad.GradRef()`` instead of a cotangent that was added to a
          reference, and ``ad.DidntWant()`` instead of a cotangent that was not computed.

        Raises:
          ArgumentError: the trees do not fit, or an entry is of another kind (a TypeError and ValueError).
          RefError: a reference does not have the type of the cotangent, or occurs twice; or an argument that is a
            reference has the leaf ``ad.GradValue()`` (a ValueError).

        >>> from pullback import ad, new_ref, vjp
        >>> total = new_ref(0.0)
        >>> for x in [1.0, 2.0]:
        ...     out, pull = vjp(lambda a, b: a * b, x, 10.0)
        ...     print(pull.with_refs(ad.GradValue(), total)(1.0))
        (Array(10., dtype=float32, weak_type=True), GradRef())
        (Array(10., dtype=float32, weak_type=True), GradRef())
        >>> print(total[...])
        3.0
        """
        return self._like(self.kept, destinations(wants, self.in_tree, self.in_avals, self.name))

    def replace(self, *, args_res: Sequence[Any]) -> VJPFunction:
        """Return the same function with other values in place of the arguments that the backward pass needs.

        Args:
          args_res: an entry for each argument, as in the attribute :attr:`args_res`.

        Returns:
          A function of the same cotangents.

        >>> from pullback import vjp
        >>> out, pull = vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> print(*pull.replace(args_res=[5.0, 7.0])(1.0))
        7.0 5.0
        """
        other = self._like(self.kept, self.wants)
        other.args_res = args_res
        return other

    def _like(self, kept: list[Any] | None, wants: Sequence[Any] | None) -> VJPFunction:
        """Return the function with another list of arguments, and other destinations."""
        fields = (self.program, self.in_tree, self.out_tree, self.in_avals, self.out_avals, self.name, self.reduce_axes)
        kept = None if kept is None else list(kept)
        return VJPFunction(
            *fields, wants=wants, arguments=self.arguments, origins=self.origins, logs=self.logs, kept=kept
        )

    @property
    def with_logs(self) -> VJPFunction:
        """The same function, whose calls return a pair: the cotangents, and what backward rules logged.

        The second is a dictionary of what the rules of ``custom_vjp.defvjp_with_logs``, of ``custom_gradient`` and of
        ``VJPHiPrimitive`` returned, by their keys; if several rules use a key, the one that ran last counts. What a
        step of a loop logs is stacked along a new first axis. For branches the entry has an ``index``, of the branch
        that ran, and ``branches``, of which the others are zeros, or None. Devices of a ``shard_map`` are stacked along
        the first axis.
        """
        other = self._like(self.kept, self.wants)
        other.logs = True
        return other

    def _residuals(self) -> tuple[list[Any], Origins]:
        """Return the residuals, and which of them are leaves of the arguments."""
        residuals, _ = split(self.program)
        return residuals, origins_of(residuals, self.arguments) if self.origins is None else self.origins

    @property
    def args_res(self) -> list[Any]:
        """The arguments that the backward pass needs unchanged; ``NotNeeded()`` stands for the others.

        ``NotSaveable()`` stands for those that ``saveable_args`` leaves out. The list and its entries may be assigned:
        the function then uses these values. Entries are trees like the arguments; None stands for a missing one.

        >>> from pullback import vjp
        >>> out, pull = vjp(lambda x, y: x + 2 * y * y, 1.0, 3.0)
        >>> pull.args_res
        [NotNeeded(), Array(3., dtype=float32, weak_type=True)]
        """
        if self.kept is None:
            self.leave_out(True)
        return self.kept  # type: ignore[return-value]

    @args_res.setter
    def args_res(self, kept: Sequence[Any]) -> None:
        if self.kept is None:
            self.leave_out(True)
        self.kept = list(kept)

    def leave_out(self, saveable: Any) -> None:
        """Take the residuals that are arguments out of the program, into the list ``kept``.

        ``saveable`` is the argument ``saveable_args`` of :func:`vjp`.
        """
        residuals, self.origins = self._residuals()
        self.kept = kept_arguments(self.in_tree, residuals, self.origins, saveable)
        self.program = without_arguments(self.program, self.origins)

    def _whole(self) -> LinearProgram:
        """Return the program with all residuals."""
        if self.kept is None or self.origins is None:
            return self.program
        return with_arguments(self.program, self.origins, self.kept, self.in_tree, self.in_avals, self.name)

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are no arguments: what the forward pass has computed, and constants."""
        return [x for x, i in zip(*self._residuals(), strict=True) if i is None]

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TangentMismatchError(
                f"the function returned by vjp takes one argument, the cotangent of the output of {self.name}, "
                f"got {len(cotangents)}"
            )
        ct = cotangents[0]
        if self.out_tree is None and isinstance(ct, Array):  # fast path: a single array
            leaves, treedef = [ct], None
        else:
            leaves, treedef = tree.flatten(ct)
        cts = _checked(leaves, treedef, self.out_tree, self.out_avals, "cotangent", self.name)
        logs: dict[Any, Any] = {}
        outs = self._cotangents(cts, logs)
        if self.wants is not None:
            outs = delivered(outs, self.wants, self.in_avals, self.name)
        else:
            outs = [dense(t, a) for t, a in zip(outs, self.in_avals, strict=True)]
        found = tree.unflatten(self.in_tree, outs)
        return (found, logs) if self.logs else found

    def _cotangents(self, cts: Sequence[Any], logs: dict[Any, Any]) -> list[Any]:
        """Compute the cotangents of the arguments, or ``ZERO``, from those of the results; add to ``logs``, if wanted.

        Without logs, the cotangents of arguments whose destination is ``DontWant()`` are not computed.
        """
        program = self.program if self.kept is None else self._whole()
        if not self.logs:
            if self.wants is not None and any(isinstance(w, DontWant) for w in self.wants):
                program = program.dce_inputs([i for i, w in enumerate(self.wants) if not isinstance(w, DontWant)])
            return transposed(program, cts, self.out_avals, self.reduce_axes)
        residuals, structure = split(program)
        nonzero: list[bool] = []

        def run(*values: Any) -> list[Any]:
            again = join(structure, values[: len(residuals)])
            outs = _transposed(again, values[len(residuals) :], self.out_avals, self.reduce_axes)
            nonzero[:] = [t is not ZERO for t in outs]
            return select(outs, nonzero)

        found, more = with_logs(self.name, run, [*residuals, *cts])
        logs.update(more)
        return scatter_where(nonzero, found, ZERO)

    def __repr__(self) -> str:
        return f"<pullback of {self.name}: {_types(self.out_avals)} -> {_types(self.in_avals)}>"


def _types(avals: Sequence[ShapedArray]) -> str:
    """Format types as in ``(f32[2], i32[])``."""
    return f"({', '.join(map(format, avals))})"


def _checked(
    leaves: Sequence[Any], treedef: Any, expected: Any, avals: Sequence[ShapedArray], what: str, name: str
) -> list[Any]:
    """Convert tangents or cotangents to arrays; raise if their tree or types do not match those of the primal values.

    Args:
      leaves, treedef: the leaves and the tree of the tangents or cotangents.
      expected: the tree of the primal values; None for a single array.
      avals: the types of the primal values.
      what: ``"tangent"`` or ``"cotangent"``, for error messages.
      name: the name of the function, for error messages.
    """
    # ``expected`` is None for a single array.
    if treedef != expected and not (expected is None and len(leaves) == 1 and treedef == tree.structure(0)):
        structure = tree.structure(0) if expected is None else expected
        owner = "arguments" if what == "tangent" else "output"
        raise TangentMismatchError(
            f"the {what} passed to {_WHO[what]} {name} must have the tree of its {owner}, {structure}, but has "
            f"{treedef}"
        )
    return [  # in most calls the types match, which is tested here without calls
        t
        if (type(t) is ArrayImpl and t._host_value.shape == a.shape and t._host_value.dtype is a.dtype)
        or (isinstance(t, Tracer) and t.shape == a.shape and t.dtype == a.dtype)
        else to_tangent(t, a, what, partial(_describe_leaf, i, expected, what, name))
        for i, (t, a) in enumerate(zip(leaves, avals, strict=True))
    ]


_WHO = {"tangent": "the linearised", "cotangent": "the vjp function of"}


def _describe_leaf(index: int, treedef: Any, what: str, name: str) -> str:
    """Return a name for a leaf of the tangents or cotangents of a function, for error messages.

    Args:
      index: the index of the leaf.
      treedef: the tree of the tangents or cotangents; None for a single array.
      what: ``"tangent"`` or ``"cotangent"``.
      name: the name of the function.
    """
    count = 1 if treedef is None else treedef.num_leaves
    path, _ = tree.leaves_with_path(unflatten_one(treedef, list(range(count))))[index]
    leaf = f"argument {path[0].idx}{tree.keystr(path[1:])}" if what == "tangent" else f"output{tree.keystr(path)}"
    return f"{_WHO[what]} {name}, {leaf}"


def _linear_function_flatten(f: LinearFunction) -> tuple[list[Any], Any]:
    """Flatten the derivative ``f`` as a pytree: return its residuals, and everything else as data without arrays."""
    residuals, structure = split(f.program)
    fields = (f.in_tree, f.out_tree, tuple(f.in_avals), tuple(f.out_avals), f.name, f.reduce_axes)
    if not isinstance(f, VJPFunction):
        return residuals, (structure, fields, None)
    origins = origins_of(residuals, f.arguments) if f.origins is None else f.origins
    children = residuals if f.kept is None else [*residuals, f.kept]
    return children, (structure, fields, (("wants", f.wants), ("origins", origins), ("logs", f.logs)))


def _linear_function_unflatten(kind: type[LinearFunction], aux: Any, residuals: Sequence[Any]) -> LinearFunction:
    """Rebuild a derivative of the class ``kind`` from its ``residuals`` and ``aux``, its data without arrays."""
    structure, fields, options = aux
    if options is None:
        return kind(join(structure, residuals), *fields)
    named = dict(options)
    count = len(named["origins"])
    kept = list(residuals[count]) if len(residuals) > count else None
    return VJPFunction(join(structure, residuals[:count]), *fields, **named, kept=kept)


for _kind in (LinearFunction, VJPFunction):
    tree.register_pytree_node(_kind, _linear_function_flatten, partial(_linear_function_unflatten, _kind))
