"""Ahead of time: what ``jit`` does at the first call, one step at a time: trace, lower, compile, call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends import forks
from pullback.core import source, tree
from pullback.core.array import Array, ArrayImpl, as_array
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.trace import Tracer, state
from pullback.core.types import ShapedArray
from pullback.transforms.derivatives.tracing import ShapeDtypeStruct
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit import dispatch
from pullback.transforms.jit.jit import JitFunction
from pullback.transforms.jit.jit_arguments import Call


def trace(function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """See :meth:`JitFunction.trace`."""
    call = Call(function._fun, function._options, args, kwargs)
    avals = call.avals()
    traced = function._trace(call, avals)
    if traced.captured:
        raise ArgumentError(
            f"jit of {name_of(function._fun)}: it captured a value that another transformation traces, "
            f"{traced.captured[0]!r}, so it cannot be compiled by itself. Pass the value as an argument."
        )
    return Traced(function, call, traced, avals)


def _struct(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


class Traced:
    """A function that was traced for some kinds of arguments.

    Attributes:
      jaxpr: its program.
      out_info: the types of its results, a tree of ``ShapeDtypeStruct``.
      fun_name: its name.
    """

    def __init__(
        self, function: JitFunction, call: Call, traced: dispatch.Traced, avals: Sequence[ShapedArray]
    ) -> None:
        self._function = function
        self._call = call
        self._traced = traced
        self._avals = list(avals)
        self.fun_name = function._name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._traced.closed

    @property
    def out_info(self) -> Any:
        return tree.unflatten(self._traced.out_tree, list(map(_struct, self.jaxpr.out_avals)))

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the arguments' leaves."""
        return self._avals

    def lower(self) -> Lowered:
        """The program as text for the compiler, for the device on which the arguments are."""
        leaves = [x for x in self._call.leaves if isinstance(x, ArrayImpl)]
        return Lowered(self, dispatch.lower(self._function._options, self.fun_name, self._traced, leaves, self._call))


class Lowered:
    """A function as text for the compiler."""

    def __init__(self, traced: Traced, plan: Any) -> None:
        self._traced = traced
        self._plan = plan

    @property
    def in_tree(self) -> Any:
        """The tree of the arguments, ``(args, kwargs)``, without the static ones."""
        return self._traced._call.in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the results."""
        return self._traced._traced.out_tree

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct``."""
        return self._traced.out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program.

        Args:
          dialect: ``"stablehlo"`` (the default), or ``"hlo"`` for the compiler's own language.
          debug_info: whether to give for each operation where in the user's program it was written.

        Raises:
          ArgumentError: another dialect (a ValueError).
        """
        text = self._plan.lowered.module.text(locations=debug_info)
        if dialect in (None, "stablehlo"):
            return text  # type: ignore[no-any-return]
        if dialect != "hlo":
            raise ArgumentError(f"as_text: dialect must be 'stablehlo' or 'hlo', got {dialect!r}")
        from pullback.backends import client

        return client.hlo_text(text)

    def compiler_ir(self, dialect: str | None = None) -> str:
        """The program as text."""
        return self.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of operations and memory traffic, before it optimises."""
        from pullback.backends import client

        return client.cost_analysis(self._plan.lowered.module.text(), self._plan.lowered.device)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """The program, ready to run.

        Args:
          compiler_options: options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``.

        Raises:
          CompilationError: the compiler refuses the program or an option (a RuntimeError).
        """
        try:
            given = dict(self._traced._function._options.compiler_options)
            return Compiled(self, self._plan.compile(tuple(sorted({**given, **(compiler_options or {})}.items()))))
        except Exception as error:
            source.hide_internal_frames(error)
            raise


class Compiled:
    """A function compiled for some kinds of arguments; it is called with such, without the static ones."""

    def __init__(self, lowered: Lowered, entry: dispatch.Entry) -> None:
        self._lowered = lowered
        self._entry = entry
        self.in_tree = lowered.in_tree
        self.out_tree = lowered.out_tree
        self.out_info = lowered.out_info

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            forks.check(f"running the compiled {self._lowered._traced.fun_name}")
            leaves, treedef = tree.flatten((args, kwargs))
            arrays = [x if isinstance(x, Array) else as_array(x) for x in leaves]
            self._check(arrays, treedef)
            if any(isinstance(x, Tracer) for x in arrays):
                raise ArgumentError(
                    f"the compiled {self._lowered._traced.fun_name} was called within a transformation "
                    f"({state.trace.describe()}), but a compiled program cannot be transformed any more: use jit(f) "
                    "itself"
                )
            return dispatch.run(self._entry, arrays)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def _check(self, arrays: Sequence[Any], treedef: Any) -> None:
        name = self._lowered._traced.fun_name
        if treedef != self.in_tree:
            raise ArgumentError(
                f"the compiled {name} takes arguments of the tree {self.in_tree}, but they have the tree {treedef}"
            )
        call, wrong = self._lowered._traced._call, []
        for i, (x, a) in enumerate(zip(arrays, self._lowered._traced.in_avals, strict=True)):
            if x.shape != a.shape or x.dtype != a.dtype:
                wrong.append(f"{call.place(i)} must be {a}, but is {x.aval}")
        if wrong:
            raise ArgumentError(f"the compiled {name} was called with other types: {'; '.join(wrong)}")

    def as_text(self) -> str:
        """The program as the compiler has optimised it."""
        return self._entry.program.executable.loaded.get_hlo_text()  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of operations (``flops``) and memory traffic (``bytes accessed``)."""
        return dict(self._entry.program.executable.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """The bytes that arguments, results and temporary values take, as the compiler laid them out."""
        return self._entry.program.executable.loaded.get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        """The executable of the runtime."""
        return self._entry.program.executable.loaded
