"""The stages of ``jit``: a function is traced, lowered to a StableHLO module, compiled, and run.

``jit`` runs all stages at the first call; ``jit(f).trace(...).lower().compile()`` runs them one at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback.backends.compiler import trees
from pullback.backends.compiler.backend import backend
from pullback.backends.devices import devices
from pullback.backends.devices.buffers import from_buffer, take
from pullback.backends.devices.devices import Device, Devices
from pullback.backends.devices.layouts import row_major
from pullback.backends.devices.memories import with_kinds
from pullback.backends.devices.shardings import NamedSharding, as_sharding, of_types
from pullback.backends.processes import forks
from pullback.core import source, tree
from pullback.core.arguments import is_listed
from pullback.core.array import (
    Array,
    ArrayImpl,
    CommittedArray,
    Signature,
    as_array,
    as_value,
    delete,
    fresh,
    signature_of,
    typeof,
)
from pullback.core.errors import ArgumentError, DonationWarning, IncompatibleDevicesError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.refs import RefCell
from pullback.core.runtime import runtime
from pullback.core.trace import Tracer, state
from pullback.core.types import ShapedArray
from pullback.core.user_types import has_user_types
from pullback.transforms.debugging.debug_nans import checked_run, checking
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit.caches import all_caches
from pullback.transforms.jit.jit_arguments import Call
from pullback.transforms.jit.placements import (
    device_of_program,
    in_placements,
    moved_with_inputs,
    of_the_program,
    out_placements,
    requested_or_actual,
    with_devices,
    with_sums,
)  # fmt: skip
from pullback.transforms.programs.jit_primitive import committed_signatures
from pullback.transforms.programs.lojax import is_high, lowered, lowered_values, raised_values
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.refs import contents

if TYPE_CHECKING:
    from pullback.backends.compiler.programs import Program


class ArgInfo(NamedTuple):
    """The type of one leaf of the arguments, and whether the leaf is donated.

    Attributes:
      aval: the type.
      donated: whether a result may take the memory of the leaf.
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
    """A program in HLO, the compiler's own language, with the method ``as_hlo_text`` for compatibility with JAX."""

    __slots__ = ()

    def as_hlo_text(self) -> str:
        """Return the text of the program."""
        return str(self)


class ModuleText(str):
    """The text of a program, which also has the attributes of the module of MLIR that it says, such as ``body``.

    The module has source locations. It is parsed when it is first asked for.
    """

    _located: str

    def __new__(cls, text: str, located: str) -> ModuleText:
        made = super().__new__(cls, text)
        made._located = located
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from pullback.backends.compiler.client import parsed

        found = self.__dict__.get("module")
        if found is None:
            found = self.__dict__["module"] = parsed(self._located)
        return getattr(found, name)

    def __reduce__(self) -> Any:
        return ModuleText, (str(self), self._located)


class Lowered:
    """A lowered function: a module, and how its inputs and results correspond to those of the function.

    Attributes:
      program: the module, for a device.
      used: the indices of the leaves of the arguments that the program takes, or None if it takes all.
      out_index: for each result of the function, the index of a result of the program, or ``~i`` if it is leaf ``i`` of
        the arguments, unchanged. None if the program returns all results.
      donated: the indices of the leaves of the arguments whose memory the program takes.
      asked_for: whether the user requested the device, or an argument is committed; the results are then committed.
      actual_placements: the placements of the arguments for which the function was lowered.
      high: the traced function, if arguments or results are values of users' types; ``traced`` is that of their arrays.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> lowered = jit(lambda x: 2 * x).lower(jnp.ones(3))
    >>> "stablehlo.multiply" in lowered.as_text()
    True
    """

    __slots__ = (
        "__weakref__", "actual_placements", "asked_for", "donated", "high", "out_index", "program", "traced", "used"
    )  # fmt: skip

    def __init__(self, traced: Any, call: Call, signatures: Sequence[Signature]) -> None:
        from pullback.backends.compiler import programs

        self.traced = traced
        self.high: Any = None
        closed = lowered(traced.jaxpr) if is_high(traced.jaxpr) else traced.jaxpr
        self.actual_placements = [k.placement for k in signatures]
        name = call.fun_name
        results = out_placements(call, traced)
        if results:
            results += [None] * (len(closed.out_avals) - len(results))  # for the contents of references
        requested = in_placements(call, traced.in_avals)
        placements = list(map(with_devices, requested_or_actual(requested, self.actual_placements)))
        results = moved_with_inputs(closed.jaxpr, list(map(with_devices, results)), placements, self.actual_placements)
        closed = with_sums(closed, results)
        captured = [sig.placement for sig in committed_signatures(closed.consts)]
        found = of_types(closed.out_avals, [*placements, *captured], results)
        results = with_kinds(found, closed.jaxpr, placements, results)
        device, asked_for = device_of_program(call, placements, results, closed.consts)
        moves = asked_for and _moves(self.actual_placements, device)
        self.out_index, jaxpr = (None, closed) if moves else _without_forwarded(closed, results)
        jaxpr, used = dce_closed_jaxpr(jaxpr, (True,) * len(jaxpr.jaxpr.outvars), instantiate=call.options.keep_unused)
        self.used = None if all(used) else [i for i, u in enumerate(used) if u]
        self.donated, aliases = _aliases(jaxpr, self.used, self.out_index, call)
        if checking():
            aliases = {}  # a program that returns a NaN runs again on its inputs
        self.program = programs.Lowered(
            jaxpr, f"jit_{name}", device, aliases, asked_for=asked_for,
            in_placements=placements if self.used is None else [placements[i] for i in self.used],
            out_placements=of_the_program(results, self.out_index),
            mesh=next((p.mesh for p in (*placements, *results) if isinstance(p, NamedSharding)), None),
        )  # fmt: skip
        self.asked_for = self.program.asked_for

    @property
    def in_tree(self) -> Any:
        """The tree of the arguments, ``(args, kwargs)``, without the static ones."""
        return (self.high or self.traced).in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the results."""
        return (self.high or self.traced).out_tree

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct``."""
        return (self.high or self.traced).out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
          dialect: ``"stablehlo"`` (the default), or ``"hlo"`` for the compiler's own language.
          debug_info: whether to include the source location of each operation in the user's program.

        Raises:
          ArgumentError: ``dialect`` is unknown (a ValueError).
        """
        return self._in_dialect(self.program.module.text(locations=debug_info), dialect)

    @staticmethod
    def _in_dialect(text: str, dialect: str | None) -> str:
        if dialect in (None, "stablehlo"):
            return text
        if not is_listed(dialect, ("hlo",)):
            raise ArgumentError(f"as_text: dialect must be 'stablehlo' or 'hlo', got {dialect!r}")
        return backend().hlo_text(text)

    @property
    def args_info(self) -> Any:
        """Information on the arguments: a tree like ``(args, kwargs)`` of ``ArgInfo``."""
        return (self.high or self.traced).args_info

    @property
    def in_avals(self) -> Any:
        """The types of the arguments: a tree like ``(args, kwargs)``."""
        return tree.unflatten(self.in_tree, (self.high or self.traced).in_avals)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The indices of the donated leaves of the arguments."""
        return self.traced.donate_argnums  # type: ignore[no-any-return]

    def compiler_ir(self, dialect: str | None = None) -> str:
        """Return the program as text, which has the attributes of JAX's representation, too.

        The text for ``"hlo"`` has the method ``as_hlo_text``. The StableHLO text has the attributes of a module of the
        Python bindings of MLIR: ``body``, ``operation`` and the others.

        >>> import pullback.numpy as jnp
        >>> from pullback import jit
        >>> module = jit(jnp.sin).lower(1.0).compiler_ir()
        >>> print(module.body.operations[0].name)
        "main"
        """
        text = self.as_text(dialect)
        return HloText(text) if dialect == "hlo" else ModuleText(text, self.as_text(debug_info=True))

    def cost_analysis(self) -> dict[str, float]:
        """Return the compiler's estimate of operations and memory traffic, for the program before optimisation."""
        return backend().cost_analysis(self.program.module.text(), self.program.device)

    def compile(
        self, compiler_options: dict[str, Any] | None = None, *, device_assignment: Sequence[Device] | None = None
    ) -> Compiled:
        """Compile the program.

        Args:
          compiler_options: options of XLA by name, such as ``{"xla_cpu_enable_fast_math": True}``.
          device_assignment: the devices, which the arguments and shardings determine already.

        Raises:
          CompilationError: the compiler rejects the program or an option (a RuntimeError).
          IncompatibleDevicesError: ``device_assignment`` is other devices (a RuntimeError and ValueError).
        """
        try:
            own = [*getattr(self.program.device, "devices", (self.program.device,))]
            if device_assignment is not None and [*device_assignment] != own:
                raise IncompatibleDevicesError(
                    f"compile: the arguments and shardings of {self.traced.fun_name} determine the devices {own}, but "
                    f"device_assignment is {device_assignment!r}"
                )
            options = {**dict(self.traced.call.options.compiler_options), **(compiler_options or {})}
            return Compiled(self, tuple(sorted(options.items())))
        except Exception as error:
            source.hide_internal_frames(error)
            raise


class Compiled:
    """A function compiled for arguments of some types. Calls omit the static arguments.

    ``jit`` caches it for later calls.

    Attributes:
      signatures: the type and placement of each result of the program.
      unflatten: makes the tree of the results; None for a single array.
      captured: the captured arrays, on the program's device; the program takes them after the arguments.
      used, out_index: those of :class:`Lowered`.
      fits_shardings: whether the shardings of the arguments are those of the program's inputs.
      donated: the indices of the leaves of the arguments whose memory the program takes.
      quick: whether a call only has to run the program on the leaves that it uses, wrap its results, hand the others
        through, and delete donated arrays.
      simple: whether, moreover, the program takes all leaves and returns all results.
      start: ``start(buffers)`` runs the program.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> compiled = jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
    >>> print(compiled(jnp.ones(3)))
    [2. 2. 2.]
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
        "out_index",
        "program",
        "quick",
        "refs",
        "signatures",
        "simple",
        "start",
        "unflatten",
        "used",
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
            self.program.in_shardings is not None and self.program.in_shardings == lowered.actual_placements
        )
        self.used, self.out_index = lowered.used, lowered.out_index
        self.quick = not (
            self.refs is not None
            or (devices.here.several_in_use and not self.fits_shardings) or lowered.program.module.callbacks or checked
            or (self.program.in_shardings is not None and not self.fits_shardings)
        )  # fmt: skip
        self.simple = self.quick and self.used is None and self.out_index is None

    in_tree = property(lambda self: self.lowered.in_tree, doc="The tree of the arguments, without the static ones.")
    out_tree = property(lambda self: self.lowered.out_tree, doc="The tree of the results.")
    args_info = property(lambda self: self.lowered.args_info, doc="A tree like the arguments, of ``ArgInfo``.")
    in_avals = property(lambda self: self.lowered.in_avals, doc="A tree like the arguments, of their types.")
    donate_argnums = property(lambda self: self.lowered.donate_argnums, doc="The leaves whose memory may be taken.")

    def run(self, leaves: Sequence[Any], own: Sequence[RefCell] = ()) -> Any:
        """Run the program on the leaves of the arguments; return the tree of the results.

        ``own`` are the references among the leaves: the program's new contents are written to these references.
        """
        refs = self.refs
        if refs is not None:
            refs.check(own)
            leaves = [*leaves, *refs.contents()]
        lowered, program = self.lowered, self.program
        used, donated, out_index = lowered.used, lowered.donated, lowered.out_index
        donated_arrays = [leaves[i] for i in donated]
        donate(donated_arrays, program.device)  # before reading the buffers, some of which it replaces by copies
        buffers = program.buffers(leaves if used is None else [leaves[i] for i in used])
        if donated and (len(set(map(id, buffers))) < len(buffers) or devices.here.several_in_use):
            self._separate_donated(donated_arrays, buffers)
        outs: list[ArrayImpl] = list(map(from_buffer, self.start(buffers), self.signatures))
        if out_index is not None:
            outs = [outs[i] if i >= 0 else fresh(leaves[~i]) for i in out_index]
        delete(*donated_arrays)
        if refs is not None:
            outs = refs.written_back(outs, own)
        unflatten = self.unflatten
        return outs[0] if unflatten is None else unflatten(outs)

    def _separate_donated(self, arrays: Sequence[Any], buffers: list[Any]) -> None:
        """Raise if an array is donated twice; copy the buffers of donated arrays if two inputs share a buffer.

        Args:
          arrays: the donated arrays.
          buffers: the inputs of the program; updated in place.
        """
        check_donated_twice(arrays)
        if len(set(map(id, buffers))) < len(buffers):
            used = self.lowered.used
            for i in self.lowered.donated:  # a program must not take a donated buffer twice
                position = i if used is None else used.index(i)
                buffers[position] = backend().copied(buffers[position])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arguments; the same as calling the object."""
        return self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            name = self.lowered.traced.fun_name
            forks.check(f"running the compiled {name}")
            leaves, treedef = tree.flatten_call(args, kwargs)
            if self.lowered.high is not None:
                return self._call_high(self.lowered.high, leaves, treedef)
            own = [x for x in leaves if isinstance(x, RefCell)]
            arrays = [x if isinstance(x, Array) else as_array(contents([x])[0] if x in own else x) for x in leaves]
            self._check(name, arrays, treedef)
            expected = [isinstance(x, RefCell) for x in self.lowered.traced.call.leaves]
            if expected != [isinstance(x, RefCell) for x in leaves]:
                raise ArgumentError(
                    f"the compiled {name} takes references only for arguments that were references when it was traced"
                )
            if any(isinstance(x, Tracer) for x in arrays):
                raise ArgumentError(
                    f"the compiled {name} was called within a transformation ({state.trace.describe()}), but a "
                    f"compiled program cannot be transformed: use jit(f) itself"
                )
            return self.run(arrays, own)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def _call_high(self, high: Any, leaves: Sequence[Any], treedef: Any) -> Any:
        """Call the program on values of users' types; ``high`` is the traced function of these."""
        values = list(map(as_value, leaves))
        types = list(map(typeof, values))
        if treedef != high.in_tree or any(a != b for a, b in zip(types, high.in_avals) if has_user_types([a, b])):
            raise ArgumentError(
                f"the compiled {high.fun_name} takes arguments of the types {high.in_avals} in the tree {high.in_tree}"
                f", but got {types} in {treedef}"
            )
        arrays = lowered_values(values)
        self._check(high.fun_name, arrays, self.lowered.traced.in_tree)
        outs = self.run(list(map(as_array, arrays)), [])
        return tree.unflatten(high.out_tree, raised_values(high.out_avals, outs))

    def _check(self, name: str, arrays: Sequence[Any], treedef: Any) -> None:
        """Raise unless the arguments have the tree and the types for which the function was compiled.

        ``name`` is the function's name, for error messages.
        """
        if treedef != self.lowered.traced.in_tree:
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
        """The shardings of the arguments: a tree like ``(args, kwargs)``."""
        program, used = self.program, self.lowered.used
        placements: list[Any] = list(self.lowered.actual_placements)
        for position, i in enumerate(range(len(placements)) if used is None else used):
            placements[i] = program.device if program.in_shardings is None else program.in_shardings[position]
        return tree.unflatten(self.in_tree, list(map(_as_sharding, placements)))

    @property
    def output_shardings(self) -> Any:
        """The shardings of the results, a tree."""
        program, out_index = self.program, self.lowered.out_index
        found = [program.device] * len(self.signatures) if program.in_shardings is None else program.out_shardings
        if out_index is not None:
            actual = self.lowered.actual_placements
            found = [found[i] if i >= 0 else actual[~i] for i in out_index]
        return tree.unflatten(self.out_tree, list(map(_as_sharding, found)))

    @property
    def out_info(self) -> Any:
        """The types of the results, a tree of ``ShapeDtypeStruct`` with their shardings."""
        return tree.tree_map(lambda a, s: a.update(sharding=s), self.lowered.out_info, self.output_shardings)

    @property
    def input_formats(self) -> Any:
        """The shardings and layouts of the arguments: ``(args, kwargs)`` as trees of ``Format``."""
        return _formats(self.input_shardings, self.lowered.traced.in_avals)

    @property
    def output_formats(self) -> Any:
        """The shardings and layouts of the results, a tree of ``Format``."""
        return _formats(self.output_shardings, tree.leaves(self.out_info))

    def as_text(self) -> str:
        """The optimised program as text."""
        return self.program.executable.text()

    def cost_analysis(self) -> dict[str, float]:
        """Return the compiler's estimate of operations (``flops``) and memory traffic (``bytes accessed``)."""
        return self.program.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Return the memory that arguments, results and temporary values take, in bytes."""
        return self.program.executable.memory_analysis()

    def _repr_html_(self) -> str | None:
        return runtime.html_of(self)

    def runtime_executable(self) -> Any:
        """Return the executable object of the runtime."""
        return self.program.executable.loaded


def check_donated_twice(arrays: Sequence[Any]) -> None:
    """Raise if an array is donated twice.

    Raises:
      ArgumentError: an array occurs twice (a ValueError and TypeError).
    """
    if len(set(map(id, arrays))) < len(arrays):
        raise ArgumentError("an array was donated twice in one call: its memory can be used for one result only")


def _formats(shardings: Any, types: Sequence[Any]) -> Any:
    """Make a tree of formats, with row-major layouts, from a tree of shardings and the types of its leaves."""
    leaves, treedef = tree.flatten(shardings)
    return tree.unflatten(treedef, [row_major(len(a.shape), s) for s, a in zip(leaves, types, strict=True)])


def _as_sharding(placement: Any) -> Any:
    """Convert a placement, a device or a sharding, to a sharding; None stands for the default device."""
    return as_sharding(placement or devices.default_device())


def _not_simple() -> None:
    """Disable the fast path of compiled functions, which does not check the device of each argument.

    This is called when a second device is first used. Functions that fit the shardings of their arguments keep the
    path.
    """
    for cache in all_caches.living():
        for entry in list(cache.values()):  # a copy, since other threads may add entries
            if isinstance(entry, Compiled) and not entry.fits_shardings:
                entry.quick = entry.simple = False


runtime.several_devices_used.append(_not_simple)


def donate(arrays: Iterable[Any], device: Devices) -> None:
    """Prepare arrays for donation to a program on a device, or on several.

    Hand over the memory of arrays on the host. Drop the host's views of arrays on devices, and copy a buffer that
    another array shares.
    """
    for x in arrays:
        try:
            buffer = x._buffer
        except AttributeError:
            if type(x) is ArrayImpl and isinstance(device, Device):
                take(x, device)
            continue
        if type(x) is ArrayImpl:
            x._host_value = signature_of(x).absent
        elif isinstance(x, CommittedArray):
            x.forget_value()
        if hasattr(buffer, "shared"):
            x._buffer = backend().copied(buffer)


def _moves(placements: Sequence[Any], device: Any) -> bool:
    """Whether a program on a device that was asked for gets inputs from elsewhere, which it has to return there."""
    if not isinstance(device, devices.Device):
        return False
    return any(p is not device and (p is not None or not device.is_host) for p in placements)


def _without_forwarded(closed: ClosedJaxpr, out_placements: Sequence[Any]) -> tuple[list[int] | None, ClosedJaxpr]:
    """Remove from a program the results that are inputs, as the caller can return these itself.

    No result is removed if any of ``out_placements`` is not None.

    Returns:
      For each result of ``closed`` its index among the remaining results, or ``~i`` if it is input ``i``; None if no
      result was removed. And the new program.
    """
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
    closed: ClosedJaxpr, used: list[int] | None, out_index: list[int] | None, call: Call
) -> tuple[tuple[int, ...], dict[int, int]]:
    """Choose, for each donated input, a result of equal shape and dtype that takes its memory.

    Warn of donated arguments that no result can use.

    Args:
      closed: the program.
      used: the indices of the leaves of the arguments that are inputs of the program; None for all.
      out_index: for each result of the function, ``~i`` if it is the unchanged leaf ``i``; None if there are none.
      call: the arguments.

    Returns:
      The indices of the leaves whose memory is taken; and a dictionary from the index of an input to that of the
      result.
    """
    if not (call.options.donated_nums or call.options.donated_names):
        return (), {}
    flags = call.donated_leaves()
    inputs = range(len(flags)) if used is None else [i for i in used if i < len(flags)]  # without references
    forwarded = {~i for i in out_index or () if i < 0}
    free: dict[Any, deque[int]] = {}
    for k, a in enumerate(closed.out_avals):
        free.setdefault((a.shape, a.dtype), deque()).append(k)
    donated, aliases, unusable = [], {}, []
    for position, leaf in enumerate(inputs):
        if not flags[leaf] or leaf in forwarded:  # a forwarded array is itself the result, so it must stay valid
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
            # It begins like JAX's warning, which programs filter by these words.
            f"Some donated buffers were not usable: of jit of {name_of(call.fun)} these arguments were donated, but no "
            f"result has their type, so their memory cannot be reused, and they stay valid: "
            f"{'; '.join(unusable)}",
            DonationWarning,
        )
    return tuple(donated), aliases
