"""The options of ``jit``, and the arguments of a call: static, donated and traced arguments, and cache keys."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_
from typing import Any

import numpy as np

from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import snapshot
from pullback.core import source, tree
from pullback.core.array import Array, as_array
from pullback.core.config import config
from pullback.core.dtypes import canonicalize_dtype
from pullback.core.errors import ArgumentError, OperandError, StaticArgumentError
from pullback.core.refs import RefCell
from pullback.core.trace import state
from pullback.core.user_types import is_user_value
from pullback.transforms.autodiff.tracing import described_ref
from pullback.transforms.functions.arguments import abstractify, argument_name, name_of
from pullback.transforms.traces.refs import check_aliases, content_of


class Options:
    """The options of ``jit``; the static and the donated arguments are listed both by position and by name."""

    __slots__ = (
        "compiler_options", "device", "donated_names", "donated_nums", "in_placements", "inline", "keep_unused",
        "out_placements", "static_names", "static_nums", "tiered",
    )  # fmt: skip

    def __init__(
        self,
        static: tuple[Any, Any],
        donated: tuple[Any, Any],
        inline: bool,
        keep_unused: bool,
        device: Any,
        compiler_options: tuple[tuple[str, Any], ...] = (),
        in_placements: Any = None,
        out_placements: Any = None,
        *,
        tiered: str | None = None,
    ) -> None:
        self.tiered = tiered
        self.in_placements = in_placements
        self.out_placements = out_placements
        self.compiler_options = compiler_options
        self.static_nums, self.static_names = static
        self.donated_nums, self.donated_names = donated
        self.inline = inline
        self.keep_unused = keep_unused
        self.device = device

    def key(self) -> tuple[Any, ...]:
        """Return the values of all options as a tuple, for the keys of caches."""
        return _values_of(self)


_values_of = attrgetter(*Options.__slots__)


class Call:
    """The arguments of one call of a function under ``jit``.

    Attributes:
      count: the number of positional arguments, including static arguments.
      treedef: the part of the cache key that has the tree of the traced arguments, and the static arguments.
      nested: whether a positional argument is a tree, not an array.
      refs: the leaves that are references, by index; the methods ``arrays`` and ``avals`` fill this dictionary.
    """

    __slots__ = (
        "args",
        "count",
        "fun",
        "in_tree",
        "kwargs",
        "leaves",
        "nested",
        "options",
        "refs",
        "static",
        "treedef",
    )

    def __init__(
        self, fun: Callable[..., Any], options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.fun = fun
        self.options = options
        self.args, self.kwargs, self.count = args, kwargs, len(args)
        self.static: dict[Any, Any] = {}
        self.refs: dict[int, RefCell] = {}
        if options.static_nums or options.static_names:
            self._split(options)
        self.leaves, self.in_tree = tree.flatten_call(self.args, self.kwargs)
        self.nested = len(self.leaves) != len(args) or not all(map(is_, self.leaves, args))
        # A number represents flat arguments: it is hashed and compared faster than a tree.
        self.treedef: Any = self.in_tree if self.nested or self.kwargs else len(args)
        if self.static:  # with types, since 1, 1.0 and True are equal, but may give different programs
            self.treedef = (self.treedef, tuple((k, type(v), v) for k, v in self.static.items()))

    def _split(self, options: Options) -> None:
        """Move the static arguments from ``args`` and ``kwargs`` to ``static``; raise if a value is not hashable."""
        count = self.count
        for i in sorted({i % count for i in options.static_nums if -count <= i < count}):
            self.static[i] = self.args[i]
        for name in options.static_names:
            if name in self.kwargs:
                self.static[name] = self.kwargs[name]
        for where, value in self.static.items():
            try:
                hash(value)
            except TypeError:
                shown = f"argument {where}" if isinstance(where, int) else f"argument {where!r}"
                cure = (
                    "Pass an int instead" if isinstance(value, Array | np.ndarray) else "Pass a tuple instead of a list"
                )
                raise StaticArgumentError(
                    f"jit of {name_of(self.fun)}: the static {shown} must be hashable, because programs are cached "
                    f"by its value, but got {value!r} of type {type(value).__name__}. {cure}, or do not declare the "
                    "argument static."
                ) from None
        self.args = tuple(x for i, x in enumerate(self.args) if i not in self.static)
        self.kwargs = {k: x for k, x in self.kwargs.items() if k not in self.static}

    def arrays(self) -> list[Any]:
        """Return the leaves, converted to arrays."""
        return [x if isinstance(x, Array) else self._array(i, x) for i, x in enumerate(self.leaves)]

    def _array(self, i: int, x: Any) -> Array:
        """Convert leaf ``i``, with the value ``x``, to an array; for a reference, return its content."""
        if isinstance(x, RefCell):
            self.refs[i] = x
            check_aliases(list(self.refs.values()), f"jit of {name_of(self.fun)}, {self.arg_name(i)}")
            return content_of(x)
        if is_user_value(x):
            return x  # type: ignore[no-any-return]
        if config.transfer_guard_host_to_device is not None and state.trace.is_bottom:
            transfers.check("host_to_device", as_array(x).aval)
        try:
            if (
                type(x) is np.ndarray
                and state.trace.is_bottom
                and x.dtype.isnative
                and x.dtype.kind != "O"
                and canonicalize_dtype(x.dtype) is x.dtype
            ):
                return snapshot(x)
            return as_array(x)
        except OperandError as error:
            raise self._refusal(i, error) from None

    def avals(self) -> list[Any]:
        """Return the type of each leaf. Any object with a shape and a dtype may be a leaf.

        A description of a reference becomes one that holds the description of its content.
        """
        out = []
        for i, x in enumerate(self.leaves):
            x = self.leaves[i] = described_ref(x)
            if isinstance(x, RefCell):
                self.refs[i] = x
            try:
                out.append(abstractify(x))
            except OperandError as error:
                raise self._refusal(i, error) from None
        return out

    def _refusal(self, i: int, error: OperandError) -> OperandError:
        """Return the error for leaf ``i``, which is no array.

        It adds to the message of ``error`` the name of the leaf, and the advice to declare the argument static.
        """
        return type(error)(
            f"jit of {name_of(self.fun)}, {self.arg_name(i)}: {error} Declare an argument that is not an array "
            f"static: jit(f, static_argnums=...) or static_argnames=...; jit compiles a program for each of its values."
        )

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        found = source.attribute(self.fun, "__name__")
        return found if isinstance(found, str) and found else type(self.fun).__name__

    def arg_name(self, i: int) -> str:
        """Return the name of leaf ``i``, for messages."""
        positions = self._positions()
        full = dict(zip(positions, self.args))
        return argument_name(i, self.fun, [full.get(k) for k in range(self.count)], positions, self.kwargs)

    def _positions(self) -> list[int]:
        """Return the positions of the positional arguments that are not static."""
        return [k for k in range(self.count) if k not in self.static]

    def donated_leaves(self) -> list[bool]:
        """Return, for each leaf, whether its memory may be reused for results."""
        options, flags = self.options, []
        count = self.count
        wanted = {i % count for i in options.donated_nums if -count <= i < count} if count else set()
        for k, x in zip(self._positions(), self.args):
            flags += [k in wanted] * len(tree.leaves(x))
        for name in sorted(self.kwargs):  # the order of the leaves
            flags += [name in options.donated_names] * len(tree.leaves(self.kwargs[name]))
        for i in self.refs:  # their contents may be in use: reading a reference returns them
            flags[i] = False
        return flags


def infer_argnums_argnames(
    fun: Any, argnums: Any, argnames: Any, what: str, who: str = "jit"
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Check positions and names of arguments of ``fun``, and add the names of the positions, and vice versa.

    Args:
      fun: the function.
      argnums, argnames: the positions and the names, as the user passed them; an argument may be in only one of them.
      what: ``"static"`` or ``"donate"``, for error messages.
      who: the transformation, for error messages.

    Returns:
      The positions and the names of all these arguments, sorted; both unchanged if ``fun`` has no signature, or if the
      user passed both.
    """
    nums = (argnums,) if isinstance(argnums, int) else () if argnums is None else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else () if argnames is None else tuple(argnames)
    for i in nums:
        if type(i) is not int:  # a boolean is no position
            raise ArgumentError(f"{who}: {what}_argnums must be an int or a tuple of ints, got {argnums!r}")
    for n in names:
        if not isinstance(n, str):
            raise ArgumentError(f"{who}: {what}_argnames must be a str or a tuple of strs, got {argnames!r}")
    if not nums and not names:
        return (), ()
    try:
        parameters = list(source.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_keyword = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    by_nothing = {p.name for p in parameters} - by_keyword
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for i in nums:
        if not more and not -len(positional) <= i < len(positional):
            raise ArgumentError(
                f"{who}: {what}_argnums={argnums} is not a position of an argument of {name_of(fun)}, which has "
                f"{len(positional)} positional parameters: {', '.join(positional)}"
            )
    for n in names:
        if n in by_nothing or (not any_name and n not in by_keyword):
            raise ArgumentError(
                f"{who}: {what}_argnames={argnames!r} is not the name of an argument of {name_of(fun)}, whose "
                f"parameters are {', '.join(p.name for p in parameters)}"
            )
    if not more and nums:
        nums = tuple(i % len(positional) for i in nums)
    if argnums is not None and argnames is not None:
        return tuple(sorted({*nums})), tuple(sorted({*names}))
    found = {positional[i] for i in nums if 0 <= i < len(positional)} & by_keyword
    numbers = {positional.index(n) for n in names if n in positional}
    return tuple(sorted({*nums, *numbers})), tuple(sorted({*names, *found}))
