"""The steps of ``jit``: a function is traced, lowered to text for the compiler, compiled, and run.

``jit`` takes them all at the first call; ``jit(f).trace(...).lower().compile()`` takes them one at a time.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback.backends.compiler import trees
from pullback.backends.compiler.backend import backend
from pullback.backends.devices import devices
from pullback.backends.devices.buffers import from_buffer
from pullback.backends.devices.layouts import row_major
from pullback.backends.devices.meshes import Mesh, current_mesh
from pullback.backends.devices.shardings import NamedSharding, Sharding, SingleDeviceSharding
from pullback.backends.processes import forks
from pullback.core import source, tree
from pullback.core.array import (
    Array,
    ArrayImpl,
    CommittedArray,
    Signature,
    as_array,
    delete,
    fresh,
    signature,
    signature_of,
)
from pullback.core.errors import ArgumentError, DonationWarning, UnsupportedArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.refs import RefCell
from pullback.core.runtime import runtime
from pullback.core.trace import Tracer, state
from pullback.core.types import ShapedArray
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.debugging.debug_nans import checked_run, checking
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit.caches import all_caches
from pullback.transforms.jit.jit_arguments import Call
from pullback.transforms.jit.jit_refs import UsedRefs
from pullback.transforms.jit.jit_shardings import check_fits, placement_of
from pullback.transforms.programs.jit_primitive import committed_signatures
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.refs import contents

if TYPE_CHECKING:
    from pullback.backends.compiler.programs import Program


class ArgInfo(NamedTuple):
    """What is known of a leaf of the arguments.

    Attributes:
      aval: its type.
      donated: whether its memory may be taken.
    """

    aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.aval.dtype


tree.register_leaf_type(ArgInfo)


class HloText(str):
    """A program in the compiler's own language, with the method by which JAX's has it as text."""

    __slots__ = ()

    def as_hlo_text(self) -> str:
        """The text."""
        return str(self)


class Traced:
    """A function that was traced for some kinds of arguments.

    Attributes:
      jaxpr: its program; arrays of enclosing transformations that it captured are inputs, after the others.
      out_tree: the tree of its results.
      captured: those arrays.
      call: the arguments, if the user asked for this step: what is kept for later calls holds none.
      refs: the references that it uses, if there are any.
    """

    __slots__ = ("__weakref__", "call", "captured", "jaxpr", "out_tree", "refs")

    def __init__(
        self, jaxpr: ClosedJaxpr, out_tree: Any, captured: list[Any], call: Call | None = None,
        refs: UsedRefs | None = None,
    ) -> None:  # fmt: skip
        self.refs = refs
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.captured = captured
        self.call: Any = call

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.call.fun_name  # type: ignore[no-any-return]

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct``."""
        structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self.out_avals]
        return tree.unflatten(self.out_tree, structs)

    @property
    def in_tree(self) -> Any:
        """The tree of the arguments, ``(args, kwargs)``, without the static ones."""
        return self.call.in_tree

    @property
    def args_info(self) -> Any:
        """What is known of the arguments: a tree like ``(args, kwargs)`` of ``ArgInfo``."""
        return tree.unflatten(self.in_tree, list(map(ArgInfo, self.in_avals, self.call.donated_leaves())))

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the arguments' leaves."""
        avals = self.jaxpr.in_avals
        return avals if self.refs is None else avals[: self.refs.inputs]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results' leaves."""
        avals = self.jaxpr.out_avals
        return avals if self.refs is None else avals[: self.refs.results]

    def argument_placements(self) -> list[Any]:
        """For each leaf of the arguments the place that ``in_shardings`` asks for, or where it is; None if neither."""
        found = [
            _signature_at(leaf, aval).placement for leaf, aval in zip(self.call.leaves, self.in_avals, strict=True)
        ]
        return _asked_or_given(in_placements(self.call, self), found)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The program as text for the compiler, for the device on which the arguments are.

        Args:
          lowering_platforms: None, or the name of the platform of that device.

        Raises:
          UnsupportedArgumentError: another platform, for which there is ``export`` (a NotImplementedError).
        """
        signatures = list(map(_signature_at, self.call.leaves, self.in_avals))
        if self.refs is not None:
            signatures += map(signature_of, self.refs.contents())
        lowered = Lowered(self, self.call, signatures)
        platform = lowered.program.device.platform
        if lowering_platforms is not None and [*lowering_platforms] not in ([platform], ["gpu"] * (platform == "cuda")):
            raise UnsupportedArgumentError(
                f"lower: the arguments of {self.fun_name} are on a device of the platform {platform!r}, so that "
                f"lowering_platforms can be [{platform!r}] alone, got {lowering_platforms!r}. export(f, platforms=...) "
                "lowers for others."
            )
        return lowered


def _signature_at(leaf: Any, aval: ShapedArray) -> Signature:
    """The signature of a leaf of the arguments, an array or what stands for one."""
    if isinstance(leaf, RefCell):
        leaf = leaf.content
    if isinstance(leaf, ArrayImpl):
        return signature_of(leaf)
    placement = placement_of(getattr(leaf, "sharding", None), "lower")
    return signature(aval.shape, aval.dtype, aval.weak_type, placement)


class Lowered:
    """A traced function as text for the compiler, and how its arguments and results are those of the function.

    Attributes:
      program: the text, for a device.
      kept: the leaves of the arguments that the program takes, or None if it takes all.
      out_index: None, or for each result of the function where it is: a number of a result of the program, or ``~i``
        for leaf i of the arguments, which is handed through.
      donated: the leaves of the arguments whose memory it takes.
      asked_for: whether somebody asked for the device, so that the results stay there.
      given_placements: where the arguments are for which it was made.
    """

    __slots__ = ("__weakref__", "asked_for", "donated", "given_placements", "kept", "out_index", "program", "traced")

    def __init__(self, traced: Traced, call: Call, signatures: Sequence[Signature]) -> None:
        from pullback.backends.compiler import programs

        self.traced = traced
        self.given_placements = [k.placement for k in signatures]
        name = call.fun_name
        results = out_placements(call, traced)
        if results:
            results += [None] * (len(traced.jaxpr.out_avals) - len(results))
        asked = in_placements(call, traced)
        placements = list(map(_with_devices, _asked_or_given(asked, self.given_placements)))
        results = _where_inputs_go(
            traced.jaxpr.jaxpr, list(map(_with_devices, results)), placements, self.given_placements
        )
        device, asked_for = _device(call, placements, results, traced.jaxpr.consts)
        self.out_index, jaxpr = _without_forwarded(traced.jaxpr, results)
        jaxpr, used = dce_closed_jaxpr(jaxpr, (True,) * len(jaxpr.jaxpr.outvars), instantiate=call.options.keep_unused)
        self.kept = None if all(used) else [i for i, u in enumerate(used) if u]
        self.donated, aliases = _aliases(jaxpr, self.kept, self.out_index, call)
        if checking():
            aliases = {}  # what returns a NaN is run again on its inputs
        self.program = programs.Lowered(
            jaxpr, f"jit_{name}", device, aliases, asked_for=asked_for,
            in_placements=placements if self.kept is None else [placements[i] for i in self.kept],
            out_placements=_of_the_program(results, self.out_index),
            mesh=next((p.mesh for p in (*placements, *results) if isinstance(p, NamedSharding)), None),
        )  # fmt: skip
        self.asked_for = self.program.asked_for

    @property
    def in_tree(self) -> Any:
        """The tree of the arguments, ``(args, kwargs)``, without the static ones."""
        return self.traced.call.in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the results."""
        return self.traced.out_tree

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct``."""
        return self.traced.out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program.

        Args:
          dialect: ``"stablehlo"`` (the default), or ``"hlo"`` for the compiler's own language.
          debug_info: whether to give for each operation where in the user's program it was written.

        Raises:
          ArgumentError: another dialect (a ValueError).
        """
        text = self.program.module.text(locations=debug_info)
        if dialect in (None, "stablehlo"):
            return text
        if dialect != "hlo":
            raise ArgumentError(f"as_text: dialect must be 'stablehlo' or 'hlo', got {dialect!r}")
        return backend().hlo_text(text)

    @property
    def args_info(self) -> Any:
        """What is known of the arguments: a tree like ``(args, kwargs)`` of ``ArgInfo``."""
        return self.traced.args_info

    @property
    def in_avals(self) -> Any:
        """The types of the arguments: a tree like ``(args, kwargs)``."""
        return tree.unflatten(self.in_tree, self.traced.in_avals)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The leaves of the arguments whose memory may be taken."""
        return tuple([i for i, donated in enumerate(self.traced.call.donated_leaves()) if donated])

    def compiler_ir(self, dialect: str | None = None) -> str:
        """The program as text; for ``"hlo"`` it has the method ``as_hlo_text``."""
        text = self.as_text(dialect)
        return HloText(text) if dialect == "hlo" else text

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of operations and memory traffic, before it optimises."""
        return backend().cost_analysis(self.program.module.text(), self.program.device)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """The program, ready to run.

        Args:
          compiler_options: options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``.

        Raises:
          CompilationError: the compiler refuses the program or an option (a RuntimeError).
        """
        try:
            given = {**dict(self.traced.call.options.compiler_options), **(compiler_options or {})}
            return Compiled(self, tuple(sorted(given.items())))
        except Exception as error:
            source.hide_internal_frames(error)
            raise


class Compiled:
    """A function compiled for some kinds of arguments; it is called with such, without the static ones.

    ``jit`` keeps it for the calls that follow.

    Attributes:
      signatures: the signatures of the results of its program.
      unflatten: makes the tree of the results, or None for a single array.
      captured: the arrays that the program takes after its arguments, on its device.
      fits_shardings: whether its arguments are spread over several devices as the program takes them.
      donated: the leaves of the arguments whose memory it takes.
      simple: whether the program takes all leaves and returns all results, so that nothing has to be done but
        ``collect(execute(buffers), handlers)``, see ``Executable`` in ``backends/compiler/backend.py``, and to give up
        what is donated.
      start: ``start(buffers)`` runs the program.
    """

    __slots__ = (
        "__weakref__",
        "captured",
        "collect",
        "donated",
        "execute",
        "fits_shardings",
        "handlers",
        "lowered",
        "program",
        "refs",
        "signatures",
        "simple",
        "start",
        "unflatten",
    )  # fmt: skip

    def __init__(self, lowered: Lowered, options: Sequence[tuple[str, Any]]) -> None:
        self.lowered = lowered
        self.program: Program = lowered.program.compile(options)
        executable = self.program.executable
        checked = checking()
        self.start = checked_run(self.program) if checked else executable.run
        self.execute: Callable[[list[Any]], Any] = executable.execute
        self.collect: Callable[[Any, Any], list[Any]] = executable.collect
        self.handlers: Any = executable.handlers
        self.signatures: list[Signature] = (
            self.program.signatures() if lowered.asked_for else self.program.out_signatures
        )
        out_tree = lowered.traced.out_tree
        self.unflatten: Any = None if out_tree.is_leaf() else trees.unflattener(out_tree)
        self.refs = lowered.traced.refs
        self.captured = self.program.captured
        self.donated = lowered.donated
        self.fits_shardings = (
            self.program.in_shardings is not None and self.program.in_shardings == lowered.given_placements
        )
        self.simple = not (
            self.refs is not None or lowered.kept is not None
            or lowered.out_index is not None
            or (devices.here.several_in_use and not self.fits_shardings) or lowered.program.module.callbacks or checked
            or (self.program.in_shardings is not None and not self.fits_shardings)
        )  # fmt: skip

    in_tree = property(lambda self: self.lowered.in_tree, doc="The tree of the arguments, without the static ones.")
    out_tree = property(lambda self: self.lowered.out_tree, doc="The tree of the results.")
    out_info = property(lambda self: self.lowered.out_info, doc="The types of the results.")
    args_info = property(lambda self: self.lowered.args_info, doc="A tree like the arguments, of ``ArgInfo``.")
    in_avals = property(lambda self: self.lowered.in_avals, doc="A tree like the arguments, of their types.")
    donate_argnums = property(lambda self: self.lowered.donate_argnums, doc="The leaves whose memory may be taken.")

    def run(self, leaves: Sequence[Any], own: Sequence[RefCell] = ()) -> Any:
        """The results for the leaves of some arguments, of which some are the contents of ``own`` references."""
        refs = self.refs
        if refs is not None:
            refs.check(own)
            leaves = [*leaves, *refs.contents()]
        lowered, program, given = self.lowered, self.program, leaves
        kept, donated, out_index = lowered.kept, lowered.donated, lowered.out_index
        if kept is not None:
            leaves = [leaves[i] for i in kept]
        given_up = [given[i] for i in donated]
        donate(given_up)
        buffers = program.buffers(leaves)
        if donated and (len(set(map(id, buffers))) < len(buffers) or devices.here.several_in_use):
            self._keep_apart(given_up, buffers)
        outs: list[ArrayImpl] = list(map(from_buffer, self.start(buffers), self.signatures))
        if out_index is not None:
            outs = [outs[i] if i >= 0 else fresh(given[~i]) for i in out_index]
        delete(*given_up)
        if refs is not None:
            outs = refs.written_back(outs, own)
        unflatten = self.unflatten
        return outs[0] if unflatten is None else unflatten(outs)

    def _keep_apart(self, given_up: Sequence[Any], buffers: list[Any]) -> None:
        """Copy the buffers of donated arrays if an operand is there twice, and refuse arrays that are donated twice."""
        check_donated_once(given_up)
        if len(set(map(id, buffers))) < len(buffers):
            kept = self.lowered.kept
            for i in self.lowered.donated:
                position = i if kept is None else kept.index(i)
                buffers[position] = backend().copied(buffers[position])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            name = self.lowered.traced.fun_name
            forks.check(f"running the compiled {name}")
            leaves, treedef = tree.flatten_call(args, kwargs)
            own = [x for x in leaves if isinstance(x, RefCell)]
            arrays = [x if isinstance(x, Array) else as_array(contents([x])[0] if x in own else x) for x in leaves]
            self._check(name, arrays, treedef)
            expected = [isinstance(x, RefCell) for x in self.lowered.traced.call.leaves]
            if expected != [isinstance(x, RefCell) for x in leaves]:
                raise ArgumentError(f"the compiled {name} takes references where it was traced with references only")
            if any(isinstance(x, Tracer) for x in arrays):
                raise ArgumentError(
                    f"the compiled {name} was called within a transformation ({state.trace.describe()}), but a "
                    "compiled program cannot be transformed any more: use jit(f) itself"
                )
            return self.run(arrays, own)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def _check(self, name: str, arrays: Sequence[Any], treedef: Any) -> None:
        if treedef != self.in_tree:
            raise ArgumentError(
                f"the compiled {name} takes arguments of the tree {self.in_tree}, but they have the tree {treedef}"
            )
        traced = self.lowered.traced
        wrong = [
            f"{traced.call.arg_name(i)} must be {a}, but is {x.aval}"
            for i, (x, a) in enumerate(zip(arrays, traced.in_avals, strict=True))
            if x.shape != a.shape or x.dtype != a.dtype
        ]
        if wrong:
            raise ArgumentError(f"the compiled {name} was called with other types: {'; '.join(wrong)}")

    @property
    def input_shardings(self) -> Any:
        """How the arguments are spread over devices: ``(args, kwargs)`` as trees of shardings."""
        program, kept = self.program, self.lowered.kept
        placements: list[Any] = list(self.lowered.given_placements)
        for position, i in enumerate(range(len(placements)) if kept is None else kept):
            placements[i] = program.device if program.in_shardings is None else program.in_shardings[position]
        return tree.unflatten(self.in_tree, list(map(_as_sharding, placements)))

    @property
    def output_shardings(self) -> Any:
        """How the results are spread over devices, a tree of shardings."""
        program, out_index = self.program, self.lowered.out_index
        found = (
            [program.device] * len(self.signatures)
            if program.in_shardings is None
            else program.executable.out_shardings
        )
        if out_index is not None:
            given = self.lowered.given_placements
            found = [found[i] if i >= 0 else given[~i] for i in out_index]
        return tree.unflatten(self.out_tree, list(map(_as_sharding, found)))

    @property
    def input_formats(self) -> Any:
        """The shardings and layouts of the arguments: ``(args, kwargs)`` as trees of ``Format``."""
        return _formats(self.input_shardings, self.lowered.traced.in_avals)

    @property
    def output_formats(self) -> Any:
        """The shardings and layouts of the results, a tree of ``Format``."""
        return _formats(self.output_shardings, tree.leaves(self.out_info))

    def as_text(self) -> str:
        """The program as the compiler has optimised it."""
        return self.program.executable.text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of operations (``flops``) and memory traffic (``bytes accessed``)."""
        return self.program.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """The bytes that arguments, results and temporary values take, as the compiler laid them out."""
        return self.program.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """The executable of the runtime."""
        return self.program.executable.loaded


def check_donated_once(arrays: Sequence[Any]) -> None:
    """Refuse donated arrays of which two are one.

    Raises:
      ArgumentError: some are (a ValueError and TypeError).
    """
    if len(set(map(id, arrays))) < len(arrays):
        raise ArgumentError("an array was donated twice in one call: its memory can become one result only")


def _formats(shardings: Any, types: Sequence[Any]) -> Any:
    leaves, treedef = tree.flatten(shardings)
    return tree.unflatten(treedef, [row_major(len(a.shape), s) for s, a in zip(leaves, types, strict=True)])


def _as_sharding(placement: Any) -> Any:
    return (
        SingleDeviceSharding(placement or devices.default_device())
        if not isinstance(placement, Sharding)
        else placement
    )


def _not_simple() -> None:
    """From now on it matters on which device a buffer is: no program can do without looking."""
    for cache in all_caches.living():
        for kept in list(cache.values()):
            if isinstance(kept, Compiled) and not kept.fits_shardings:
                kept.simple = False


runtime.several_devices_used.append(_not_simple)


def donate(arrays: Iterable[Any]) -> None:
    """Let the elements of arrays on devices be overwritten: forget the host's view of them, and leave them to others
    that share them (see ``core.array.fresh``)."""
    for x in arrays:
        try:
            buffer = x._buffer
        except AttributeError:
            continue
        if type(x) is ArrayImpl:
            x._host_value = signature_of(x).absent
        elif isinstance(x, CommittedArray):
            x.forget_value()
        if hasattr(buffer, "shared"):
            x._buffer = backend().copied(buffer)


def in_placements(call: Call, traced: Traced) -> list[Any]:
    """The places that ``in_shardings`` asks for, for each leaf of the arguments; none if it asks for none."""
    asked = call.options.in_placements
    if asked is None:
        return []
    who = f"jit of {name_of(call.fun)}, in_shardings"
    if call.kwargs:
        raise ArgumentError(f"{who}: they are for positional arguments, but got by keyword: {', '.join(call.kwargs)}")
    placements: list[Any] = asked.of(call.args, who, "the positional arguments")
    for i, (placement, aval) in enumerate(zip(placements, traced.in_avals, strict=False)):
        check_fits(placement, aval.shape, f"{who}, {call.arg_name(i)}")
    return placements


def _asked_or_given(asked: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """The places that were asked for, of the first of some leaves, and those that they have for the others."""
    return [have if ask is None else ask for ask, have in itertools.zip_longest(asked, given)]


def _with_devices(placement: Any) -> Any:
    """A place; over the mesh that was set, if its own has no devices."""
    if (
        isinstance(placement, NamedSharding)
        and not isinstance(placement.mesh, Mesh)
        and isinstance(current_mesh(), Mesh)
    ):
        return NamedSharding(current_mesh(), placement.spec)
    return placement


def out_placements(call: Call, traced: Traced) -> list[Any]:
    """The places that ``out_shardings`` asks for, for each result; none if it asks for none."""
    asked = call.options.out_placements
    if asked is None:
        return []
    who = f"jit of {name_of(call.fun)}, out_shardings"
    avals = traced.out_avals
    placements: list[Any] = asked.of(tree.unflatten(traced.out_tree, avals), who, "the results")
    for i, (placement, aval) in enumerate(zip(placements, avals, strict=True)):
        check_fits(placement, aval.shape, f"{who}, result {i}")
    return placements


def _device(call: Call, placements: Sequence[Any], results: Sequence[Any], consts: Sequence[Any]) -> tuple[Any, bool]:
    """Where the program runs, and whether anybody asked for that."""
    if call.options.device is not None:
        return devices.device_named(call.options.device), True
    captured = [sig.placement for sig in committed_signatures(consts)]
    found: Any = None
    for placement in (*placements, *results, *captured):
        if placement is not None:
            what = f"the arguments, or shardings, of {call.fun_name}"
            found = placement.runs_on if found is None else devices.joined(found, placement.runs_on, what)
    return (devices.default_device(), False) if found is None else (found, True)


def _where_inputs_go(jaxpr: Jaxpr, results: list[Any], placements: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """The places of the results, of which those that are inputs go where ``in_shardings`` asks for these."""
    moved: dict[Any, Any] = {v: to for v, to, here in zip(jaxpr.invars, placements, given, strict=True) if to != here}
    if moved and not moved.keys().isdisjoint(jaxpr.outvars):
        results = results or [None] * len(jaxpr.outvars)
        results = [moved.get(v) if to is None else to for v, to in zip(jaxpr.outvars, results, strict=True)]
    return results


def _of_the_program(out_placements: Sequence[Any], out_index: list[int] | None) -> list[Any]:
    """The places of those results that the program computes."""
    if not out_placements or out_index is None:
        return list(out_placements)
    return [placement for placement, i in zip(out_placements, out_index, strict=True) if i >= 0]


def _without_forwarded(closed: ClosedJaxpr, out_placements: Sequence[Any]) -> tuple[list[int] | None, ClosedJaxpr]:
    """The program without results that are inputs, unless they have to be in a certain place; and where each result is
    to be found."""
    jaxpr = closed.jaxpr
    if any(placement is not None for placement in out_placements) or set(jaxpr.invars).isdisjoint(jaxpr.outvars):
        return None, closed
    inputs = {v: ~i for i, v in enumerate(jaxpr.invars)}
    out_index: list[int] = []
    outvars: list[Any] = []
    for a in jaxpr.outvars:
        if type(a) is Var and a in inputs:
            out_index.append(inputs[a])
        else:
            out_index.append(len(outvars))
            outvars.append(a)
    return out_index, ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, outvars), closed.consts)


def _aliases(
    closed: ClosedJaxpr, kept: list[int] | None, out_index: list[int] | None, call: Call
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The leaves that are donated, and for each input of the program that is, the result that takes its memory."""
    if not (call.options.donated_nums or call.options.donated_names):
        return (), {}
    flags = call.donated_leaves()
    inputs = range(len(flags)) if kept is None else [i for i in kept if i < len(flags)]  # without those of references
    forwarded = {~i for i in out_index or () if i < 0}
    free: dict[Any, deque[int]] = {}
    for k, a in enumerate(closed.out_avals):
        free.setdefault((a.shape, a.dtype), deque()).append(k)
    donated, aliases, unusable = [], {}, []
    for position, leaf in enumerate(inputs):
        if not flags[leaf] or leaf in forwarded:
            continue
        aval = closed.in_avals[position]
        matching = free.get((aval.shape, aval.dtype))
        if matching:
            aliases[position] = matching.popleft()
            donated.append(leaf)
        else:
            unusable.append(f"{call.arg_name(leaf)} of type {aval}")
    if unusable:
        source.warn(
            # It begins as JAX's warning does, by which programs filter it.
            f"Some donated buffers were not usable: of jit of {name_of(call.fun)} these arguments were donated, but no "
            f"result has their type, so that their memory cannot be used again, and they stay valid: "
            f"{'; '.join(unusable)}",
            DonationWarning,
        )
    return tuple(donated), aliases
