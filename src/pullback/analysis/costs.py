"""What one call of a compiled function costs each device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from pullback.analysis.collectives import Collective, collectives
from pullback.analysis.compiled_times import by_line, module_name, seconds_of_instructions
from pullback.analysis.line_costs import LineCosts, seconds_by_line
from pullback.analysis.work import Work, work_of
from pullback.core import source, tree
from pullback.core.arguments import flag, require_function
from pullback.core.errors import ArgumentError, PullbackError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.source import Scope
from pullback.core.trace import state
from pullback.display.pages import amount, escaped, line, page
from pullback.transforms.jit.jit import JitFunction, jit


@dataclass(frozen=True)
class Cost:
    """What one call of a compiled function costs each device. ``print(cost)`` shows it as a table, with the lines.

    Attributes:
      devices: the number of devices that run the program.
      peak_memory: the bytes of the arguments, the results and the temporary values on a device; a result in the memory
        of a donated argument counts once.
      temporaries: the bytes of the temporary values alone.
      collectives: the operations by which the devices exchange elements.
      lines: what the whole program computes and moves in memory, by line.

    >>> import pullback
    >>> from pullback import analysis
    >>> found = analysis.cost(lambda x: x @ x)(pullback.ShapeDtypeStruct((100, 100), "float32"))
    >>> found.devices, found.peak_memory, found.collectives
    (1, 80000, ())
    """

    devices: int
    peak_memory: int
    temporaries: int
    collectives: tuple[Collective, ...]
    lines: LineCosts = field(default=LineCosts("", (), {}), repr=False)

    @property
    def moved(self) -> dict[tuple[Any, ...], float]:
        """The bytes that a device sends in one call, by the axes of the mesh along which they travel.

        The body of a loop of unknown length counts once.
        """
        found: dict[tuple[Any, ...], float] = {}
        for each in self.collectives:
            found[each.axes] = found.get(each.axes, 0) + each.moved * (each.times or 1)
        return found

    def seconds(self, bandwidth: float | Mapping[Any, float]) -> float:
        """Return the time in which the elements are exchanged, if nothing else limits it and exchanges take turns.

        Args:
          bandwidth: bytes that a device can send in a second; or a dictionary of these by axis. Elements that travel
            along several axes have the lowest of their bandwidths.

        Raises:
          ArgumentError: a bandwidth is not positive, or that of an axis is missing (a ValueError).

        >>> from pullback.analysis import Collective, Cost
        >>> cost = Cost(8, 0, 0, (Collective("all-reduce", ("data",), 8, 4_000_000_000, 1, ""),))
        >>> cost.seconds(bandwidth=50e9)
        0.14
        """
        return sum(moved / min(_bandwidths("seconds", bandwidth, axes)) for axes, moved in self.moved.items())

    def describe(self, bandwidth: float | Mapping[Any, float], measured: float | None = None) -> str:
        """Return a sentence for each part of the mesh along which elements travel: how many, and how long it takes.

        Args:
          bandwidth: as for :meth:`seconds`.
          measured: how long a call takes altogether, in seconds, if that is known.

        Raises:
          ArgumentError: a bandwidth is not positive, or that of an axis is missing, or ``measured`` is not positive (a
            ValueError).

        >>> from pullback.analysis import Collective, Cost
        >>> cost = Cost(8, 0, 0, (Collective("all-reduce", ("data",), 8, 743_000_000, 1, "model.py:31"),))
        >>> print(cost.describe(bandwidth=50e9, measured=0.14))
        each call moves 1.3 GB a device over data; at 50 GB/s that is 26 ms of 140 ms
        """
        if measured is not None and not 0 < measured < math.inf:
            raise ArgumentError(f"describe: measured must be a positive number of seconds, got {measured!r}")
        of = "" if measured is None else f" of {_time(measured)}"
        lines = []
        for axes, moved in self.moved.items():
            slowest = min(_bandwidths("describe", bandwidth, axes))
            lines.append(f"{_moves(axes, moved)}; at {amount(slowest)}/s that is {_time(moved / slowest)}{of}")
        return "\n".join(lines) or "each call moves nothing between devices"

    def __str__(self) -> str:
        devices = f"{self.devices} device{'s' * (self.devices > 1)}"
        lines = [f"{devices}, {amount(self.peak_memory)} on each, {amount(self.temporaries)} temporary"]
        for axes, moved in self.moved.items():
            lines.append(_moves(axes, moved))
            lines += [
                f"  {each.kind:20} {amount(each.nbytes):>10} of {each.devices} devices, "
                f"{_often(each.times)}  {each.line}".rstrip()
                for each in self.collectives
                if each.axes == axes
            ]
        return "\n".join([*lines, str(self.lines)] if self.lines.work else lines)

    def _repr_html_(self) -> str:
        own = str(replace(self, lines=LineCosts("", (), {}))).splitlines()
        return page(*[line(escaped(each)) for each in own], self.lines._repr_html_() if self.lines.work else "")


def _moves(axes: tuple[Any, ...], moved: float) -> str:
    return f"each call moves {amount(moved)} a device over {', '.join(map(str, axes))}"


def _time(seconds: float) -> str:
    """Return a time as text: with two digits, or with all before the point."""
    unit, name = next(((u, n) for u, n in ((1.0, "s"), (1e-3, "ms")) if seconds >= u), (1e-6, "µs"))
    count = seconds / unit
    return f"{count:.0f} {name}" if count >= 10 else f"{count:.2g} {name}"


def _often(times: int | None) -> str:
    return "in a loop of unknown length" if times is None else "once" if times == 1 else f"{times} times"


def _bandwidths(name: str, bandwidth: float | Mapping[Any, float], axes: Iterable[Any]) -> list[float]:
    """Return the bandwidths along ``axes``; raise unless all are positive."""
    missing = [axis for axis in axes if isinstance(bandwidth, Mapping) and axis not in bandwidth]
    if missing:
        raise ArgumentError(f"{name}: bandwidth has no entry for the axis {missing[0]!r} of the mesh: got {bandwidth}")
    found = [bandwidth[axis] for axis in axes] if isinstance(bandwidth, Mapping) else [bandwidth]
    if not all(isinstance(each, Real) and each > 0 for each in found):
        raise ArgumentError(f"{name}: bandwidth must be positive, in bytes a second, got {bandwidth}")
    return found


# long: half of it is its documentation
def cost(fun: Callable[..., Any], *, measure: bool = False) -> Callable[..., Cost]:
    """Return a function of the same arguments that says what one call of ``fun`` costs, without the call.

    The attribute ``lines`` has the floating-point operations and the bytes that are read and written, by line:
    those of the whole program, over all devices. They are counted by the traits of its operations, which a compiled
    program fuses; so its bytes are fewer. Measured times of a compiled function are those of a profile: of operations
    that are fused, their lines share the time. Those of another function are of operations that run one by one.

    The function is compiled, and the compiled program is read. Meshes may be larger than the machine: virtual CPU
    devices (``pullback.config.update("num_cpu_devices", 512)`` before the first program) show how a program is divided.
    The compiler's decisions for CPUs can differ from those for accelerators.

    Args:
      fun: a function, or a compiled function ``jit(f, in_shardings=...)``. The arguments may be of the type
        ``ShapeDtypeStruct``, with shardings.
      measure: whether to run ``fun`` and measure the time of each line: a compiled function twice, and another function
        once, operation by operation.

    Returns:
      A function of the arguments of ``fun`` that returns a :class:`Cost`.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError).
      ProfilerError: a compiled function is to be measured while a profile is being recorded (a RuntimeError and
        ValueError).

    >>> import pullback
    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> print(analysis.cost(jnp.sin)(jnp.ones(1000)))  # doctest: +ELLIPSIS
    1 device, 8 kB on each, 0 bytes temporary
    sin: 0 floating-point operations, 1 k functions, 4 kB read, 4 kB written, 0.125 a byte
           share  operations       moved
    ...
    >>> lines = analysis.cost(jnp.sin)(jnp.ones(1000)).lines
    >>> lines.transcendentals, lines.bytes_read, lines.bytes_written
    (1000, 4000.0, 4000.0)
    """
    require_function("cost", "fun", fun)
    measure = flag("cost", "measure", measure)
    compiled_function = fun if isinstance(fun, JitFunction) else jit(fun)

    def priced(*args: Any, **kwargs: Any) -> Cost:
        lowered = compiled_function.lower(*args, **kwargs)
        compiled = lowered.compile()
        module = lowered.program.module
        meshes = [*module.meshes, *module.logical_meshes]
        memory = compiled.memory_analysis()
        held = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
        work = tuple(work_of(_program(fun, compiled_function, args, kwargs)))
        seconds: dict[str, float] = {}
        if measure and isinstance(fun, JitFunction):
            seconds = _seconds_compiled(fun, args, kwargs, compiled.as_text(), work)
        elif measure:
            seconds = seconds_by_line(fun, args, kwargs)
        return Cost(
            module.size, held + memory.temp_size_in_bytes, memory.temp_size_in_bytes,
            collectives(compiled.as_text(), meshes[0]) if meshes else (),
            LineCosts(source.plain_name(fun), work, seconds),
        )  # fmt: skip

    return priced


def _seconds_compiled(
    fun: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], text: str, work: Sequence[Work]
) -> dict[str, float]:
    """Run a compiled function twice; return the time of each line in the second run."""

    def run() -> None:
        for x in tree.leaves(fun(*args, **kwargs)):
            getattr(x, "block_until_ready", int)()

    lines = [w.line for w in sorted(work, key=lambda w: w.total)]
    run()
    return by_line(text, seconds_of_instructions(run, module_name(text)), lines)


def _program(fun: Any, compiled_function: JitFunction, args: Any, kwargs: Any) -> ClosedJaxpr:
    """Return the program of a function, in which the operations of derivatives have the lines of the function.

    A compiled function is traced anew for this; one with static arguments has the program that is known.
    """
    own = fun.__wrapped__ if isinstance(fun, JitFunction) else fun

    def within(*xs: Any, **options: Any) -> Any:
        scope, state.scope = state.scope, Scope("")  # within a scope, tapes note the lines of operations
        try:
            return own(*xs, **options)
        finally:
            state.scope = scope

    try:
        return jit(within).trace(*args, **kwargs).jaxpr
    except PullbackError:
        return compiled_function.trace(*args, **kwargs).jaxpr
